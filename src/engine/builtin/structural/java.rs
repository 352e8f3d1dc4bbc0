//! Rules for Java.

use tree_sitter::Node;

use super::interpolation::{Piece, built, is_command_with_data};
use super::nodes::{MAX_CALLEE, arguments, bare, children, contains, field, mentions};
use super::rules;
use super::scan::{Found, OPTED_OUT, Site};
use super::sql;

pub(super) fn check<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    match site.node.kind() {
        "method_invocation" => call(site, found),
        "object_creation_expression" => creation(site, found),
        "field_access" => trust_all_constant(site, found),
        "method_declaration" => trust_manager(site, found),
        "binary_expression" => comparison(site, found),
        _ => {}
    }
}

fn call<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if site.scan.in_tests {
        return;
    }
    let name = site.field_text("name");
    let arguments = arguments(site.node);
    let Some(first) = arguments.first().map(|first| bare(*first)) else {
        return;
    };
    match name {
        b"executeQuery"
        | b"executeUpdate"
        | b"execute"
        | b"executeLargeUpdate"
        | b"addBatch"
        | b"prepareStatement"
        | b"prepareCall"
        | b"createQuery"
        | b"createNativeQuery"
        | b"createSQLQuery"
        | b"queryForObject"
        | b"queryForList"
        | b"rawQuery"
        | b"execSQL"
            if sql::pastes_value(site, site.resolve(first)) =>
        {
            found.push((rules::SQL, first));
        }
        b"exec" if is_runtime(site) => shell(site, first, found),
        b"setConfig"
            if arguments.len() == 2
                && site.text(arguments[0]) == b"\"StrictHostKeyChecking\""
                && site.text(arguments[1]) == b"\"no\""
                && !site.is_opted_into(OPTED_OUT) =>
        {
            found.push((rules::SSH_HOST_KEY, site.node));
        }
        b"setHostnameVerifier"
        | b"setDefaultHostnameVerifier"
        | b"hostnameVerifier"
        | b"setSSLHostnameVerifier"
            if always_true(site, first) && !site.is_opted_into(OPTED_OUT) =>
        {
            found.push((rules::TLS, site.node));
        }
        _ => {}
    }
}

fn is_runtime(site: &Site<'_, '_>) -> bool {
    let object = site.field_text("object");
    if object.len() > MAX_CALLEE {
        return false;
    }
    contains(object, "getRuntime()") || mentions(object, &["runtime"])
}

/// `Runtime.exec` has no shell of its own: only a text that starts one counts.
fn shell<'a>(site: &Site<'_, 'a>, command: Node<'a>, found: &mut Found<'a>) {
    let value = site.resolve(command);
    let target = if value.kind() == "array_creation_expression" {
        let parts = field(value, "value").map_or_else(Vec::new, |list| children(list, 8));
        match parts
            .iter()
            .position(|part| matches!(site.text(*part), b"\"-c\"" | b"\"/c\"" | b"\"/C\""))
        {
            Some(flag) => parts.get(flag + 1).copied(),
            None => None,
        }
    } else {
        let starts_shell = built(site, value).is_some_and(|pieces| {
            matches!(pieces.first(), Some(Piece::Text(head)) if mentions(head, &["sh -c", "cmd /c", "cmd.exe /c"]))
        });
        starts_shell.then_some(value)
    };
    if target.is_some_and(|target| is_command_with_data(site, target, &[])) {
        found.push((rules::SHELL, command));
    }
}

/// `(host, session) -> true`.
fn always_true(site: &Site<'_, '_>, verifier: Node<'_>) -> bool {
    verifier.kind() == "lambda_expression"
        && field(verifier, "body").is_some_and(|body| site.text(body) == b"true")
}

fn creation<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if site.scan.in_tests {
        return;
    }
    match site.field_text("type") {
        b"NoopHostnameVerifier" | b"AllowAllHostnameVerifier" | b"TrustAllStrategy"
            if !site.is_opted_into(OPTED_OUT) =>
        {
            found.push((rules::TLS, site.node));
        }
        b"ObjectInputStream" => {
            let Some(source) = arguments(site.node).first().copied() else {
                return;
            };
            let source = site.text(site.resolve(source));
            if contains(source, "getInputStream()")
                && mentions(source, &["socket", "request", "conn", "exchange", "client"])
            {
                found.push((rules::DESERIALISATION, site.node));
            }
        }
        _ => {}
    }
}

fn trust_all_constant<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let name = site.field_text("field");
    let off = matches!(name, b"ALLOW_ALL_HOSTNAME_VERIFIER")
        || (name == b"INSTANCE"
            && matches!(
                site.field_text("object"),
                b"NoopHostnameVerifier" | b"TrustAllStrategy" | b"InsecureTrustManagerFactory"
            ));
    // A constant that is only compared with, or defined by another, is not in use.
    let used = site
        .parent()
        .is_some_and(|parent| !matches!(parent.kind(), "binary_expression" | "import_declaration"));
    if off && used && !site.scan.in_tests && !site.is_opted_into(OPTED_OUT) {
        found.push((rules::TLS, site.node));
    }
}

/// `checkServerTrusted` without a body, and a `verify(String, SSLSession)` that returns true.
fn trust_manager<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let Some(body) = field(site.node, "body") else {
        return;
    };
    let statements = children(body, 2);
    let accepts_all = match site.field_text("name") {
        b"checkServerTrusted" => {
            statements.is_empty() && contains(site.field_text("parameters"), "X509Certificate")
        }
        b"verify" => {
            contains(site.field_text("parameters"), "SSLSession")
                && matches!(statements.as_slice(), [only] if site.text(*only) == b"return true;")
        }
        _ => false,
    };
    if accepts_all && !site.scan.in_tests && !site.is_opted_into(OPTED_OUT) {
        found.push((rules::TLS, field(site.node, "name").unwrap_or(site.node)));
    }
}

fn comparison<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if !matches!(site.field_text("operator"), b"==" | b"!=") {
        return;
    }
    let sides = [field(site.node, "left"), field(site.node, "right")];
    let is = |wanted: &dyn Fn(Node<'_>) -> bool| {
        sides.iter().flatten().filter(|side| wanted(**side)).count()
    };
    if is(&|side| side.kind() == "string_literal") == 1 {
        let constant = is(&|side| side.kind() == "null_literal" || is_constant(site.text(side)));
        if constant == 0 {
            found.push((rules::LITERAL_IDENTITY, site.node));
        }
    }
    if is(&|side| matches!(site.text(side), b"Double.NaN" | b"Float.NaN")) == 1 {
        found.push((rules::NAN_COMPARISON, site.node));
    }
}

/// Constants are interned like literals, so comparing them by identity works.
fn is_constant(name: &[u8]) -> bool {
    let name = super::nodes::last_segment(name);
    !name.is_empty()
        && name
            .iter()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
}

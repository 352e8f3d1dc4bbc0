//! Rules for JavaScript and TypeScript.

use tree_sitter::Node;

use super::interpolation::{glues_data, is_command_with_data};
use super::nodes::{
    MAX_CALLEE, arguments, bare, contains, field, last_segment, mentions, one_of_two,
};
use super::rules;
use super::scan::{Found, OPTED_OUT, Site};
use super::sql;

pub(super) fn check<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    match site.node.kind() {
        "debugger_statement" => found.push((rules::DEBUGGER, site.node)),
        "pair" => tls_option(site, found),
        "assignment_expression" => tls_assignment(site, found),
        "binary_expression" => nan(site, found),
        "call_expression" => call(site, found),
        "new_expression" => constructor(site, found),
        _ => {}
    }
}

/// `rejectUnauthorized: false` in an object.
fn tls_option<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let key = site.field_text("key");
    let key = key.trim_ascii_start();
    let named = matches!(
        key,
        b"rejectUnauthorized" | b"\"rejectUnauthorized\"" | b"'rejectUnauthorized'"
    );
    if named && site.field_text("value") == b"false" && !is_server(site) && may_report_tls(site) {
        found.push((rules::TLS, site.node));
    }
}

/// A server that asks for client certificates and looks at them itself sets the same option for another purpose.
fn is_server(site: &Site<'_, '_>) -> bool {
    site.parent()
        .is_some_and(|object| contains(site.text(object), "requestCert"))
}

/// `options.rejectUnauthorized = false`, `process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0"`.
fn tls_assignment<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let right = site.field_text("right");
    let off = match site.last_of("left") {
        b"rejectUnauthorized" => right == b"false",
        b"NODE_TLS_REJECT_UNAUTHORIZED" => is_zero(right),
        _ => field(site.node, "left").is_some_and(|left| {
            left.kind() == "subscript_expression"
                && contains(site.text(left), "NODE_TLS_REJECT_UNAUTHORIZED")
                && is_zero(right)
        }),
    };
    if off && may_report_tls(site) {
        found.push((rules::TLS, site.node));
    }
}

fn is_zero(value: &[u8]) -> bool {
    matches!(value, b"0" | b"'0'" | b"\"0\"" | b"`0`")
}

fn may_report_tls(site: &Site<'_, '_>) -> bool {
    !site.scan.in_tests && !site.is_opted_into(OPTED_OUT)
}

fn nan<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if matches!(site.field_text("operator"), b"==" | b"===" | b"!=" | b"!==")
        && one_of_two(
            ["left", "right"].map(|side| matches!(site.field_text(side), b"NaN" | b"Number.NaN")),
        )
    {
        found.push((rules::NAN_COMPARISON, site.node));
    }
}

fn call<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let Some(callee) = field(site.node, "function") else {
        return;
    };
    let arguments = arguments(site.node);
    let name = site.text(callee);
    if name.len() > MAX_CALLEE {
        return;
    }
    let last = last_segment(name);
    if site.scan.in_tests {
        focused(site, name, &arguments, found);
        return;
    }
    let Some(first) = arguments.first().map(|first| bare(*first)) else {
        return;
    };
    match last {
        b"exec" | b"execSync" if runs_shell(site, name) => shell(site, first, found),
        b"query" | b"execute" | b"raw" | b"prepare" | b"exec" | b"run" | b"all" | b"get"
        | b"$queryRawUnsafe" | b"$executeRawUnsafe"
            if sql::pastes_value(site, site.resolve(first)) =>
        {
            found.push((rules::SQL, first));
        }
        b"eval"
            if matches!(name, b"eval" | b"window.eval" | b"globalThis.eval")
                && (is_foreign(site, first) || glues_data(site, first)) =>
        {
            found.push((rules::CODE, first));
        }
        b"runInThisContext" | b"runInNewContext" | b"runInContext" if is_foreign(site, first) => {
            found.push((rules::CODE, first));
        }
        b"unserialize"
            if site.scan.mentions("node-serialize") && !first.kind().contains("string") =>
        {
            found.push((rules::DESERIALISATION, site.node));
        }
        _ => {}
    }
}

fn constructor<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if site.field_text("constructor") != b"Function" || site.scan.in_tests {
        return;
    }
    if let Some(last) = arguments(site.node).last()
        && is_foreign(site, *last)
    {
        found.push((rules::CODE, *last));
    }
}

/// Whether this `exec`/`execSync` is that of `child_process` or shelljs.
fn runs_shell(site: &Site<'_, '_>, name: &[u8]) -> bool {
    let object = &name[..name.len() - last_segment(name).len()];
    match object {
        b"" => {
            site.scan.mentions("child_process")
                && !site.scan.mentions("function exec")
                && !site.scan.mentions("@actions/exec")
        }
        b"child_process." | b"childProcess." | b"cp." => site.scan.mentions("child_process"),
        b"shell." | b"shelljs." | b"sh." => site.scan.mentions("shelljs"),
        _ => contains(object, "child_process"),
    }
}

fn shell<'a>(site: &Site<'_, 'a>, command: Node<'a>, found: &mut Found<'a>) {
    if is_command_with_data(site, site.resolve(command), OWN_PATHS) {
        found.push((rules::SHELL, command));
    }
}

/// Where the program itself lives: not somebody else's data.
const OWN_PATHS: &[&str] = &[
    "__dirname",
    "__filename",
    "execpath",
    "process.cwd",
    "import.meta",
    "require.resolve",
];

/// Expressions that come from outside, by the names everybody uses for them.
const SOURCES: &[&str] = &[
    "req.",
    "request.",
    "location.hash",
    "location.search",
    "location.href",
    "event.data",
    "e.data",
    "msg.data",
    "process.argv",
    ".searchparams",
    "localstorage",
    "ctx.query",
    "ctx.request",
    "ctx.params",
    "prompt(",
    "document.cookie",
    "window.name",
];

fn is_foreign(site: &Site<'_, '_>, node: Node<'_>) -> bool {
    !node.kind().ends_with("function")
        && mentions(site.text(node), SOURCES)
        && !node.kind().eq("string")
}

/// `describe.only("…", …)`, `fit("…", …)` in a test file.
fn focused<'a>(site: &Site<'_, 'a>, name: &[u8], arguments: &[Node<'a>], found: &mut Found<'a>) {
    let marker = match name.strip_suffix(b".each").unwrap_or(name) {
        b"fit" | b"fdescribe" | b"fcontext" => !site.scan.bindings().binds(name),
        name => name.strip_suffix(b".only").is_some_and(|name| {
            matches!(
                name,
                b"describe"
                    | b"it"
                    | b"test"
                    | b"context"
                    | b"suite"
                    | b"specify"
                    | b"test.describe"
                    | b"test.concurrent"
                    | b"it.concurrent"
                    | b"describe.concurrent"
                    | b"test.describe.parallel"
                    | b"test.describe.serial"
            )
        }),
    };
    let takes_body = arguments.iter().skip(1).any(|argument| {
        matches!(
            argument.kind(),
            "arrow_function" | "function_expression" | "call_expression" | "identifier"
        )
    });
    let each = name.ends_with(b".each") && !arguments.is_empty();
    if marker && (takes_body || each) && !is_fixture(site) {
        found.push((
            rules::FOCUSED_TEST,
            field(site.node, "function").unwrap_or(site.node),
        ));
    }
}

/// Test data of test runners and linters holds focused tests on purpose; so does code inside a template.
fn is_fixture(site: &Site<'_, '_>) -> bool {
    site.scan.is_fixture
        || site
            .ancestors
            .iter()
            .any(|ancestor| ancestor.kind() == "template_string")
}

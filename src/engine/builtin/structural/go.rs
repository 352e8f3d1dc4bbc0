//! Rules for Go.

use tree_sitter::Node;

use super::interpolation::is_command_with_data;
use super::nodes::{MAX_CALLEE, arguments, bare, children, field, last_segment, one_of_two};
use super::rules;
use super::scan::{Found, OPTED_OUT, Site};
use super::sql;

pub(super) fn check<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    match site.node.kind() {
        "keyed_element" => tls_field(site, found),
        "assignment_statement" => tls_assignment(site, found),
        "binary_expression" => nan(site, found),
        "call_expression" => call(site, found),
        _ => {}
    }
}

fn tls_field<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let parts = children(site.node, 2);
    let [key, value] = parts.as_slice() else {
        return;
    };
    if site.text(*key) == b"InsecureSkipVerify"
        && site.text(*value) == b"true"
        && may_report_tls(site)
    {
        found.push((rules::TLS, site.node));
    }
}

fn tls_assignment<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if site.last_of("left") == b"InsecureSkipVerify"
        && site.field_text("right") == b"true"
        && may_report_tls(site)
    {
        found.push((rules::TLS, site.node));
    }
}

/// Go's way to verify by one's own rule is to skip the standard one and set a callback.
fn may_report_tls(site: &Site<'_, '_>) -> bool {
    !site.scan.in_tests
        && !site.scan.mentions("VerifyPeerCertificate")
        && !site.scan.mentions("VerifyConnection")
        && !site.is_opted_into(OPTED_OUT)
}

fn nan<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if matches!(site.field_text("operator"), b"==" | b"!=")
        && one_of_two(["left", "right"].map(|side| site.field_text(side) == b"math.NaN()"))
    {
        found.push((rules::NAN_COMPARISON, site.node));
    }
}

fn call<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let name = site.field_text("function");
    if name.len() > MAX_CALLEE {
        return;
    }
    let last = last_segment(name);
    if name == b"runtime.Breakpoint" && !site.scan.in_tests {
        found.push((rules::DEBUGGER, site.node));
    }
    let arguments = arguments(site.node);
    if site.scan.in_tests {
        focused(site, last, &arguments, found);
        return;
    }
    if name == b"ssh.InsecureIgnoreHostKey" && !site.is_opted_into(OPTED_OUT) {
        found.push((rules::SSH_HOST_KEY, site.node));
    }
    match last {
        b"Command" | b"CommandContext" if name.starts_with(b"exec.") => {
            shell(site, &arguments, found);
        }
        b"Query" | b"QueryRow" | b"Exec" | b"QueryContext" | b"QueryRowContext"
        | b"ExecContext" | b"Raw" | b"Prepare" | b"Get" | b"Select" | b"Queryx" | b"MustExec" => {
            for argument in arguments.iter().take(3) {
                if sql::pastes_value(site, site.resolve(*argument)) {
                    found.push((rules::SQL, *argument));
                    break;
                }
            }
        }
        _ => {}
    }
}

/// `exec.Command("sh", "-c", …)`: the argument after `-c`.
fn shell<'a>(site: &Site<'_, 'a>, arguments: &[Node<'a>], found: &mut Found<'a>) {
    let Some(flag) = arguments.iter().position(|argument| {
        matches!(
            site.text(*argument),
            b"\"-c\"" | b"\"/C\"" | b"\"/c\"" | b"\"-lc\"" | b"`-c`"
        )
    }) else {
        return;
    };
    let runs_shell = flag
        .checked_sub(1)
        .and_then(|before| arguments.get(before))
        .is_some_and(|program| {
            matches!(
                last_segment_of_path(site.text(*program)),
                b"sh" | b"bash" | b"zsh" | b"ash" | b"cmd" | b"cmd.exe"
            )
        });
    let Some(command) = arguments.get(flag + 1).map(|command| bare(*command)) else {
        return;
    };
    if runs_shell && is_command_with_data(site, site.resolve(command), &["os.args[0]"]) {
        found.push((rules::SHELL, command));
    }
}

fn last_segment_of_path(literal: &[u8]) -> &[u8] {
    let name = literal.trim_ascii();
    let name = name
        .strip_prefix(b"\"")
        .and_then(|name| name.strip_suffix(b"\""))
        .unwrap_or(name);
    name.rsplit(|b| *b == b'/').next().unwrap_or(name)
}

/// Ginkgo's focused containers: the rest of the suite is skipped.
fn focused<'a>(site: &Site<'_, 'a>, name: &[u8], arguments: &[Node<'a>], found: &mut Found<'a>) {
    let marker = matches!(
        name,
        b"FIt"
            | b"FDescribe"
            | b"FContext"
            | b"FWhen"
            | b"FSpecify"
            | b"FEntry"
            | b"FDescribeTable"
    );
    if marker
        && site.scan.mentions("onsi/ginkgo")
        && arguments
            .first()
            .is_some_and(|text| !matches!(text.kind(), "func_literal"))
        && !site.scan.is_fixture
    {
        found.push((
            rules::FOCUSED_TEST,
            field(site.node, "function").unwrap_or(site.node),
        ));
    }
}

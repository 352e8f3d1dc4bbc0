//! Rules for Rust.

use tree_sitter::Node;

use super::interpolation::is_command_with_data;
use super::nodes::{arguments, bare, contains, field, last_segment, mentions, one_of_two};
use super::rules;
use super::scan::{Found, OPTED_OUT, Site};
use super::sql;

pub(super) fn check<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    match site.node.kind() {
        "call_expression" => call(site, found),
        "binary_expression" => nan(site, found),
        "macro_invocation" => debug_print(site, found),
        _ => {}
    }
}

fn call<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    if site.scan.in_tests || in_test_code(site) {
        return;
    }
    let Some(callee) = field(site.node, "function") else {
        return;
    };
    let (receiver, last) = match callee.kind() {
        "field_expression" => (
            field(callee, "value"),
            field(callee, "field").map_or(&b""[..], |name| site.text(name)),
        ),
        _ => (None, last_segment(strip_turbofish(site.text(callee)))),
    };
    let arguments = arguments(site.node);
    let Some(first) = arguments.first().map(|first| bare(*first)) else {
        return;
    };
    match last {
        b"danger_accept_invalid_certs" | b"danger_accept_invalid_hostnames"
            if site.text(first) == b"true" && !site.is_opted_into(OPTED_OUT) =>
        {
            found.push((rules::TLS, callee_name(callee)));
        }
        b"set_verify"
            if last_segment(site.text(first)) == b"NONE"
                && contains(site.text(first), "SslVerifyMode")
                && !site.is_opted_into(OPTED_OUT) =>
        {
            found.push((rules::TLS, first));
        }
        b"arg" if receiver.is_some_and(|receiver| follows_shell_flag(site, receiver)) => {
            shell(site, first, found);
        }
        b"query" | b"query_as" | b"query_scalar" | b"sql_query" | b"execute" | b"batch_execute"
        | b"execute_batch" | b"prepare" | b"query_row" | b"query_one" | b"query_opt"
        | b"simple_query"
            if sql::pastes_value(site, resolved(site, first)) =>
        {
            found.push((rules::SQL, first));
        }
        _ => {}
    }
}

fn callee_name(callee: Node<'_>) -> Node<'_> {
    field(callee, "field").unwrap_or(callee)
}

/// `sqlx::query_as::<_, User>` → `sqlx::query_as`.
fn strip_turbofish(name: &[u8]) -> &[u8] {
    memchr::memmem::find(name, b"::<").map_or(name, |at| &name[..at])
}

/// `&query` stands for what `query` is bound to.
fn resolved<'a>(site: &Site<'_, 'a>, node: Node<'a>) -> Node<'a> {
    match field(node, "value").filter(|_| node.kind() == "reference_expression") {
        Some(inner) => site.resolve(inner),
        None => site.resolve(node),
    }
}

/// `Command::new("sh").arg("-c")`, of which the next `.arg(…)` is the command.
fn follows_shell_flag(site: &Site<'_, '_>, receiver: Node<'_>) -> bool {
    let text = site.text(receiver);
    if text.len() > 300 {
        return false;
    }
    let compact: Vec<u8> = text
        .iter()
        .copied()
        .filter(|b| !b.is_ascii_whitespace())
        .collect();
    let ends_with_flag = [
        &b".arg(\"-c\")"[..],
        b".arg(\"/C\")",
        b".arg(\"/c\")",
        b".arg(\"-lc\")",
    ]
    .iter()
    .any(|flag| compact.ends_with(flag));
    let shell = [
        "\"sh\"",
        "\"bash\"",
        "\"/bin/sh\"",
        "\"/bin/bash\"",
        "\"cmd\"",
        "\"cmd.exe\"",
        "\"zsh\"",
    ]
    .iter()
    .any(|shell| contains(&compact, &format!("Command::new({shell})")));
    ends_with_flag && shell
}

fn shell<'a>(site: &Site<'_, 'a>, command: Node<'a>, found: &mut Found<'a>) {
    if is_command_with_data(site, resolved(site, command), &[]) {
        found.push((rules::SHELL, command));
    }
}

fn nan<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let is_nan = |side: &str| {
        matches!(
            site.field_text(side),
            b"f64::NAN"
                | b"f32::NAN"
                | b"std::f64::NAN"
                | b"std::f32::NAN"
                | b"core::f64::NAN"
                | b"core::f32::NAN"
        )
    };
    if matches!(site.field_text("operator"), b"==" | b"!=")
        && one_of_two(["left", "right"].map(is_nan))
    {
        found.push((rules::NAN_COMPARISON, site.node));
    }
}

fn debug_print<'a>(site: &Site<'_, 'a>, found: &mut Found<'a>) {
    let name = site.field_text("macro");
    let outside = site.scan.in_tests
        || in_test_code(site)
        || mentions(site.scan.path.parent(), &["example", "bench"])
        || site.scan.path.file_name() == b"build.rs";
    if matches!(name, b"dbg" | b"std::dbg") && !outside && !site.scan.mentions("macro_rules! dbg") {
        found.push((rules::DEBUG_PRINT, site.node));
    }
}

/// Inside `#[cfg(test)]` or `#[test]`, which stand before the item as siblings.
fn in_test_code(site: &Site<'_, '_>) -> bool {
    site.ancestors
        .iter()
        .filter(|ancestor| matches!(ancestor.kind(), "mod_item" | "function_item" | "impl_item"))
        .any(|item| {
            let mut before = item.prev_sibling();
            for _ in 0..8 {
                match before {
                    Some(attribute) if attribute.kind() == "attribute_item" => {
                        let text = site.text(attribute);
                        if contains(text, "cfg(test)")
                            || contains(text, "test]")
                            || contains(text, "cfg(all(test")
                        {
                            return true;
                        }
                        before = attribute.prev_sibling();
                    }
                    Some(comment) if comment.is_extra() => before = comment.prev_sibling(),
                    _ => return false,
                }
            }
            false
        })
}

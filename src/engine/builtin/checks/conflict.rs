//! Merge conflict markers.

use super::added::AddedText;
use super::all::rule;
use super::path::is_fixture;
use crate::engine::builtin::{CheckedFile, Hit, Rule};
use crate::model::{Category, Severity};

const IN_CODE: &str = "merge-conflict";
const IN_TEXT: &str = "merge-conflict-in-text";

/// The table.
pub(super) static RULES: &[Rule] = &[
    rule(
        IN_CODE,
        Severity::Critical,
        Category::Correctness,
        [
            "Unresolved merge conflict",
            "Both sides of a conflict and git's markers are in the file: it does not parse, or it is built from the wrong half.",
            "Resolve the conflict and remove the three marker lines.",
        ],
    ),
    // Manuals and tests of version control show conflicts on purpose.
    rule(
        IN_TEXT,
        Severity::Warning,
        Category::Correctness,
        [
            "Unresolved merge conflict in documentation or a fixture",
            "Readers see both sides of a conflict and git's markers.",
            "Resolve the conflict and remove the three marker lines, unless they are the example.",
        ],
    ),
];

/// Which of the four marker lines this is.
fn marker(line: &[u8]) -> Option<u8> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (head, rest) = line.split_at_checked(7)?;
    let first = head[0];
    if !matches!(first, b'<' | b'|' | b'=' | b'>') || head.iter().any(|b| *b != first) {
        return None;
    }
    // git writes a label after every marker but the middle one.
    let fits = match first {
        b'=' => rest.is_empty(),
        b'|' => rest.is_empty() || rest.starts_with(b" "),
        _ => rest.len() > 1 && rest[0] == b' ' && rest[1] != b' ',
    };
    fits.then_some(first)
}

/// Reports each full `<<<<<<<` … `=======` … `>>>>>>>`; a lone marker (a heading's underline, a quoted mail) is not one.
pub(super) fn check(file: &CheckedFile<'_>, added: &AddedText<'_>, report: &mut dyn FnMut(Hit)) {
    if memchr::memmem::find(&added.text, b"<<<<<<< ").is_none() {
        return;
    }
    let in_fixture = is_fixture(file.path);
    let id = if in_fixture { IN_TEXT } else { IN_CODE };
    let mut open: Option<(u32, &[u8])> = None;
    let mut halved = false;
    for (number, line) in added.lines() {
        match marker(line) {
            Some(b'<') => {
                open = Some((number, line));
                halved = false;
            }
            Some(b'=') => halved = open.is_some(),
            Some(b'>') => {
                if let Some((start, first)) = open.take()
                    && halved
                    && (!in_fixture || is_from_git(first))
                {
                    report(Hit {
                        rule: id.to_owned(),
                        line: start,
                        end_line: number,
                        columns: Some(0..7),
                        evidence: Some(first.to_vec()),
                        title: None,
                    });
                }
            }
            _ => {}
        }
    }
}

/// True when a conflict begins as git's own commands write it; examples say `ours`, `a` or a file's name.
fn is_from_git(line: &[u8]) -> bool {
    line.starts_with(b"<<<<<<< HEAD") || line.starts_with(b"<<<<<<< Updated upstream")
}

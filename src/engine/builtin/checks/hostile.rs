//! Characters that make code look like something else.

use super::added::{AddedText, line_hit};
use super::all::rule;
use super::path::{is_code, is_example_line, is_fixture};
use crate::detect::{HostileKind, hostile};
use crate::engine::builtin::{CheckedFile, Hit, Rule};
use crate::model::{Category, Severity};

const OVERRIDE: &str = "bidi-override";
const BIDI: &str = "bidi-control";
const INVISIBLE: &str = "invisible-character";
const HIDDEN: &str = "hidden-text";

/// A longer line is machine-made (a minified script's character tables): nobody is deceived by how it looks.
const MAX_LINE: usize = 500;

/// From how many hidden characters on a message is spelled out.
const MESSAGE: usize = 16;

/// The table.
pub(super) static RULES: &[Rule] = &[
    rule(
        OVERRIDE,
        Severity::Critical,
        Category::Security,
        [
            "Unbalanced bidirectional control reorders this line of code",
            "Reviewers see other code than the compiler: comments can end early and strings can hold statements (CVE-2021-42574).",
            "Delete the control characters, or write them as escapes in the string.",
        ],
    ),
    rule(
        BIDI,
        Severity::Warning,
        Category::Security,
        [
            "Bidirectional control characters in code",
            "The line is shown in another order than it is read, so what a reviewer approves may not be what runs.",
            "Delete the control characters, or write them as escapes in the string.",
        ],
    ),
    rule(
        INVISIBLE,
        Severity::Warning,
        Category::Security,
        [
            "Invisible character inside code",
            "Two names that look the same are different, or a string never equals what it seems to be.",
            "Delete the character, or write it as an escape.",
        ],
    ),
    rule(
        HIDDEN,
        Severity::Critical,
        Category::Security,
        [
            "A message is hidden in invisible characters",
            "The file carries text that no reviewer sees: a payload that code can decode, or instructions to a language model.",
            "Delete the invisible characters and find out who put them there.",
        ],
    ),
];

/// Reports deceiving characters: hidden messages anywhere; the rest in code only, where no right-to-left text needs them.
pub(super) fn check(file: &CheckedFile<'_>, added: &AddedText<'_>, report: &mut dyn FnMut(Hit)) {
    if added.text.is_ascii() {
        return;
    }
    let in_code = is_code(file.path);
    let in_fixture = is_fixture(file.path);
    for (number, line) in added.lines() {
        let found = hostile(line, number == 1);
        let Some(first) = found.first() else {
            continue;
        };
        let hidden = found.iter().find(|m| {
            m.kind == HostileKind::HiddenText
                && String::from_utf8_lossy(&line[m.range.clone()])
                    .chars()
                    .count()
                    >= MESSAGE
        });
        let bidi = found.iter().find(|m| m.kind == HostileKind::Bidi);
        let (rule, at) = if let Some(hidden) = hidden {
            (HIDDEN, hidden)
        } else if !in_code || line.len() > MAX_LINE {
            continue;
        } else if let Some(bidi) = bidi {
            let text = String::from_utf8_lossy(line);
            match (is_balanced(&text), has_rtl_letters(&text)) {
                // Isolates around a right-to-left phrase are how Unicode says to write it.
                (true, true) => continue,
                (false, false) if !in_fixture => (OVERRIDE, bidi),
                _ => (BIDI, bidi),
            }
        } else if first.kind == HostileKind::Invisible
            && !in_fixture
            && is_within_code(line, first.range.start)
            && !is_example_line(file, number, line)
        {
            (INVISIBLE, first)
        } else {
            continue;
        };
        report(line_hit(rule, number, line, Some(at.range.clone())));
    }
}

/// True when every embedding, override and isolate of the line is ended in order on the line.
fn is_balanced(line: &str) -> bool {
    let mut open = Vec::new();
    for c in line.chars() {
        match c {
            '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' => open.push('\u{202c}'),
            '\u{2066}'..='\u{2068}' => open.push('\u{2069}'),
            '\u{202c}' | '\u{2069}' if open.pop() != Some(c) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

/// True with a letter of a script that is written from right to left.
fn has_rtl_letters(line: &str) -> bool {
    line.chars().any(|c| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}') && c != '\u{61c}')
}

/// True when an invisible character stands between two letters of an identifier: elsewhere (prose in
/// comments, white space) it is an accident of copying that changes nothing.
fn is_within_code(line: &[u8], at: usize) -> bool {
    let name = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    let after = line[at..]
        .iter()
        .position(u8::is_ascii)
        .map(|skip| &line[at + skip]);
    let before = at.checked_sub(1).and_then(|i| line.get(i));
    let text = String::from_utf8_lossy(line);
    let trimmed = text.trim_start();
    let comment = ["//", "#", "*", "/*", "--", "\"\"\"", "'''", "%", ";"]
        .iter()
        .any(|c| trimmed.starts_with(c));
    name(before) && name(after) && !comment
}

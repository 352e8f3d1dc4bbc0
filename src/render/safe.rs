//! The one gate for text that somebody else wrote.
//!
//! @ref LLP 0006#hostile-text — one gate for text of others

use std::borrow::Cow;
use std::ops::Range;

use crate::detect;
use crate::model::{RepoPath, printable};

/// Replaces what looks like a credential.
pub(super) fn mask(text: &str) -> Cow<'_, str> {
    detect::mask(text)
}

/// True for printable ASCII, which most text is: a quick way past the careful one.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| (0x20..0x7f).contains(&b))
}

/// `line` such that a GitHub runner, which reads every line of a job's output, takes it for no workflow command: those are
/// `::name::…` behind white space and `##[name]…` anywhere. The full-width forms are as wide as what they stand for.
pub(super) fn inert(line: &str) -> Cow<'_, str> {
    let text = line.trim_start();
    let leads = text.starts_with("::");
    if !leads && !line.contains("##[") {
        return Cow::Borrowed(line);
    }
    let mut out = line[..line.len() - text.len()].to_owned();
    let rest = if leads {
        out.push('\u{ff1a}');
        &text[2..]
    } else {
        text
    };
    out.push_str(&rest.replace("##[", "\u{ff03}["));
    Cow::Owned(out)
}

/// One line of safe text: white space folded to single spaces, ends trimmed, the rest printable.
pub fn printable_line(text: &str) -> String {
    if is_plain(text) && !text.contains("  ") {
        return text.trim().to_owned();
    }
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(&printable(word));
    }
    folded
}

/// The first `limit` characters of `text` as one line of safe text, with `...` when there is more.
pub(super) fn printable_start(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}...", printable_line(&text[..at])),
        None => printable_line(text),
    }
}

/// The same without folding: each line break and hidden character becomes visible.
pub(super) fn printable_path(path: &RepoPath) -> String {
    printable(&path.to_lossy()).into_owned()
}

/// A line of source: tabs as four spaces, the rest printable. Column positions come along.
pub(super) fn printable_source(
    line: &str,
    highlight: Option<Range<usize>>,
) -> (String, Option<Range<usize>>) {
    let spell = |part: &str| printable(&part.replace('\t', "    ")).into_owned();
    let Some(range) = highlight.and_then(|range| clamp(line, range)) else {
        return (spell(line), None);
    };
    let mut out = spell(&line[..range.start]);
    let start = out.len();
    out.push_str(&spell(&line[range.clone()]));
    let end = out.len();
    out.push_str(&spell(&line[range.end..]));
    (out, Some(start..end))
}

/// Cuts `range` to `text` and to character boundaries; `None` when nothing of it is inside.
pub(super) fn clamp(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let (from, to) = (range.start.min(text.len()), range.end.min(text.len()));
    let start = (0..=from).rev().find(boundary)?;
    let end = (to.max(start)..=text.len()).find(boundary)?;
    (range.start <= text.len()).then_some(start..end)
}

/// What stands for the hidden part of a credential.
const HIDDEN: &str = "***";

/// Keeps up to four characters of a credential, fewer of a short one.
pub(super) fn mask_all_but_prefix(secret: &str) -> String {
    let keep = (secret.chars().count() / 4).min(4);
    let mut out: String = secret.chars().take(keep).collect();
    out.push_str(HIDDEN);
    out
}

/// Masks every unbroken run of characters that a credential could be made of and that is `suspect`.
pub(super) fn mask_words(text: &str, suspect: impl Fn(&str) -> bool) -> String {
    let in_token = |c: char| c.is_alphanumeric() || "+/=_-.~!@#$%^&*".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c| !in_token(c)).unwrap_or(rest.len());
        let (token, tail) = rest.split_at(word);
        if !token.contains(HIDDEN) && suspect(token) {
            out.push_str(&mask_all_but_prefix(token));
        } else {
            out.push_str(token);
        }
        let gap = tail.find(in_token).unwrap_or(tail.len());
        out.push_str(&tail[..gap]);
        rest = &tail[gap..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_a_workflow_command_and_none_gets_wider() {
        for (line, shown) in [
            ("  ::error::x", "  \u{ff1a}error::x"),
            (" 1 | ##[group]x", " 1 | \u{ff03}[group]x"),
            ("a::b #[test]", "a::b #[test]"),
            ("###[x]", "#\u{ff03}[x]"),
        ] {
            assert_eq!(inert(line), shown);
            let width = unicode_width::UnicodeWidthStr::width;
            assert_eq!(width(line), width(shown));
        }
    }

    #[test]
    fn hidden_characters_become_visible() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}b"), "a\\u{1b}[31m\\u{202e}b");
        assert_eq!(printable_line(" a\n\tb\u{7}  c "), "a b\\u{7} c");
        assert!(matches!(
            printable("plain žluťoučký 漢字"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn highlights_survive_tabs_and_bad_ranges() {
        let (text, at) = printable_source("\tlet é = 1", Some(5..7));
        assert_eq!(&text[at.unwrap()], "é");
        assert_eq!(printable_source("é", Some(1..1)).1, Some(0..2));
        assert_eq!(printable_source("ab", Some(9..12)).1, None);
        assert_eq!(printable_source("ab", Some(1..900)).1, Some(1..2));
    }

    #[test]
    fn masks_keep_a_short_prefix_only() {
        assert_eq!(mask_all_but_prefix("abcdefghijklmnopqrst"), "abcd***");
        assert_eq!(mask_all_but_prefix("abc"), "***");
        assert_eq!(
            mask_words("password = \"hunter2hunter2\"", |word| word.len() > 8),
            "password = \"hun***\""
        );
    }
}

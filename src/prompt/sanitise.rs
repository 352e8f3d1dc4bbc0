//! Making strangers' text harmless before it stands in a prompt.

use crate::model::is_hidden;

/// Tags with which a text could pass for another speaker; whatever follows the word up to `>` goes too.
const ROLES: &[&str] = &[
    "assistant",
    "developer",
    "function",
    "human",
    "instruction",
    "system",
    "tool",
    "user",
];

/// Words that mark the parts of a prompt.
const MARKS: &[&str] = &["<<<PR_TITLE", "<<<PR_BODY", "PR_TITLE", "PR_BODY"];

/// The longest entry of `MARKS`.
const LONGEST_MARK: usize = 12;

/// Prose without role tags, marks, code fences and invisible characters, trimmed. Doing it twice
/// changes nothing more: what a removal brings together is looked at again at once.
pub fn sanitise(text: &str) -> String {
    let mut out: Vec<char> = Vec::new();
    let visible = |c: &char| matches!(c, '\n' | '\t') || !is_hidden(*c);
    for c in text.chars().filter(visible) {
        out.push(c);
        if c == '>' {
            remove_tag(&mut out);
        }
        while remove_mark(&mut out) {}
    }
    let text: String = defuse(&out);
    text.trim().to_owned()
}

/// The same as [`sanitise`], at most `max` characters of the input long, and a word when it was longer.
pub fn sanitise_capped(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => sanitise(text),
        Some((end, _)) => format!("{}\n[truncated]", sanitise(&text[..end])),
    }
}

/// A single-line value: every line break, control and invisible character is a space, and runs of
/// white space are one.
pub fn flatten(text: &str) -> String {
    let visible = text.chars().map(|c| {
        if c.is_whitespace() || is_hidden(c) {
            ' '
        } else {
            c
        }
    });
    let visible: String = visible.collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Takes the role tag away that ends with the last character.
fn remove_tag(out: &mut Vec<char>) {
    let body = out.len() - 1;
    let open = out[..body].iter().rposition(|c| matches!(c, '<' | '>'));
    let Some(open) = open.filter(|at| out[*at] == '<') else {
        return;
    };
    let longest = ROLES.iter().map(|role| role.len()).max().unwrap_or(0);
    let word: String = out[open + 1..body]
        .iter()
        .skip_while(|c| **c == '/' || c.is_whitespace())
        .take(longest)
        .map(char::to_ascii_lowercase)
        .collect();
    if ROLES.iter().any(|role| word.starts_with(role)) {
        out.truncate(open);
    }
}

fn remove_mark(out: &mut Vec<char>) -> bool {
    let tail: String = out[out.len().saturating_sub(LONGEST_MARK)..]
        .iter()
        .collect();
    match MARKS.iter().find(|mark| tail.ends_with(**mark)) {
        Some(mark) => {
            out.truncate(out.len() - mark.len());
            // The longer form may be what is left of it.
            while out.last() == Some(&'<') && out.ends_with(&['<', '<', '<']) {
                out.truncate(out.len() - 3);
            }
            true
        }
        None => false,
    }
}

/// Runs of three and more backticks or tildes open or close a fence; three quotes do not.
fn defuse(text: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = text.get(at) {
        let run = text[at..].iter().take_while(|x| **x == c).count();
        if matches!(c, '`' | '~') && run >= 3 {
            out.push_str("'''");
        } else {
            out.extend(std::iter::repeat_n(c, run));
        }
        at += run;
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_could_speak_for_others_is_gone() {
        for (text, expected) in [
            ("a ```` b", "a ''' b"),
            ("x <system>y</system> z", "x y z"),
            ("<Instruction lang=\"x\">go</Instructions>", "go"),
            ("PR_TITLE", ""),
            ("a\u{0}b\u{7}c\td", "abc\td"),
            ("<toolbar>x", "x"),
            ("  a  ", "a"),
            ("```\nx\n``` <system>hi</system>", "'''\nx\n''' hi"),
            ("line1\nPR_TITLE\n<<<PR_BODY\nline2", "line1\n\n\nline2"),
            ("", ""),
            ("<sys<system>tem>x", "x"),
            ("PR_PR_BODYBODYx", "x"),
            ("``<user>`", "'''"),
            ("a\u{200b}\u{202e}\u{e0041}b", "ab"),
            ("<s\u{200b}ystem>x", "x"),
            ("a < b > c <b>bold</b>", "a < b > c <b>bold</b>"),
        ] {
            assert_eq!(sanitise(text), expected, "{text:?}");
        }
        let capped = sanitise_capped(&"x".repeat(5_000), 100);
        assert!(capped.len() <= 200 && capped.contains("truncated"));
        assert_eq!(flatten(" a\r\nb\u{2028}\u{202e}c "), "a b c");
    }

    proptest! {
        #[test]
        fn twice_is_once(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "<", ">", "/", "sys", "tem", "system", "user", "PR_", "TITLE", "BODY", "`", "``", "~", " ",
                    "\n", "<<<", "\u{200b}", "a", "é",
                ]),
                0..40,
            )
        ) {
            let once = sanitise(&parts.concat());
            prop_assert_eq!(sanitise(&once), once);
        }
    }
}

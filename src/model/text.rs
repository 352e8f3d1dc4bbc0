//! Text that somebody else wrote, made safe to show.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True for characters that must never reach a person raw: C0 and C1 controls, bidirectional
/// controls, and characters that show nothing.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Writes every hidden character as `\u{..}`: line breaks and tabs as well, so the caller deals with
/// those first where they are wanted.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Most text is plain ASCII: a quick way past the careful one.
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) || !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_out_what_acts_or_hides() {
        for (text, expected) in [
            ("plain žluťoučký 漢字", "plain žluťoučký 漢字"),
            ("a\u{1b}[31m\u{202e}b", "a\\u{1b}[31m\\u{202e}b"),
            ("x\u{200b}y\u{9b}\n", "x\\u{200b}y\\u{9b}\\u{a}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(printable(text), expected);
            assert_eq!(printable(&printable(text)), expected, "idempotent");
        }
        assert!(matches!(printable("plain"), Cow::Borrowed(_)));
    }
}

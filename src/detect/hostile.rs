//! Text that shows something else than it is.

use std::ops::Range;

/// How a stretch of text deceives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostileKind {
    /// Bidirectional embeddings, overrides and isolates: the order shown is not the order read.
    Bidi,
    /// A character without width where no script or emoji needs it.
    Invisible,
    /// A run of tag characters or variation selectors, which can carry a whole hidden message.
    HiddenText,
}

/// A stretch of text that deceives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostileMatch {
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// How it deceives.
    pub kind: HostileKind,
}

/// From how many hidden characters in a row on there is a message rather than an accident.
const HIDDEN_RUN: usize = 4;

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Tag characters and variation selectors: 128 and 256 invisible characters, enough to spell anything.
fn carries_text(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e01ef}' | '\u{fe00}'..='\u{fe0f}')
}

/// Never shown, and no part of an ordinary word of any script.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{180e}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{206a}'..='\u{206f}')
}

/// Shown in no way either, but needed between the letters of several scripts, in emoji and around numbers.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{061c}')
}

/// What deceives in `line`, in order. Left out as legitimate: right-to-left letters, joiners and direction marks next to a letter
/// outside ASCII, emoji sequences, flags made of tags, a byte order mark at the start when `is_first_line`.
///
/// Invalid UTF-8 is skipped.
pub fn hostile(line: &[u8], is_first_line: bool) -> Vec<HostileMatch> {
    let mut found = Vec::new();
    if line.is_ascii() {
        return found;
    }
    let mut base = 0;
    for chunk in line.utf8_chunks() {
        hostile_in(chunk.valid(), base, is_first_line && base == 0, &mut found);
        base += chunk.valid().len() + chunk.invalid().len();
    }
    found
}

fn hostile_in(text: &str, base: usize, at_file_start: bool, found: &mut Vec<HostileMatch>) {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c.is_ascii() {
            before = Some(c);
            continue;
        }
        let mut end = at + c.len_utf8();
        let kind = if is_bidi(c) {
            Some(HostileKind::Bidi)
        } else if carries_text(c) {
            let mut run = 1;
            while let Some((next_at, next)) = chars.next_if(|(_, n)| carries_text(*n)) {
                end = next_at + next.len_utf8();
                run += 1;
            }
            let flag = before == Some('\u{1f3f4}');
            (run >= HIDDEN_RUN && !flag).then_some(HostileKind::HiddenText)
        } else if is_invisible(c) {
            (!(c == '\u{feff}' && at == 0 && at_file_start)).then_some(HostileKind::Invisible)
        } else if is_joiner(c) {
            let after = chars.peek().map(|(_, n)| *n);
            let within_ascii_word =
                |side: Option<char>| side.is_some_and(|s| s.is_ascii_alphanumeric() || s == '_');
            (within_ascii_word(before) && within_ascii_word(after))
                .then_some(HostileKind::Invisible)
        } else {
            None
        };
        if let Some(kind) = kind {
            found.push(HostileMatch {
                range: base + at..base + end,
                kind,
            });
        }
        before = Some(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(line: &str) -> Vec<HostileKind> {
        hostile(line.as_bytes(), false)
            .into_iter()
            .map(|m| m.kind)
            .collect()
    }

    #[test]
    fn finds_what_deceives() {
        use HostileKind::{Bidi, HiddenText, Invisible};
        let payload: String = "run this"
            .bytes()
            .filter_map(|b| char::from_u32(0xe0000 + u32::from(b)))
            .collect();
        for (line, expected) in [
            (
                "/*\u{202e} } \u{2066}if (isAdmin)\u{2069} */",
                vec![Bidi, Bidi, Bidi],
            ),
            ("let ad\u{200b}min = 1;", vec![Invisible]),
            ("is\u{200d}Admin", vec![Invisible]),
            ("is\u{200e}Admin", vec![Invisible]),
            ("var \u{3164} = 1", vec![Invisible]),
            (&format!("ok{payload}"), vec![HiddenText]),
            ("a\u{fe01}\u{fe02}\u{fe03}\u{fe04}", vec![HiddenText]),
            ("x\u{feff}y", vec![Invisible]),
        ] {
            assert_eq!(kinds(line), expected, "{line:?}");
        }
    }

    #[test]
    fn leaves_scripts_and_emoji_alone() {
        for line in [
            "let greeting = \"שלום עולם\";",
            "\"\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}\"",
            "👩\u{200d}💻 👍\u{1f3fd} ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "葛\u{e0100}飾",
            "ქართული ไทย हिन्दी क्\u{200d}ष",
            "price: \u{200f}12 ₪",
            "naïve café",
            "soft\u{ad}hyphen",
        ] {
            assert_eq!(kinds(line), [], "{line:?}");
        }
        assert!(hostile("\u{feff}use x;".as_bytes(), true).is_empty());
        assert_eq!(hostile("\u{feff}use x;".as_bytes(), false).len(), 1);
        assert!(hostile(b"\xff\xfe plain \x80", false).is_empty());
    }

    #[test]
    fn ranges_are_bytes_of_the_line() {
        let line = "a\u{202e}b".as_bytes();
        assert_eq!(hostile(line, false)[0].range, 1..4);
        assert_eq!(hostile(b"\xff\xe2\x80\xae", false)[0].range, 1..4);
    }
}

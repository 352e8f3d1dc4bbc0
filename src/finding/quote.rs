//! Finding a reviewer's quote in the source again.

use super::fold::{fold, utf16_len};
use super::lines::SideLines;

/// A fragment shorter than this (UTF-16 units, folded) matches too much to prove anything.
const MIN_FRAGMENT: usize = 12;
/// How many lines of a claimed range are looked at.
const MAX_RANGE: u32 = 200;
/// How many places of a quote are remembered; more only means "ambiguous".
const MAX_MATCHES: usize = 50;

/// Whether a quote is in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is there, or a long enough part of it.
    Present,
    /// It is long enough to look for and not there.
    Absent,
    /// It is too short to tell.
    Unknown,
}

/// A reviewer's evidence, made ready for searching.
pub struct Quote {
    /// The whole quote, folded.
    whole: String,
    /// The quoted text without surrounding white space, as given.
    verbatim: String,
    /// Its lines and elided parts that are long enough, folded, diff markers taken off.
    fragments: Vec<String>,
}

fn without_marker(line: &str) -> &str {
    let line = line.trim_start_matches(|c: char| matches!(c, '+' | '-') || c.is_whitespace());
    for opener in ["//", "/*", "#", "*"] {
        if let Some(rest) = line.strip_prefix(opener) {
            return rest.trim_start_matches(['/', '#', '*']);
        }
    }
    line
}

impl Quote {
    /// Prepares `evidence`.
    pub fn new(evidence: &str) -> Self {
        let fragments = evidence
            .split('\n')
            .flat_map(|line| line.split('…'))
            .flat_map(|part| part.split("..."))
            .map(|part| fold(without_marker(part)))
            .filter(|part| utf16_len(part) >= MIN_FRAGMENT)
            .collect();
        Self {
            whole: fold(evidence),
            verbatim: evidence.trim().to_owned(),
            fragments,
        }
    }

    /// Whether `text` (a whole file) has the quote or a fragment of it.
    pub fn presence_in(&self, text: &str) -> Presence {
        if self.fragments.is_empty() {
            return Presence::Unknown;
        }
        let text = fold(text);
        if text.contains(&self.whole) || self.fragments.iter().any(|part| text.contains(part)) {
            Presence::Present
        } else {
            Presence::Absent
        }
    }

    /// True when there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// True when the quote is long enough to be looked for elsewhere than at the claimed line.
    pub(super) fn is_searchable(&self) -> bool {
        !self.fragments.is_empty()
    }

    /// True when one of the lines `from..=to` has the quote or a fragment of it.
    pub(super) fn is_at(&self, lines: &SideLines, from: u32, to: u32) -> bool {
        let to = to.clamp(from, from.saturating_add(MAX_RANGE));
        (from..=to)
            .map_while(|number| lines.get(number))
            .any(|line| self.is_in_line(line))
    }

    fn is_in_line(&self, line: &[u8]) -> bool {
        if memchr::memmem::find(line, self.verbatim.as_bytes()).is_some() {
            return true;
        }
        let folded = fold(&String::from_utf8_lossy(line));
        folded.contains(&self.whole) || self.fragments.iter().any(|part| folded.contains(part))
    }

    /// The lines where the quote begins, ascending: those with its first fragment, or for a quote that
    /// is too short for fragments the lines that are nothing but it.
    pub(super) fn find_all(&self, lines: &SideLines) -> Vec<u32> {
        lines
            .iter()
            .filter(|(_, line)| {
                let folded = fold(&String::from_utf8_lossy(line));
                match self.fragments.first() {
                    Some(first) => folded.contains(first),
                    None => folded == self.whole,
                }
            })
            .map(|(number, _)| number)
            .take(MAX_MATCHES)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &str =
        "export const answer = 42;\nfunction realThing() {\n  return items[next++]!;\n}";

    #[test]
    fn presence_vectors() {
        for (evidence, expected) in [
            ("return items[next++]!;", Presence::Present),
            (
                "function realThing() {\n  return items[next++]!;",
                Presence::Present,
            ),
            ("+  return items[next++]!;", Presence::Present),
            (
                "const item = next++; // nowhere in the file",
                Presence::Absent,
            ),
            ("x}", Presence::Unknown),
            ("", Presence::Unknown),
            ("ab\ncd\nefg hij kl", Presence::Unknown),
            (
                "function realThing() {...return items[next++]!;}",
                Presence::Present,
            ),
        ] {
            assert_eq!(
                Quote::new(evidence).presence_in(CONTENT),
                expected,
                "{evidence:?}"
            );
        }
        let quote = Quote::new("+  return items[next++]!;\n// x\nconst somethingLongEnough = 1;");
        assert_eq!(
            quote.fragments,
            ["return items[next++]!;", "const somethinglongenough = 1;"]
        );
    }

    #[test]
    fn places() {
        let lines = SideLines::from_content(CONTENT.as_bytes().to_vec().into());
        let quote = Quote::new("- return   items[next++]!;");
        assert_eq!(quote.find_all(&lines), [3]);
        assert!(quote.is_at(&lines, 2, 3) && !quote.is_at(&lines, 1, 2));
        assert!(Quote::new("}").is_at(&lines, 4, 4));
        assert_eq!(Quote::new("}").find_all(&lines), [4]);
        assert!(!quote.is_at(&lines, u32::MAX, u32::MAX));
    }
}

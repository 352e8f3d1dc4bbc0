//! Folding of white space and case as stored identities need it.

/// White space as JavaScript's `\s` has it: Unicode's, with U+FEFF, without U+0085. Identities that
/// are stored in old comments were made with exactly this set.
fn is_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}'
}

/// Every run of white space becomes one space, the ends are trimmed, letters are lower-cased.
pub fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    if out.is_ascii() {
        out.make_ascii_lowercase();
        return out;
    }
    out.to_lowercase()
}

/// Length in UTF-16 code units, as JavaScript counts it.
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_like_javascript() {
        assert_eq!(fold("  A \t\r\n b\u{feff}C\u{a0}"), "a b c");
        assert_eq!(fold("a\u{85}b"), "a\u{85}b");
        assert_eq!(fold("ÄÖ\u{3000}İ"), "äö i\u{307}");
        assert_eq!(fold(" \u{feff}\n"), "");
        assert_eq!(utf16_len("a😀"), 3);
    }
}

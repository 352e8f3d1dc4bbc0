//! A file's content as the model may see it: text, credentials masked; or why there is none.

use std::borrow::Cow;
use std::sync::Arc;

use crate::detect::mask_lines;

/// A file larger than this is not served.
pub(super) const MAX_FILE: u64 = 8 << 20;
/// Where a NUL byte makes a file binary, as git has it.
const BINARY_PROBE: usize = 8_000;

/// What there is to show of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// Text; every line has the number it has in the file.
    Text(Arc<str>),
    /// No text; its size in bytes.
    Binary(u64),
    /// Over [`MAX_FILE`]; its size in bytes.
    TooLarge(u64),
}

impl Content {
    /// Takes the bytes of a file. Nothing of a credential is kept.
    pub(super) fn of(bytes: &[u8]) -> Self {
        match decode(bytes) {
            Some(text) => Self::Text(mask_lines(&text).into()),
            None => Self::Binary(bytes.len() as u64),
        }
    }

    /// What holding it costs, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(_) | Self::TooLarge(_) => 0,
        }
    }
}

/// The text of a file: UTF-8 with what is invalid replaced, or UTF-16 with its mark; `None` for a binary one.
fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    let utf16 = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest
            .chunks_exact(2)
            .map(|pair| unit([pair[0], pair[1]]))
            .collect();
        Cow::Owned(String::from_utf16_lossy(&units))
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => return Some(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => return Some(utf16(rest, u16::from_be_bytes)),
        _ => {}
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let probe = &bytes[..bytes.len().min(BINARY_PROBE)];
    (memchr::memchr(0, probe).is_none()).then(|| String::from_utf8_lossy(bytes))
}

/// The lines of a text without their ends. A last line without an end counts, nothing after the last end does.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text
        .strip_suffix('\n')
        .map_or_else(|| (!text.is_empty()).then_some(text), Some);
    text.into_iter()
        .flat_map(|text| text.split('\n'))
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// How many [`lines`] there are.
pub(super) fn line_count(text: &str) -> u32 {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let open = usize::from(!text.is_empty() && !text.ends_with('\n'));
    u32::try_from(ends + open).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        match Content::of(bytes) {
            Content::Text(text) => text.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn encodings() {
        assert_eq!(text(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        assert_eq!(text(b"\xef\xbb\xbfa"), "a");
        assert_eq!(text(b"\xff\xfea\0\n\0"), "a\n");
        assert_eq!(text(b"\xfe\xff\0a\0"), "a");
        assert_eq!(Content::of(b"a\0b"), Content::Binary(3));
        let late = [&b"a".repeat(BINARY_PROBE)[..], b"\0"].concat();
        assert!(matches!(Content::of(&late), Content::Text(_)));
    }

    #[test]
    fn credentials_go_and_numbers_stay() {
        let key = [
            "-----BEGIN PRIV",
            "ATE KEY-----\nMIIEabcdefgh1234\n-----END PRIV",
            "ATE KEY-----\nlast",
        ]
        .concat();
        let shown = text(key.as_bytes());
        assert!(!shown.contains("MIIE"), "{shown}");
        assert_eq!(lines(&shown).nth(3), Some("last"));
    }

    #[test]
    fn lines_and_their_number() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\r\n\nb", &["a", "", "b"]),
            ("\n", &[""]),
            ("\n\n", &["", ""]),
        ] {
            assert_eq!(lines(text).collect::<Vec<_>>(), expected, "{text:?}");
            assert_eq!(line_count(text) as usize, expected.len(), "{text:?}");
        }
    }
}

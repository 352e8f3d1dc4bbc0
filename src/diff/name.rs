//! Names as they stand in patch headers: C-quoted, prefixed, with a time stamp behind a tab.

/// Reads a C-quoted name at the start of `text`; gives the bytes and what follows the closing quote.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut out = Vec::new();
    loop {
        let (&b, after) = rest.split_first()?;
        rest = after;
        match b {
            b'"' => return Some((out, rest)),
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                rest = after;
                out.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => escape,
                    b'0'..=b'3' => {
                        let [second @ b'0'..=b'7', third @ b'0'..=b'7', after @ ..] = rest else {
                            return None;
                        };
                        rest = after;
                        (escape - b'0') * 64 + (second - b'0') * 8 + (third - b'0')
                    }
                    _ => return None,
                });
            }
            b'\n' => return None,
            other => out.push(other),
        }
    }
}

/// A whole header value that may be quoted (`rename from "…"`).
pub(super) fn whole(text: &[u8]) -> Option<Vec<u8>> {
    if text.first() != Some(&b'"') {
        return Some(text.to_vec());
    }
    match unquote(text)? {
        (name, []) => Some(name),
        _ => None,
    }
}

/// What a `---`/`+++` line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Label {
    /// No file on that side: `/dev/null`, or GNU diff's time stamp of the epoch.
    Absent(Vec<u8>),
    /// The name with its prefix.
    Name(Vec<u8>),
}

impl Label {
    /// Reads what follows `--- ` or `+++ `.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (name, rest) = if text.first() == Some(&b'"') {
            unquote(text)?
        } else {
            let end = memchr::memchr(b'\t', text).unwrap_or(text.len());
            (text[..end].to_vec(), &text[end..])
        };
        let stamp = match rest {
            [] => &[][..],
            [b'\t', stamp @ ..] => stamp,
            _ => return None,
        };
        if name.is_empty() {
            return None;
        }
        if name == b"/dev/null" || is_epoch(stamp) {
            return Some(Self::Absent(name));
        }
        Some(Self::Name(name))
    }

    /// The name, when there is a file.
    pub(super) fn name(&self) -> Option<&[u8]> {
        match self {
            Self::Absent(_) => None,
            Self::Name(name) => Some(name),
        }
    }
}

/// GNU diff stamps a missing file (`-N`) with the epoch, in the local zone.
fn is_epoch(stamp: &[u8]) -> bool {
    [&b"1970-01-01 "[..], b"1969-12-31 "]
        .iter()
        .any(|day| stamp.starts_with(day))
        && stamp.windows(7).any(|w| w == b":00.000")
}

/// The name without its first folder.
pub(super) fn strip_one(name: &[u8]) -> Option<&[u8]> {
    let at = memchr::memchr(b'/', name)?;
    Some(&name[at + 1..])
}

/// The path that two sides of one file share: equal names had no prefix, otherwise one folder is the prefix.
pub(super) fn common<'a>(old: &[u8], new: &'a [u8]) -> Option<&'a [u8]> {
    if old == new {
        return Some(new);
    }
    let stripped = strip_one(new)?;
    (strip_one(old)? == stripped).then_some(stripped)
}

/// Eats `prefix` + `name`, quoted or not, from the start of `text`.
fn eat<'a>(text: &'a [u8], prefix: &[u8], name: &[u8]) -> Option<&'a [u8]> {
    if text.first() == Some(&b'"') {
        let (found, rest) = unquote(text)?;
        return (found.strip_prefix(prefix)? == name).then_some(rest);
    }
    text.strip_prefix(prefix)?.strip_prefix(name)
}

/// True when `rest` (what follows `diff --git `) is the header git prints for these names.
pub(super) fn is_header_of(rest: &[u8], old: &[u8], new: &[u8]) -> bool {
    eat(rest, b"a/", old)
        .and_then(|rest| rest.strip_prefix(b" "))
        .and_then(|rest| eat(rest, b"b/", new))
        .is_some_and(<[u8]>::is_empty)
}

/// The two names of a header of which nothing is known but the labels. Without labels both sides have
/// the same name and equally long prefixes, so that an unquoted header splits in its middle.
pub(super) fn split_header(
    rest: &[u8],
    old: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Option<(Vec<u8>, Vec<u8>)> {
    if rest.first() == Some(&b'"') {
        let (first, after) = unquote(rest)?;
        return Some((first, whole(after.strip_prefix(b" ")?)?));
    }
    if rest.last() == Some(&b'"')
        && let Some(at) = memchr::memmem::find(rest, b" \"")
        && let Some(second) = whole(&rest[at + 1..])
    {
        return Some((rest[..at].to_vec(), second));
    }
    let at = if let Some(new) = new {
        rest.strip_suffix(new)?.len().checked_sub(1)?
    } else if let Some(old) = old {
        rest.strip_prefix(old)?;
        old.len()
    } else {
        rest.len() / 2
    };
    if rest.get(at) != Some(&b' ') {
        return None;
    }
    Some((rest[..at].to_vec(), rest[at + 1..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unquotes_what_git_quotes() {
        let (name, rest) = unquote(b"\"a\\\"b\\tc\\n\\\\\\303\\251\\377\" x").unwrap();
        assert_eq!(name, b"a\"b\tc\n\\\xc3\xa9\xff");
        assert_eq!(rest, b" x");
        for bad in [
            &b"\"a"[..],
            b"\"\\9\"",
            b"\"\\400\"",
            b"\"\\12\"",
            b"\"a\\",
            b"a",
        ] {
            assert_eq!(unquote(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn labels() {
        let name = |text: &[u8]| Label::parse(text).unwrap().name().map(<[u8]>::to_vec);
        assert_eq!(name(b"b/my file\t"), Some(b"b/my file".to_vec()));
        assert_eq!(name(b"/dev/null"), None);
        assert_eq!(name(b"x/new\t1970-01-01 00:00:00.000000000 +0000"), None);
        assert_eq!(name(b"x/new\t1969-12-31 19:00:00.000000000 -0500"), None);
        assert_eq!(
            name(b"x\t1970-01-01 00:00:01.500000000 +0000"),
            Some(b"x".to_vec())
        );
        assert_eq!(name(b"\"f q\"\t2026-11-30"), Some(b"f q".to_vec()));
        assert_eq!(Label::parse(b""), None);
        assert_eq!(Label::parse(b"\"a\"b"), None);
    }

    #[test]
    fn headers_of_known_names() {
        assert!(is_header_of(b"a/x b/x", b"x", b"x"));
        assert!(is_header_of(b"a/x b/y b/x b/y", b"x b/y", b"x b/y"));
        assert!(is_header_of(b"a/x \"b/\\n\"", b"x", b"\n"));
        assert!(!is_header_of(b"a/x b/xy", b"x", b"x"));
        assert!(!is_header_of(b"a/x b/y", b"x", b"x"));
        assert!(!is_header_of(b"w/x b/x", b"x", b"x"));
    }

    #[test]
    fn headers_of_unknown_names() {
        let path = |rest: &[u8]| {
            let (old, new) = split_header(rest, None, None)?;
            common(&old, &new).map(<[u8]>::to_vec)
        };
        assert_eq!(
            path(b"a/x b/y.bin b/x b/y.bin"),
            Some(b"x b/y.bin".to_vec())
        );
        assert_eq!(path(b"f q f q"), Some(b"f q".to_vec()));
        assert_eq!(path(b"i/f w/f"), Some(b"f".to_vec()));
        assert_eq!(path(b"\"a/\\t\" \"b/\\t\""), Some(b"\t".to_vec()));
        assert_eq!(path(b"a/f b/g"), None);
        assert_eq!(path(b"ab"), None);
        assert_eq!(path(b""), None);
    }
}

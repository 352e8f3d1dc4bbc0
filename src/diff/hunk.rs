//! Hunks: the `@@` line, the counted body, and the lines of a hunk.
//!
//! @ref LLP 0001#only-the-hunk-header-counts — inside a hunk only the counts decide

use memchr::memchr;

use super::error::Problem;
use super::types::{DiffLine, Hunk, LineKind};

/// The numbers of a `@@ -a,b +c,d @@` line and the offset in the line where the heading starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) old_start: u32,
    pub(super) old_len: u32,
    pub(super) new_start: u32,
    pub(super) new_len: u32,
    pub(super) heading: usize,
}

/// Where a body ends and what it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) end: usize,
    pub(super) added: u32,
    pub(super) deleted: u32,
}

/// Reads a decimal number; gives it and what follows.
fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let mut value = 0u32;
    for b in &text[..digits] {
        value = value.checked_mul(10)?.checked_add(u32::from(b - b'0'))?;
    }
    Some((value, &text[digits..]))
}

/// Reads `start[,len]`; a missing length is 1.
fn range(text: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (start, rest) = number(text)?;
    let (len, rest) = match rest.strip_prefix(b",") {
        Some(rest) => number(rest)?,
        None => (1, rest),
    };
    // The end has to be a line number too, and line 0 exists only as "before the first".
    start.checked_add(len)?.checked_add(1)?;
    if start == 0 && len > 0 {
        return None;
    }
    Some((start, len, rest))
}

/// Reads a `@@` line (without its newline).
pub(super) fn parse_header(line: &[u8]) -> Option<Header> {
    let rest = line.strip_prefix(b"@@ -")?;
    let (old_start, old_len, rest) = range(rest)?;
    let (new_start, new_len, rest) = range(rest.strip_prefix(b" +")?)?;
    let rest = rest.strip_prefix(b" @@")?;
    if old_len == 0 && new_len == 0 {
        return None;
    }
    let rest = match rest {
        [b' ', heading @ ..] => heading,
        [] => rest,
        _ => return None,
    };
    Some(Header {
        old_start,
        old_len,
        new_start,
        new_len,
        heading: line.len() - rest.len(),
    })
}

/// What a line of a body is, by its first byte. An empty context line may have lost its blank.
fn kind_of(line: &[u8]) -> Option<LineKind> {
    match line {
        [b' ', ..] | [] | [b'\r'] => Some(LineKind::Context),
        [b'+', ..] => Some(LineKind::Added),
        [b'-', ..] => Some(LineKind::Removed),
        _ => None,
    }
}

/// Walks the body that starts at `start` until the counts are used up. Only the counts decide
/// what belongs to it, so nothing in the content can end it early.
pub(super) fn scan_body(patch: &[u8], start: usize, header: &Header) -> Result<Body, Problem> {
    let (mut old_left, mut new_left) = (header.old_len, header.new_len);
    let (mut added, mut deleted) = (0u32, 0u32);
    let mut pos = start;
    let mut last = None;
    loop {
        let done = old_left == 0 && new_left == 0;
        let Some(&first) = patch.get(pos) else {
            if done {
                break;
            }
            return Err(Problem {
                at: pos,
                what: "the patch ends inside a hunk",
            });
        };
        if done && first != b'\\' {
            break;
        }
        let rest = &patch[pos..];
        let (line, next) = match memchr(b'\n', rest) {
            Some(len) => (&rest[..len], pos + len + 1),
            None => (rest, patch.len()),
        };
        if first == b'\\' {
            // "\ No newline at end of file": the line before it is the last of its side(s).
            let valid = match last.take() {
                Some(LineKind::Context) => done,
                Some(LineKind::Removed) => old_left == 0,
                Some(LineKind::Added) => new_left == 0,
                None => false,
            };
            if !valid || !line.starts_with(b"\\ ") {
                return Err(Problem {
                    at: pos,
                    what: "a no-newline marker in the middle of a file",
                });
            }
            pos = next;
            continue;
        }
        let Some(kind) = kind_of(line) else {
            return Err(Problem {
                at: pos,
                what: "a line inside a hunk starts with none of ' ', '+', '-'",
            });
        };
        let (old, new) = (
            u32::from(kind != LineKind::Added),
            u32::from(kind != LineKind::Removed),
        );
        if old > old_left || new > new_left {
            return Err(Problem {
                at: pos,
                what: "a hunk has more lines than its header says",
            });
        }
        old_left -= old;
        new_left -= new;
        added += new - u32::from(kind == LineKind::Context);
        deleted += old - u32::from(kind == LineKind::Context);
        last = Some(kind);
        pos = next;
    }
    Ok(Body {
        end: pos,
        added,
        deleted,
    })
}

/// First line and the line after the last of one side; an empty range starts after `start`.
fn span(start: u32, len: u32) -> (u32, u32) {
    let first = if len == 0 { start + 1 } else { start };
    (first, first + len)
}

/// Checks that hunks go upwards on both sides; with `exact` also that the unchanged lines between
/// them are as many on one side as on the other (git's own output always has that).
pub(super) fn check_order(hunks: &[Hunk], exact: bool) -> Result<(), Problem> {
    let (mut old_end, mut new_end) = (1, 1);
    for hunk in hunks {
        let (old, next_old) = span(hunk.old_start, hunk.old_len);
        let (new, next_new) = span(hunk.new_start, hunk.new_len);
        if old < old_end || new < new_end {
            return Err(Problem {
                at: hunk.body.start.saturating_sub(1),
                what: "hunks overlap or are out of order",
            });
        }
        if exact && old - old_end != new - new_end {
            return Err(Problem {
                at: hunk.body.start.saturating_sub(1),
                what: "the line numbers of the hunks do not add up",
            });
        }
        (old_end, new_end) = (next_old, next_new);
    }
    Ok(())
}

impl Hunk {
    /// The lines of this hunk; `patch` is the buffer of its [`Diff`](super::Diff).
    pub fn lines<'a>(&self, patch: &'a [u8]) -> HunkLines<'a> {
        HunkLines {
            rest: patch.get(self.body.clone()).unwrap_or_default(),
            old_no: self.old_start,
            new_no: self.new_start,
        }
    }

    /// First line and the line after the last of the old side; an empty range starts after the
    /// line that `old_start` names.
    pub(super) fn old_span(&self) -> (u32, u32) {
        span(self.old_start, self.old_len)
    }

    /// The same for the new side.
    pub(super) fn new_span(&self) -> (u32, u32) {
        span(self.new_start, self.new_len)
    }
}

/// Iterates over the lines of a hunk.
#[derive(Debug, Clone)]
pub struct HunkLines<'a> {
    rest: &'a [u8],
    old_no: u32,
    new_no: u32,
}

impl<'a> HunkLines<'a> {
    fn take_line(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = match memchr(b'\n', self.rest) {
            Some(len) => (&self.rest[..len], &self.rest[len + 1..]),
            None => (self.rest, &[][..]),
        };
        self.rest = rest;
        Some(line)
    }
}

impl<'a> Iterator for HunkLines<'a> {
    type Item = DiffLine<'a>;

    fn next(&mut self) -> Option<DiffLine<'a>> {
        let line = self.take_line()?;
        let kind = kind_of(line)?;
        let content = match line {
            [b' ' | b'+' | b'-', content @ ..] => content,
            blank => blank,
        };
        let newline = self.rest.first() != Some(&b'\\');
        if !newline {
            self.take_line();
        }
        let old_no = (kind != LineKind::Added).then_some(self.old_no);
        let new_no = (kind != LineKind::Removed).then_some(self.new_no);
        self.old_no = self.old_no.saturating_add(u32::from(old_no.is_some()));
        self.new_no = self.new_no.saturating_add(u32::from(new_no.is_some()));
        Some(DiffLine {
            kind,
            content,
            old_no,
            new_no,
            newline,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let header = parse_header(b"@@ -1,2 +3 @@ fn x()").unwrap();
        assert_eq!((header.old_start, header.old_len), (1, 2));
        assert_eq!((header.new_start, header.new_len), (3, 1));
        assert_eq!(header.heading, 14);
        for bad in [
            &b"@@ -1,2 +3"[..],
            b"@@ -1,2 +3 @",
            b"@@ -,2 +3 @@",
            b"@@ -0,2 +3 @@",
            b"@@ -0,0 +0,0 @@",
            b"@@ -4294967295,1 +1 @@",
            b"@@ -99999999999 +1 @@",
            b"@@ --1 +1 @@",
            b"@@ -1 +1 @@x",
        ] {
            assert_eq!(parse_header(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    fn scan(header: &[u8], body: &[u8]) -> Result<Body, Problem> {
        scan_body(body, 0, &parse_header(header).unwrap())
    }

    #[test]
    fn only_the_counts_decide() {
        let body = b"--- a\n+++ b\n@@ -1 +1 @@\n";
        let scanned = scan(b"@@ -1 +1 @@", body).unwrap();
        assert_eq!((scanned.end, scanned.added, scanned.deleted), (12, 1, 1));
        assert!(scan(b"@@ -1,2 +1,2 @@", b" a\n").is_err());
        assert!(scan(b"@@ -1,4000000000 +1,4000000000 @@", b" a\n").is_err());
        assert!(scan(b"@@ -1 +0,0 @@", b"+a\n").is_err());
        assert!(scan(b"@@ -1 +1 @@", b"diff --git a/x b/x\n").is_err());
        // A marker belongs behind the last line of a side, once.
        assert!(scan(b"@@ -1,2 +1,2 @@", b" a\n\\ No newline\n b\n").is_err());
        assert!(scan(b"@@ -1 +1 @@", b"\\ No newline\n a\n").is_err());
        assert!(scan(b"@@ -1 +1 @@", b" a\n\\ No\n\\ No\n").is_err());
    }

    #[test]
    fn lines_have_numbers_and_newlines() {
        let body = b" a\n-b\r\n\\ No newline at end of file\n+c\n+\n\n";
        let hunk = Hunk {
            old_start: 5,
            old_len: 2,
            new_start: 7,
            new_len: 3,
            heading: 0..0,
            body: 0..body.len(),
        };
        let lines: Vec<_> = hunk
            .lines(body)
            .map(|l| (l.kind, l.content, l.old_no, l.new_no, l.newline))
            .collect();
        assert_eq!(
            lines,
            [
                (LineKind::Context, &b"a"[..], Some(5), Some(7), true),
                (LineKind::Removed, b"b\r", Some(6), None, false),
                (LineKind::Added, b"c", None, Some(8), true),
                (LineKind::Added, b"", None, Some(9), true),
                (LineKind::Context, b"", Some(7), Some(10), true),
            ]
        );
    }

    #[test]
    fn order_of_hunks() {
        let hunk = |old_start, old_len, new_start, new_len| Hunk {
            old_start,
            old_len,
            new_start,
            new_len,
            heading: 0..0,
            body: 0..0,
        };
        assert!(check_order(&[hunk(1, 2, 1, 3), hunk(9, 0, 11, 1)], true).is_ok());
        assert!(check_order(&[hunk(1, 2, 1, 3), hunk(9, 1, 11, 1)], true).is_err());
        assert!(check_order(&[hunk(1, 2, 1, 3), hunk(9, 1, 11, 1)], false).is_ok());
        assert!(check_order(&[hunk(9, 1, 9, 1), hunk(1, 1, 1, 1)], false).is_err());
    }
}

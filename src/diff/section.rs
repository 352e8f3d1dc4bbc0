//! One file's section of a patch: extended headers, then hunks or a binary notice.

use std::ops::Range;

use memchr::memchr;

use super::error::Problem;
use super::hunk;
use super::name::{self, Label};
use super::types::{FileMode, Hunk};

/// Longest header line that is read (a quoted name of 4096 bytes fits four times).
const LONGEST_HEADER: usize = 64 * 1024;

/// A position in the patch, moved line by line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) patch: &'a [u8],
    pub(super) pos: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(patch: &'a [u8]) -> Self {
        Self { patch, pos: 0 }
    }

    /// The line at the position without its line end (`\n` or `\r\n`).
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        let rest = self.patch.get(self.pos..)?;
        if rest.is_empty() {
            return None;
        }
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Moves behind the line.
    pub(super) fn advance(&mut self) {
        let rest = self.patch.get(self.pos..).unwrap_or_default();
        self.pos += memchr(b'\n', rest).map_or(rest.len(), |len| len + 1);
    }

    /// The line after the one at the position.
    pub(super) fn peek_second(&self) -> Option<&'a [u8]> {
        let mut next = *self;
        next.advance();
        next.peek()
    }

    pub(super) fn problem(&self, what: &'static str) -> Problem {
        Problem { at: self.pos, what }
    }
}

/// What a section says.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) old_mode: Option<FileMode>,
    pub(super) new_mode: Option<FileMode>,
    pub(super) created: bool,
    pub(super) deleted_file: bool,
    pub(super) rename: bool,
    pub(super) copy: bool,
    /// Names of `rename`/`copy from` and `to`, unquoted.
    pub(super) from: Option<Vec<u8>>,
    pub(super) to: Option<Vec<u8>>,
    pub(super) score: Option<u8>,
    /// The two ids of the `index` line as printed.
    pub(super) ids: Option<(Range<usize>, Range<usize>)>,
    pub(super) old_label: Option<Label>,
    pub(super) new_label: Option<Label>,
    pub(super) hunks: Vec<Hunk>,
    pub(super) binary: bool,
    pub(super) added: u32,
    pub(super) deleted: u32,
}

/// Parses what follows a `diff --git` line. The cursor ends behind the section.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Section, Problem> {
    let mut section = Section::default();
    let mut seen = Vec::new();
    while let Some(line) = cursor.peek() {
        if line.starts_with(b"--- ") && cursor.peek_second().is_some_and(|l| l.starts_with(b"+++ "))
        {
            section.labels_and_hunks(cursor)?;
            break;
        }
        if is_binary_notice(line) {
            section.binary = true;
            cursor.advance();
            break;
        }
        if line == b"GIT binary patch" {
            section.binary = true;
            cursor.advance();
            skip_binary_patch(cursor)?;
            break;
        }
        let Some(keyword) = section.header(line, cursor.pos)? else {
            break;
        };
        if seen.contains(&keyword) {
            return Err(cursor.problem("a header line is given twice"));
        }
        seen.push(keyword);
        cursor.advance();
    }
    Ok(section)
}

/// `Binary files a/x and b/x differ`.
pub(super) fn is_binary_notice(line: &[u8]) -> bool {
    line.starts_with(b"Binary files ") && line.ends_with(b" differ")
}

impl Section {
    /// `---`, `+++` and at least one hunk.
    pub(super) fn labels_and_hunks(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Problem> {
        for (side, prefix) in [
            (&mut self.old_label, &b"--- "[..]),
            (&mut self.new_label, b"+++ "),
        ] {
            let label = cursor
                .peek()
                .filter(|line| line.len() <= LONGEST_HEADER)
                .and_then(|line| Label::parse(line.strip_prefix(prefix)?));
            if label.is_none() {
                return Err(cursor.problem("a '---' or '+++' line without a readable name"));
            }
            *side = label;
            cursor.advance();
        }
        while let Some(line) = cursor.peek() {
            if !line.starts_with(b"@@ ") {
                break;
            }
            let header = hunk::parse_header(line).ok_or(cursor.problem("a malformed '@@' line"))?;
            let heading = cursor.pos + header.heading..cursor.pos + line.len();
            cursor.advance();
            let start = cursor.pos;
            let body = hunk::scan_body(cursor.patch, start, &header)?;
            let counts = self
                .added
                .checked_add(body.added)
                .zip(self.deleted.checked_add(body.deleted));
            (self.added, self.deleted) = counts.ok_or(cursor.problem("too many lines"))?;
            self.hunks.push(Hunk {
                old_start: header.old_start,
                old_len: header.old_len,
                new_start: header.new_start,
                new_len: header.new_len,
                heading,
                body: start..body.end,
            });
            cursor.pos = body.end;
        }
        if self.hunks.is_empty() {
            return Err(cursor.problem("'---' and '+++' without a hunk"));
        }
        Ok(())
    }

    /// Takes an extended header line; gives its keyword, or `None` when it is none.
    fn header(&mut self, line: &[u8], at: usize) -> Result<Option<&'static [u8]>, Problem> {
        const KEYWORDS: [&[u8]; 13] = [
            b"old mode ",
            b"new mode ",
            b"deleted file mode ",
            b"new file mode ",
            b"copy from ",
            b"copy to ",
            b"rename from ",
            b"rename to ",
            b"rename old ",
            b"rename new ",
            b"similarity index ",
            b"dissimilarity index ",
            b"index ",
        ];
        let Some(keyword) = KEYWORDS.into_iter().find(|k| line.starts_with(k)) else {
            return Ok(None);
        };
        let value = &line[keyword.len()..];
        let bad = |what| Problem { at, what };
        if value.len() > LONGEST_HEADER {
            return Err(bad("a header line is too long"));
        }
        let mode = || parse_mode(value).ok_or(bad("a malformed mode"));
        let file = || name::whole(value).ok_or(bad("a malformed quoted name"));
        match keyword {
            b"old mode " => self.old_mode = Some(mode()?),
            b"new mode " => self.new_mode = Some(mode()?),
            b"deleted file mode " => {
                self.deleted_file = true;
                self.old_mode = Some(mode()?);
            }
            b"new file mode " => {
                self.created = true;
                self.new_mode = Some(mode()?);
            }
            b"copy from " | b"rename from " | b"rename old " => self.from = Some(file()?),
            b"copy to " | b"rename to " | b"rename new " => {
                self.to = Some(file()?);
                self.copy = keyword == b"copy to ";
                self.rename = !self.copy;
            }
            b"similarity index " => {
                self.score = Some(parse_percent(value).ok_or(bad("a malformed similarity"))?);
            }
            b"index " => self.index(value, at + keyword.len()),
            _ => {}
        }
        Ok(Some(keyword))
    }

    /// `<old>..<new>[ <mode>]`; anything else is left unknown.
    fn index(&mut self, value: &[u8], at: usize) {
        let Some(dots) = memchr::memmem::find(value, b"..") else {
            return;
        };
        let end = memchr(b' ', value).unwrap_or(value.len());
        if dots + 2 > end {
            return;
        }
        self.ids = Some((at..at + dots, at + dots + 2..at + end));
        if let Some(mode) = value.get(end + 1..).and_then(parse_mode) {
            self.old_mode = self.old_mode.or(Some(mode));
            self.new_mode = self.new_mode.or(Some(mode));
        }
    }
}

/// A mode in octal digits.
pub(super) fn parse_mode(text: &[u8]) -> Option<FileMode> {
    if text.is_empty() || text.len() > 6 {
        return None;
    }
    let mut mode = 0u32;
    for b in text {
        if !(b'0'..=b'7').contains(b) {
            return None;
        }
        mode = mode * 8 + u32::from(b - b'0');
    }
    Some(FileMode(mode))
}

fn parse_percent(text: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(text.strip_suffix(b"%")?).ok()?;
    text.parse().ok().filter(|n| *n <= 100)
}

/// One or two blocks of `literal N`/`delta N` and base-85 lines, each ended by an empty line.
fn skip_binary_patch(cursor: &mut Cursor<'_>) -> Result<(), Problem> {
    for block in 0..2 {
        let size = cursor.peek().and_then(|line| {
            line.strip_prefix(b"literal ")
                .or_else(|| line.strip_prefix(b"delta "))
        });
        let Some(size) = size else {
            if block == 1 {
                break;
            }
            return Err(cursor.problem("a binary patch without its data"));
        };
        if size.is_empty() || !size.iter().all(u8::is_ascii_digit) {
            return Err(cursor.problem("a binary patch with a malformed size"));
        }
        cursor.advance();
        while let Some(line) = cursor.peek() {
            if line.is_empty() {
                cursor.advance();
                break;
            }
            if !is_base85(line) {
                return Err(cursor.problem("a malformed line in a binary patch"));
            }
            cursor.advance();
        }
    }
    Ok(())
}

/// A length letter and groups of five digits of git's base 85.
fn is_base85(line: &[u8]) -> bool {
    let Some((length, data)) = line.split_first() else {
        return false;
    };
    length.is_ascii_alphabetic()
        && !data.is_empty()
        && data.len() % 5 == 0
        && data
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&()*+-;<=>?@^_`{|}~".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(text: &[u8]) -> Result<(Section, usize), Problem> {
        let mut cursor = Cursor::new(text);
        parse(&mut cursor).map(|section| (section, cursor.pos))
    }

    #[test]
    fn extended_headers() {
        let text =
            b"old mode 100644\nnew mode 100755\nsimilarity index 90%\nrename from \"a\\tb\"\nrename to c d\nindex 12..34\n";
        let (s, end) = section(text).unwrap();
        assert_eq!(end, text.len());
        assert_eq!(s.old_mode, Some(FileMode(0o100_644)));
        assert_eq!(s.new_mode, Some(FileMode(0o100_755)));
        assert_eq!(s.score, Some(90));
        assert!(s.rename && !s.copy);
        assert_eq!(s.from.as_deref(), Some(&b"a\tb"[..]));
        assert_eq!(s.to.as_deref(), Some(&b"c d"[..]));
        assert!(s.ids.is_some());
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        for bad in [
            &b"rename to x\nrename to y\n"[..],
            b"old mode 9\n",
            b"similarity index 101%\n",
            b"rename from \"x\n",
            b"--- a\n+++ b\n",
            b"--- a\n+++ \n@@ -1 +1 @@\n-a\n+b\n",
            b"--- a\n+++ b\n@@ -1 +1\n",
            b"GIT binary patch\n",
            b"GIT binary patch\nliteral 3\n+evil\n",
            b"GIT binary patch\nliteral x\n",
        ] {
            assert!(section(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn binary_patches_end_where_their_blocks_end() {
        let text = b"GIT binary patch\nliteral 4\nLcmZQ%VqgXU01*HO\n\nliteral 3\nKcmZQ%VgLXD3IGHE\n\ndiff --git";
        let (s, end) = section(text).unwrap();
        assert!(s.binary);
        assert_eq!(&text[end..], b"diff --git");
    }
}

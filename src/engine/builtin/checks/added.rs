//! The added lines as one text, so that each file is scanned once.

use std::ops::Range;

use crate::engine::builtin::{CheckedFile, Hit};

/// All added lines joined by newlines; where lines are missing between two of them a NUL line stands, so that nothing is
/// recognised across the gap.
pub(super) struct AddedText<'a> {
    /// The text.
    pub(super) text: Vec<u8>,
    /// Where each added line begins in `text`, its number and its bytes; ascending.
    lines: Vec<(usize, u32, &'a [u8])>,
}

impl<'a> AddedText<'a> {
    /// Joins the added lines of `file`.
    pub(super) fn new(file: &CheckedFile<'a>) -> Self {
        let size = file.added.iter().map(|(_, line)| line.len() + 1).sum();
        let mut text = Vec::with_capacity(size);
        let mut lines = Vec::with_capacity(file.added.len());
        let mut expected = None;
        for &(number, line) in &file.added {
            if expected.is_some_and(|e| e != number) {
                text.extend_from_slice(b"\0\n");
            }
            expected = number.checked_add(1);
            lines.push((text.len(), number, line));
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        Self { text, lines }
    }

    /// The added lines: number and bytes.
    pub(super) fn lines(&self) -> impl DoubleEndedIterator<Item = (u32, &'a [u8])> + '_ {
        self.lines.iter().map(|(_, number, line)| (*number, *line))
    }

    /// A hit of `rule` on a range of the text.
    pub(super) fn hit(&self, rule: &str, range: &Range<usize>) -> Option<Hit> {
        let &(start, number, line) = self.line_at(range.start)?;
        let &(_, last, _) = self.line_at(range.end.saturating_sub(1).max(range.start))?;
        let from = range.start - start;
        let to = (range.end - start).min(line.len());
        Some(Hit {
            rule: rule.to_owned(),
            line: number,
            end_line: last.max(number),
            columns: (from < to).then_some(from..to),
            evidence: Some(line.to_vec()),
            title: None,
        })
    }

    fn line_at(&self, offset: usize) -> Option<&(usize, u32, &'a [u8])> {
        let after = self.lines.partition_point(|(start, ..)| *start <= offset);
        self.lines.get(after.checked_sub(1)?)
    }
}

/// A hit on a part of one line.
pub(super) fn line_hit(rule: &str, number: u32, line: &[u8], columns: Option<Range<usize>>) -> Hit {
    Hit {
        rule: rule.to_owned(),
        line: number,
        end_line: number,
        columns,
        evidence: Some(line.to_vec()),
        title: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::FileMode;
    use crate::engine::builtin::Content;
    use crate::model::{ChangeStatus, RepoPath};

    #[test]
    fn ranges_come_back_as_lines() {
        let path = RepoPath::new("a").unwrap();
        let file = CheckedFile {
            path: &path,
            status: ChangeStatus::Modified,
            mode: FileMode(0o100_644),
            content: Content::unknown(),
            added: vec![(3, b"one"), (4, b"two"), (9, b"three")],
        };
        let added = AddedText::new(&file);
        assert_eq!(added.text, b"one\ntwo\n\0\nthree\n");
        let hit = added.hit("r", &(1..6)).unwrap();
        assert_eq!((hit.line, hit.end_line, hit.columns), (3, 4, Some(1..3)));
        let hit = added.hit("r", &(10..15)).unwrap();
        assert_eq!((hit.line, hit.end_line, hit.columns), (9, 9, Some(0..5)));
        assert_eq!(hit.evidence.as_deref(), Some(&b"three"[..]));
    }
}

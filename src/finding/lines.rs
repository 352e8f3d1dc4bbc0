//! The known lines of one side of a file, with their numbers.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::diff::{Diff, FileDiff};
use crate::model::Side;

struct Known {
    number: u32,
    bytes: Range<usize>,
}

/// Lines of one version of a file, ascending: all of them, or those that the diff shows.
pub(super) struct SideLines {
    buffer: Bytes,
    lines: Vec<Known>,
}

impl SideLines {
    /// The lines of `side` that the hunks of `file` show.
    pub(super) fn from_hunks(diff: &Diff, file: &FileDiff, side: Side) -> Self {
        let mut lines = Vec::new();
        let base = diff.patch.as_ptr().addr();
        for line in file.hunks.iter().flat_map(|hunk| hunk.lines(&diff.patch)) {
            let number = match side {
                Side::Old => line.old_no,
                Side::New => line.new_no,
            };
            // The content is a part of the patch; its place is kept, not the borrow.
            let start = line.content.as_ptr().addr().saturating_sub(base);
            let bytes = start..start + line.content.len();
            if let Some(number) = number
                && diff.patch.get(bytes.clone()).is_some()
            {
                lines.push(Known { number, bytes });
            }
        }
        Self {
            buffer: diff.patch.clone(),
            lines,
        }
    }

    /// All lines of `content`.
    pub(super) fn from_content(content: Arc<[u8]>) -> Self {
        let mut lines = Vec::new();
        let mut start = 0;
        let mut number = 0;
        while start < content.len() {
            let stop =
                memchr::memchr(b'\n', &content[start..]).map_or(content.len(), |n| start + n);
            number += 1;
            lines.push(Known {
                number,
                bytes: start..stop,
            });
            start = stop + 1;
        }
        Self {
            buffer: Bytes::from_owner(content),
            lines,
        }
    }

    /// What holding it costs, in bytes, beyond a buffer that is shared with the diff.
    pub(super) fn weight(&self) -> usize {
        self.lines.len() * size_of::<Known>() + self.buffer.len()
    }

    fn text(&self, known: &Known) -> &[u8] {
        let line = &self.buffer[known.bytes.clone()];
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Line `number` without its end, where it is known.
    pub(super) fn get(&self, number: u32) -> Option<&[u8]> {
        let at = self
            .lines
            .binary_search_by_key(&number, |known| known.number)
            .ok()?;
        Some(self.text(&self.lines[at]))
    }

    /// All known lines with their numbers, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.lines
            .iter()
            .map(|known| (known.number, self.text(known)))
    }

    /// How many lines are known; for a whole file the number of its last line.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::diff::{FileMode, Hunk};
    use crate::model::{ChangeStatus, RepoPath};

    /// A diff of one modified file `path` from hunks given as (old start, new start, body).
    pub(crate) fn diff_of(path: &str, hunks: &[(u32, u32, &str)]) -> Diff {
        let mut patch = Vec::new();
        let (mut added, mut deleted) = (0, 0);
        let mut parsed = Vec::new();
        for (old_start, new_start, body) in hunks {
            let start = patch.len();
            patch.extend_from_slice(body.as_bytes());
            let count = |marker: char| body.lines().filter(|l| l.starts_with(marker)).count();
            let (plus, minus, both) = (count('+'), count('-'), count(' '));
            added += plus as u32;
            deleted += minus as u32;
            parsed.push(Hunk {
                old_start: *old_start,
                old_len: (minus + both) as u32,
                new_start: *new_start,
                new_len: (plus + both) as u32,
                heading: start..start,
                body: start..patch.len(),
            });
        }
        let section = 0..patch.len();
        Diff {
            patch: patch.into(),
            files: vec![FileDiff {
                path: RepoPath::new(path).unwrap(),
                old_path: None,
                status: ChangeStatus::Modified,
                score: None,
                old_mode: FileMode(0o100_644),
                new_mode: FileMode(0o100_644),
                old_id: None,
                new_id: None,
                added,
                deleted,
                binary: false,
                section,
                hunks: parsed,
            }],
        }
    }

    #[test]
    fn numbers_both_sides() {
        let diff = diff_of(
            "a",
            &[(
                10,
                10,
                " ctx\n-old\n+new\r\n+more\n\\ No newline at end of file\n",
            )],
        );
        let new = SideLines::from_hunks(&diff, &diff.files[0], Side::New);
        let numbered: Vec<_> = new.iter().collect();
        assert_eq!(numbered, [(10, &b"ctx"[..]), (11, b"new"), (12, b"more")]);
        let old = SideLines::from_hunks(&diff, &diff.files[0], Side::Old);
        assert_eq!(old.get(11), Some(&b"old"[..]));
        assert_eq!(old.get(12), None);
    }

    #[test]
    fn whole_content() {
        let all = SideLines::from_content(b"a\n\nb".to_vec().into());
        assert_eq!(all.len(), 3);
        assert_eq!(all.get(3), Some(&b"b"[..]));
        assert_eq!(SideLines::from_content(Vec::new().into()).len(), 0);
    }
}

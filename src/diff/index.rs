//! What each line number of a changed file is, on both sides.

use super::types::{FileDiff, LineKind};
use crate::model::Side;

/// Consecutive lines of one kind. `old` and `new` are the numbers of its first line; for an
/// added run `old` is the number the next old line has, and the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    kind: LineKind,
    old: u32,
    new: u32,
    len: u32,
}

impl Run {
    fn on(&self, side: Side) -> bool {
        match side {
            Side::Old => self.kind != LineKind::Added,
            Side::New => self.kind != LineKind::Removed,
        }
    }

    fn first(&self, side: Side) -> u32 {
        match side {
            Side::Old => self.old,
            Side::New => self.new,
        }
    }

    /// The number after its last line on that side.
    fn end(&self, side: Side) -> u32 {
        self.first(side)
            .saturating_add(if self.on(side) { self.len } else { 0 })
    }
}

/// Answers for both sides of a file what a line is and where it is on the other side.
/// Costs 16 bytes a run of equal lines, whatever the file's length; look-ups are a binary search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    runs: Vec<Run>,
}

impl LineIndex {
    /// Builds the index; `patch` is the buffer of the file's [`Diff`](super::Diff).
    pub fn new(file: &FileDiff, patch: &[u8]) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        let (mut old, mut new) = (1u32, 1u32);
        for hunk in &file.hunks {
            // Only the second half of a type change goes back on a side (to "before line 1").
            old = old.max(hunk.old_span().0);
            new = new.max(hunk.new_span().0);
            for line in hunk.lines(patch) {
                match runs.last_mut() {
                    Some(run)
                        if run.kind == line.kind
                            && run.end(Side::Old) == old
                            && run.end(Side::New) == new =>
                    {
                        run.len += 1;
                    }
                    _ => runs.push(Run {
                        kind: line.kind,
                        old,
                        new,
                        len: 1,
                    }),
                }
                old = old.saturating_add(u32::from(line.kind != LineKind::Added));
                new = new.saturating_add(u32::from(line.kind != LineKind::Removed));
            }
        }
        runs.shrink_to_fit();
        Self { runs }
    }

    /// The last run that starts at or before `line` on that side, if any, by its position.
    fn before(&self, side: Side, line: u32) -> Option<usize> {
        self.runs
            .partition_point(|run| run.first(side) <= line)
            .checked_sub(1)
    }

    /// The run that holds `line` on that side. Runs are in order on both sides, so an earlier one
    /// than the last to start at or before the line has ended before it.
    fn find(&self, side: Side, line: u32) -> Option<&Run> {
        let run = &self.runs[self.before(side, line)?];
        (run.on(side) && line < run.end(side)).then_some(run)
    }

    /// What a line is, or `None` when the diff does not show it.
    pub fn kind(&self, side: Side, line: u32) -> Option<LineKind> {
        self.find(side, line).map(|run| run.kind)
    }

    /// True when the diff shows the line on that side, changed or as context.
    pub fn in_diff(&self, side: Side, line: u32) -> bool {
        self.find(side, line).is_some()
    }

    /// True when the line exists on that side only.
    pub fn is_changed(&self, side: Side, line: u32) -> bool {
        matches!(
            self.kind(side, line),
            Some(LineKind::Added | LineKind::Removed)
        )
    }

    /// The number of the same line on the other side; `None` for a line that is not there, and for 0.
    /// Lines outside the hunks are taken to exist and to be unchanged.
    pub fn map(&self, side: Side, line: u32) -> Option<u32> {
        if line == 0 {
            return None;
        }
        let other = match side {
            Side::Old => Side::New,
            Side::New => Side::Old,
        };
        if let Some(run) = self.find(side, line) {
            return (run.kind == LineKind::Context)
                .then(|| run.first(other).checked_add(line - run.first(side)))
                .flatten();
        }
        let before = self.before(side, line);
        let (end, other_end) = before.map_or((1, 1), |at| {
            let run = &self.runs[at];
            (run.end(side), run.end(other))
        });
        let mapped = other_end.checked_add(line - end)?;
        // Where hunks do not add up, a gap may be shorter on the other side.
        match self.runs.get(before.map_or(0, |at| at + 1)) {
            Some(next) if mapped >= next.first(other) => None,
            _ => Some(mapped),
        }
    }

    /// The changed lines of a side (added for new, removed for old): first and last number of each run, ascending.
    pub fn changed(&self, side: Side) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.runs
            .iter()
            .filter(move |run| run.kind != LineKind::Context && run.on(side))
            .map(move |run| (run.first(side), run.end(side) - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::diff::parse_patch;

    fn index(hunks: &str) -> LineIndex {
        let text = format!("diff --git a/f b/f\n--- a/f\n+++ b/f\n{hunks}");
        let diff = parse_patch(Arc::from(text.as_bytes())).unwrap();
        LineIndex::new(&diff.files[0], &diff.patch)
    }

    #[test]
    fn both_sides() {
        // old: 1..3 shown, 4..9 not, 10..11 shown; new: one more line at 2, two fewer later.
        let index = index("@@ -1,3 +1,4 @@\n a\n+b\n c\n d\n@@ -10,4 +11,2 @@\n x\n-y\n-z\n w\n");
        assert_eq!(index.kind(Side::New, 2), Some(LineKind::Added));
        assert_eq!(index.kind(Side::Old, 2), Some(LineKind::Context));
        assert_eq!(index.kind(Side::Old, 12), Some(LineKind::Removed));
        assert_eq!(index.kind(Side::Old, 5), None);
        assert!(index.in_diff(Side::New, 12) && !index.in_diff(Side::New, 13));
        assert!(index.is_changed(Side::Old, 11) && !index.is_changed(Side::New, 11));
        let old: Vec<_> = (0..=15).map(|n| index.map(Side::Old, n)).collect();
        assert_eq!(
            old,
            [
                None,
                Some(1),
                Some(3),
                Some(4),
                Some(5),
                Some(6),
                Some(7),
                Some(8),
                Some(9),
                Some(10),
                Some(11),
                None,
                None,
                Some(12),
                Some(13),
                Some(14)
            ]
        );
        assert_eq!(index.map(Side::New, 2), None);
        assert_eq!(index.map(Side::New, 13), Some(14));
        assert_eq!(index.changed(Side::New).collect::<Vec<_>>(), [(2, 2)]);
        assert_eq!(index.changed(Side::Old).collect::<Vec<_>>(), [(11, 12)]);
    }

    #[test]
    fn without_context_and_at_the_ends() {
        let index = index("@@ -0,0 +1,2 @@\n+a\n+b\n@@ -3,2 +4,0 @@\n-c\n-d\n");
        assert_eq!(index.map(Side::Old, 1), Some(3));
        assert_eq!(index.map(Side::Old, 3), None);
        assert_eq!(index.map(Side::Old, 5), Some(5));
        assert_eq!(index.map(Side::New, 5), Some(5));
        assert_eq!(index.map(Side::New, 1), None);
        assert_eq!(index.map(Side::Old, u32::MAX), Some(u32::MAX));
    }

    #[test]
    fn numbers_that_do_not_add_up_map_to_nothing_rather_than_wrong() {
        let index = index("@@ -1 +1 @@\n-a\n+b\n@@ -10 +3 @@\n-c\n+d\n");
        assert_eq!(index.map(Side::Old, 2), Some(2));
        assert_eq!(index.map(Side::Old, 9), None);
        assert_eq!(index.map(Side::New, 2), Some(2));
    }
}

//! Which lines of which files a pass has seen.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::model::RepoPath;

/// Lines by file. Ranges that overlap or touch are merged, so that memory follows what is new.
#[derive(Debug, Default)]
pub(super) struct Seen {
    files: BTreeMap<RepoPath, Vec<RangeInclusive<u32>>>,
}

impl Seen {
    /// Adds `lines` of `path`.
    pub(super) fn add(&mut self, path: &RepoPath, lines: RangeInclusive<u32>) {
        if lines.is_empty() {
            return;
        }
        if !self.files.contains_key(path) {
            self.files.insert(path.clone(), Vec::new());
        }
        let Some(ranges) = self.files.get_mut(path) else {
            return;
        };
        // The ranges that overlap or touch the new one are neighbours.
        let first = ranges.partition_point(|range| range.end().saturating_add(1) < *lines.start());
        let end = ranges.partition_point(|range| *range.start() <= lines.end().saturating_add(1));
        let touched = &ranges[first..end.max(first)];
        let from = touched
            .first()
            .map_or(*lines.start(), |r| *r.start().min(lines.start()));
        let to = touched
            .last()
            .map_or(*lines.end(), |r| *r.end().max(lines.end()));
        ranges.splice(first..end.max(first), [from..=to]);
    }

    /// All of it.
    pub(super) fn files(&self) -> &BTreeMap<RepoPath, Vec<RangeInclusive<u32>>> {
        &self.files
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_merge() {
        let path = RepoPath::new("a").unwrap();
        let mut seen = Seen::default();
        for lines in [5..=7, 1..=2, 8..=8, 20..=u32::MAX, 3..=3, 6..=6] {
            seen.add(&path, lines);
        }
        #[allow(clippy::reversed_empty_ranges)] // that is the point
        seen.add(&path, 9..=4);
        assert_eq!(seen.files()[&path], [1..=3, 5..=8, 20..=u32::MAX]);
    }

    proptest! {
        #[test]
        fn the_same_as_a_set(ranges in prop::collection::vec((1u32..60, 0u32..12), 0..40)) {
            let path = RepoPath::new("a").unwrap();
            let mut seen = Seen::default();
            let mut set = std::collections::BTreeSet::new();
            for (from, len) in ranges {
                seen.add(&path, from..=from + len);
                set.extend(from..=from + len);
            }
            let kept = seen.files().get(&path).cloned().unwrap_or_default();
            for pair in kept.windows(2) {
                prop_assert!(pair[0].end() + 1 < *pair[1].start());
            }
            let lines: Vec<u32> = kept.into_iter().flatten().collect();
            prop_assert_eq!(lines, set.into_iter().collect::<Vec<_>>());
        }
    }
}

//! What a receipt says about a file before anything was reviewed.

use super::types::{Diff, FileDiff};
use crate::model::{FileCoverage, FileOutcome};

impl FileDiff {
    /// Added plus deleted lines, as numstat counts them.
    pub fn changed_lines(&self) -> u64 {
        u64::from(self.added) + u64::from(self.deleted)
    }

    /// The file's row in a receipt, as missed: no line reviewed, no reason yet.
    pub fn unreviewed(&self) -> FileCoverage {
        FileCoverage {
            path: self.path.clone(),
            old_path: self.old_path.clone(),
            status: self.status,
            added: self.added,
            deleted: self.deleted,
            binary: self.binary,
            outcome: FileOutcome::Missed,
            reason: None,
            reviewed_lines: 0,
            lines_read: None,
        }
    }
}

impl Diff {
    /// Added plus deleted lines of all files.
    pub fn changed_lines(&self) -> u64 {
        self.files.iter().map(FileDiff::changed_lines).sum()
    }
}

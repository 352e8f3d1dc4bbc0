//! What was reviewed and what was not.

use super::finding::words;
use super::{ChangeStatus, RepoPath};
use std::fmt;
use std::str::FromStr;

use super::finding::ParseWordError;

words!(
    /// What happened to a changed file.
    FileOutcome, "file outcome" {
        /// Every changed line was reviewed by every reviewer assigned to it.
        Reviewed = "reviewed",
        /// Some reviewers or lines are missing.
        Partial = "partial",
        /// Hidden from the reviewers on purpose; the reason is named.
        Filtered = "filtered",
        /// Nobody reviewed it; the reason is named.
        Missed = "missed",
    }
);

words!(
    /// The kind of a coverage note.
    NoteKind, "note kind" {
        /// A pass did not run to its end.
        PassFailed = "pass_failed",
        /// A pass was cut short; what it reported is kept.
        PassTruncated = "pass_truncated",
        /// Files or lines that nobody reviewed.
        Missed = "missed",
        /// The time, token or money budget ended the run early.
        Budget = "budget",
        /// The run was interrupted.
        Interrupted = "interrupted",
        /// Another model answered than the one asked for.
        ModelSubstituted = "model_substituted",
        /// No model is configured: only the built-in checks ran.
        ChecksOnly = "checks_only",
        /// Something about the set-up that a maintainer should know; the review is complete all the same.
        Setup = "setup",
        /// Something worth knowing that takes nothing away from the review.
        Info = "info",
    }
);

impl NoteKind {
    /// True when a note of this kind means that the review is not complete.
    pub fn is_gap(self) -> bool {
        match self {
            Self::PassFailed
            | Self::PassTruncated
            | Self::Missed
            | Self::Budget
            | Self::Interrupted
            | Self::ModelSubstituted => true,
            Self::ChecksOnly | Self::Setup | Self::Info => false,
        }
    }
}

/// Something a stage could not do, or that a reader has to know about the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoverageNote {
    /// What kind of note it is.
    pub kind: NoteKind,
    /// The text, for a person; no credential, no control character.
    pub text: String,
}

/// One changed file in the receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCoverage {
    /// Path after the change (before it, for a deletion).
    pub path: RepoPath,
    /// Path before a rename or copy.
    pub old_path: Option<RepoPath>,
    /// What happened to the file.
    pub status: ChangeStatus,
    /// Added lines, as `git diff --numstat` counts them (0 for a binary file).
    pub added: u32,
    /// Deleted lines, counted alike.
    pub deleted: u32,
    /// True when git shows no text for it.
    pub binary: bool,
    /// What the review did with it.
    pub outcome: FileOutcome,
    /// Why, unless it was reviewed.
    pub reason: Option<String>,
    /// How many of its changed lines were reviewed by everyone assigned (0..=added+deleted).
    pub reviewed_lines: u64,
    /// Lines that reviewers opened through the tool door, where that is known.
    pub lines_read: Option<u64>,
}

/// The sums of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoverageTotals {
    /// Changed files.
    pub files: u64,
    /// Files whose outcome is [`FileOutcome::Reviewed`].
    pub reviewed_files: u64,
    /// Added plus deleted lines of all files.
    pub changed_lines: u64,
    /// Those reviewed by everyone assigned.
    pub reviewed_lines: u64,
}

/// Every changed file and what became of it, in the order of the diff.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoverageReceipt {
    /// One entry a changed file.
    pub files: Vec<FileCoverage>,
}

impl CoverageReceipt {
    /// Sums up the receipt.
    pub fn totals(&self) -> CoverageTotals {
        let mut totals = CoverageTotals::default();
        for file in &self.files {
            totals.files += 1;
            totals.reviewed_files += u64::from(file.outcome == FileOutcome::Reviewed);
            totals.changed_lines += u64::from(file.added) + u64::from(file.deleted);
            totals.reviewed_lines += file.reviewed_lines;
        }
        totals
    }

    /// True when no file is partial or missed.
    pub fn is_complete(&self) -> bool {
        self.files
            .iter()
            .all(|f| matches!(f.outcome, FileOutcome::Reviewed | FileOutcome::Filtered))
    }
}

//! Findings and progress on their way out.

use super::BoxFuture;
use crate::model::{FindingReport, Fingerprint, PassId, PassOutcomeKind, Review};

/// The answer to a reported finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FindingReceipt {
    /// Taken under this id.
    Accepted(Fingerprint),
    /// Not taken; the text says exactly what is wrong so that the reporter can mend it.
    Rejected(String),
}

/// Takes findings the moment they are reported and grounds them at once.
pub trait FindingSink: Send + Sync {
    /// Reports a finding of `pass`.
    fn report(&self, pass: &PassId, finding: FindingReport) -> FindingReceipt;

    /// Takes a finding back; false when the pass never reported it.
    fn retract(&self, pass: &PassId, id: &Fingerprint, reason: &str) -> bool;
}

/// Something a person following the run may want to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgressEvent {
    /// What is about to happen, in one line.
    Note(String),
    /// The passes are planned.
    Planned {
        /// How many passes will run.
        passes: usize,
        /// How many files they cover.
        files: usize,
    },
    /// A pass began.
    PassStarted(PassId),
    /// A pass did something (one line, already free of control characters).
    PassActivity(PassId, String),
    /// A pass ended.
    PassEnded(PassId, PassOutcomeKind),
}

/// Takes progress; must not block.
pub trait Progress: Send + Sync {
    /// Takes one event.
    fn event(&self, event: ProgressEvent);
}

/// Why a report could not be delivered.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ReportError {
    /// One line for a person.
    pub message: String,
}

/// Delivers a finished review somewhere.
pub trait Reporter: Send + Sync {
    /// Delivers it.
    fn report<'a>(&'a self, review: &'a Review) -> BoxFuture<'a, Result<(), ReportError>>;
}

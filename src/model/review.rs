//! A whole review: the one internal report that every output is made from.

use std::fmt;
use std::str::FromStr;

use super::finding::{ParseWordError, words};
use super::{
    AgentId, CommitId, Cost, CoverageNote, CoverageReceipt, DroppedFinding, EngineName, Finding,
    ModelId, PassId, RepoPath, Usage,
};

words!(
    /// The verdict on the change.
    Decision, "decision" {
        /// Reviewed by models, nothing found.
        Approve = "approve",
        /// Reviewed by models, nothing that blocks.
        ApproveWithComments = "approve_with_comments",
        /// A critical finding or a leaked secret stands.
        RequestChanges = "request_changes",
        /// The review could not be completed; says nothing about the code.
        CouldNotComplete = "could_not_complete",
        /// No model reviewed; the built-in checks found nothing that requests changes.
        ChecksOnly = "checks_only",
        /// There was nothing to review.
        Skipped = "skipped",
    }
);

words!(
    /// Where the diff came from.
    InputKind, "input kind" {
        /// Working tree and untracked files against a base.
        WorkingTree = "working_tree",
        /// The index against `HEAD`.
        Staged = "staged",
        /// Two commits.
        Range = "range",
        /// A patch without a tree.
        Patch = "patch",
        /// A pull request.
        PullRequest = "pull_request",
    }
);

words!(
    /// What git says happened to a file.
    ChangeStatus, "change status" {
        /// New file.
        Added = "added",
        /// Content or mode changed.
        Modified = "modified",
        /// File removed.
        Deleted = "deleted",
        /// Moved, perhaps with edits.
        Renamed = "renamed",
        /// Copied, perhaps with edits.
        Copied = "copied",
        /// File, symlink or submodule became another kind.
        TypeChanged = "type_changed",
        /// In conflict in the index.
        Unmerged = "unmerged",
    }
);

words!(
    /// What a pass is for.
    PassKind, "pass kind" {
        /// The deterministic checks.
        Checks = "checks",
        /// One reviewer over one chunk.
        Review = "review",
        /// One reviewer over the connections between chunks.
        CrossCutting = "cross_cutting",
        /// Picks the reviewers that matter.
        Route = "route",
        /// Merges and judges what was found.
        Coordinate = "coordinate",
        /// Checks one finding against the source.
        Verify = "verify",
    }
);

words!(
    /// How a pass ended.
    PassOutcomeKind, "pass outcome" {
        /// It ran to its end.
        Complete = "complete",
        /// It was cut; what it had reported is kept.
        Truncated = "truncated",
        /// It gave nothing that can be relied on.
        Failed = "failed",
        /// It was never started.
        Skipped = "skipped",
    }
);

/// What was reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputInfo {
    /// Where the diff came from.
    pub kind: InputKind,
    /// The base commit, where there is one.
    pub base: Option<CommitId>,
    /// The head commit, where there is one (none for a working tree).
    pub head: Option<CommitId>,
    /// What a person calls the base (`origin/main`), where there is a name.
    pub base_name: Option<String>,
    /// `owner/name` on the forge.
    pub repo: Option<String>,
    /// Pull request number.
    pub pr: Option<u64>,
}

/// The sandbox that engines ran in. `none` with nothing missing when no child was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxInfo {
    /// The level reached (`none`, `files`, `full`, or `not_needed`).
    pub level: String,
    /// What the platform could not give.
    pub missing: Vec<String>,
}

/// One pass as it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassRecord {
    /// Its id.
    pub id: PassId,
    /// What it was for.
    pub kind: PassKind,
    /// Who reviewed.
    pub agent: AgentId,
    /// The files it was given.
    pub files: Vec<RepoPath>,
    /// The engine that ran it.
    pub engine: EngineName,
    /// The model asked for; none for the built-in checks.
    pub model_configured: Option<ModelId>,
    /// The model that answered, as seen on the wire.
    pub model_answered: Option<ModelId>,
    /// How it ended.
    pub outcome: PassOutcomeKind,
    /// Why, unless it was complete.
    pub reason: Option<String>,
    /// How often it was started.
    pub attempts: u32,
    /// Tool calls served to it.
    pub tool_calls: u32,
    /// Wall clock in milliseconds.
    pub duration_ms: u64,
    /// What it used.
    pub usage: Usage,
}

/// Wall clock of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// From start to report, milliseconds.
    pub total_ms: u64,
    /// The part spent outside model calls, milliseconds.
    pub overhead_ms: u64,
}

/// A finding that a maintainer dismissed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DismissedFinding {
    /// The finding.
    pub finding: Finding,
    /// Who dismissed it.
    pub by: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// What was reviewed.
    pub input: InputInfo,
    /// The sandbox that engines ran in.
    pub sandbox: SandboxInfo,
    /// The verdict.
    pub decision: Decision,
    /// True when every unfiltered changed line was reviewed by every agent assigned to it.
    pub complete: bool,
    /// One paragraph for a person.
    pub summary: String,
    /// What stands, most severe first.
    pub findings: Vec<Finding>,
    /// What a maintainer dismissed.
    pub dismissed: Vec<DismissedFinding>,
    /// What was dropped on the way, with reasons.
    pub dropped: Vec<DroppedFinding>,
    /// What was reviewed and what was not.
    pub coverage: CoverageReceipt,
    /// What a reader has to know.
    pub notes: Vec<CoverageNote>,
    /// How each pass went.
    pub passes: Vec<PassRecord>,
    /// The sum of the passes' usage.
    pub usage: Usage,
    /// Wall clock.
    pub timing: Timing,
}

impl Review {
    /// The total cost, where it is known.
    pub fn cost(&self) -> Option<Cost> {
        self.usage.cost()
    }
}

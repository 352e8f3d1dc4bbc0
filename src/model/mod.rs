//! Domain values: plain data, no I/O, no async, standard library only.
//!
//! Wire formats (JSON v1, SARIF, …) are their own versioned structs converted from these types, so
//! nothing here derives a serialisation.

mod coverage;
mod finding;
mod ids;
mod path;
mod review;
mod secret;
mod text;
mod usage;

pub use coverage::{
    CoverageNote, CoverageReceipt, CoverageTotals, FileCoverage, FileOutcome, NoteKind,
};
pub use finding::{
    Category, DropStage, DroppedFinding, Excerpt, Finding, FindingReport, FindingStatus, Location,
    ParseWordError, Severity, Side, Verification, VerificationStatus,
};
pub use ids::{
    AgentId, CommitId, EngineName, Fingerprint, IdError, ModelId, ObjectId, PassId, RuleId,
    ScopeName,
};
pub use path::{PathError, RepoPath};
pub use review::{
    ChangeStatus, Decision, DismissedFinding, InputInfo, InputKind, PassKind, PassOutcomeKind,
    PassRecord, Review, SandboxInfo, Timing,
};
pub use secret::Secret;
pub use text::{is_hidden, printable};
pub use usage::{Cost, TokenCounts, Usage, UsageConfidence};

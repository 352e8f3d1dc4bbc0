//! Do the citations still resolve? LLP documents in `llp/`, `@ref`s in source comments, and the paths that the
//! review setup cites, checked over any [`Tree`](crate::tree::Tree).
//!
//! @ref LLP 0007 — the formats and the rules

mod check;
mod citation;
mod code;
mod disk;
mod index;
mod llp;
mod markdown;
mod report;
mod setup;
mod structure;

pub use check::{Options, check, run};
pub use disk::run_on_disk;
pub use report::{Format, Outcome, Problem, ProblemKind, Report};

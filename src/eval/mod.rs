//! How good reviews are, measured over labelled cases: the format of a case, the matching of findings with labels,
//! and the figures. Pure: cases are read and reviews are run elsewhere.
//!
//! @ref LLP 0017 — what is measured, and how

mod bootstrap;
mod case;
mod import;
mod matching;
mod report;
mod score;
mod similarity;
mod terminal;

pub use case::{
    Case, Label, LabelSide, Lines, Repository, parse as parse_case, schema as case_schema,
};
pub use import::{ImportError, ImportedCase, PublicSet};
pub use matching::{Matching, Outcome, Pair, Settings, matching};
pub use report::{
    CaseLine, Cost, Counts, CurvePoint, EVAL_VERSION, EvalReportV1, FalseAlarms, Interval, Keep,
    LineAccuracy, Match, Rate, Rates, Silence, VerifierCounts, schema as report_schema,
};
pub use score::{Reviewed, score};
pub use terminal::terminal;

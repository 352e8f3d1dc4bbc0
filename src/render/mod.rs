//! Every output, made from one [`crate::model::Review`] by pure functions to text.
//!
//! All of them start from `prepared::Prepared`: credentials masked once, and a run with gaps made
//! unable to read as an approval. Escaping is each format's own.

mod agent;
pub mod comment;
mod doctor;
mod excerpt;
mod explain;
mod format;
mod github;
mod gitlab;
mod json;
mod layout;
mod markdown;
mod plan;
mod prepared;
mod rdjson;
mod safe;
mod sarif;
mod stats;
mod terminal;
mod words;

pub use doctor::doctor;
pub use explain::{ExplainError, explain};
pub use format::{Format, RenderContext, UnknownFormat, output, render};
pub use json::pretty as pretty_json;
pub use layout::{TerminalOptions, Verbosity};
pub use plan::{PlanChunk, PlanFile, PlanPass, PlanView, plan_json, plan_terminal};
pub use safe::printable_line;
pub use stats::{Stats, html as stats_html, terminal as stats_terminal};

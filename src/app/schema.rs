//! `ecr schema`: the published JSON Schemas.

use crate::{config, eval, state};

/// Which schema to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// `config.jsonc`.
    Config,
    /// `routing.jsonc`.
    Routing,
    /// The JSON output.
    Output,
    /// A line of the run log.
    RunLog,
    /// `case.jsonc` of an evaluation.
    EvalCase,
    /// What `ecr eval --json` prints.
    EvalReport,
    /// The JSON of `ecr doctor`.
    Doctor,
}

/// The schema as pretty-printed JSON with a final newline.
pub fn run(which: Schema) -> String {
    let value = match which {
        Schema::Config => config::schema::config(),
        Schema::Routing => config::schema::routing(),
        Schema::Output => state::output::schema(),
        Schema::RunLog => state::run_log::schema(),
        Schema::EvalCase => eval::case_schema(),
        Schema::EvalReport => eval::report_schema(),
        Schema::Doctor => state::doctor::schema(),
    };
    format!("{value:#}\n")
}

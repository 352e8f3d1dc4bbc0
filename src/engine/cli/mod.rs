//! What all engines have in common that start somebody's command-line tool: which program, which version,
//! its jar, its turn, and what came of it. Each tool is a [`CliDialect`]; there is one engine.
//!
//! @ref LLP 0009#one-engine-many-dialects — why the tools differ in data and not in control flow

mod dialect;
mod engine;
mod installed;
mod jar;
mod locate;
mod outcome;
mod rehearsal;
mod turn;
mod version;

pub use dialect::{
    Activity, CliDialect, CliFacts, EventReader, Exit, Launch, LaunchFile, PassFacts, Said, shown,
};
pub use engine::{CliEngine, CliSettings};
pub use installed::{Installed, Refused, Standing, examine, hex, policy_files, policy_words};
pub use locate::{LocateError, find_program, locate};
pub use rehearsal::{RehearsalFacts, Rehearsals};
pub use version::Version;

//! The pipeline: `plan` → `dispatch` → `collect` → `coordinate` → `verify` → `conclude`. It knows no concrete engine, source or reporter.

mod collect;
mod conclude;
mod coordinate;
mod dispatch;
mod judges;
mod ladder;
mod notes;
mod plan;
mod receipt;
mod retry;
mod route;
mod run;
mod step;
mod verify;

pub use collect::Collector;
pub use conclude::skipped;
pub use dispatch::{Enqueue, Incoming, feed};
pub use judges::{Judges, Withholds};
pub use ladder::{Halving, Ladder};
pub use plan::{BINARY, Plan, PlanInput, PlannedAgent, PlannedPass, plan};
pub use retry::{RATE_LIMIT_CEILING, Remedy, Rule, rule};
pub use route::Router;
pub use run::{EngineSet, RunDeps, RunInput, TaskWriter, run};
pub use step::{Limits, Settled};

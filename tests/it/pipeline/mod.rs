//! The pipeline from end to end with the scripted engine, on tokio's paused clock.

mod budgets;
mod honesty;
mod judges;
mod support;
mod verdicts;

//! Codex in the jar: one `codex exec` a pass, with no tool but ours, its own private home and no address but
//! our doors.
//!
//! @ref LLP 0014 — its configuration, and why nothing less is safe

mod catalog;
mod event;
mod fault;
mod launch;

pub use launch::{Codex, FACTS, FLAGS};

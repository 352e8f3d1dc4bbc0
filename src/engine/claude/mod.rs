//! Claude Code in the jar.
//!
//! @ref LLP 0009#claude — its flags, what each is for, and what its events are believed

mod event;
mod fault;
mod launch;

pub use launch::{Claude, FACTS, FLAGS};

//! `OpenCode` in the jar: one `opencode run` a pass, with no tool but ours and no address but our doors.
//!
//! @ref LLP 0009#opencode — what it does with its configuration, and why nothing less is safe

mod config;
mod event;
mod fault;
mod launch;

pub use launch::{FACTS, OpenCode};

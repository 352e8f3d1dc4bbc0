//! `OpenCode` in the jar: one `opencode run` a pass, with no tool but ours and no address but our doors.
//!
//! @ref LLP 0009#opencode — what it does with its configuration, and why nothing less is safe

mod binary;
mod config;
mod engine;
mod event;
mod fault;
mod jar;
mod launch;

pub use binary::{LocateError, TESTED, locate};
pub use engine::OpenCodeEngine;

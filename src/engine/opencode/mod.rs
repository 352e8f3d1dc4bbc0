//! `OpenCode` in the jar: one `opencode run` a pass, with no tool but ours and no address but our doors.
//!
//! @ref LLP 0009#opencode — what it does with its configuration, and why nothing less is safe

mod config;
mod engine;
mod event;
mod fault;
mod launch;

pub use config::{ConfigSettings, config, spelled};
pub use engine::OpenCodeEngine;
pub use event::{Activity, Reader, Said, complaint};
pub use fault::classify;
pub use launch::{AGENT, arguments, environment};

//! Engines: one folder each, behind `port::ReviewEngine`.

pub mod api;
pub mod builtin;
pub mod claude;
pub mod cli;
pub mod codex;
mod doors;
pub mod opencode;
mod stage;

pub use doors::{Client, Doors, DoorsSettings, OpenDoors};
pub use stage::{STAGE_FILE, STAGE_TEXT, Stage};

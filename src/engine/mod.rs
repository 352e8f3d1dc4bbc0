//! Engines: one folder each, behind `port::ReviewEngine`.

pub mod api;
pub mod builtin;
mod doors;
pub mod opencode;

pub use doors::{Doors, DoorsSettings, OpenDoors};

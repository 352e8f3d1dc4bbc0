//! Delivers finished reviews, and shows progress while one runs.

mod file;
mod progress;
mod terminal;

pub use file::FileReporter;
pub use progress::{ProgressMode, ProgressReporter};
pub use terminal::TerminalReporter;

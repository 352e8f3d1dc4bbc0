//! The only way to start anything: trusted absolute paths, arguments as arrays, an empty environment
//! plus what is named, an own process group, bounded capture, a kill that reaches the whole group.

mod dialogue;
mod group;
mod run;
mod tool;

pub use dialogue::Dialogue;
pub use run::{Output, ProcessError, Spec, run};
pub use tool::{ToolError, ToolPath};

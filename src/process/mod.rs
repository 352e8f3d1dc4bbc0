//! The only way to start anything: trusted absolute paths, arguments as arrays, an empty environment
//! plus what is named, bounded capture, a kill that reaches everything the child has started, and, for
//! programs that are not trusted with more, a sandbox.

mod binary;
mod dialogue;
mod folder;
#[cfg(not(target_os = "linux"))]
#[path = "group.rs"]
mod leash;
#[cfg(target_os = "linux")]
#[path = "supervisor.rs"]
mod leash;
mod libraries;
mod lines;
mod remove;
mod run;
pub mod sandbox;
mod spec;
mod tool;
mod wait;

pub use binary::{Binary, BinaryError};
pub use dialogue::Dialogue;
pub use folder::{PrivateFolder, RunFolders};
pub use libraries::runtime_files;
pub use lines::{Line, Stream};
pub use run::{Capture, End, Output, ProcessError, run, stream};
pub use spec::Spec;
pub use tool::{ToolError, ToolPath};

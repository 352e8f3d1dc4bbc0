//! git: repositories, diffs and trees.
//!
//! Two rules carry everything here. The user's repository is only asked plain questions (where it is, what a ref
//! means, what changed on disk), with every setting that runs a program switched off. The diff itself is made between two
//! tree objects inside a scratch git folder of our own, which borrows the repository's objects and has none of its configuration,
//! attributes or hooks: what the user or the repository configured cannot change a byte of it.

mod change;
mod command;
mod diff;
mod error;
mod fetch;
mod object_tree;
mod objects;
mod repository;
mod sample;
mod scratch;
mod snapshot;
mod work_tree;

pub use crate::process::{ProcessError, ToolError};
pub use change::{HeadSide, TreeFile, commit_change};
pub use command::HostEnv;
pub use diff::RawDiff;
pub use error::GitError;
pub use fetch::{FetchFrom, ObjectFolder};
pub use object_tree::ObjectTree;
pub use repository::{DefaultBranch, Repository};
pub use sample::commit_sample;
pub use snapshot::Snapshot;
pub use work_tree::WorkTree;

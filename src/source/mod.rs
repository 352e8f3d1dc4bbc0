//! Where a change comes from: the local repository, or a patch.

mod local;
mod patch;
mod words;

pub use local::{LocalSource, Selection};
pub use patch::{PatchInput, PatchSource};

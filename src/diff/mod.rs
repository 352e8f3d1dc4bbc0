//! The diff: parsing, line index, noise filter, glob dialect, chunk packing. Pure; reads only through a `Tree`.

pub mod chunk;
pub mod glob;
pub mod noise;

mod attributes;
mod error;
mod git;
mod hunk;
mod index;
mod listing;
mod name;
mod patch;
mod receipt;
mod section;
mod text;
mod types;

pub use error::DiffError;
pub use git::{parse_combined, parse_git};
pub use hunk::HunkLines;
pub use index::LineIndex;
pub use listing::{Parts, split_combined};
pub use patch::parse_patch;
pub use text::hidden_text;
pub use types::{Diff, DiffLine, FileDiff, FileMode, Hunk, LineKind};

//! The diff: parsing, line index, noise filter, glob dialect, chunk packing. Pure; reads only through a `Tree`.

mod types;

pub use types::{Diff, DiffLine, FileDiff, FileMode, Hunk, LineKind};

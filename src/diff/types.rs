//! A parsed diff. Lines are not stored: a hunk is a byte range of the one shared patch.

use bytes::Bytes;
use std::ops::Range;

use crate::model::{ChangeStatus, ObjectId, RepoPath};

/// A git file mode (octal `100644`, `100755`, `120000`, `160000`; 0 = absent).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FileMode(pub u32);

impl FileMode {
    /// The mode of a symbolic link.
    pub const SYMLINK: Self = Self(0o120_000);
    /// The mode of a submodule.
    pub const SUBMODULE: Self = Self(0o160_000);

    /// True when there is no file on that side.
    pub fn is_absent(self) -> bool {
        self.0 == 0
    }
}

/// What a line of a hunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// In both versions.
    Context,
    /// Only in the new version.
    Added,
    /// Only in the old version.
    Removed,
}

/// One line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffLine<'a> {
    /// What it is.
    pub kind: LineKind,
    /// The bytes without the leading `+`/`-`/space and without the final `\n` (a `\r` stays).
    pub content: &'a [u8],
    /// 1-based line number in the old version, unless added.
    pub old_no: Option<u32>,
    /// 1-based line number in the new version, unless removed.
    pub new_no: Option<u32>,
    /// False when the file ends here without a newline.
    pub newline: bool,
}

/// One hunk; `body` is the range of its lines (after the `@@` line) in the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// First line in the old version (0 for an empty range at the start).
    pub old_start: u32,
    /// Number of old lines.
    pub old_len: u32,
    /// First line in the new version.
    pub new_start: u32,
    /// Number of new lines.
    pub new_len: u32,
    /// What git prints after the second `@@`: a range in the patch.
    pub heading: Range<usize>,
    /// The lines: a range in the patch.
    pub body: Range<usize>,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Path after the change (before it, for a deletion).
    pub path: RepoPath,
    /// Path before a rename or copy.
    pub old_path: Option<RepoPath>,
    /// What happened.
    pub status: ChangeStatus,
    /// Similarity of a rename or copy in percent.
    pub score: Option<u8>,
    /// Mode before.
    pub old_mode: FileMode,
    /// Mode after.
    pub new_mode: FileMode,
    /// Blob before, where known and not zero.
    pub old_id: Option<ObjectId>,
    /// Blob after, where known and not zero (unknown for an unstaged work-tree file).
    pub new_id: Option<ObjectId>,
    /// Added lines as `--numstat` counts them.
    pub added: u32,
    /// Deleted lines as `--numstat` counts them.
    pub deleted: u32,
    /// True when git shows no text for it.
    pub binary: bool,
    /// The file's whole section in the patch, headers included.
    pub section: Range<usize>,
    /// Its hunks, in order.
    pub hunks: Vec<Hunk>,
}

/// A whole diff over one shared patch buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The patch as git printed it.
    pub patch: Bytes,
    /// The changed files in git's order.
    pub files: Vec<FileDiff>,
}

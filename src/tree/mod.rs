//! Reading a version of the repository: the [`Tree`] trait and an in-memory tree for tests.

mod memory;

pub use memory::MemoryTree;

use std::sync::Arc;

use crate::model::{ObjectId, RepoPath};

/// What a path is in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A regular file with the executable bit.
    Executable,
    /// A symbolic link; its content is the link text and it is never followed.
    Symlink,
    /// A folder.
    Folder,
    /// A submodule (gitlink).
    Submodule,
}

/// One entry of a folder or of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The full path from the repository root.
    pub path: RepoPath,
    /// What it is.
    pub kind: EntryKind,
    /// The blob's id, where the tree knows it.
    pub id: Option<ObjectId>,
}

/// Why a tree could not answer.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The object exists but is not here (blobless clone without network).
    #[error("{path}: the object is not in this clone ({hint})")]
    Missing {
        /// What was asked for.
        path: String,
        /// What to do.
        hint: String,
    },
    /// The file is larger than the caller allows.
    #[error("{path}: {size} bytes is over the limit of {limit}")]
    TooLarge {
        /// What was asked for.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Anything else that went wrong while reading.
    #[error("{path}: {message}")]
    Read {
        /// What was asked for.
        path: String,
        /// What went wrong, one line.
        message: String,
    },
}

/// One version of the repository, read by path. Implementations never follow a symbolic link, never
/// leave the repository and never write. Calls may block; run them off the async threads.
pub trait Tree: Send + Sync {
    /// The bytes of a file or the text of a symbolic link; `None` when there is no such file.
    /// More than `limit` bytes is [`TreeError::TooLarge`].
    fn read(&self, path: &RepoPath, limit: u64) -> Result<Option<Arc<[u8]>>, TreeError>;

    /// What `path` is, or `None` when it does not exist.
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError>;

    /// The direct entries of a folder (`None` = the root), sorted by path; empty when there is no such folder.
    fn list(&self, folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError>;

    /// Every entry but folders, sorted by path.
    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError>;
}

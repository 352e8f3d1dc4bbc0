//! The tracked and untracked files of this repository as a tree, for checking our own citations.

use std::path::PathBuf;
use std::sync::Arc;

use ecr::model::RepoPath;
use ecr::tree::{EntryKind, MemoryTree, Tree, TreeEntry, TreeError};

/// A folder on disk, listed by git and read on demand. Lists as a [`MemoryTree`] of empty files does.
pub(crate) struct DirTree {
    root: PathBuf,
    names: MemoryTree,
}

impl DirTree {
    pub(crate) fn of_this_repository() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let output = std::process::Command::new("git")
            .args([
                "-c",
                "safe.directory=*",
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&root)
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .output()
            .expect("git starts");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut names = MemoryTree::new();
        for name in output
            .stdout
            .split(|b| *b == 0)
            .filter(|name| !name.is_empty())
        {
            let path = RepoPath::new(name).expect("git lists repository paths");
            if root.join(path.to_lossy()).is_file() {
                names.insert(path, &b""[..]);
            }
        }
        Self { root, names }
    }
}

impl Tree for DirTree {
    fn read(&self, path: &RepoPath, limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
        if self.names.read(path, limit)?.is_none() {
            return Ok(None);
        }
        let bytes =
            std::fs::read(self.root.join(path.to_lossy())).map_err(|e| TreeError::Read {
                path: path.to_lossy(),
                message: e.to_string(),
            })?;
        let size = bytes.len() as u64;
        if size > limit {
            return Err(TreeError::TooLarge {
                path: path.to_lossy(),
                size,
                limit,
            });
        }
        Ok(Some(bytes.into()))
    }

    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        self.names.kind(path)
    }

    fn list(&self, folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        self.names.list(folder)
    }

    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
        self.names.walk()
    }
}

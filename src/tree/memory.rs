//! A tree made of a map, for tests, the demo and patches without a repository.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{EntryKind, Tree, TreeEntry, TreeError};
use crate::model::RepoPath;

/// A tree held in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    files: BTreeMap<RepoPath, (EntryKind, Arc<[u8]>)>,
}

impl MemoryTree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a regular file.
    pub fn insert(&mut self, path: RepoPath, content: impl Into<Arc<[u8]>>) {
        self.insert_as(path, EntryKind::File, content);
    }

    /// Adds or replaces an entry of the given kind.
    pub fn insert_as(&mut self, path: RepoPath, kind: EntryKind, content: impl Into<Arc<[u8]>>) {
        self.files.insert(path, (kind, content.into()));
    }
}

impl Tree for MemoryTree {
    fn read(&self, path: &RepoPath, limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
        let Some((_, content)) = self.files.get(path) else {
            return Ok(None);
        };
        let size = content.len() as u64;
        if size > limit {
            return Err(TreeError::TooLarge {
                path: path.to_lossy(),
                size,
                limit,
            });
        }
        Ok(Some(Arc::clone(content)))
    }

    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        if let Some((kind, _)) = self.files.get(path) {
            return Ok(Some(*kind));
        }
        let is_folder = self
            .files
            .keys()
            .any(|p| p != path && p.is_under(path.as_bytes()));
        Ok(is_folder.then_some(EntryKind::Folder))
    }

    fn list(&self, folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        let prefix = folder.map_or(&[][..], RepoPath::as_bytes);
        let skip = if prefix.is_empty() {
            0
        } else {
            prefix.len() + 1
        };
        let mut seen = BTreeSet::new();
        let mut entries = Vec::new();
        for (path, (kind, _)) in &self.files {
            if !path.is_under(prefix) || path.as_bytes().len() <= skip {
                continue;
            }
            let rest = &path.as_bytes()[skip..];
            let (name, kind) = match rest.iter().position(|b| *b == b'/') {
                Some(at) => (&path.as_bytes()[..skip + at], EntryKind::Folder),
                None => (path.as_bytes(), *kind),
            };
            if seen.insert(name.to_vec())
                && let Ok(path) = RepoPath::new(name)
            {
                entries.push(TreeEntry {
                    path,
                    kind,
                    id: None,
                });
            }
        }
        Ok(entries)
    }

    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
        Ok(self
            .files
            .iter()
            .map(|(path, (kind, _))| TreeEntry {
                path: path.clone(),
                kind: *kind,
                id: None,
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> MemoryTree {
        let mut tree = MemoryTree::new();
        for path in ["a.rs", "src/b.rs", "src/deep/c.rs"] {
            tree.insert(RepoPath::new(path).unwrap(), path.as_bytes());
        }
        tree
    }

    #[test]
    fn reads_lists_and_limits() {
        let tree = tree();
        let b = RepoPath::new("src/b.rs").unwrap();
        assert_eq!(tree.read(&b, 100).unwrap().unwrap().as_ref(), b"src/b.rs");
        assert!(matches!(
            tree.read(&b, 3),
            Err(TreeError::TooLarge { size: 8, .. })
        ));
        let src = RepoPath::new("src").unwrap();
        assert_eq!(tree.kind(&src).unwrap(), Some(EntryKind::Folder));
        let names: Vec<_> = tree
            .list(Some(&src))
            .unwrap()
            .into_iter()
            .map(|e| e.path.to_lossy())
            .collect();
        assert_eq!(names, ["src/b.rs", "src/deep"]);
        assert_eq!(tree.list(None).unwrap().len(), 2);
        assert_eq!(tree.walk().unwrap().len(), 3);
    }
}

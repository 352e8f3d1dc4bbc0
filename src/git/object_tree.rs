//! A commit or a snapshot as a [`Tree`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::objects::{ObjectKind, ObjectRead, ObjectStore};
use crate::model::{ObjectId, RepoPath};
use crate::tree::{EntryKind, Tree, TreeEntry, TreeError};

/// Folder objects kept in memory; beyond that the cache starts anew.
const CACHED_FOLDERS: usize = 20_000;
/// A folder object larger than this is refused (about two million entries).
const FOLDER_LIMIT: u64 = 64 << 20;
/// Folders nested deeper than this are refused.
const DEPTH_LIMIT: usize = 1_000;

/// A version of the repository, read from its objects.
pub struct ObjectTree {
    store: ObjectStore,
    root: ObjectId,
    folders: Mutex<HashMap<ObjectId, Arc<[Entry]>>>,
}

/// An entry of one folder object.
#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    kind: EntryKind,
    id: ObjectId,
}

impl ObjectTree {
    /// `root` is a tree, or a commit that stands for its tree.
    pub(super) fn new(store: ObjectStore, root: ObjectId) -> Self {
        Self {
            store,
            root,
            folders: Mutex::new(HashMap::new()),
        }
    }

    fn object(
        &self,
        path: &str,
        id: &ObjectId,
        limit: u64,
    ) -> Result<(ObjectKind, Vec<u8>), TreeError> {
        match self.store.read(id, limit) {
            Ok(ObjectRead::Found(kind, bytes)) => Ok((kind, bytes)),
            Ok(ObjectRead::TooLarge(size)) => Err(TreeError::TooLarge {
                path: path.to_owned(),
                size,
                limit,
            }),
            Ok(ObjectRead::Missing) => Err(TreeError::Missing {
                path: path.to_owned(),
                hint: "fetch it, or clone without --filter".to_owned(),
            }),
            Err(message) => Err(read_error(path, &message)),
        }
    }

    /// The entries of a folder object, in git's order.
    fn folder(&self, path: &str, id: &ObjectId) -> Result<Arc<[Entry]>, TreeError> {
        if let Some(known) = self.cache().get(id) {
            return Ok(Arc::clone(known));
        }
        let (mut kind, mut bytes) = self.object(path, id, FOLDER_LIMIT)?;
        if kind == ObjectKind::Commit {
            let tree = commit_tree(&bytes)
                .ok_or_else(|| read_error(path, "the commit object names no tree"))?;
            (kind, bytes) = self.object(path, &tree, FOLDER_LIMIT)?;
        }
        if kind != ObjectKind::Tree {
            return Err(read_error(path, "the object is not a tree"));
        }
        let entries: Arc<[Entry]> = parse_folder(&bytes, self.store.id_len())
            .ok_or_else(|| read_error(path, "the tree object is malformed"))?
            .into();
        let mut cache = self.cache();
        if cache.len() >= CACHED_FOLDERS {
            cache.clear();
        }
        cache.insert(id.clone(), Arc::clone(&entries));
        Ok(entries)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectId, Arc<[Entry]>>> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, path: &RepoPath) -> Result<Option<(EntryKind, ObjectId)>, TreeError> {
        let shown = path.to_lossy();
        let mut at = (EntryKind::Folder, self.root.clone());
        for part in path.as_bytes().split(|b| *b == b'/') {
            if at.0 != EntryKind::Folder {
                return Ok(None);
            }
            let entries = self.folder(&shown, &at.1)?;
            let Some(entry) = entries.iter().find(|e| *e.name == *part) else {
                return Ok(None);
            };
            at = (entry.kind, entry.id.clone());
        }
        Ok(Some(at))
    }

    /// The entries of the folder object `id` under their full paths.
    fn entries(
        &self,
        folder: Option<&RepoPath>,
        id: &ObjectId,
    ) -> Result<Vec<TreeEntry>, TreeError> {
        let shown = folder.map_or_else(|| "the root".to_owned(), RepoPath::to_lossy);
        let mut out = Vec::new();
        for entry in self.folder(&shown, id)?.iter() {
            let mut full = folder.map_or_else(Vec::new, |f| [f.as_bytes(), b"/"].concat());
            full.extend_from_slice(&entry.name);
            // git itself refuses to check such a name out; hiding it would hide what is below it.
            let path = RepoPath::new(&full)
                .map_err(|e| read_error(&String::from_utf8_lossy(&full), &e.to_string()))?;
            out.push(TreeEntry {
                path,
                kind: entry.kind,
                id: Some(entry.id.clone()),
            });
        }
        Ok(out)
    }
}

impl Tree for ObjectTree {
    fn read(&self, path: &RepoPath, limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
        let Some((kind, id)) = self.find(path)? else {
            return Ok(None);
        };
        if matches!(kind, EntryKind::Folder | EntryKind::Submodule) {
            return Ok(None);
        }
        let (kind, bytes) = self.object(&path.to_lossy(), &id, limit)?;
        if kind != ObjectKind::Blob {
            return Err(read_error(&path.to_lossy(), "the object is not a file"));
        }
        Ok(Some(bytes.into()))
    }

    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        Ok(self.find(path)?.map(|(kind, _)| kind))
    }

    fn list(&self, folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        let id = match folder {
            None => self.root.clone(),
            Some(path) => match self.find(path)? {
                Some((EntryKind::Folder, id)) => id,
                _ => return Ok(Vec::new()),
            },
        };
        let mut entries = self.entries(folder, &id)?;
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
        let mut found = Vec::new();
        let mut open: Vec<(Option<RepoPath>, ObjectId, usize)> = vec![(None, self.root.clone(), 0)];
        while let Some((folder, id, depth)) = open.pop() {
            for entry in self.entries(folder.as_ref(), &id)? {
                match (entry.kind, &entry.id) {
                    (EntryKind::Folder, Some(id)) if depth < DEPTH_LIMIT => {
                        open.push((Some(entry.path), id.clone(), depth + 1));
                    }
                    (EntryKind::Folder, _) => {
                        return Err(read_error("the tree", "folders are nested too deeply"));
                    }
                    _ => found.push(entry),
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }
}

fn read_error(path: &str, message: &str) -> TreeError {
    TreeError::Read {
        path: path.to_owned(),
        message: message.to_owned(),
    }
}

/// The tree that a commit object names in its first line.
fn commit_tree(commit: &[u8]) -> Option<ObjectId> {
    let line = commit.split(|b| *b == b'\n').next()?;
    let id = line.strip_prefix(b"tree ")?;
    ObjectId::new(std::str::from_utf8(id).ok()?).ok()
}

/// A tree object: octal mode, space, name, NUL, binary id; again and again.
fn parse_folder(mut bytes: &[u8], id_len: usize) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = memchr::memchr(b' ', bytes)?;
        let end = memchr::memchr(0, bytes)?;
        let name = bytes.get(space + 1..end)?;
        let id = bytes.get(end + 1..end + 1 + id_len)?;
        let mode = u32::from_str_radix(std::str::from_utf8(&bytes[..space]).ok()?, 8).ok()?;
        // A name with a slash would name something else than it seems to.
        if name.is_empty() || name.contains(&b'/') {
            return None;
        }
        let digit = |half: u8| char::from_digit(u32::from(half), 16);
        let hex: Option<String> = id
            .iter()
            .flat_map(|b| [digit(b >> 4), digit(b & 15)])
            .collect();
        entries.push(Entry {
            name: name.into(),
            kind: match mode & 0o170_000 {
                0o040_000 => EntryKind::Folder,
                0o120_000 => EntryKind::Symlink,
                0o160_000 => EntryKind::Submodule,
                _ if mode & 0o100 != 0 => EntryKind::Executable,
                _ => EntryKind::File,
            },
            id: ObjectId::new(&hex?).ok()?,
        });
        bytes = &bytes[end + 1 + id_len..];
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_objects_are_parsed_strictly() {
        let id = [0xab; 20];
        let entry = |head: &[u8]| [head, b"\0", &id].concat();
        let good = [entry(b"100644 a b"), entry(b"40000 d"), entry(b"120000 l")].concat();
        let entries = parse_folder(&good, 20).unwrap();
        let kinds: Vec<_> = entries.iter().map(|e| e.kind).collect();
        assert_eq!(
            kinds,
            [EntryKind::File, EntryKind::Folder, EntryKind::Symlink]
        );
        assert_eq!(&*entries[0].name, b"a b");
        assert_eq!(entries[0].id.as_str(), "ab".repeat(20));
        for bad in [
            entry(b"100644 a/b"),
            entry(b"100644 "),
            entry(b"x a"),
            good[..good.len() - 1].to_vec(),
            b"100644 a".to_vec(),
        ] {
            assert!(parse_folder(&bad, 20).is_none());
        }
        assert!(parse_folder(b"", 20).unwrap().is_empty());
    }

    #[test]
    fn a_commit_names_its_tree_first() {
        let id = "c".repeat(40);
        let tree = commit_tree(format!("tree {id}\nparent x\n").as_bytes());
        assert_eq!(tree.unwrap().as_str(), id);
        assert!(commit_tree(b"parent x\ntree y\n").is_none());
    }
}

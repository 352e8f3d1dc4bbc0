//! The tree of a run, with its content kept in memory so that the second search is fast.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use super::content::{Content, MAX_FILE};
use crate::model::RepoPath;
use crate::tree::{EntryKind, Tree, TreeEntry, TreeError};

/// What the content of a run may take in memory, in bytes.
const BUDGET: usize = 256 << 20;
/// What an entry costs beside its text and its path.
const OVERHEAD: usize = 128;

struct Slot {
    content: Content,
    used: u64,
}

#[derive(Default)]
struct Slots {
    by_path: HashMap<RepoPath, Slot>,
    bytes: usize,
    clock: u64,
}

/// A tree whose files are read, decoded and masked once; shared by the sessions of a run.
pub struct TreeCache {
    tree: Arc<dyn Tree>,
    budget: usize,
    slots: Mutex<Slots>,
    files: Mutex<Option<Arc<[TreeEntry]>>>,
    /// A search uses all cores; several at once would only take turns and load the same files twice.
    pub(super) search_turn: Arc<Semaphore>,
}

impl TreeCache {
    /// Serves `tree`.
    pub fn new(tree: Arc<dyn Tree>) -> Self {
        Self::with_budget(tree, BUDGET)
    }

    fn with_budget(tree: Arc<dyn Tree>, budget: usize) -> Self {
        Self {
            tree,
            budget,
            slots: Mutex::default(),
            files: Mutex::default(),
            search_turn: Arc::new(Semaphore::new(1)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `path` is.
    pub(super) fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        self.tree.kind(path)
    }

    /// The entries of a folder.
    pub(super) fn list(&self, folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        self.tree.list(folder)
    }

    /// Every entry but folders, by path.
    pub(super) fn files(&self) -> Result<Arc<[TreeEntry]>, TreeError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &*files {
            return Ok(Arc::clone(files));
        }
        let walked: Arc<[TreeEntry]> = self.tree.walk()?.into();
        *files = Some(Arc::clone(&walked));
        Ok(walked)
    }

    /// The content of a file (of a symbolic link: its text); `None` when there is no such file.
    /// A file read by name takes the place of what was not used for long; one met in a `search` does
    /// not, else a search through more than fits would throw out everything.
    pub(super) fn content(
        &self,
        path: &RepoPath,
        search: bool,
    ) -> Result<Option<Content>, TreeError> {
        {
            let mut slots = self.lock();
            slots.clock += 1;
            let now = slots.clock;
            if let Some(slot) = slots.by_path.get_mut(path) {
                slot.used = now;
                return Ok(Some(slot.content.clone()));
            }
        }
        let content = match self.tree.read(path, MAX_FILE) {
            Ok(Some(bytes)) => Content::of(&bytes),
            Ok(None) => return Ok(None),
            Err(TreeError::TooLarge { size, .. }) => Content::TooLarge(size),
            Err(error) => return Err(error),
        };
        self.keep(path, &content, search);
        Ok(Some(content))
    }

    fn keep(&self, path: &RepoPath, content: &Content, search: bool) {
        let weight = weight(path, content);
        let mut slots = self.lock();
        let slots = &mut *slots;
        if weight > self.budget || (search && slots.bytes + weight > self.budget) {
            return;
        }
        slots.clock += 1;
        let slot = Slot {
            content: content.clone(),
            used: slots.clock,
        };
        slots.bytes += weight;
        if let Some(old) = slots.by_path.insert(path.clone(), slot) {
            slots.bytes = slots.bytes.saturating_sub(self::weight(path, &old.content));
        }
        if slots.bytes > self.budget {
            slots.evict(self.budget / 8 * 7);
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

impl Slots {
    /// Throws out what was used longest ago until at most `target` bytes are left; rare, so sorting is fine.
    fn evict(&mut self, target: usize) {
        let mut ages: Vec<(u64, RepoPath)> = self
            .by_path
            .iter()
            .map(|(path, slot)| (slot.used, path.clone()))
            .collect();
        ages.sort_unstable();
        // The newest stays: it is what was asked for.
        ages.pop();
        for (_, path) in ages {
            if self.bytes <= target {
                break;
            }
            if let Some(slot) = self.by_path.remove(&path) {
                self.bytes = self.bytes.saturating_sub(weight(&path, &slot.content));
            }
        }
    }
}

fn weight(path: &RepoPath, content: &Content) -> usize {
    content.weight() + path.as_bytes().len() + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::MemoryTree;

    fn path(at: usize) -> RepoPath {
        RepoPath::new(format!("f{at}")).unwrap()
    }

    fn cache(files: usize, size: usize, budget: usize) -> TreeCache {
        let mut tree = MemoryTree::new();
        for at in 0..files {
            tree.insert(path(at), vec![b'a'; size]);
        }
        TreeCache::with_budget(Arc::new(tree), budget)
    }

    #[test]
    fn memory_stays_in_its_bounds() {
        let cache = cache(100, 1_000, 20_000);
        for at in 0..100 {
            assert!(cache.content(&path(at), false).unwrap().is_some());
            assert!(cache.bytes() <= 20_000);
        }
        let kept = |at| cache.lock().by_path.contains_key(&path(at));
        assert!(kept(99) && !kept(0), "what was used last stays");
        let before = cache.bytes();
        for at in 0..80 {
            assert!(cache.content(&path(at), true).unwrap().is_some());
        }
        assert!(kept(99), "a search throws nothing out");
        assert!(cache.bytes() >= before && cache.bytes() <= 20_000);
    }

    #[test]
    fn a_file_larger_than_everything_is_served_and_not_kept() {
        let cache = cache(1, 1_000, 500);
        assert!(cache.content(&path(0), false).unwrap().is_some());
        assert_eq!(cache.bytes(), 0);
        assert_eq!(cache.content(&path(7), false).unwrap(), None);
    }
}

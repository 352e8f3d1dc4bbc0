//! What exists in the tree, and what a broken citation probably meant.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::citation::{Exists, Target};
use super::llp::Documents;
use super::markdown::Page;
use super::report::ProblemKind;
use crate::diff::glob::Glob;
use crate::model::RepoPath;
use crate::tree::{EntryKind, Tree, TreeEntry, TreeError};

/// Larger files are not written by hand; nothing is looked up in them.
const MAX_FILE: u64 = 1024 * 1024;
/// How many broken paths get a search over all files for what was meant.
const MAX_SEARCHES: u32 = 20;
/// Below this similarity a suggestion misleads.
const SIMILAR: f64 = 0.75;

/// Why a citation does not hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) kind: ProblemKind,
    pub(super) problem: String,
    pub(super) suggestion: Option<String>,
}

impl Broken {
    pub(super) fn new(problem: String, suggestion: Option<String>) -> Self {
        Self {
            kind: ProblemKind::BrokenRef,
            problem,
            suggestion,
        }
    }
}

/// A tree with its folders and files by name.
pub(super) struct Index<'a> {
    tree: &'a dyn Tree,
    entries: Vec<TreeEntry>,
    kinds: HashMap<Box<[u8]>, EntryKind>,
    pages: RefCell<HashMap<String, Rc<Page>>>,
    searches_left: Cell<u32>,
}

impl<'a> Index<'a> {
    pub(super) fn new(tree: &'a dyn Tree) -> Result<Self, TreeError> {
        let entries = tree.walk()?;
        let mut kinds = HashMap::new();
        for entry in &entries {
            let path = entry.path.as_bytes();
            kinds.insert(Box::from(path), entry.kind);
            for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/').rev() {
                if kinds
                    .insert(Box::from(&path[..at]), EntryKind::Folder)
                    .is_some()
                {
                    break; // its parents are known too
                }
            }
        }
        Ok(Self {
            tree,
            entries,
            kinds,
            pages: RefCell::default(),
            searches_left: Cell::new(MAX_SEARCHES),
        })
    }

    /// Every file of the tree, in order.
    pub(super) fn entries(&self) -> &[TreeEntry] {
        &self.entries
    }

    pub(super) fn exists(&self, path: &str) -> Exists {
        match self.kinds.get(path.as_bytes()) {
            None if path.is_empty() => Exists::Folder,
            None => Exists::No,
            Some(EntryKind::Folder | EntryKind::Submodule) => Exists::Folder,
            Some(_) => Exists::File,
        }
    }

    /// True when some file matches.
    pub(super) fn any_match(&self, glob: &Glob) -> bool {
        self.entries.iter().any(|e| glob.matches(e.path.as_bytes()))
    }

    /// The text of a regular file; `None` when it is none, is binary or is too large to be written by hand.
    /// Invalid UTF-8 is replaced.
    pub(super) fn text(&self, path: &RepoPath) -> Result<Option<String>, TreeError> {
        let kind = self.kinds.get(path.as_bytes());
        if !matches!(kind, Some(EntryKind::File | EntryKind::Executable)) {
            return Ok(None);
        }
        match self.tree.read(path, MAX_FILE) {
            Ok(Some(bytes)) if !bytes.contains(&0) => {
                Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
            }
            Ok(_) | Err(TreeError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn text_of(&self, path: &str) -> Result<String, Broken> {
        let unreadable =
            |why: &str| Broken::new(format!("`{path}` cannot be searched: {why}"), None);
        let path = RepoPath::new(path).map_err(|e| unreadable(&e.to_string()))?;
        match self.text(&path) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(unreadable("not a text file of a size written by hand")),
            Err(error) => Err(unreadable(&error.to_string())),
        }
    }

    fn page(&self, path: &str) -> Result<Rc<Page>, Broken> {
        if let Some(page) = self.pages.borrow().get(path) {
            return Ok(Rc::clone(page));
        }
        let page = Rc::new(Page::parse(&self.text_of(path)?));
        self.pages
            .borrow_mut()
            .insert(path.to_owned(), Rc::clone(&page));
        Ok(page)
    }

    /// Checks one target; `Ok` when it holds.
    pub(super) fn resolve(&self, text: &str, documents: &Documents) -> Result<(), Broken> {
        match Target::parse(text) {
            Target::Placeholder | Target::Url => Ok(()),
            Target::Llp(reference) => documents.resolve(reference),
            Target::Malformed(why) => Err(Broken::new(format!("`{text}` {why}"), None)),
            Target::LineNumber => Err(line_number(text)),
            Target::Glob(pattern) => match Glob::new(pattern) {
                Ok(glob) if self.any_match(&glob) => Ok(()),
                _ => Err(Broken::new(
                    format!("`{pattern}` matches no file in the repository"),
                    None,
                )),
            },
            Target::Path { path, .. } if self.is_in_submodule(&path) => Ok(()),
            Target::Path {
                path,
                folder,
                fragment,
            } => match (self.exists(&path), fragment) {
                (Exists::No, _) => Err(Broken::new(
                    format!("no such path `{path}`"),
                    self.nearest_path(&path),
                )),
                (Exists::File, None) if folder => {
                    Err(Broken::new(format!("`{path}` is no folder"), Some(path)))
                }
                (_, None) => Ok(()),
                (Exists::Folder, Some(_)) => Err(Broken::new(
                    format!("`{path}` is a folder and holds no symbol"),
                    None,
                )),
                (Exists::File, Some(fragment)) => self.resolve_fragment(&path, fragment),
            },
        }
    }

    fn resolve_fragment(&self, path: &str, fragment: &str) -> Result<(), Broken> {
        if is_markdown(path) {
            let page = self.page(path)?;
            if page.headings.iter().any(|h| h.slug == fragment) {
                return Ok(());
            }
            let nearest = nearest(fragment, page.headings.iter().map(|h| h.slug.as_str()));
            return Err(Broken::new(
                format!("`{path}` has no heading `#{fragment}`"),
                nearest.map(|slug| format!("{path}#{slug}")),
            ));
        }
        let text = self.text_of(path)?;
        // `Type::method` and `Class.method` are rarely written so where they are defined.
        let mut parts = fragment
            .split(['.', '#', ':'])
            .filter(|part| !part.is_empty())
            .peekable();
        let by_parts = parts.peek().is_some() && parts.all(|part| has_word(&text, part));
        if by_parts || has_word(&text, fragment) {
            return Ok(());
        }
        Err(Broken::new(
            format!("`{path}` no longer contains `{fragment}`"),
            None,
        ))
    }

    fn is_in_submodule(&self, path: &str) -> bool {
        path.match_indices('/')
            .any(|(at, _)| self.kinds.get(&path.as_bytes()[..at]) == Some(&EntryKind::Submodule))
    }

    /// The file that a missing path most likely meant: the same name elsewhere, else a similar path.
    pub(super) fn nearest_path(&self, path: &str) -> Option<String> {
        let left = self.searches_left.get().checked_sub(1)?;
        self.searches_left.set(left);
        let known = || self.entries.iter().filter_map(|e| e.path.as_str());
        let name = path.rsplit('/').next().unwrap_or(path);
        let same_name = known().filter(|p| p.rsplit('/').next() == Some(name));
        if let Some(moved) = most_similar(path, same_name) {
            return Some(moved.1.to_owned());
        }
        nearest(path, known()).map(str::to_owned)
    }
}

pub(super) fn line_number(text: &str) -> Broken {
    let path = text.split([':', '#']).next().unwrap_or(text);
    Broken {
        kind: ProblemKind::LineNumberRef,
        problem: format!("`{text}` cites a line number, which the next change makes wrong"),
        suggestion: Some(format!("{path}#<symbol>")),
    }
}

pub(super) fn is_markdown(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    matches!(extension, Some("md" | "markdown" | "mdx"))
}

// @ref LLP 0007#limits — why this is a search of text
/// True when `word` stands in `text` without a letter, digit or `_` on either side.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, found)| {
        !text[..at].ends_with(inside) && !text[at + found.len()..].starts_with(inside)
    })
}

/// The most similar of the candidates, when one is similar enough to be meant.
pub(super) fn nearest<'a>(
    wanted: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // Lengths too far apart cannot reach the similarity; most candidates end here.
    let near = |candidate: &&str| {
        let (short, long) = (
            wanted.len().min(candidate.len()),
            wanted.len().max(candidate.len()),
        );
        short * 4 >= long * 3
    };
    most_similar(wanted, candidates.filter(near))
        .filter(|(score, _)| *score >= SIMILAR)
        .map(|(_, candidate)| candidate)
}

fn most_similar<'a>(
    wanted: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<(f64, &'a str)> {
    // The measure is quadratic in the lengths: long names, which only an attacker writes, are left out.
    const LONG: usize = 200;
    if wanted.len() > LONG {
        return None;
    }
    candidates
        .filter(|candidate| candidate.len() <= LONG)
        .map(|candidate| {
            (
                strsim::normalized_damerau_levenshtein(wanted, candidate),
                candidate,
            )
        })
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_borders() {
        assert!(has_word("fn go() {}", "go"));
        assert!(has_word("gone go", "go"));
        assert!(!has_word("fn gone() { _go }", "go"));
    }

    #[test]
    fn nothing_is_suggested_for_the_unlike_or_the_long() {
        assert_eq!(
            nearest("retry-tabel", ["retry-table", "budget"].into_iter()),
            Some("retry-table")
        );
        assert_eq!(nearest("xyz", ["retry-table"].into_iter()), None);
        let long = "a".repeat(300);
        assert_eq!(nearest(&long, [long.as_str()].into_iter()), None);
    }
}

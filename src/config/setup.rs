//! Where the setup of a repository is, and reading its files through a tree.

use std::path::{Path, PathBuf};

use super::diagnostic::{Diagnostic, Source, quoted};
use super::env::ECR_CONFIG_DIR;
use super::routing::folder;
use crate::model::RepoPath;
use crate::tree::{EntryKind, MemoryTree, Tree};

/// The names of a setup folder; the first that exists is used.
pub const SETUP_FOLDERS: [&str; 2] = [".expo-agents/code-review", ".expo-code-review"];

/// A file of the setup larger than this many bytes is refused.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// What `--config-dir` and `ECR_CONFIG_DIR` ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupChoice {
    /// Nothing: look for a setup folder, else use the embedded setup.
    Discover,
    /// A folder of the repository; `None` is its root.
    InRepository(Option<RepoPath>),
    /// A folder anywhere; the caller reads it into [`SetupLocation::Outside`].
    Absolute(PathBuf),
}

/// Where to load the setup from.
#[derive(Debug, Clone)]
pub enum SetupLocation {
    /// The setup folder at the root of the tree, else the embedded setup.
    Discover,
    /// A folder of the tree, which must exist; `None` is its root.
    InRepository(Option<RepoPath>),
    /// Files from elsewhere, by their path within the folder.
    Outside {
        /// The folder, for people.
        folder: String,
        /// Its files.
        files: MemoryTree,
    },
}

/// Where a setup came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupOrigin {
    /// The content that ecr brings along.
    Embedded,
    /// A folder of the repository; `None` is its root.
    InRepository(Option<RepoPath>),
    /// A folder elsewhere.
    Outside(String),
}

impl SetupChoice {
    /// The option wins over the variable. A relative folder is one of the repository.
    pub fn new(option: Option<&str>, variable: Option<&str>) -> Result<Self, Diagnostic> {
        let variable = variable.filter(|value| !value.trim().is_empty());
        let (name, text) = match (option, variable) {
            (Some(text), _) => ("--config-dir", text),
            (None, Some(text)) => (ECR_CONFIG_DIR.name, text),
            (None, None) => return Ok(Self::Discover),
        };
        if Path::new(text).is_absolute() {
            return Ok(Self::Absolute(PathBuf::from(text)));
        }
        folder(text).map(Self::InRepository).map_err(|()| {
            Diagnostic::bare(name, format!("{} is not a folder of the repository", quoted(text)))
                .with_help("give a folder relative to the root of the repository, without leaving it, or an absolute one")
        })
    }
}

/// True when `path` is a setup folder by its name, at the root or in a scope's folder.
pub fn is_setup_folder(path: &RepoPath) -> bool {
    let bytes = path.as_bytes();
    SETUP_FOLDERS.iter().any(|name| {
        bytes
            .strip_suffix(name.as_bytes())
            .is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
    })
}

/// The setup folder below `parent` (`None` = the root), or `None` when there is none. The warnings name a
/// second one that is not used.
pub fn find_setup_folder(
    tree: &dyn Tree,
    parent: Option<&RepoPath>,
) -> Result<(Option<RepoPath>, Vec<Diagnostic>), Diagnostic> {
    let mut found: Option<RepoPath> = None;
    let mut warnings = Vec::new();
    for name in SETUP_FOLDERS {
        let path = join(parent, name)?;
        // A link is never followed, so a setup behind one would be passed over in silence.
        let mut link = Some(path.clone());
        while let Some(at) = link {
            if kind(tree, &at)? == Some(EntryKind::Symlink) {
                return Err(linked(&at));
            }
            link = RepoPath::new(at.parent())
                .ok()
                .filter(|up| parent.is_none_or(|parent| up != parent));
        }
        if kind(tree, &path)? != Some(EntryKind::Folder) {
            continue;
        }
        match &found {
            None => found = Some(path),
            Some(first) => warnings.push(
                Diagnostic::bare(
                    &path.to_lossy(),
                    format!("this setup folder is not used: `{}` wins", first.to_lossy()),
                )
                .as_warning()
                .with_help("delete one of the two"),
            ),
        }
    }
    Ok((found, warnings))
}

fn kind(tree: &dyn Tree, path: &RepoPath) -> Result<Option<EntryKind>, Diagnostic> {
    tree.kind(path)
        .map_err(|error| Diagnostic::bare(&path.to_lossy(), error.to_string()))
}

fn linked(path: &RepoPath) -> Diagnostic {
    Diagnostic::bare(
        &path.to_lossy(),
        "this is a symbolic link, and links are not followed",
    )
    .with_help("put the files themselves there")
}

fn join(parent: Option<&RepoPath>, name: &str) -> Result<RepoPath, Diagnostic> {
    let mut bytes = parent.map_or_else(Vec::new, |p| [p.as_bytes(), b"/"].concat());
    bytes.extend_from_slice(name.as_bytes());
    RepoPath::new(&bytes).map_err(|error| Diagnostic::bare(name, error.to_string()))
}

/// A file's name and its text, or why that could not be read.
type NamedSource = (String, Result<Source, Diagnostic>);

/// Reads the files of one setup folder.
pub(super) struct SetupFiles<'a> {
    tree: &'a dyn Tree,
    folder: Option<RepoPath>,
    /// Stands before a path when the tree is not the repository.
    shown: String,
}

impl<'a> SetupFiles<'a> {
    pub(super) fn new(tree: &'a dyn Tree, folder: Option<RepoPath>, shown: &str) -> Self {
        Self {
            tree,
            folder,
            shown: shown.to_owned(),
        }
    }

    /// The name people know a file by.
    pub(super) fn origin(&self, path: &RepoPath) -> String {
        if self.shown.is_empty() {
            path.to_lossy()
        } else {
            format!("{}/{}", self.shown, path.to_lossy())
        }
    }

    /// The folder itself, for people.
    pub(super) fn shown_folder(&self) -> String {
        match &self.folder {
            Some(folder) => self.origin(folder),
            None if self.shown.is_empty() => ".".to_owned(),
            None => self.shown.clone(),
        }
    }

    /// True when the folder is there.
    pub(super) fn exist(&self) -> Result<bool, Diagnostic> {
        match &self.folder {
            Some(folder) => match kind(self.tree, folder)? {
                Some(EntryKind::Symlink) => Err(linked(folder)),
                kind => Ok(kind == Some(EntryKind::Folder)),
            },
            None => Ok(true),
        }
    }

    /// The text of a file, or `None` when there is none.
    pub(super) fn read(&self, name: &str) -> Result<Option<Source>, Diagnostic> {
        let path = join(self.folder.as_ref(), name)?;
        self.read_path(&path)
    }

    fn read_path(&self, path: &RepoPath) -> Result<Option<Source>, Diagnostic> {
        let origin = self.origin(path);
        match kind(self.tree, path)? {
            None => return Ok(None),
            Some(EntryKind::File | EntryKind::Executable) => {}
            Some(EntryKind::Symlink) => return Err(linked(path)),
            Some(EntryKind::Folder | EntryKind::Submodule) => {
                return Err(Diagnostic::bare(&origin, "this is a folder, not a file"));
            }
        }
        match self.tree.read(path, MAX_FILE_BYTES) {
            Ok(Some(bytes)) => Source::from_bytes(&origin, &bytes).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(Diagnostic::bare(&origin, error.to_string())),
        }
    }

    /// The Markdown files directly in `folder`, with their names, sorted.
    pub(super) fn markdown(&self, folder: &str) -> Result<Vec<NamedSource>, Diagnostic> {
        let folder = join(self.folder.as_ref(), folder)?;
        if kind(self.tree, &folder)? == Some(EntryKind::Symlink) {
            return Err(linked(&folder));
        }
        let entries = self
            .tree
            .list(Some(&folder))
            .map_err(|error| Diagnostic::bare(&self.origin(&folder), error.to_string()))?;
        Ok(entries
            .into_iter()
            .filter(|entry| {
                entry.kind != EntryKind::Folder && entry.path.as_bytes().ends_with(b".md")
            })
            .filter_map(|entry| {
                let name = String::from_utf8_lossy(entry.path.file_name()).into_owned();
                let text = self.read_path(&entry.path).transpose()?;
                Some((name, text))
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::new(text).unwrap()
    }

    #[test]
    fn the_option_wins_over_the_variable() {
        let inside = |text| Ok(SetupChoice::InRepository(Some(path(text))));
        assert_eq!(SetupChoice::new(None, None), Ok(SetupChoice::Discover));
        assert_eq!(
            SetupChoice::new(None, Some("  ")),
            Ok(SetupChoice::Discover)
        );
        assert_eq!(
            SetupChoice::new(Some("custom"), Some("other")),
            inside("custom")
        );
        assert_eq!(SetupChoice::new(None, Some("./other/")), inside("other"));
        assert_eq!(
            SetupChoice::new(Some("."), None),
            Ok(SetupChoice::InRepository(None))
        );
        assert!(SetupChoice::new(Some("../x"), None).is_err());
        assert!(SetupChoice::new(Some(""), Some("other")).is_err());
        let absolute = std::env::temp_dir();
        assert_eq!(
            SetupChoice::new(absolute.to_str(), None),
            Ok(SetupChoice::Absolute(absolute.clone()))
        );
    }

    #[test]
    fn names_of_setup_folders() {
        for (text, is) in [
            ("r/.expo-code-review", true),
            (".expo-code-review", true),
            ("r/apps/api/.expo-agents/code-review", true),
            ("r/.expo-agents", false),
            ("r/code-review", false),
            ("r/x.expo-code-review", false),
        ] {
            assert_eq!(is_setup_folder(&path(text)), is, "{text}");
        }
    }

    #[test]
    fn the_newer_name_wins_and_says_so() {
        let mut tree = MemoryTree::new();
        assert_eq!(find_setup_folder(&tree, None).unwrap().0, None);
        tree.insert(path(".expo-code-review/config.jsonc"), *b"{}");
        assert_eq!(
            find_setup_folder(&tree, None).unwrap(),
            (Some(path(".expo-code-review")), vec![])
        );
        tree.insert(path(".expo-agents/code-review/config.jsonc"), *b"{}");
        let (found, warnings) = find_setup_folder(&tree, None).unwrap();
        assert_eq!(found, Some(path(".expo-agents/code-review")));
        assert!(warnings[0].message.contains("is not used"));
        tree.insert(path("www/.expo-code-review/config.jsonc"), *b"{}");
        assert_eq!(
            find_setup_folder(&tree, Some(&path("www"))).unwrap().0,
            Some(path("www/.expo-code-review"))
        );
    }

    #[test]
    fn links_are_named_not_followed() {
        for link in [".expo-code-review", ".expo-agents"] {
            let mut tree = MemoryTree::new();
            tree.insert_as(path(link), EntryKind::Symlink, *b"/etc");
            let error = find_setup_folder(&tree, None).unwrap_err();
            assert!(error.message.contains("symbolic link"), "{link}");
        }
    }
}

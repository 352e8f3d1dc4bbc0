//! Trusted tool paths.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The absolute path of an executable, resolved once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPath(PathBuf);

/// Why a tool was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// No absolute `PATH` entry holds it.
    #[error("`{name}` is not on PATH")]
    NotFound {
        /// The tool.
        name: String,
    },
    /// `PATH` leads only to copies inside the tree under review.
    #[error("the only `{name}` on PATH is inside the tree under review ({})", path.display())]
    Untrusted {
        /// The tool.
        name: String,
        /// The copy that was refused.
        path: PathBuf,
    },
}

impl ToolPath {
    /// Finds `name` in `search` (the value of `PATH`). Relative and empty entries are skipped, and so is
    /// everything that lies, after symbolic links are resolved, inside one of the `reviewed` folders.
    pub fn find(name: &str, search: &OsStr, reviewed: &[&Path]) -> Result<Self, ToolError> {
        let reviewed: Vec<PathBuf> = reviewed
            .iter()
            .filter_map(|folder| folder.canonicalize().ok())
            .collect();
        let mut refused = None;
        for folder in std::env::split_paths(search).filter(|f| f.is_absolute()) {
            let candidate = folder.join(name);
            let Ok(target) = candidate.canonicalize() else {
                continue;
            };
            if !is_executable(&target) {
                continue;
            }
            // The link itself may lie in the tree although its target does not; the author owns the link.
            let entry = folder.canonicalize().unwrap_or(folder);
            if reviewed
                .iter()
                .any(|tree| target.starts_with(tree) || entry.starts_with(tree))
            {
                refused.get_or_insert(candidate);
                continue;
            }
            // The name stays as it is: some tools decide by it what they are.
            return Ok(Self(entry.join(name)));
        }
        Err(match refused {
            Some(path) => ToolError::Untrusted {
                name: name.to_owned(),
                path,
            },
            None => ToolError::NotFound {
                name: name.to_owned(),
            },
        })
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(folder: &Path) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join("tool");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn find(entries: &[&Path], reviewed: &Path) -> Result<ToolPath, ToolError> {
        let search = std::env::join_paths(entries).unwrap();
        ToolPath::find("tool", &search, &[reviewed])
    }

    #[test]
    fn only_absolute_entries_outside_the_reviewed_tree_count() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let tree = root.join("tree");
        let inside = tool(&tree.join("bin"));
        let outside = tool(&root.join("bin"));
        let link = root.join("link");
        std::os::unix::fs::symlink(tree.join("bin"), &link).unwrap();
        let found = find(
            &[
                Path::new(""),
                Path::new("bin"),
                &tree.join("bin"),
                &link,
                &root.join("bin"),
            ],
            &tree,
        );
        assert_eq!(found.unwrap().as_path(), outside);
        assert!(matches!(
            find(&[&link], &tree),
            Err(ToolError::Untrusted { .. })
        ));
        assert!(matches!(
            find(&[&inside], &tree),
            Err(ToolError::NotFound { .. })
        ));
    }

    #[test]
    fn a_link_into_the_tree_and_a_link_out_of_it_are_both_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (tree, bin) = (root.join("tree"), root.join("bin"));
        let inside = tool(&tree.join("x"));
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(inside, bin.join("tool")).unwrap();
        assert!(find(&[&bin], &tree).is_err());
        let outside = tool(&root.join("real"));
        std::os::unix::fs::symlink(outside, tree.join("tool")).unwrap();
        assert!(find(&[&tree], &tree).is_err());
    }

    #[test]
    fn folders_and_plain_files_are_not_tools() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir_all(bin.join("tool")).unwrap();
        assert!(find(&[&bin], Path::new("/nowhere")).is_err());
        let plain = dir.path().join("plain");
        std::fs::create_dir_all(&plain).unwrap();
        std::fs::write(plain.join("tool"), "x").unwrap();
        assert!(find(&[&plain], Path::new("/nowhere")).is_err());
    }
}

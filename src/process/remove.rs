//! Removing a folder whatever was left in it.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Removes `root` and everything in it, following no link. What it holds may be hostile: folders without
/// permissions, and nesting deeper than a path or a stack can be.
pub(super) fn remove_tree(root: &Path) -> io::Result<()> {
    let mut waiting = VecDeque::from([root.to_owned()]);
    let mut moved = 0_u64;
    while let Some(folder) = waiting.pop_front() {
        // Only the owner's bits matter, and the folder is ours.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                fs::remove_file(&path)?;
            } else if folder == root {
                waiting.push_back(path);
            } else {
                // It becomes a child of the root, so that no path grows long.
                waiting.push_back(lift(root, &path, &mut moved)?);
            }
        }
        if folder != root {
            fs::remove_dir(&folder)?;
        }
    }
    fs::remove_dir(root)
}

/// Moves the folder `path` up into `root`.
fn lift(root: &Path, path: &Path, moved: &mut u64) -> io::Result<PathBuf> {
    // A folder that moves must be writable: its `..` changes.
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    loop {
        let to = root.join(format!(".gone-{moved}"));
        *moved += 1;
        // A name in use is a trap laid in advance; renaming over an empty folder would be harmless.
        if to.symlink_metadata().is_ok() {
            continue;
        }
        fs::rename(path, &to)?;
        return Ok(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_without_permissions_and_links_are_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::create_dir_all(root.join(".gone-0/x")).unwrap();
        fs::write(root.join("a/b/c/file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, root.join("a/link")).unwrap();
        for folder in ["a/b/c", "a/b"] {
            fs::set_permissions(root.join(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists());
        assert!(outside.join("kept").exists());
    }

    #[test]
    fn depth_is_no_obstacle() {
        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = rustix::fs::open(&root, flags, Mode::empty()).unwrap();
        let name = "d".repeat(200);
        for _ in 0..1500 {
            mkdirat(&at, name.as_str(), Mode::from(0o700)).unwrap();
            at = openat(&at, name.as_str(), flags, Mode::empty()).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert!(remove_tree(Path::new("/nonexistent/x")).is_err());
    }
}

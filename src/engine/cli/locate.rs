//! Which program is started.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::CliFacts;
use crate::process::{Binary, BinaryError, ToolError, ToolPath};

/// Why there is no program to start.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// It is not installed, or only inside the tree under review.
    #[error(transparent)]
    NotFound(#[from] ToolError),
    /// The program on `PATH` only starts another one, which is not there.
    #[error("{} is npm's launcher, and the package with the program for this machine is not beside it", path.display())]
    Launcher {
        /// The launcher.
        path: PathBuf,
    },
    /// It is not trusted.
    #[error(transparent)]
    Untrusted(#[from] BinaryError),
}

impl LocateError {
    /// The program that is not started; `None` where there is none.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::NotFound(ToolError::NotFound { .. }) => None,
            Self::NotFound(ToolError::Untrusted { path, .. }) | Self::Launcher { path } => {
                Some(path)
            }
            Self::Untrusted(error) => Some(error.path()),
        }
    }
}

/// Finds the program of a tool and looks at it (see [`find_program`]). Reads the whole program, a few hundred
/// megabytes: a blocking call of up to some seconds.
pub fn locate(facts: &CliFacts, search: &OsStr, reviewed: &[&Path]) -> Result<Binary, LocateError> {
    Ok(Binary::examine(find_program(facts, search, reviewed)?)?)
}

/// Finds the program of a tool in `search` (the value of `PATH`), outside of the `reviewed` folders. npm's launcher
/// is passed over for the program that it would start.
pub fn find_program(
    facts: &CliFacts,
    search: &OsStr,
    reviewed: &[&Path],
) -> Result<ToolPath, LocateError> {
    let found = ToolPath::find(facts.program, search, reviewed)?;
    let target = found.as_path().canonicalize();
    let target = target.unwrap_or_else(|_| found.as_path().to_owned());
    if is_program(&target) {
        return Ok(found);
    }
    for candidate in beside(&target, facts.packages) {
        let (Some(folder), Some(name)) = (candidate.parent(), candidate.file_name()) else {
            continue;
        };
        let Some(name) = name.to_str() else { continue };
        if let Ok(tool) = ToolPath::find(name, folder.as_os_str(), reviewed)
            && is_program(tool.as_path())
        {
            return Ok(tool);
        }
    }
    Err(LocateError::Launcher { path: target })
}

/// Whether a file is a program rather than a script.
fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    let mach = [0xcf, 0xfa, 0xed, 0xfe];
    read.is_ok() && (magic == *b"\x7fELF" || magic == mach)
}

/// Where the program may lie that the launcher at `target` starts: in the `node_modules` folders of its own
/// folder and of those above, as node looks for them.
fn beside(target: &Path, packages: &[&str]) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for folder in target.ancestors().skip(1) {
        let modules = if folder
            .file_name()
            .is_some_and(|name| name == "node_modules")
        {
            folder.to_owned()
        } else {
            folder.join("node_modules")
        };
        out.extend(packages.iter().map(|package| modules.join(package)));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::engine::claude::FACTS;

    fn put(path: &Path, bytes: &[u8]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_launcher_is_passed_over_for_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let modules = root.join("lib/node_modules");
        let launcher = modules.join("@anthropic-ai/claude-code/bin/claude.exe");
        put(&launcher, b"#!/bin/sh\n");
        let bin = root.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(&launcher, bin.join("claude")).unwrap();
        let error = locate(&FACTS, bin.as_os_str(), &[]).unwrap_err();
        assert!(matches!(error, LocateError::Launcher { .. }), "{error}");

        // Beside the launcher's package, as npm hoists it.
        let program = modules.join(FACTS.packages[0]);
        put(&program, b"\x7fELF....");
        let found = locate(&FACTS, bin.as_os_str(), &[]).unwrap();
        assert_eq!(found.target(), program);
        // In the launcher's own package: the nearer one wins.
        let inner = modules
            .join("@anthropic-ai/claude-code/node_modules")
            .join(FACTS.packages[0]);
        put(&inner, b"\x7fELF....");
        let found = locate(&FACTS, bin.as_os_str(), &[]).unwrap();
        assert_eq!(found.target(), inner);
        // The launcher was replaced by the program (npm's post-install script does that).
        put(&launcher, b"\x7fELF....");
        let found = locate(&FACTS, bin.as_os_str(), &[]).unwrap();
        assert_eq!(found.target(), launcher);
    }

    #[test]
    fn nothing_in_the_tree_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().canonicalize().unwrap();
        put(&tree.join("bin/claude"), b"\x7fELF....");
        let error = locate(&FACTS, tree.join("bin").as_os_str(), &[&tree]).unwrap_err();
        let untrusted = matches!(error, LocateError::NotFound(ToolError::Untrusted { .. }));
        assert!(untrusted, "{error}");
        // A launcher outside that leads to a package inside is refused as well.
        let outside = tempfile::tempdir().unwrap();
        let outside = outside.path().canonicalize().unwrap();
        put(&outside.join("bin/claude"), b"#!/bin/sh\n");
        put(&tree.join(FACTS.packages[0]), b"\x7fELF....");
        std::os::unix::fs::symlink(&tree, outside.join("node_modules")).unwrap();
        let search = outside.join("bin");
        let error = locate(&FACTS, search.as_os_str(), &[&tree]).unwrap_err();
        assert!(matches!(error, LocateError::Launcher { .. }), "{error}");
        assert!(locate(&FACTS, search.as_os_str(), &[]).is_ok());
    }
}

//! Which program is started, and whether it is one that was tried.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::process::{Binary, BinaryError, ToolError, ToolPath};

/// The version that all of this was tried with.
pub const TESTED: &str = "1.18.33";
/// Versions that are used. Another patch of the same minor version may change what it says, not what it
/// may do: the jar does not depend on it, and the model door checks the tools that it offers. Another minor
/// version may read its configuration otherwise.
const KNOWN: (u32, u32) = (1, 18);

/// Why there is no `OpenCode` to start.
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

/// Finds `opencode` in `search` (the value of `PATH`), outside of the `reviewed` folders, and looks at it.
/// npm's launcher is passed over for the program of this machine. Reads 185 MB: a blocking call.
pub fn locate(search: &OsStr, reviewed: &[&Path]) -> Result<Binary, LocateError> {
    let found = ToolPath::find("opencode", search, reviewed)?;
    let target = found.as_path().canonicalize();
    let target = target.unwrap_or_else(|_| found.as_path().to_owned());
    if is_program(&target) {
        return Ok(Binary::examine(found)?);
    }
    for folder in packages(&target) {
        let inside = ToolPath::find("opencode", folder.as_os_str(), reviewed);
        if let Ok(tool) = inside
            && is_program(tool.as_path())
        {
            return Ok(Binary::examine(tool)?);
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

/// Where the programs lie that the launcher at `target` starts, the best one first.
fn packages(target: &Path) -> Vec<PathBuf> {
    let system = if cfg!(target_os = "macos") {
        "darwin"
    } else {
        "linux"
    };
    let machine = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x64"
    };
    let mut kinds = vec!["", "-baseline", "-musl", "-baseline-musl"];
    if !has_avx2() {
        kinds.retain(|kind| kind.contains("baseline") || machine == "arm64");
    }
    let mut out = Vec::new();
    // opencode-ai/bin/opencode: beside `opencode-ai`, or in its own node_modules.
    for package in target.ancestors().skip(2).take(1) {
        for modules in [
            Some(package.join("node_modules")),
            package.parent().map(Path::to_owned),
        ] {
            for kind in &kinds {
                if let Some(modules) = &modules {
                    let name = format!("opencode-{system}-{machine}{kind}");
                    out.push(modules.join(name).join("bin"));
                }
            }
        }
    }
    out
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// What is wrong with the version that `opencode --version` says; `None` when nothing is.
pub(super) fn version_problem(said: &str) -> Option<String> {
    let said = said.trim();
    let mut numbers = said.split('.').map(str::parse::<u32>);
    let known = match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(_))) => (major, minor) == KNOWN,
        _ => false,
    };
    (!known).then(|| {
        let (major, minor) = KNOWN;
        format!(
            "OpenCode {} is installed, and ecr knows {major}.{minor} (tried with {TESTED}): \
             npm install -g opencode-ai@{TESTED}",
            super::fault::shown(said)
        )
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

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
        put(
            &modules.join("opencode-ai/bin/opencode.exe"),
            b"#!/bin/sh\n",
        );
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::os::unix::fs::symlink(
            "../lib/node_modules/opencode-ai/bin/opencode.exe",
            root.join("bin/opencode"),
        )
        .unwrap();
        let bin = root.join("bin");
        let error = locate(bin.as_os_str(), &[]).unwrap_err();
        assert!(matches!(error, LocateError::Launcher { .. }), "{error}");

        let target = modules.join("opencode-ai/bin/opencode.exe");
        for (beside, folder) in [
            (true, packages(&target).pop().unwrap()),
            (false, packages(&target).remove(0)),
        ] {
            put(&folder.join("opencode"), b"\x7fELF....");
            let binary = locate(bin.as_os_str(), &[]).unwrap();
            assert_eq!(binary.target(), folder.join("opencode"), "{beside}");
        }
        // With npm's postinstall the launcher is the program.
        put(&target, b"\x7fELF....");
        assert_eq!(locate(bin.as_os_str(), &[]).unwrap().target(), target);
    }

    #[test]
    fn nothing_in_the_tree_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        put(&root.join("bin/opencode"), b"\x7fELF....");
        let error = locate(root.join("bin").as_os_str(), &[&root]).unwrap_err();
        assert!(
            matches!(error, LocateError::NotFound(ToolError::Untrusted { .. })),
            "{error}"
        );
        // A launcher outside that leads to a package inside is refused as well.
        let outside = tempfile::tempdir().unwrap();
        let outside = outside.path().canonicalize().unwrap();
        put(&outside.join("opencode-ai/bin/opencode"), b"#!/bin/sh\n");
        std::os::unix::fs::symlink(&root, outside.join("opencode-linux-x64")).unwrap();
        let search = outside.join("opencode-ai/bin");
        assert!(locate(search.as_os_str(), &[&root]).is_err());
    }

    #[test]
    fn versions() {
        for known in [TESTED, "1.18.0\n", "1.18.999"] {
            assert_eq!(version_problem(known), None, "{known}");
        }
        for other in [
            "1.17.9",
            "1.19.0",
            "2.18.33",
            "1.18",
            "",
            "v1.18.33",
            "1.18.x",
            "\u{1b}[1m",
        ] {
            let words = version_problem(other).unwrap();
            assert!(words.contains(TESTED), "{words}");
            assert!(!words.contains('\u{1b}'), "{words}");
        }
    }
}

//! The real command-line tools, from npm, in a cache folder outside of the repository.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ecr::engine::cli::locate;
use ecr::engine::opencode::FACTS;

/// The folder of npm's `package@version` (`node_modules` is in it), installed once for all runs:
/// `$ECR_TEST_CLIS`, else `ecr-test-clis` in the cache folder. No script of the package is run. `None`,
/// with a line on stderr, where it cannot be had.
fn installed(package: &str, version: &str) -> Option<PathBuf> {
    let base =
        std::env::var_os("ECR_TEST_CLIS").map_or_else(cache, |folder| Some(folder.into()))?;
    let folder = base.join(format!("{}-{version}", package.replace('/', "-")));
    if folder.exists() {
        return Some(folder);
    }
    std::fs::create_dir_all(&base).unwrap();
    let fresh = tempfile::tempdir_in(&base).unwrap();
    let npm = Command::new("npm")
        .args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--prefix",
        ])
        .arg(fresh.path())
        .arg(format!("{package}@{version}"))
        .output();
    match npm {
        Ok(output) if output.status.success() => {
            // Somebody else may have been faster.
            let _ = std::fs::rename(fresh.keep(), &folder);
            Some(folder)
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            super::skip::skipped(&format!(
                "npm cannot install {package}: {}",
                said.lines().next().unwrap_or_default()
            ));
            None
        }
        Err(error) => {
            super::skip::skipped(&format!("no npm to install {package} with: {error}"));
            None
        }
    }
}

fn cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    Some(named.or_else(home)?.join("ecr-test-clis"))
}

/// The folder with `OpenCode`'s launcher, for a `PATH`.
pub(crate) fn opencode() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let (_, tested) = FACTS.tested;
        let folder = installed("opencode-ai", &tested.to_string())?;
        Some(folder.join("node_modules").join(".bin"))
    });
    found.as_deref()
}

/// Its program.
pub(crate) fn opencode_program() -> Option<PathBuf> {
    let binary = locate(&FACTS, opencode()?.as_os_str(), &[]).unwrap();
    Some(binary.target().to_owned())
}

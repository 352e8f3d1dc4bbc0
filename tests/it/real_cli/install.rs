//! The real programs, in the versions that are pinned: npm installs them once, into a cache outside of the
//! repository, by the lock files in `tests/fixtures/real_cli`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, flock};

use super::Subject;
use crate::support::skip::skipped;

/// The folder in which `subject`'s launcher and program lie; `None`, said once, where it cannot be had.
pub(crate) fn installed(subject: &'static Subject) -> Option<PathBuf> {
    static SAID: OnceLock<std::sync::Mutex<std::collections::BTreeSet<&str>>> = OnceLock::new();
    match install(subject) {
        Ok(folder) => Some(folder),
        Err(problem) => {
            let said = SAID.get_or_init(std::sync::Mutex::default);
            if said.lock().unwrap().insert(subject.name) {
                skipped(&format!("the real {}: {problem}", subject.name));
            }
            None
        }
    }
}

fn cache() -> Result<PathBuf, String> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from);
    of("ECR_TEST_CLI_CACHE")
        .or_else(|| Some(of("XDG_CACHE_HOME")?.join("ecr-real-cli")))
        .or_else(|| Some(of("HOME")?.join(".cache/ecr-real-cli")))
        .filter(|folder| folder.is_absolute())
        .ok_or_else(|| "there is no folder to install it into (HOME is not set)".to_owned())
}

fn install(subject: &Subject) -> Result<PathBuf, String> {
    let plain = |error: std::io::Error| error.to_string();
    let locks = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/real_cli")
        .join(subject.name);
    let cache = cache()?;
    std::fs::create_dir_all(&cache).map_err(plain)?;
    let folder = cache.join(format!("{}-{}", subject.name, subject.version));
    let modules = folder.join("node_modules/.bin");
    // Several test processes, and several tests in each: one installs, the others wait.
    let lock = File::create(cache.join(format!("{}.lock", subject.name))).map_err(plain)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
    let done = folder.join("installed");
    if done.exists() {
        return Ok(modules);
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(plain)?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(locks.join(name), folder.join(name)).map_err(plain)?;
    }
    // No script of a package runs; what is installed is what the lock file's digests say.
    let output = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args(["--fetch-retries", "1", "--fetch-timeout", "120000"])
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let line = words.lines().find(|line| line.contains("error"));
        return Err(format!(
            "`npm ci` failed: {}",
            line.unwrap_or_default().trim()
        ));
    }
    File::create(done).map_err(plain)?;
    Ok(modules)
}

//! What a child may do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::PrivateNet;

/// Everything a contained child may do; what is not named here is refused.
#[derive(Debug, Clone, Default)]
pub struct SandboxPlan {
    /// Files it may read, and folders that it may read with all that is in them.
    pub read: Vec<PathBuf>,
    /// The same, and they may be executed. A program's loader belongs here too.
    pub exec: Vec<PathBuf>,
    /// Folders in which it may do everything but execute and make devices or sockets; files it may read and write.
    pub write: Vec<PathBuf>,
    /// It may read its own `/proc/self` (a process that it starts may not read its own).
    pub proc_self: bool,
    /// The only TCP port it may connect to; `None` is no network at all.
    pub port: Option<u16>,
    /// The network to put it into; without, the port is open on every address.
    pub net: Option<Arc<PrivateNet>>,
    /// What it may use up.
    pub limits: Limits,
}

/// What a contained child may use up. Memory is not limited: the JavaScript engines reserve address space far
/// beyond what they use, and die when they do not get it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest file it may write, in bytes; the write beyond it ends the child.
    pub file_size: u64,
    /// How many files it may have open at a time.
    pub open_files: u64,
    /// How many processes and threads it may have. Applied in a private network only: there the kernel counts the
    /// child's own, elsewhere all of the user's.
    pub processes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_size: 256 * 1024 * 1024,
            open_files: 4096,
            processes: 1024,
        }
    }
}

/// Why a plan cannot be put into force.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A path that it names is not there.
    #[error("{}: {source}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A path that would open other processes, or everything, to the child.
    #[error("{} may not be opened to a contained process", path.display())]
    TooWide {
        /// The path.
        path: PathBuf,
    },
    /// The kernel refused what it claimed to support.
    #[error("the sandbox cannot be set up: {0}")]
    Kernel(String),
}

impl SandboxPlan {
    /// Refuses `/` and what lies in a process's folder of `/proc`: which process `self` is depends on who looks.
    pub(super) fn check(path: &Path) -> Result<PathBuf, PlanError> {
        let resolved = path.canonicalize().map_err(|source| PlanError::Path {
            path: path.to_owned(),
            source,
        })?;
        let too_wide = match resolved.strip_prefix("/proc") {
            Ok(rest) => rest
                .components()
                .next()
                .is_none_or(|first| first.as_os_str().as_encoded_bytes()[0].is_ascii_digit()),
            Err(_) => resolved == Path::new("/"),
        };
        if too_wide {
            return Err(PlanError::TooWide {
                path: path.to_owned(),
            });
        }
        Ok(resolved)
    }
}

#[cfg(target_os = "linux")]
impl SandboxPlan {
    /// Puts together what the child has to do before its program starts.
    pub(in crate::process) fn prepare(&self) -> Result<super::inside::Inside, PlanError> {
        super::inside::Inside::new(self, super::probe())
    }
}

#[cfg(not(target_os = "linux"))]
impl SandboxPlan {
    /// Nothing is done in the child here.
    pub(in crate::process) fn prepare(&self) -> Result<Outside, PlanError> {
        for path in self.read.iter().chain(&self.exec).chain(&self.write) {
            Self::check(path)?;
        }
        Ok(Outside)
    }
}

/// No sandbox that is entered between fork and exec.
#[cfg(not(target_os = "linux"))]
pub(in crate::process) struct Outside;

#[cfg(not(target_os = "linux"))]
impl Outside {
    /// Nothing to enter.
    #[allow(clippy::unnecessary_wraps, clippy::unused_self)] // the other platform's can fail
    pub(in crate::process) fn enter(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_processes_and_everything_are_never_opened() {
        for path in [
            "/",
            "/proc",
            "/proc/self",
            "/proc/1",
            "/proc/self/environ",
            "/proc/thread-self",
        ] {
            let result = SandboxPlan::check(Path::new(path));
            assert!(
                matches!(result, Err(PlanError::TooWide { .. })),
                "{path}: {result:?}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/proc/self", &link).unwrap();
        assert!(matches!(
            SandboxPlan::check(&link),
            Err(PlanError::TooWide { .. })
        ));
        assert!(SandboxPlan::check(Path::new("/proc/version")).is_ok());
        assert!(SandboxPlan::check(dir.path()).is_ok());
    }

    #[test]
    fn what_is_not_there_is_said() {
        let result = SandboxPlan::check(Path::new("/nonexistent"));
        assert!(matches!(result, Err(PlanError::Path { .. })));
    }
}

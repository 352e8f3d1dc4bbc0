//! The program of an engine: trusted with what a pass sends it, so it is looked at closely.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use super::ToolPath;

/// An executable owned by root or by ourselves, outside the tree under review, with its hash.
#[derive(Debug, Clone)]
pub struct Binary {
    tool: ToolPath,
    target: PathBuf,
    identity: Identity,
    sha256: [u8; 32],
}

/// Why a program is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// It belongs neither to root nor to the user who runs ecr.
    #[error("{} belongs to user {uid}; only files of root and of your own are started", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// Everybody may write to it.
    #[error("everybody may write to {}; it is not started", path.display())]
    Writable {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl BinaryError {
    /// The file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Owner { path, .. } | Self::Writable { path } | Self::Unreadable { path, .. } => {
                path
            }
        }
    }
}

/// What changes when a file is replaced or written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl From<&Metadata> for Identity {
    fn from(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl Binary {
    /// Looks at `tool` and hashes it: reads the whole file, so a blocking call of up to a second.
    pub fn examine(tool: ToolPath) -> Result<Self, BinaryError> {
        let unreadable = |source: io::Error| BinaryError::Unreadable {
            path: tool.as_path().to_owned(),
            source,
        };
        let target = tool.as_path().canonicalize().map_err(unreadable)?;
        let mut file = File::open(&target).map_err(unreadable)?;
        let meta = file.metadata().map_err(unreadable)?;
        let me = geteuid().as_raw();
        if meta.uid() != 0 && meta.uid() != me {
            return Err(BinaryError::Owner {
                path: target,
                uid: meta.uid(),
            });
        }
        // Its folder may belong to others, as on hosted runners; the file itself may not be theirs to write.
        if meta.mode() & 0o002 != 0 {
            return Err(BinaryError::Writable { path: target });
        }
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match file.read(&mut buffer).map_err(unreadable)? {
                0 => break,
                n => hasher.update(&buffer[..n]),
            }
        }
        Ok(Self {
            target,
            identity: Identity::from(&meta),
            sha256: hasher.finalize().into(),
            tool,
        })
    }

    /// How it is started.
    pub fn tool(&self) -> &ToolPath {
        &self.tool
    }

    /// The file itself, links resolved: what a sandbox has to let execute.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The SHA-256 of the file.
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }

    /// Whether it is still the file that was examined; to be asked before each start.
    pub fn is_unchanged(&self) -> bool {
        self.tool
            .as_path()
            .canonicalize()
            .is_ok_and(|now| now == self.target)
            && self
                .target
                .metadata()
                .is_ok_and(|meta| Identity::from(&meta) == self.identity)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn tool(folder: &Path, mode: u32) -> ToolPath {
        let path = folder.join("tool");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        ToolPath::find("tool", folder.as_os_str(), &[]).unwrap()
    }

    #[test]
    fn the_hash_is_that_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let binary = Binary::examine(tool(dir.path(), 0o755)).unwrap();
        let expected: [u8; 32] = Sha256::digest("#!/bin/sh\n").into();
        assert_eq!(binary.sha256(), expected);
        assert!(binary.is_unchanged());
    }

    #[test]
    fn a_change_after_the_look_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let binary = Binary::examine(tool(dir.path(), 0o755)).unwrap();
        let other = dir.path().join("other");
        std::fs::write(&other, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(&other, dir.path().join("tool")).unwrap();
        assert!(!binary.is_unchanged());
    }

    #[test]
    fn what_everybody_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let result = Binary::examine(tool(dir.path(), 0o757));
        assert!(matches!(result, Err(BinaryError::Writable { .. })));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give a file away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let tool = tool(dir.path(), 0o755);
        std::os::unix::fs::chown(tool.as_path(), Some(12345), None).unwrap();
        let result = Binary::examine(tool);
        assert!(matches!(result, Err(BinaryError::Owner { uid: 12345, .. })));
    }
}

//! A git folder of our own that borrows a repository's objects.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::GitError;
use super::repository::{HashFormat, Promisor};
use crate::process::PrivateFolder;

/// The scratch folder; removed on drop. New objects (snapshots) are written here, never into the repository.
pub(super) struct Scratch {
    folder: PrivateFolder,
    borrowed: PathBuf,
    copies: AtomicUsize,
}

impl Scratch {
    /// Makes one over the object folder `objects`. `promisor` makes it a partial clone of the same remote.
    pub(super) fn new(
        objects: &Path,
        format: HashFormat,
        promisor: Option<&Promisor>,
    ) -> Result<Self, GitError> {
        let io = |source| GitError::Io {
            what: "cannot make a temporary folder",
            source,
        };
        let scratch = Self {
            folder: PrivateFolder::new("git").map_err(io)?,
            borrowed: objects.to_owned(),
            copies: AtomicUsize::new(0),
        };
        let info = scratch.objects().join("info");
        std::fs::create_dir_all(&info).map_err(io)?;
        std::fs::create_dir_all(scratch.git_dir().join("refs")).map_err(io)?;
        let write = |name: &str, bytes: &[u8]| std::fs::write(scratch.git_dir().join(name), bytes);
        write("HEAD", b"ref: refs/heads/none\n").map_err(io)?;
        write("config", &config(format, promisor)).map_err(io)?;
        let mut alternates = quote(objects.as_os_str().as_bytes());
        alternates.push(b'\n');
        std::fs::write(info.join("alternates"), alternates).map_err(io)?;
        Ok(scratch)
    }

    /// The scratch git folder.
    pub(super) fn git_dir(&self) -> &Path {
        self.folder.path()
    }

    /// Where new objects go.
    pub(super) fn objects(&self) -> PathBuf {
        self.folder.path().join("objects")
    }

    /// The repository's own object folder.
    pub(super) fn borrowed(&self) -> &Path {
        &self.borrowed
    }

    /// A private copy of an index file. Its time is copied too: git decides by it which entries may have changed
    /// within the same clock tick and have to be compared by content.
    pub(super) fn copy_index(&self, index: &Path) -> Result<PathBuf, GitError> {
        let io = |source| GitError::Io {
            what: "cannot copy the index",
            source,
        };
        let n = self.copies.fetch_add(1, Ordering::Relaxed);
        let copy = self.folder.path().join(format!("index-{n}"));
        let mut from = match std::fs::File::open(index) {
            Ok(file) => file,
            // No index yet: nothing was ever staged.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(copy),
            Err(error) => return Err(io(error)),
        };
        // git replaces its index by renaming, so the open file is one consistent version.
        let modified = from.metadata().and_then(|m| m.modified()).map_err(io)?;
        let mut to = std::fs::File::create_new(&copy).map_err(io)?;
        std::io::copy(&mut from, &mut to).map_err(io)?;
        to.flush().map_err(io)?;
        to.set_modified(modified).map_err(io)?;
        Ok(copy)
    }
}

/// The whole configuration that the diff is made under.
fn config(format: HashFormat, promisor: Option<&Promisor>) -> Vec<u8> {
    let mut text = b"[core]\n\trepositoryformatversion = 1\n\tbare = true\n".to_vec();
    if format == HashFormat::Sha256 {
        text.extend_from_slice(b"[extensions]\n\tobjectformat = sha256\n");
    }
    if let Some(promisor) = promisor {
        text.extend_from_slice(
            b"[extensions]\n\tpartialclone = origin\n[remote \"origin\"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n\turl = ",
        );
        text.extend_from_slice(&quote(promisor.url.as_bytes()));
        text.extend_from_slice(b"\n[protocol \"ext\"]\n\tallow = never\n");
    }
    text
}

/// C-style quoting as git reads it in configuration values and in `info/alternates`.
fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &b in bytes {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b => out.push(b),
        }
    }
    out.push(b'"');
    out
}

/// Bytes from git as a path of the system.
pub(super) fn system_path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

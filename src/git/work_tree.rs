//! The work tree on disk as a [`Tree`], confined.
//!
//! Only tracked and untracked, not ignored files exist in it. Every folder on the way is opened by itself without following
//! links, so that no symbolic link, whenever it appears, leads out of the tree.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::command::Call;
use super::{GitError, Repository};
use crate::model::RepoPath;
use crate::tree::{EntryKind, Tree, TreeEntry, TreeError};

/// The files on disk as they are at the moment of each call. What exists was decided when it was made.
pub struct WorkTree {
    root: OwnedFd,
    listed: BTreeSet<RepoPath>,
}

impl Repository {
    /// The work tree as it is on disk.
    pub async fn work_tree_view(&self) -> Result<WorkTree, GitError> {
        let folder = self.work_tree().ok_or(GitError::NoWorkTree)?;
        let call = Call::new(&[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = self.stdout(folder, call).await?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| GitError::Io {
                what: "cannot open the work tree",
                source: error.into(),
            })?;
        Ok(WorkTree {
            root,
            listed: listed
                .split(|b| *b == 0)
                // A nested repository ends in `/`: it is no file of this one.
                .filter_map(|path| RepoPath::new(path).ok())
                .collect(),
        })
    }
}

/// What a path on disk turned out to be.
enum Found {
    File { parent: OwnedFd, executable: bool },
    Link { parent: OwnedFd },
    Folder,
}

impl WorkTree {
    /// Looks at `path` without following any link; `None` when nothing (or nothing readable as a file) is there.
    fn look(&self, path: &RepoPath) -> Result<Option<Found>, TreeError> {
        let absent = |error: Errno| {
            if matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
                Ok(None)
            } else {
                Err(read_error(path, error))
            }
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut parent = match rustix::io::dup(&self.root) {
            Ok(root) => root,
            Err(error) => return Err(read_error(path, error)),
        };
        for part in path
            .parent()
            .split(|b| *b == b'/')
            .filter(|p| !p.is_empty())
        {
            parent = match rustix::fs::openat(&parent, part, flags, Mode::empty()) {
                Ok(folder) => folder,
                Err(error) => return absent(error),
            };
        }
        let stat = match rustix::fs::statat(&parent, path.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return absent(error),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Some(Found::File {
                parent,
                executable: stat.st_mode & 0o100 != 0,
            }),
            FileType::Symlink => Some(Found::Link { parent }),
            FileType::Directory => Some(Found::Folder),
            // Pipes, sockets and devices are not content.
            _ => None,
        })
    }

    fn entry(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        Ok(self.look(path)?.map(|found| match found {
            Found::File { executable, .. } if executable => EntryKind::Executable,
            Found::File { .. } => EntryKind::File,
            Found::Link { .. } => EntryKind::Symlink,
            // Folders are not listed by git: one that is, is a submodule.
            Found::Folder => EntryKind::Submodule,
        }))
    }

    /// Everything listed below `folder`.
    fn below(&self, folder: &[u8]) -> impl Iterator<Item = &RepoPath> {
        let folder = folder.to_vec();
        self.listed
            .iter()
            .filter(move |p| p.is_under(&folder) && p.as_bytes() != folder)
    }
}

impl Tree for WorkTree {
    fn read(&self, path: &RepoPath, limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
        if !self.listed.contains(path) {
            return Ok(None);
        }
        let too_large = |size| TreeError::TooLarge {
            path: path.to_lossy(),
            size,
            limit,
        };
        let io = |error: std::io::Error| TreeError::Read {
            path: path.to_lossy(),
            message: error.to_string(),
        };
        match self.look(path)? {
            None | Some(Found::Folder) => Ok(None),
            Some(Found::Link { parent }) => {
                let text = rustix::fs::readlinkat(&parent, path.file_name(), Vec::new())
                    .map_err(|error| read_error(path, error))?;
                let text = text.to_bytes();
                if text.len() as u64 > limit {
                    return Err(too_large(text.len() as u64));
                }
                Ok(Some(text.into()))
            }
            Some(Found::File { parent, .. }) => {
                // Something else may stand there by now: no link is followed and no pipe waited for.
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&parent, path.file_name(), flags, Mode::empty())
                    .map_err(|error| read_error(path, error))?;
                let file = std::fs::File::from(file);
                let meta = file.metadata().map_err(io)?;
                if !meta.is_file() {
                    return Ok(None);
                }
                if meta.len() > limit {
                    return Err(too_large(meta.len()));
                }
                let mut bytes = Vec::with_capacity(meta.len() as usize);
                // It may grow while it is read.
                file.take(limit.saturating_add(1))
                    .read_to_end(&mut bytes)
                    .map_err(io)?;
                if bytes.len() as u64 > limit {
                    return Err(too_large(bytes.len() as u64));
                }
                Ok(Some(bytes.into()))
            }
        }
    }

    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        if self.listed.contains(path) {
            return self.entry(path);
        }
        let is_folder = self.below(path.as_bytes()).next().is_some();
        Ok(is_folder.then_some(EntryKind::Folder))
    }

    fn list(&self, folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        let prefix = folder.map_or(&[][..], RepoPath::as_bytes);
        let skip = prefix.len() + usize::from(!prefix.is_empty());
        let mut out: Vec<TreeEntry> = Vec::new();
        let mut seen = BTreeSet::new();
        for path in self.below(prefix) {
            let rest = &path.as_bytes()[skip..];
            let (path, kind) = match memchr::memchr(b'/', rest) {
                None => (path.clone(), self.entry(path)?),
                Some(at) => {
                    let Ok(sub) = RepoPath::new(&path.as_bytes()[..skip + at]) else {
                        continue;
                    };
                    (sub, Some(EntryKind::Folder))
                }
            };
            if let Some(kind) = kind
                && seen.insert(path.clone())
            {
                out.push(TreeEntry {
                    path,
                    kind,
                    id: None,
                });
            }
        }
        out.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(out)
    }

    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
        let mut out = Vec::with_capacity(self.listed.len());
        for path in &self.listed {
            if let Some(kind) = self.entry(path)? {
                out.push(TreeEntry {
                    path: path.clone(),
                    kind,
                    id: None,
                });
            }
        }
        Ok(out)
    }
}

fn read_error(path: &RepoPath, error: Errno) -> TreeError {
    TreeError::Read {
        path: path.to_lossy(),
        message: error.to_string(),
    }
}

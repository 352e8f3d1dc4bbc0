//! What is staged, or in the work tree, as a tree object.
//!
//! Everything happens on a private copy of the index and in the scratch object folder; the user's index is only read. Clean, smudge
//! and process filters are not run: they are programs that the repository's configuration names, and a file is reviewed as it stands.
//! `text`, `eol`, `working-tree-encoding` and `core.autocrlf` are honoured: without them every file of such a checkout would look changed.
//!
//! @ref LLP 0001#work-tree-and-untracked-files — the work tree becomes a tree object

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use super::command::Call;
use super::{GitError, Repository};
use crate::model::{ObjectId, RepoPath};

/// A version of the files that is no commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its tree; readable as long as the [`Repository`] lives.
    pub tree: ObjectId,
    /// How many of its files are untracked.
    pub untracked: usize,
    /// Untracked folders that are repositories of their own; they are not part of it.
    pub nested: Vec<RepoPath>,
    /// Folders that git could not open; untracked files in them are not part of it.
    pub unread: Vec<String>,
    /// Paths in conflict; their content is what the work tree holds.
    pub unmerged: Vec<RepoPath>,
    /// Changed paths with a clean filter that was not run, and the filter's name.
    pub unfiltered: Vec<(RepoPath, String)>,
}

/// What differs between an index and the work tree.
#[derive(Debug, Default)]
struct Changes {
    removed: BTreeSet<Vec<u8>>,
    present: BTreeSet<Vec<u8>>,
    unmerged: BTreeSet<Vec<u8>>,
}

impl Repository {
    /// The index as a tree. `index` is another index file than the repository's own (`GIT_INDEX_FILE`).
    pub async fn staged(&self, index: Option<&Path>) -> Result<Snapshot, GitError> {
        // A bare repository has no index: an absent one would read as "everything deleted".
        let folder = self.work_tree().ok_or(GitError::NoWorkTree)?;
        let copy = self
            .scratch()
            .copy_index(index.unwrap_or(self.index_file()))?;
        let listed = Call::new(&["ls-files", "-z", "--unmerged"]).env("GIT_INDEX_FILE", &copy);
        let listed = self.stdout(folder, listed).await?;
        let unmerged: BTreeSet<_> = records(&listed)
            .filter_map(|record| record.splitn(2, |b| *b == b'\t').nth(1))
            .collect();
        if !unmerged.is_empty() {
            return Err(GitError::Unmerged {
                paths: unmerged.into_iter().map(super::error::one_line).collect(),
            });
        }
        Ok(Snapshot {
            tree: self.write_tree(folder, &copy).await?,
            untracked: 0,
            nested: Vec::new(),
            unread: Vec::new(),
            unmerged: Vec::new(),
            unfiltered: Vec::new(),
        })
    }

    /// Tracked and untracked, not ignored files of the work tree as a tree.
    pub async fn work_tree_snapshot(&self) -> Result<Snapshot, GitError> {
        let folder = self.work_tree().ok_or(GitError::NoWorkTree)?;
        let index = self.scratch().copy_index(self.index_file())?;
        let with_index = |args: &[&str]| Call::new(args).env("GIT_INDEX_FILE", &index);
        let (changed, untracked) = tokio::try_join!(
            // A submodule counts by its commit alone; looking into it would run its configuration.
            self.stdout(
                folder,
                with_index(&[
                    "diff-files",
                    "--raw",
                    "-z",
                    "--no-renames",
                    "--ignore-submodules=dirty",
                    "--no-ext-diff",
                ])
            ),
            self.output(with_index(&[
                "ls-files",
                "-z",
                "--others",
                "--exclude-standard"
            ])),
        )?;
        if !untracked.status.success() {
            return Err(GitError::Failed {
                action: "ls-files".to_owned(),
                message: super::error::one_line(&untracked.stderr),
            });
        }
        let mut changes = parse_changes(&changed)?;
        let mut nested = Vec::new();
        let mut count = 0;
        for path in records(&untracked.stdout) {
            if let Some(folder) = path.strip_suffix(b"/") {
                nested.push(repo_path(folder)?);
            } else {
                count += 1;
                changes.present.insert(path.to_vec());
            }
        }
        if !changes.removed.is_empty() {
            let call = with_index(&["update-index", "-z", "--force-remove", "--stdin"]);
            self.stdout(folder, call.stdin(joined(&changes.removed)))
                .await?;
        }
        if !changes.present.is_empty() {
            let call = with_index(&[
                "update-index",
                "-z",
                "--add",
                "--remove",
                "--replace",
                "--stdin",
            ])
            .env("GIT_OBJECT_DIRECTORY", self.scratch().objects());
            self.stdout(folder, call.stdin(joined(&changes.present)))
                .await?;
        }
        let unmerged: Result<_, _> = changes.unmerged.iter().map(|p| repo_path(p)).collect();
        Ok(Snapshot {
            tree: self.write_tree(folder, &index).await?,
            untracked: count,
            nested,
            unread: unread_folders(&untracked.stderr),
            unmerged: unmerged?,
            unfiltered: self.unfiltered(folder, &changes).await?,
        })
    }

    async fn write_tree(&self, folder: &Path, index: &Path) -> Result<ObjectId, GitError> {
        // A partial clone may lack blobs that are in the index; the diff fetches those it needs.
        let call = Call::new(&["write-tree", "--missing-ok"])
            .env("GIT_INDEX_FILE", index)
            .env("GIT_OBJECT_DIRECTORY", self.scratch().objects());
        let id = self.stdout(folder, call).await?;
        super::repository::object_id("write-tree", &id)
    }

    /// Which of the changed files a filter would have rewritten.
    async fn unfiltered(
        &self,
        folder: &Path,
        changes: &Changes,
    ) -> Result<Vec<(RepoPath, String)>, GitError> {
        if self.filters().is_empty() || changes.present.is_empty() {
            return Ok(Vec::new());
        }
        let call = Call::new(&["check-attr", "-z", "--stdin", "filter"]);
        let answer = self
            .stdout(folder, call.stdin(joined(&changes.present)))
            .await?;
        let mut found = Vec::new();
        let mut fields = records(&answer);
        while let (Some(path), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next())
        {
            if self.filters().contains(value) {
                found.push((repo_path(path)?, super::error::one_line(value)));
            }
        }
        Ok(found)
    }
}

/// Settings under which the user's repository is asked. They keep it from starting anything: hooks,
/// the file-system monitor and every filter named in `filters`.
pub(super) fn quiet_settings<'a>(
    filters: impl IntoIterator<Item = &'a Vec<u8>>,
) -> Vec<(OsString, OsString)> {
    let mut settings: Vec<(OsString, OsString)> = [
        ("core.fsmonitor", "false"),
        ("core.hooksPath", "/dev/null"),
        ("core.attributesFile", "/dev/null"),
        ("core.untrackedCache", "false"),
        ("core.splitIndex", "false"),
        ("core.safecrlf", "false"),
        ("core.ignoreStat", "false"),
        ("core.pager", "cat"),
        // Snapshots are thrown away: packing them tightly is wasted time.
        ("core.compression", "0"),
        ("core.looseCompression", "0"),
        ("core.fsync", "none"),
        ("submodule.recurse", "false"),
        ("protocol.ext.allow", "never"),
    ]
    .map(|(key, value)| (key.into(), value.into()))
    .into();
    for name in filters {
        for (key, value) in [
            ("clean", ""),
            ("smudge", ""),
            ("process", ""),
            ("required", "false"),
        ] {
            let key = [b"filter.", &name[..], b".", key.as_bytes()].concat();
            settings.push((OsString::from_vec(key), value.into()));
        }
    }
    settings
}

/// Reads `diff-files --raw -z`.
fn parse_changes(raw: &[u8]) -> Result<Changes, GitError> {
    let odd = || GitError::Protocol {
        action: "diff-files",
        message: "a cut record".to_owned(),
    };
    let mut changes = Changes::default();
    let mut fields = records(raw);
    while let Some(header) = fields.next() {
        let path = fields.next().ok_or_else(odd)?.to_vec();
        match header.rsplit(|b| *b == b' ').next() {
            Some(b"D") => changes.removed.insert(path),
            Some(b"U") => {
                changes.unmerged.insert(path.clone());
                changes.present.insert(path)
            }
            Some([b'A' | b'M' | b'T']) => changes.present.insert(path),
            _ => return Err(odd()),
        };
    }
    // An unmerged path is listed with its stages, too; what is on disk decides, in the second step.
    changes
        .removed
        .retain(|path| !changes.unmerged.contains(path));
    Ok(changes)
}

/// The folders that git warned about and then passed over.
fn unread_folders(stderr: &[u8]) -> Vec<String> {
    stderr
        .split(|b| *b == b'\n')
        .filter_map(|line| line.strip_prefix(b"warning: could not open directory '"))
        .filter_map(|rest| Some(&rest[..rest.iter().rposition(|b| *b == b'\'')?]))
        .map(super::error::one_line)
        .collect()
}

fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == 0).filter(|record| !record.is_empty())
}

fn joined(paths: &BTreeSet<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path);
        bytes.push(0);
    }
    bytes
}

fn repo_path(bytes: &[u8]) -> Result<RepoPath, GitError> {
    RepoPath::new(bytes).map_err(|error| GitError::Protocol {
        action: "ls-files",
        message: format!("{}: {error}", super::error::one_line(bytes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_about_folders_are_heard() {
        let stderr = b"warning: could not open directory 'it's/': Permission denied\nwarning: something else\n";
        assert_eq!(unread_folders(stderr), ["it's/"]);
        assert!(unread_folders(b"").is_empty());
    }

    #[test]
    fn changes_are_sorted_into_what_is_there_and_what_is_gone() {
        let raw = b":100644 000000 a 0 D\0gone\0:100644 100644 a 0 M\0kept\0:000000 100644 0 0 U\0both\0:100644 000000 a 0 D\0both\0:000000 100644 0 0 A\0new\0";
        let changes = parse_changes(raw).unwrap();
        let set = |paths: &[&str]| {
            paths
                .iter()
                .map(|p| p.as_bytes().to_vec())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(changes.removed, set(&["gone"]));
        assert_eq!(changes.present, set(&["kept", "both", "new"]));
        assert_eq!(changes.unmerged, set(&["both"]));
        assert!(parse_changes(b":100644 000000 a 0 D\0").is_err());
        assert!(parse_changes(b":100644 000000 a 0 X\0a\0").is_err());
    }
}

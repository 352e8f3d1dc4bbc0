//! Changes in a local repository.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::words::{count, failed, from_census, from_git, invalid, some_of};
use crate::diff::{Diff, parse_git};
use crate::git::{GitError, HostEnv, RawDiff, Repository, Snapshot};
use crate::model::{CommitId, CoverageNote, InputInfo, InputKind, NoteKind, ObjectId};
use crate::port::{BoxFuture, ReviewSource, SourceError, SourceInput, TreeUnderReview};
use crate::tree::Tree;

/// Which changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Work tree and untracked files against the merge base of `HEAD` and the default branch.
    WorkTree,
    /// The index against `HEAD`.
    Staged,
    /// With a head: what `head` adds since it left `base` (three dots). Without: the work tree against `base` itself.
    Range {
        /// The ref or commit compared with.
        base: String,
        /// The ref or commit under review.
        head: Option<String>,
    },
}

/// The developer's own work in the repository around a folder.
pub struct LocalSource {
    host: HostEnv,
    folder: PathBuf,
    selection: Selection,
    cancel: CancellationToken,
    resolved: OnceCell<Resolved>,
}

/// The two sides, found once.
struct Resolved {
    repository: Repository,
    info: InputInfo,
    base: ObjectId,
    target: ObjectId,
    notes: Vec<CoverageNote>,
    /// What to say when the two sides are equal.
    nothing: String,
}

/// The old side.
struct Base {
    commit: Option<CommitId>,
    name: String,
    notes: Vec<CoverageNote>,
}

impl LocalSource {
    /// A review of `selection` in the repository around `folder`.
    pub fn new(
        host: HostEnv,
        folder: PathBuf,
        selection: Selection,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            host,
            folder,
            selection,
            cancel,
            resolved: OnceCell::new(),
        }
    }

    /// The root of the checkout and the checkout as it is on disk: where the developer's own
    /// configuration comes from. `None` in a bare repository.
    pub async fn checkout(&self) -> Result<Option<(PathBuf, Arc<dyn Tree>)>, SourceError> {
        let repository = &self.resolved().await?.repository;
        let Some(root) = repository.work_tree() else {
            return Ok(None);
        };
        let tree = repository.work_tree_view().await.map_err(from_git)?;
        Ok(Some((root.to_path_buf(), Arc::new(tree))))
    }

    async fn resolved(&self) -> Result<&Resolved, SourceError> {
        self.resolved.get_or_try_init(|| self.resolve()).await
    }

    async fn resolve(&self) -> Result<Resolved, SourceError> {
        let repository = Repository::discover(&self.host, &self.folder, self.cancel.clone())
            .await
            .map_err(from_git)?;
        match &self.selection {
            Selection::WorkTree => {
                let base = default_base(&repository).await?;
                work_tree(repository, base, InputKind::WorkingTree).await
            }
            Selection::Staged => self.staged(repository).await,
            Selection::Range { base, head: None } => {
                let base = named_base(&repository, base).await?;
                work_tree(repository, base, InputKind::Range).await
            }
            Selection::Range {
                base,
                head: Some(head),
            } => range(repository, base, head).await,
        }
    }

    async fn staged(&self, repository: Repository) -> Result<Resolved, SourceError> {
        // In a `git commit` hook this names the index that is about to be committed, relative to where git started the hook.
        let index = self.host.get("GIT_INDEX_FILE").map(|p| self.folder.join(p));
        let snapshot = repository
            .staged(index.as_deref())
            .await
            .map_err(from_git)?;
        let head = repository.head().await.map_err(from_git)?;
        let base = Base {
            notes: unborn_note(head.as_ref()),
            name: "HEAD".to_owned(),
            commit: head,
        };
        let nothing = format!("nothing is staged: the index equals {}", shown(&base));
        snapshot_against(repository, base, snapshot, InputKind::Staged, nothing)
    }

    async fn read(&self) -> Result<SourceInput, SourceError> {
        let resolved = self.resolved().await?;
        // What was left out must be said here, too: it may hold all the changes there are.
        let missed = resolved.notes.iter().filter(|n| n.kind == NoteKind::Missed);
        let nothing = || SourceError::Nothing {
            reason: missed.clone().fold(resolved.nothing.clone(), |said, note| {
                format!("{said}; but {}", note.text)
            }),
            info: Box::new(resolved.info.clone()),
        };
        if resolved.base == resolved.target {
            return Err(nothing());
        }
        let raw = resolved
            .repository
            .diff(&resolved.base, &resolved.target)
            .await
            .map_err(from_git)?;
        let diff = match tokio::task::spawn_blocking(move || parse(raw)).await {
            Ok(parsed) => parsed?,
            Err(_) => return Err(failed("reading the diff was aborted", "run it again")),
        };
        if diff.files.is_empty() {
            return Err(nothing());
        }
        Ok(SourceInput {
            info: resolved.info.clone(),
            diff,
            own_work: true,
            notes: resolved.notes.clone(),
        })
    }
}

fn parse(raw: RawDiff) -> Result<Diff, SourceError> {
    parse_git(&raw.raw_z, &raw.numstat_z, raw.patch.into()).map_err(|error| from_census(&error))
}

/// The merge base with the default branch; where there is no such branch, `HEAD`.
async fn default_base(repository: &Repository) -> Result<Base, SourceError> {
    let Some(head) = repository.head().await.map_err(from_git)? else {
        return Ok(Base {
            commit: None,
            name: "HEAD".to_owned(),
            notes: unborn_note(None),
        });
    };
    let Some(branch) = repository.default_branch().await.map_err(from_git)? else {
        return Ok(Base {
            commit: Some(head),
            name: "HEAD".to_owned(),
            notes: vec![info_note(
                "no default branch was found (origin/HEAD, origin/main, origin/master, main, master): only uncommitted changes were compared, with HEAD",
            )],
        });
    };
    let commit = match repository.merge_base(&branch.commit, &head).await {
        Ok(commit) => commit,
        // The names say more than the ids.
        Err(GitError::NoMergeBase { shallow, .. }) => {
            return Err(from_git(GitError::NoMergeBase {
                one: branch.name,
                other: "HEAD".to_owned(),
                shallow,
            }));
        }
        Err(error) => return Err(from_git(error)),
    };
    Ok(Base {
        commit: Some(commit),
        name: branch.name,
        notes: Vec::new(),
    })
}

/// A base that the user named, for the work tree.
async fn named_base(repository: &Repository, name: &str) -> Result<Base, SourceError> {
    let commit = repository.resolve(name).await.map_err(from_git)?;
    let head = repository.head().await.map_err(from_git)?;
    let mut notes = unborn_note(head.as_ref());
    if let Some(head) = head {
        let behind = match repository.merge_base(&commit, &head).await {
            Ok(common) => common != commit,
            Err(GitError::NoMergeBase { .. }) => true,
            Err(error) => return Err(from_git(error)),
        };
        if behind {
            notes.push(info_note(&format!(
                "{name} has commits that are not in the working tree's history: they show up reversed; `--base {name} --head HEAD` leaves them out"
            )));
        }
    }
    Ok(Base {
        commit: Some(commit),
        name: name.to_owned(),
        notes,
    })
}

async fn work_tree(
    repository: Repository,
    base: Base,
    kind: InputKind,
) -> Result<Resolved, SourceError> {
    let snapshot = repository.work_tree_snapshot().await.map_err(from_git)?;
    let nothing = format!(
        "the working tree, untracked files included, equals {}",
        shown(&base)
    );
    snapshot_against(repository, base, snapshot, kind, nothing)
}

fn snapshot_against(
    repository: Repository,
    base: Base,
    snapshot: Snapshot,
    kind: InputKind,
    nothing: String,
) -> Result<Resolved, SourceError> {
    let old = match &base.commit {
        Some(commit) => object(commit)?,
        None => repository.empty_tree().map_err(from_git)?,
    };
    let mut notes = base.notes;
    notes.extend(snapshot_notes(&snapshot));
    Ok(Resolved {
        info: InputInfo {
            kind,
            base: base.commit,
            head: None,
            base_name: Some(base.name),
            repo: None,
            pr: None,
        },
        base: old,
        target: snapshot.tree,
        notes,
        nothing,
        repository,
    })
}

/// What `head` adds since it left `base`.
async fn range(repository: Repository, base: &str, head: &str) -> Result<Resolved, SourceError> {
    let (base_id, head_id) =
        tokio::try_join!(repository.resolve(base), repository.resolve(head)).map_err(from_git)?;
    let mut info = InputInfo {
        kind: InputKind::Range,
        base: Some(base_id.clone()),
        head: Some(head_id.clone()),
        base_name: Some(base.to_owned()),
        repo: None,
        pr: None,
    };
    let common = match repository.merge_base(&base_id, &head_id).await {
        Ok(common) => common,
        Err(GitError::NoMergeBase { shallow, .. }) => {
            return Err(from_git(GitError::NoMergeBase {
                one: base.to_owned(),
                other: head.to_owned(),
                shallow,
            }));
        }
        Err(error) => return Err(from_git(error)),
    };
    let nothing = if base_id == head_id {
        format!(
            "{base} and {head} are the same commit ({})",
            head_id.short()
        )
    } else if common == head_id {
        format!("the range is empty: every commit of {head} is already in {base}")
    } else {
        format!(
            "the commits of {head} since {} change no file",
            common.short()
        )
    };
    info.base = Some(common.clone());
    Ok(Resolved {
        base: object(&common)?,
        target: object(&head_id)?,
        info,
        notes: Vec::new(),
        nothing,
        repository,
    })
}

fn snapshot_notes(snapshot: &Snapshot) -> Vec<CoverageNote> {
    let names = |paths: &[crate::model::RepoPath]| -> Vec<String> {
        paths.iter().map(crate::model::RepoPath::to_lossy).collect()
    };
    let mut notes = Vec::new();
    if !snapshot.unmerged.is_empty() {
        notes.push(CoverageNote {
            kind: NoteKind::Setup,
            text: format!(
                "{} in conflict, reviewed as in the working tree: {}",
                count(snapshot.unmerged.len(), "file is", "files are"),
                some_of(&names(&snapshot.unmerged))
            ),
        });
    }
    if !snapshot.nested.is_empty() {
        notes.push(CoverageNote {
            kind: NoteKind::Missed,
            text: format!(
                "{} not reviewed: {}",
                count(
                    snapshot.nested.len(),
                    "untracked folder is a repository of its own and was",
                    "untracked folders are repositories of their own and were"
                ),
                some_of(&names(&snapshot.nested))
            ),
        });
    }
    if !snapshot.unread.is_empty() {
        notes.push(CoverageNote {
            kind: NoteKind::Missed,
            text: format!(
                "{} not be opened, so new files in there were not reviewed: {}",
                count(snapshot.unread.len(), "folder could", "folders could"),
                some_of(&snapshot.unread)
            ),
        });
    }
    if !snapshot.unfiltered.is_empty() {
        let files: Vec<String> = snapshot
            .unfiltered
            .iter()
            .map(|(path, filter)| format!("{} ({filter})", path.to_lossy()))
            .collect();
        notes.push(CoverageNote {
            kind: NoteKind::Setup,
            text: format!(
                "{} reviewed without the git filter that applies on commit: {}",
                count(files.len(), "file was", "files were"),
                some_of(&files)
            ),
        });
    }
    notes
}

fn unborn_note(head: Option<&CommitId>) -> Vec<CoverageNote> {
    if head.is_some() {
        return Vec::new();
    }
    vec![info_note(
        "there is no commit yet: everything was compared with nothing",
    )]
}

fn info_note(text: &str) -> CoverageNote {
    CoverageNote {
        kind: NoteKind::Info,
        text: text.to_owned(),
    }
}

/// How a person is told what was compared with.
fn shown(base: &Base) -> String {
    match &base.commit {
        Some(commit) if base.name == "HEAD" => format!("HEAD ({})", commit.short()),
        Some(commit) => format!("the base {} ({})", base.name, commit.short()),
        None => "an empty repository (there is no commit yet)".to_owned(),
    }
}

fn object(commit: &CommitId) -> Result<ObjectId, SourceError> {
    ObjectId::new(commit.as_str())
        .map_err(|error| invalid(error.to_string(), "give a branch, a tag or a commit id"))
}

impl ReviewSource for LocalSource {
    fn load(&self) -> BoxFuture<'_, Result<SourceInput, SourceError>> {
        Box::pin(self.read())
    }

    /// For the work tree and the index this is the very snapshot that the diff was made from, so that every line of
    /// the diff is found in it even when files change meanwhile.
    fn tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>> {
        Box::pin(async {
            let resolved = self.resolved().await?;
            let tree = resolved.repository.tree(&resolved.target);
            Ok(TreeUnderReview::Tree(Arc::new(tree)))
        })
    }

    fn base_tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>> {
        Box::pin(async {
            let resolved = self.resolved().await?;
            let tree = resolved.repository.tree(&resolved.base);
            Ok(TreeUnderReview::Tree(Arc::new(tree)))
        })
    }
}

//! A fingerprint of what a review is made of: a run with the same one need not ask a model again.

use std::fmt::Write as _;

use sha2::Digest as _;
use tokio_util::sync::CancellationToken;

use super::trusted::Trusted;
use crate::app::AppError;
use crate::app::forge::Forge;
use crate::app::review::ContextFile;
use crate::config::SetupOrigin;
use crate::git::Repository;
use crate::model::{CommitId, ObjectId, RepoPath};
use crate::source::PullRequestInput;
use crate::tree::{EntryKind, Tree, TreeError};

/// A set-up file larger than this is refused when the set-up is loaded.
const LARGEST: u64 = 1 << 20;

/// What was asked for.
pub(super) struct Wanted<'a> {
    /// Only these reviewers; empty for all.
    pub(super) agents: &'a [String],
    /// A model may leave reviewers out.
    pub(super) route: bool,
    /// What the workflow tells the reviewers.
    pub(super) context: Option<&'a ContextFile>,
}

/// The fingerprint: ecr's version, the changed files by content on both sides, the base's set-up, who was asked, and what the
/// workflow told them. The pull request's title and description are no part: they are edited often, and the change is the same.
/// Commits do not count, so a rebase onto a base that touched other files only is the same review.
pub(super) async fn fingerprint(
    input: &PullRequestInput,
    trusted: &Trusted,
    wanted: &Wanted<'_>,
    forge: &Forge,
    cancel: &CancellationToken,
) -> Result<String, AppError> {
    let object = |commit: &CommitId| {
        ObjectId::new(commit.as_str()).map_err(|error| AppError::plain(error.to_string()))
    };
    let failed = |error: crate::git::GitError| AppError::plain(error.to_string());
    let repository = Repository::discover(&forge.host, &input.objects, cancel.clone())
        .await
        .map_err(failed)?;
    let changes = repository
        .changes(&object(&input.merge_base)?, &object(&input.head)?)
        .await
        .map_err(failed)?;
    let mut hash = sha2::Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    };
    part(env!("CARGO_PKG_VERSION").as_bytes());
    part(&changes);
    part(wanted.agents.join(",").as_bytes());
    part(&[u8::from(wanted.route)]);
    part(wanted.context.map_or("", |file| &file.text).as_bytes());
    part(
        trusted
            .reviewer_model
            .as_deref()
            .unwrap_or_default()
            .as_bytes(),
    );
    let tree = std::sync::Arc::clone(&trusted.tree);
    let folder = match &trusted.loaded.setup {
        SetupOrigin::InRepository(folder) => Some(folder.clone()),
        SetupOrigin::Embedded | SetupOrigin::Outside(_) => None,
    };
    if let Some(folder) = folder {
        let files =
            tokio::task::spawn_blocking(move || setup_files(tree.as_ref(), folder.as_ref()))
                .await
                .map_err(|_| AppError::plain("reading the set-up was aborted"))?
                .map_err(|error| AppError::plain(error.to_string()))?;
        for (path, content) in files {
            part(&path);
            part(&content);
        }
    }
    let mut hex = String::with_capacity(64);
    for byte in hash.finalize() {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

/// A file's path, and what stands for its content.
type SetupFile = (Vec<u8>, Vec<u8>);

/// The files below the set-up folder and their contents' ids, by path.
fn setup_files(tree: &dyn Tree, folder: Option<&RepoPath>) -> Result<Vec<SetupFile>, TreeError> {
    let mut pending = vec![folder.cloned()];
    let mut files = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in tree.list(folder.as_ref())? {
            if entry.kind == EntryKind::Folder {
                pending.push(Some(entry.path));
                continue;
            }
            let content = match &entry.id {
                Some(id) => id.as_str().as_bytes().to_vec(),
                None => tree
                    .read(&entry.path, LARGEST)?
                    .map(|content| content.to_vec())
                    .unwrap_or_default(),
            };
            files.push((entry.path.as_bytes().to_vec(), content));
        }
    }
    files.sort();
    Ok(files)
}

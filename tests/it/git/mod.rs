//! The `git` module against real repositories.

mod odd_repositories;
mod quiet;
mod refs;
mod trees;
mod work_tree;

use std::path::Path;

use ecr::git::{GitError, HostEnv, RawDiff, Repository};
use ecr::model::{CommitId, ObjectId};
use tokio_util::sync::CancellationToken;

use crate::support::repo::TestRepo;

/// The environment of a user whose home is the repository's private one, with extra variables.
pub(crate) fn host_with(repo: &TestRepo, extra: &[(&str, &str)]) -> HostEnv {
    let path = std::env::var_os("PATH").expect("PATH");
    let mut variables = vec![("PATH".into(), path), ("HOME".into(), repo.home().into())];
    variables.extend(extra.iter().map(|(k, v)| ((*k).into(), (*v).into())));
    variables.into_iter().collect()
}

/// The same without extras.
pub(crate) fn host(repo: &TestRepo) -> HostEnv {
    host_with(repo, &[])
}

async fn try_open(repo: &TestRepo, folder: &Path) -> Result<Repository, GitError> {
    Repository::discover(&host(repo), folder, CancellationToken::new()).await
}

async fn open(repo: &TestRepo) -> Repository {
    try_open(repo, repo.root()).await.expect("a repository")
}

fn id(text: impl AsRef<str>) -> ObjectId {
    ObjectId::new(text.as_ref().trim()).expect("an object id")
}

fn commit(text: &str) -> CommitId {
    CommitId::new(text).expect("a commit id")
}

/// The diff of two revisions.
async fn diff(repository: &Repository, base: &str, target: &str) -> RawDiff {
    repository
        .diff(&id(base), &id(target))
        .await
        .expect("a diff")
}

/// The diff of `base` and the work tree.
async fn work_diff(repository: &Repository, base: &str) -> RawDiff {
    let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
    diff(repository, base, snapshot.tree.as_str()).await
}

/// `--raw` as lines `status path`.
fn names(raw: &RawDiff) -> Vec<String> {
    let mut fields = raw.raw_z.split(|b| *b == 0).filter(|f| !f.is_empty());
    let mut out = Vec::new();
    while let Some(header) = fields.next() {
        let text = String::from_utf8_lossy(header);
        let status = text.rsplit(' ').next().expect("a status").to_owned();
        let path = String::from_utf8_lossy(fields.next().expect("a path")).into_owned();
        out.push(match status.as_bytes()[0] {
            b'R' => format!(
                "R {path} -> {}",
                String::from_utf8_lossy(fields.next().expect("a second path"))
            ),
            _ => format!("{status} {path}"),
        });
    }
    out
}

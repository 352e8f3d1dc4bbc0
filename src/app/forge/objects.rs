//! The three commits of a pull request: live base, merge base, head.

use tokio_util::sync::CancellationToken;

use super::connect::Forge;
use crate::app::AppError;
use crate::git::{ObjectFolder, Repository};
use crate::github::{Comparison, PullRequest, RepoName};
use crate::model::CommitId;
use crate::source::PullRequestInput;

/// A pull request's objects; the folder is removed on drop.
pub(in crate::app) struct Fetched {
    /// What to review.
    pub(in crate::app) input: PullRequestInput,
    /// Keeps the objects.
    pub(in crate::app) _folder: ObjectFolder,
}

/// How much is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::app) enum Scope {
    /// The base's tip only: for its configuration.
    Base,
    /// All that a review needs.
    Review,
}

/// Fetches the objects of `pull` at the head that was read. A base that cannot be had is an error.
pub(in crate::app) async fn fetch(
    forge: &Forge,
    repo: &RepoName,
    pull: &PullRequest,
    scope: Scope,
    cancel: &CancellationToken,
) -> Result<Fetched, AppError> {
    let failed = |error: crate::git::GitError| {
        AppError::new(
            format!(
                "cannot fetch pull request #{} of {repo}: {error}",
                pull.number
            ),
            "the token needs to read the repository (in a workflow: contents: read)",
        )
    };
    let folder = ObjectFolder::new().map_err(failed)?;
    let from = forge.fetch_from(repo);
    let head = &pull.head.commit;
    let compared = forge.github.compare(repo, &pull.base.branch, head).await;
    let by_id = match &compared {
        Ok(Comparison { base, merge_base }) => {
            let commits = match scope {
                Scope::Base => vec![base],
                Scope::Review => distinct(&[head, base, merge_base]),
            };
            folder
                .fetch_commits(&forge.host, &from, &commits, cancel)
                .await
        }
        Err(error) => {
            tracing::debug!(%error, "no comparison; whole histories are fetched");
            Ok(())
        }
    };
    let (base, merge_base) = match (compared, by_id) {
        (Ok(Comparison { base, merge_base }), Ok(())) => (base, merge_base),
        // No comparison, or a server that gives nothing by id: the histories say it all.
        _ => histories(forge, repo, pull, &folder, cancel).await?,
    };
    Ok(Fetched {
        input: PullRequestInput {
            objects: folder.path().to_owned(),
            base,
            merge_base,
            head: head.clone(),
            repo: repo.to_string(),
            number: pull.number,
            base_name: pull.base.branch.clone(),
        },
        _folder: folder,
    })
}

async fn histories(
    forge: &Forge,
    repo: &RepoName,
    pull: &PullRequest,
    folder: &ObjectFolder,
    cancel: &CancellationToken,
) -> Result<(CommitId, CommitId), AppError> {
    let hint = "the token needs to read the repository (in a workflow: contents: read)";
    let failed = |error: crate::git::GitError| {
        AppError::new(
            format!(
                "cannot fetch pull request #{} of {repo}: {error}",
                pull.number
            ),
            hint,
        )
    };
    let base = format!("refs/heads/{}", pull.base.branch);
    let head = format!("refs/pull/{}/head", pull.number);
    let commits = folder
        .fetch_histories(
            &forge.host,
            &forge.fetch_from(repo),
            &[(&base, "base"), (&head, "head")],
            cancel,
        )
        .await
        .map_err(failed)?;
    let [base, head] = &commits[..] else {
        return Err(AppError::plain("git fetched something else than asked"));
    };
    if *head != pull.head.commit {
        return Err(AppError::new(
            format!(
                "the head of #{} moved from {} to {} meanwhile",
                pull.number,
                pull.head.commit.short(),
                head.short()
            ),
            "run it again; the newer push starts a run of its own",
        ));
    }
    let repository = Repository::discover(&forge.host, folder.path(), cancel.clone())
        .await
        .map_err(failed)?;
    let merge_base = repository.merge_base(base, head).await.map_err(failed)?;
    Ok((base.clone(), merge_base))
}

fn distinct<'a>(commits: &[&'a CommitId]) -> Vec<&'a CommitId> {
    let mut out: Vec<&CommitId> = Vec::new();
    for commit in commits {
        if !out.contains(commit) {
            out.push(commit);
        }
    }
    out
}

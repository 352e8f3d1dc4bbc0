//! Pull requests.

use http::Method;
use serde::Deserialize;

use super::client::Ask;
use super::{Author, GitHub, GitHubError, RepoName};
use crate::model::CommitId;

/// One side of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullSide {
    /// The commit. For the base this is the tip that GitHub last looked at, neither the merge base nor the live tip.
    pub commit: CommitId,
    /// The branch, without `refs/heads/`. It is the author's choice of text.
    pub branch: String,
    /// `owner/name`; none when the fork was deleted.
    pub repo: Option<String>,
}

/// What is known of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// False when it is closed or merged.
    pub open: bool,
    /// A draft.
    pub draft: bool,
    /// Who opened it; none for a deleted account.
    pub author: Option<Author>,
    /// Names of its labels, as of now.
    pub labels: Vec<String>,
    /// Its title, as its author wrote it.
    pub title: String,
    /// Its description likewise; empty when there is none.
    pub body: String,
    /// What is to be merged.
    pub head: PullSide,
    /// Where it is to be merged.
    pub base: PullSide,
}

impl PullRequest {
    /// True when the change comes from another repository, or from one that is gone.
    pub fn from_fork(&self, repo: &RepoName) -> bool {
        let name = repo.to_string();
        !self
            .head
            .repo
            .as_deref()
            .is_some_and(|head| head.eq_ignore_ascii_case(&name))
    }

    /// True when it has exactly this label; GitHub's labels do not differ by case.
    pub fn has_label(&self, label: &str) -> bool {
        let label = label.to_lowercase();
        self.labels.iter().any(|l| l.to_lowercase() == label)
    }
}

/// Two commits and where they parted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The tip of the base, live.
    pub base: CommitId,
    /// Their best common ancestor.
    pub merge_base: CommitId,
}

#[derive(Deserialize)]
struct WirePull {
    number: u64,
    state: String,
    #[serde(default)]
    draft: Option<bool>,
    user: Option<Author>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    labels: Vec<WireLabel>,
    head: WireSide,
    base: WireSide,
}
#[derive(Deserialize)]
struct WireLabel {
    #[serde(default)]
    name: Option<String>,
}
#[derive(Deserialize)]
struct WireSide {
    sha: String,
    #[serde(rename = "ref")]
    branch: String,
    /// Null for a deleted fork, whatever the description says.
    repo: Option<WireRepo>,
}
#[derive(Deserialize)]
struct WireRepo {
    full_name: String,
}
#[derive(Deserialize)]
struct WireComparison {
    base_commit: WireCommit,
    merge_base_commit: WireCommit,
}
#[derive(Deserialize)]
struct WireCommit {
    sha: String,
}

fn commit(action: &str, sha: &str) -> Result<CommitId, GitHubError> {
    CommitId::new(sha).map_err(|error| GitHubError::Unreadable {
        action: action.to_owned(),
        message: error.to_string(),
    })
}

fn side(action: &str, side: WireSide) -> Result<PullSide, GitHubError> {
    Ok(PullSide {
        commit: commit(action, &side.sha)?,
        branch: side.branch,
        repo: side.repo.map(|repo| repo.full_name),
    })
}

impl GitHub {
    /// The pull request `number` of `repo`, as it is now.
    pub async fn pull(&self, repo: &RepoName, number: u64) -> Result<PullRequest, GitHubError> {
        let action = format!("read pull request #{number}");
        let n = number.to_string();
        let url = self
            .endpoints()
            .rest(&["repos", repo.owner(), repo.name(), "pulls", &n], &[]);
        let answer = self
            .ask(Ask {
                method: Method::GET,
                url,
                body: None,
                repeatable: true,
                action: &action,
            })
            .await?;
        let pull: WirePull = answer.json(&action)?;
        Ok(PullRequest {
            number: pull.number,
            open: pull.state == "open",
            draft: pull.draft.unwrap_or(false),
            author: pull.user,
            labels: pull.labels.into_iter().filter_map(|l| l.name).collect(),
            title: pull.title.unwrap_or_default(),
            body: pull.body.unwrap_or_default(),
            head: side(&action, pull.head)?,
            base: side(&action, pull.base)?,
        })
    }

    /// The live tip of the branch `base` and its merge base with `head`.
    pub async fn compare(
        &self,
        repo: &RepoName,
        base: &str,
        head: &CommitId,
    ) -> Result<Comparison, GitHubError> {
        let action = "find the merge base";
        let basehead = format!("{base}...{}", head.as_str());
        // The list of files stands on the first page only, and can be megabytes.
        let url = self.endpoints().rest(
            &["repos", repo.owner(), repo.name(), "compare", &basehead],
            &[("per_page", "1"), ("page", "2")],
        );
        let answer = self
            .ask(Ask {
                method: Method::GET,
                url,
                body: None,
                repeatable: true,
                action,
            })
            .await?;
        let found: WireComparison = answer.json(action)?;
        Ok(Comparison {
            base: commit(action, &found.base_commit.sha)?,
            merge_base: commit(action, &found.merge_base_commit.sha)?,
        })
    }
}

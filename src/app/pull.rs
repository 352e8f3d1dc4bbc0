//! `ecr review --pr`: which pull request, and its objects. The head is data; the configuration is the checkout's.

use tokio_util::sync::CancellationToken;

use super::forge::{Fetched, Forge, Scope, fetch, git_hub_error};
use super::review::{Input, TrustedSide, described};
use super::{AppError, Environment};
use crate::git::{HostEnv, Repository};
use crate::github::RepoName;

/// A pull request that is ready for review; its objects live as long as this.
pub struct PullRequestObjects {
    fetched: Fetched,
    described: String,
}

impl PullRequestObjects {
    /// What to review, with the checkout's configuration.
    pub fn input(&self) -> Input {
        Input::PullRequest(Box::new(self.fetched.input.clone()), TrustedSide::Checkout)
    }

    /// What its author says of it.
    pub fn described(&self) -> String {
        self.described.clone()
    }
}

/// Fetches the pull request that `selector` means: a number, `#number`, or its address. The repository is `repo`, the
/// address's, or what the remote `origin` names.
pub async fn prepare(
    selector: &str,
    repo: Option<&str>,
    environment: &Environment,
) -> Result<PullRequestObjects, AppError> {
    let cancel = CancellationToken::new();
    let forge = Forge::connect(environment, true, &cancel).await?;
    let (named, number) = parse(selector, &forge)?;
    let named = match (repo, named) {
        (Some(text), _) => Some(
            RepoName::new(text)
                .map_err(|error| AppError::new(error.to_string(), "write --repo owner/name"))?,
        ),
        (None, named) => named,
    };
    let repo = match named {
        Some(repo) => repo,
        None => origin(&forge, environment, &cancel).await?,
    };
    let pull = forge
        .github
        .pull(&repo, number)
        .await
        .map_err(|error| git_hub_error(&error))?;
    let fetched = fetch(&forge, &repo, &pull, Scope::Review, &cancel).await?;
    Ok(PullRequestObjects {
        fetched,
        described: described(&pull),
    })
}

/// `12`, `#12`, or `https://HOST/owner/name/pull/12` with anything after it.
fn parse(selector: &str, forge: &Forge) -> Result<(Option<RepoName>, u64), AppError> {
    let bad = || {
        AppError::new(
            format!(
                "--pr {}: it is neither a number nor the address of a pull request on {}",
                crate::model::printable(selector),
                forge.github.endpoints().server
            ),
            "write --pr 12, or --pr https://github.com/owner/name/pull/12",
        )
    };
    let number = |text: &str| text.parse::<u64>().ok().filter(|n| *n > 0);
    if let Some(number) = number(selector.trim_start_matches('#')) {
        return Ok((None, number));
    }
    let server = forge.github.endpoints().server.as_str().to_owned();
    let rest = selector
        .strip_prefix(server.trim_end_matches('/'))
        .and_then(|rest| rest.strip_prefix('/'))
        .ok_or_else(bad)?;
    let mut parts = rest.split(['/', '?', '#']);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(owner), Some(name), Some("pull"), Some(n)) => {
            let repo = RepoName::new(&format!("{owner}/{name}")).map_err(|_| bad())?;
            Ok((Some(repo), number(n).ok_or_else(bad)?))
        }
        _ => Err(bad()),
    }
}

/// The repository that the remote `origin` of the checkout around the current folder names.
pub(super) async fn origin(
    forge: &Forge,
    environment: &Environment,
    cancel: &CancellationToken,
) -> Result<RepoName, AppError> {
    let host = environment.variables().collect::<HostEnv>();
    let unknown = || {
        AppError::new(
            "which repository is not known: there is no remote `origin` on the server",
            "run it in a checkout of the repository, or write --repo owner/name",
        )
    };
    let repository = Repository::discover(&host, environment.cwd(), cancel.clone())
        .await
        .map_err(|_| unknown())?;
    let remote = repository.remote_url("origin").await.ok().flatten();
    remote
        .and_then(|remote| RepoName::from_remote(&remote, &forge.github.endpoints().server))
        .ok_or_else(unknown)
}

//! The client and its token.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::app::{AppError, Environment, network};
use crate::git::{FetchFrom, HostEnv};
use crate::github::RepoName;
use crate::github::{Endpoints, GitHub, GitHubError, GitHubSettings, RetryLimits};
use crate::model::Secret;
use crate::process::{self, Spec, ToolPath};

/// Variables that hold the forge token, the first that is set wins.
pub(in crate::app) const TOKEN_VARIABLES: [&str; 2] = ["GH_TOKEN", "GITHUB_TOKEN"];

/// GitHub, and what git needs to fetch from it.
pub(in crate::app) struct Forge {
    /// The client.
    pub(in crate::app) github: GitHub,
    /// The variables of this process, for git.
    pub(in crate::app) host: HostEnv,
    /// The token; none for anonymous use of public repositories.
    pub(in crate::app) token: Option<Secret<String>>,
}

impl Forge {
    /// Connects with the token of the environment; where `ask_gh`, with the one that the `gh` tool keeps. Nothing is
    /// sent yet.
    pub(in crate::app) async fn connect(
        environment: &Environment,
        ask_gh: bool,
        cancel: &CancellationToken,
    ) -> Result<Self, AppError> {
        let endpoints = Endpoints::new(
            environment.text("GITHUB_API_URL"),
            environment.text("GITHUB_GRAPHQL_URL"),
            environment.text("GITHUB_SERVER_URL"),
        )
        .map_err(|error| {
            AppError::new(
                error.to_string(),
                "in Actions these variables are set by the runner; elsewhere set all three, or none for github.com",
            )
        })?;
        let mut token = TOKEN_VARIABLES
            .iter()
            .find_map(|name| environment.text(name))
            .map(|token| Secret::new(token.trim().to_owned()));
        if token.is_none() && ask_gh {
            token = gh_token(&endpoints, environment, cancel).await;
        }
        let secure = endpoints.api.scheme() == "https";
        let github = GitHub::new(GitHubSettings {
            transport: network::client(environment, secure)?,
            endpoints,
            token: token.clone(),
            limits: RetryLimits::default(),
            clock: network::now,
        })
        .map_err(|error| git_hub_error(&error))?;
        Ok(Self {
            github,
            host: environment.variables().collect(),
            token,
        })
    }

    /// Where git fetches `repo` from.
    pub(super) fn fetch_from(&self, repo: &RepoName) -> FetchFrom {
        FetchFrom {
            url: self.github.endpoints().git_url(repo),
            token: self.token.clone(),
        }
    }
}

/// The token that `gh` keeps; none when it is not installed or not logged in.
async fn gh_token(
    endpoints: &Endpoints,
    environment: &Environment,
    cancel: &CancellationToken,
) -> Option<Secret<String>> {
    let search = environment.get("PATH")?;
    let tool = ToolPath::find("gh", search, &[environment.cwd()]).ok()?;
    let mut spec = Spec::new(tool, Path::new("/"));
    spec.args = vec!["auth".into(), "token".into()];
    if let Some(host) = endpoints.server.host_str() {
        spec.args.extend(["--hostname".into(), host.into()]);
    }
    let names = ["PATH", "HOME", "XDG_CONFIG_HOME", "GH_CONFIG_DIR"];
    spec.env = names
        .iter()
        .filter_map(|name| Some((OsString::from(name), environment.get(name)?.to_owned())))
        .collect();
    spec.stdout_limit = 4096;
    spec.deadline = Some(Duration::from_secs(10));
    let output = process::run(spec, cancel).await.ok()?;
    let token = String::from_utf8(output.stdout).ok()?;
    let token = token.trim();
    (output.status.success() && !token.is_empty()).then(|| Secret::new(token.to_owned()))
}

/// GitHub's trouble, with what to do next.
pub(in crate::app) fn git_hub_error(error: &GitHubError) -> AppError {
    let hint = match error.status() {
        Some(401) => "set GH_TOKEN or GITHUB_TOKEN to a valid token, or run `gh auth login`",
        Some(403) => {
            "give the token what it needs; in a workflow that is its `permissions:` (pull-requests: write, contents: read)"
        }
        Some(404) => {
            "check the repository and the number; a private repository needs a token that may read it (GH_TOKEN)"
        }
        _ => "run it again later",
    };
    AppError::new(error.to_string(), hint)
}

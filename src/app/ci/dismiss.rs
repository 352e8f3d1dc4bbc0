//! `ecr dismiss` and `ecr undismiss`: a command from the command line. Nothing is reviewed, no model is called.

use tokio_util::sync::CancellationToken;

use super::compose::{Content, ReviewComment, Scene};
use super::journal::Gatekeeper;
use super::publish::{Compose as _, Place, Published};
use super::trusted;
use crate::app::forge::{Forge, Scope, fetch, git_hub_error};
use crate::app::{AppError, Environment, pull};
use crate::github::{Permission, RepoName};
use crate::model::printable;
use crate::state::comment::{Command, MAX_IDS, parse_id};

/// What was asked for.
#[derive(Debug, Clone)]
pub struct DismissRequest {
    /// Ids as they were typed.
    pub ids: Vec<String>,
    /// The pull request.
    pub number: u64,
    /// `owner/name`; none for the checkout's `origin`, in a job the job's repository.
    pub repo: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// In whose name.
    pub by: Option<String>,
    /// False to take dismissals back.
    pub active: bool,
}

/// Changes what the comment shows and says what it did. Where the comment is somebody else's (the workflow's), the command is
/// left as a comment, for the workflow's own token to obey: a comment is only ever edited by its author.
pub async fn dismiss(
    request: &DismissRequest,
    environment: &Environment,
) -> Result<String, AppError> {
    let command = command(request)?;
    let cancel = CancellationToken::new();
    let forge = Forge::connect(environment, true, &cancel).await?;
    let repo = match request
        .repo
        .as_deref()
        .or(environment.text("GITHUB_REPOSITORY"))
    {
        Some(text) => RepoName::new(text)
            .map_err(|error| AppError::new(error.to_string(), "write --repo owner/name"))?,
        None => pull::origin(&forge, environment, &cancel).await?,
    };
    let failed = |error: crate::github::GitHubError| git_hub_error(&error);
    let (pull, identity) = tokio::join!(
        forge.github.pull(&repo, request.number),
        forge.github.viewer()
    );
    let pull = pull.map_err(failed)?;
    let identity = identity.map_err(failed)?.ok_or_else(|| {
        AppError::new(
            "GitHub does not say whose token this is",
            "use a person's or an app's token",
        )
    })?;
    let by = request.by.as_deref().unwrap_or(identity.login());
    let permission = forge.github.permission(&repo, by).await.map_err(failed)?;
    if permission < Permission::Write {
        return Err(AppError::new(
            format!("{} may not write to {repo}", printable(by)),
            "dismissing takes write permission; with an app's token name a person with --by",
        ));
    }
    let fetched = fetch(&forge, &repo, &pull, Scope::Base, &cancel).await?;
    let trusted = trusted::load(&fetched.input, &forge, environment, &cancel).await?;
    let config = &trusted.loaded.config;
    let gatekeeper = Gatekeeper::default();
    let scene = Scene {
        github: &forge.github,
        repo: &repo,
        pull: &pull,
        identity: &identity,
        gatekeeper: &gatekeeper,
    };
    let comment = ReviewComment::new(
        scene,
        (&config.comment_tag, &config.break_glass_marker),
        Content::Local {
            command: command.clone(),
            by: by.to_owned(),
        },
    )?;
    let place = Place {
        github: &forge.github,
        repo: &repo,
        number: request.number,
        identity: &identity,
    };
    let comments = place.comments().await.map_err(failed)?;
    if place.own(&comments, &comment).is_empty() {
        let theirs = comments.iter().any(|c| comment.is_ours(&c.body));
        if !theirs {
            return Err(AppError::new(
                format!(
                    "there is no review comment on #{} of {repo}",
                    request.number
                ),
                "it is written by `ecr ci`",
            ));
        }
        let said = forge
            .github
            .create_comment(&repo, request.number, &written(&command))
            .await
            .map_err(failed)?;
        return Ok(format!(
            "The review comment belongs to the workflow, so the command was left for it: {}\n",
            said.html_url
        ));
    }
    let published = place.publish(&comment).await.map_err(failed)?;
    let mut lines = comment.said();
    lines.push(match published {
        Published::Created(url) | Published::Updated(url) => format!("updated {url}"),
        Published::Kept(why) => format!("nothing was changed: {why}"),
    });
    Ok(lines.join("\n") + "\n")
}

fn command(request: &DismissRequest) -> Result<Command, AppError> {
    let hint = "an id is 12 hexadecimal digits; the comment shows it as id:0123456789ab";
    let mut ids = Vec::new();
    for text in &request.ids {
        let id = parse_id(text).map_err(|error| AppError::new(error.to_string(), hint))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.len() > MAX_IDS {
        return Err(AppError::new(
            format!("{} ids at once: at most {MAX_IDS}", ids.len()),
            "call it several times",
        ));
    }
    match (request.active, &request.reason) {
        (true, reason) => Ok(Command::Dismiss {
            ids,
            reason: reason.clone(),
        }),
        (false, None) => Ok(Command::Undismiss(ids)),
        (false, Some(_)) => Err(AppError::new(
            "undismiss takes no reason",
            "leave --reason out",
        )),
    }
}

/// The command as a comment.
fn written(command: &Command) -> String {
    let list = |ids: &[crate::model::Fingerprint]| {
        ids.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    match command {
        Command::Dismiss { ids, reason } => match reason {
            Some(reason) => format!(
                "/dismiss {} -- {}",
                list(ids),
                crate::render::printable_line(reason)
            ),
            None => format!("/dismiss {}", list(ids)),
        },
        Command::Undismiss(ids) => format!("/undismiss {}", list(ids)),
        Command::Review(_) | Command::Skip => String::new(),
    }
}

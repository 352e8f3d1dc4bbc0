//! One run from the event to the comment.

use tokio_util::sync::CancellationToken;

use super::compose::{Content, ReviewComment};
use super::event::{CommentEvent, Event};
use super::inputs::fingerprint;
use super::job::Job;
use super::pending::{Pending, PendingStore};
use super::publish::{Place, Published};
use super::surface::{self, Log};
use super::trusted::{self, Trusted};
use super::{gate, worker};
use crate::app::forge::{Fetched, Forge, Scope, fetch, git_hub_error};
use crate::app::review::Interrupt;
use crate::app::signals::SignalWatch;
use crate::app::{AppError, Environment};
use crate::github::{GitHubError, Identity, Permission, PullRequest, RepoName};
use crate::state::comment::{Agents, Command, parse};
use crate::state::comment::StoredReview;
use crate::state::output::Decision;

/// The tag of a comment when the configuration cannot be read.
const DEFAULT_TAG: &str = "expo-ai-code-reviewer";

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct CiRequest {
    /// Only these reviewers; empty for all.
    pub agents: Vec<String>,
    /// Review although the trigger says no, and although nothing changed.
    pub force: bool,
    /// Obey the comment that started the job.
    pub comment_command: bool,
    /// Post what an earlier run has kept.
    pub repost: bool,
    /// Print annotations.
    pub annotate: bool,
}

/// How a run ended, for `--strict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The verdict; none when nothing was to be reviewed or nothing could be.
    pub decision: Option<Decision>,
    /// Nothing is missing.
    pub complete: bool,
    /// A set-up or environment error: nothing was reviewed.
    pub failed: bool,
    /// The signal that cut it.
    pub interrupt: Option<Interrupt>,
    /// Workflow commands to print.
    pub annotations: String,
}

impl Ended {
    fn quiet() -> Self {
        Self {
            decision: None,
            complete: true,
            failed: false,
            interrupt: None,
            annotations: String::new(),
        }
    }

    fn failed() -> Self {
        Self {
            failed: true,
            ..Self::quiet()
        }
    }

    fn of(review: &StoredReview) -> Self {
        Self {
            decision: Some(review.decision),
            complete: review.complete,
            ..Self::quiet()
        }
    }
}

/// Everything that the steps share.
struct Run<'a> {
    request: &'a CiRequest,
    environment: &'a Environment,
    log: &'a Log,
    cancel: CancellationToken,
    forge: Forge,
    repo: RepoName,
    identity: Identity,
    pull: PullRequest,
}

/// Does the job. An error means that it could not even be said on the pull request.
pub async fn run(
    request: &CiRequest,
    environment: &Environment,
    log: &Log,
) -> Result<Ended, AppError> {
    let cancel = CancellationToken::new();
    let watch = SignalWatch::start(cancel.clone())
        .map_err(|error| AppError::plain(format!("cannot watch for signals: {error}")))?;
    let mut ended = start(request, environment, log, cancel).await?;
    ended.interrupt = watch.interrupt();
    Ok(ended)
}

async fn start(
    request: &CiRequest,
    environment: &Environment,
    log: &Log,
    cancel: CancellationToken,
) -> Result<Ended, AppError> {
    let event = Event::read(environment)?;
    let (number, comment) = match event {
        Event::Neutral(why) => {
            log.line(&format!("nothing to do: {why}"));
            return Ok(Ended::quiet());
        }
        Event::Pull { number } => (number, None),
        Event::Comment(comment) => (comment.number, Some(comment)),
    };
    let repo = environment.text("GITHUB_REPOSITORY").ok_or_else(|| {
        AppError::new(
            "GITHUB_REPOSITORY is not set",
            "`ecr ci` runs in GitHub Actions; here use `ecr review --pr`",
        )
    })?;
    let repo = RepoName::new(repo).map_err(|error| AppError::plain(error.to_string()))?;
    let forge = Forge::connect(environment, false, &cancel).await?;
    if forge.token.is_none() {
        return Err(AppError::new(
            "there is no forge token: neither GH_TOKEN nor GITHUB_TOKEN is set",
            "give the step `env: GITHUB_TOKEN: ${{ github.token }}`",
        ));
    }
    let (pull, identity) = tokio::join!(forge.github.pull(&repo, number), forge.github.viewer());
    let pull = pull.map_err(|error| git_hub_error(&error))?;
    let identity = whose(identity, environment)?;
    let run = Run {
        request,
        environment,
        log,
        cancel,
        forge,
        repo,
        identity,
        pull,
    };
    if run.pull.from_fork(&run.repo) {
        log.line("the change comes from a fork: the job's token may only read, and has no secrets");
    }
    match comment {
        Some(comment) => run.command(&comment).await,
        None if request.repost => run.repost().await,
        None => run.review(request.force, &request.agents, None).await,
    }
}

/// Whose token it is. In Actions it is the workflow's own where GitHub does not say; elsewhere nothing is assumed.
fn whose(
    asked: Result<Option<Identity>, GitHubError>,
    environment: &Environment,
) -> Result<Identity, AppError> {
    let problem = match asked {
        Ok(Some(identity)) => return Ok(identity),
        Ok(None) => "GitHub does not say whose token this is".to_owned(),
        Err(error) => error.to_string(),
    };
    if environment.text("GITHUB_ACTIONS") == Some("true") {
        return Ok(Identity::actions());
    }
    Err(AppError::new(
        problem,
        "without knowing who we are no comment can be ours; use a token that may ask (GraphQL `viewer`)",
    ))
}

impl Run<'_> {
    fn place(&self) -> Place<'_> {
        Place {
            github: &self.forge.github,
            repo: &self.repo,
            number: self.pull.number,
            identity: &self.identity,
        }
    }

    fn comment(&self, tag: &str, marker: &str, content: Content) -> Result<ReviewComment<'_>, AppError> {
        ReviewComment::new(
            (&self.forge.github, &self.repo, self.pull.number),
            &self.identity,
            (tag, marker),
            content,
        )
    }

    /// Fetches, loads the base's configuration, and checks what has to hold before anything runs.
    async fn prepare(&self, scope: Scope) -> Result<(Fetched, Trusted), AppError> {
        let fetched = fetch(&self.forge, &self.repo, &self.pull, scope, &self.cancel).await?;
        let trusted =
            trusted::load(&fetched.input, &self.forge, self.environment, &self.cancel).await?;
        trusted::check_lock(&trusted.loaded, self.environment)?;
        Ok((fetched, trusted))
    }

    /// Leaves one comment that says that nothing was reviewed, and why.
    async fn could_not_run(&self, trusted: Option<&Trusted>, error: &AppError) -> Ended {
        self.log.line(&format!("nothing was reviewed: {}", error.message));
        let (tag, marker) = match trusted {
            Some(trusted) => (
                trusted.loaded.config.comment_tag.as_str(),
                trusted.loaded.config.break_glass_marker.as_str(),
            ),
            None => (DEFAULT_TAG, "/skip-review"),
        };
        let content = Content::Failed {
            head: self.pull.head.commit.as_str().to_owned(),
            message: error.message.clone(),
            hint: error.hint.clone(),
        };
        match self.comment(tag, marker, content) {
            Ok(comment) => {
                self.publish(&comment).await;
            }
            Err(error) => self.log.line(&error.message),
        }
        Ended::failed()
    }

    /// Writes the comment and the step summary, and says in the log which of the two worked. Gives true when the comment
    /// is as it should be.
    async fn publish(&self, comment: &ReviewComment<'_>) -> bool {
        let published = self.place().publish(comment).await;
        let text = comment.shown();
        for line in comment.said() {
            self.log.line(&line);
        }
        match published {
            Ok(published) => {
                self.log.line(&match &published {
                    Published::Created(url) => format!("commented: {url}"),
                    Published::Updated(url) => format!("updated the comment: {url}"),
                    Published::Kept(why) => format!("the comment stays as it is: {why}"),
                });
                surface::add_summary(self.environment, &text);
                true
            }
            Err(error) => {
                let error = git_hub_error(&error);
                self.log.line(&format!("no comment: {}", error.message));
                if let Some(hint) = &error.hint {
                    self.log.line(&format!("next: {hint}"));
                }
                let note = format!(
                    "> The review could not be posted as a comment: {}\n\n",
                    crate::render::printable_line(&error.message).replace('<', "&lt;")
                );
                surface::add_summary(self.environment, &format!("{note}{text}"));
                false
            }
        }
    }

    /// Reviews and posts. `command` is the comment that asked for it.
    async fn review(
        &self,
        forced: bool,
        agents: &[String],
        prepared: Option<(Fetched, Trusted)>,
    ) -> Result<Ended, AppError> {
        let prepared = match prepared {
            Some(prepared) => Ok(prepared),
            None => self.prepare(Scope::Review).await,
        };
        let (fetched, trusted) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Ok(self.could_not_run(None, &error).await),
        };
        let config = &trusted.loaded.config;
        if let Some(why) = gate::skip(&self.pull, &config.review, forced) {
            self.log.line(&format!("not reviewed: {why}"));
            surface::add_summary(
                self.environment,
                &format!("Not reviewed: {}.", crate::render::printable_line(&why)),
            );
            return Ok(Ended::quiet());
        }
        let (tag, marker) = (config.comment_tag.as_str(), config.break_glass_marker.as_str());
        let inputs =
            fingerprint(&fetched.input, &trusted, agents, &self.forge, &self.cancel).await?;

        // What is there decides whether a model is asked at all.
        let stored = self.comment(tag, marker, Content::Commands)?;
        match self.stored(&stored).await {
            Ok(state) => {
                if !forced && state.skipped {
                    self.log.line("not reviewed: a maintainer has said so in a comment");
                    let skip = self.comment(tag, marker, Content::Skipped)?;
                    self.publish(&skip).await;
                    return Ok(Ended::quiet());
                }
                if !forced && let Some(kept) = state.reusable(&inputs) {
                    self.log.line("nothing has changed since the review in the comment: it stands, and no model is called");
                    let same = self.comment(
                        tag,
                        marker,
                        Content::Reused {
                            head: self.pull.head.commit.as_str().to_owned(),
                        },
                    )?;
                    self.publish(&same).await;
                    return Ok(Ended {
                        decision: Some(kept.decision),
                        complete: kept.complete,
                        ..Ended::quiet()
                    });
                }
            }
            // Unreadable comments are no reason not to review; posting will say it again.
            Err(error) => self.log.line(&error.to_string()),
        }

        let job = Job::new(&fetched.input, agents);
        let forward = |line: &str| self.log.forward(line);
        let reviewed = worker::run(
            &job,
            &trusted.loaded,
            self.forge.token.as_ref(),
            self.environment,
            (&self.cancel, &forward),
        )
        .await;
        drop(fetched);
        let mut reviewed = match reviewed {
            Ok(reviewed) => reviewed,
            Err(problem) => {
                let error = AppError::plain(problem);
                return Ok(self.could_not_run(Some(&trusted), &error).await);
            }
        };
        reviewed.review.inputs = Some(inputs);
        let mut ended = Ended::of(&reviewed.review);
        if self.request.annotate {
            ended.annotations = surface::annotations(&reviewed.annotations);
        }
        let pending = Pending::new(
            (&self.repo, self.pull.number),
            self.pull.head.commit.as_str(),
            tag,
            reviewed.review,
        );
        self.keep_and_post(pending, marker).await?;
        Ok(ended)
    }

    /// Keeps the finished review, posts it, and forgets it when it is posted.
    async fn keep_and_post(&self, pending: Pending, marker: &str) -> Result<(), AppError> {
        let store = PendingStore::of(self.environment);
        let kept = store.as_ref().and_then(|store| {
            store
                .save(&self.repo, &pending)
                .inspect_err(|error| {
                    self.log
                        .line(&format!("the review is not kept for --repost: {error}"));
                })
                .ok()
        });
        // The head may have moved while the review ran: the comment says so.
        let live = match self.forge.github.pull(&self.repo, self.pull.number).await {
            Ok(now) => Some(now.head.commit.as_str().to_owned()),
            Err(_) => None,
        };
        let comment = self.comment(
            &pending.tag,
            marker,
            Content::Review(Box::new(pending.review)),
            live,
        )?;
        let posted = self.publish(&comment).await;
        match (&store, kept) {
            (Some(store), Some(_)) if posted => store.remove(&self.repo, self.pull.number),
            (_, Some(path)) => self.log.line(&format!(
                "the review is kept in {}: `ecr ci --repost` posts it without a model",
                path.display()
            )),
            _ => {}
        }
        Ok(())
    }

    /// `--repost`.
    async fn repost(&self) -> Result<Ended, AppError> {
        let pending = match PendingStore::of(self.environment) {
            Some(store) => store.load(&self.repo, self.pull.number)?,
            None => None,
        };
        let Some(pending) = pending else {
            return Err(AppError::new(
                format!("no finished review of #{} waits to be posted", self.pull.number),
                "run `ecr ci` to review",
            ));
        };
        let marker = match self.prepare(Scope::Base).await {
            Ok((_, trusted)) => {
                let config = &trusted.loaded.config;
                if config.comment_tag != pending.tag {
                    return Err(AppError::new(
                        "the comment's tag has changed since the review was kept",
                        "run `ecr ci` to review again",
                    ));
                }
                config.break_glass_marker.clone()
            }
            Err(error) => return Ok(self.could_not_run(None, &error).await),
        };
        let ended = Ended::of(&pending.review);
        self.keep_and_post(pending, &marker).await?;
        Ok(ended)
    }

    /// Obeys the comment that started the job, if it is a command of somebody who may give it.
    async fn command(&self, event: &CommentEvent) -> Result<Ended, AppError> {
        let (fetched, trusted) = match self.prepare(Scope::Base).await {
            Ok(prepared) => prepared,
            // Most comments are no commands; the next push says what is wrong.
            Err(error) => {
                self.log.line(&format!("comment not read: {}", error.message));
                return Ok(Ended::failed());
            }
        };
        let config = &trusted.loaded.config;
        let (tag, marker) = (config.comment_tag.as_str(), config.break_glass_marker.as_str());
        let Some(command) = parse(&event.body, marker) else {
            self.log.line("nothing to do: the comment is no command");
            return Ok(Ended::quiet());
        };
        // Whoever it is, nothing is spent and nothing is changed before GitHub says that they may write.
        let permission = self
            .forge
            .github
            .permission(&self.repo, &event.author)
            .await;
        match permission {
            Ok(permission) if permission >= Permission::Write => {}
            Ok(_) => {
                self.log.line(&format!(
                    "not obeyed: {} may not write to {}",
                    event.author, self.repo
                ));
                return Ok(Ended::quiet());
            }
            Err(error) => {
                self.log.line(&format!("not obeyed: {error}"));
                return Ok(Ended::failed());
            }
        }
        match command {
            Err(error) => {
                self.log.line(&format!("not understood: {error}"));
                Ok(Ended::failed())
            }
            Ok(Command::Review(who)) => {
                let agents = match who {
                    Agents::Configured => self.request.agents.clone(),
                    Agents::All => Vec::new(),
                    Agents::Named(agents) => {
                        agents.iter().map(|a| a.as_str().to_owned()).collect()
                    }
                };
                drop(fetched);
                self.review(true, &agents, None).await
            }
            Ok(Command::Dismiss { .. } | Command::Undismiss(_) | Command::Skip) => {
                // The comment is in the journal like every other command: posting replays it.
                let content = Content::Commands;
                let comment = self.comment(tag, marker, content)?;
                self.publish(&comment).await;
                Ok(Ended::quiet())
            }
        }
    }
}

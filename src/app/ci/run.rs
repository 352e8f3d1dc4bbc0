//! One run from the event to the comment.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::compose::{Content, ReviewComment, Scene};
use super::event::{CommentEvent, Event};
use super::inputs::{Wanted, fingerprint};
use super::job::Job;
use super::journal::Gatekeeper;
use super::pending::{Pending, PendingStore};
use super::publish::{Place, Published};
use super::surface::{self, Log};
use super::trusted::{self, Trusted};
use super::{gate, worker};
use crate::app::forge::{Fetched, Forge, Scope, fetch, git_hub_error};
use crate::app::review::{ContextFile, Interrupt, described};
use crate::app::signals::SignalWatch;
use crate::app::{AppError, Environment};
use crate::config::TokenLockError;
use crate::config::env::ECR_EXPECTED_TOKEN_ENV;
use crate::github::{GitHubError, Identity, Permission, PullRequest, RepoName};
use crate::model::Decision;
use crate::render::comment::NotReviewed;
use crate::state::comment::StoredReview;
use crate::state::comment::{Agents, Command, parse};

/// The tag of a comment when the configuration cannot be read.
const DEFAULT_TAG: &str = "expo-ai-code-reviewer";

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct CiRequest {
    /// Only these reviewers; empty for all.
    pub agents: Vec<String>,
    /// Review although the trigger says no, and although nothing changed.
    pub force: bool,
    /// A model may leave reviewers out.
    pub route: bool,
    /// What the reviewers should know, beside the pull request's title and description.
    pub context_file: Option<PathBuf>,
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
            decision: Some(review.decision.into()),
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
    gatekeeper: Gatekeeper,
    pull: PullRequest,
}

/// Why nothing can be reviewed.
struct Blocked {
    /// For the comment.
    why: NotReviewed,
    /// For the log.
    message: String,
    /// The configuration, where that could be read.
    trusted: Option<Trusted>,
}

fn with_hint(error: &AppError) -> String {
    match &error.hint {
        Some(hint) => format!("{}; next: {hint}", error.message),
        None => error.message.clone(),
    }
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
    let mut ended = start(request, environment, log, cancel)
        .await
        .inspect_err(|error| {
            // There is no comment to say it in.
            let text = crate::render::printable_line(&with_hint(error)).replace('<', "&lt;");
            surface::add_summary(environment, &format!("ecr did not review: {text}"));
        })?;
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
        gatekeeper: Gatekeeper::default(),
        pull,
    };
    if run.pull.from_fork(&run.repo) {
        log.line("the change comes from a fork: the job's token may only read, and has no secrets");
    }
    match comment {
        Some(comment) => run.command(&comment).await,
        None if request.repost => run.repost().await,
        None => run.reviewed(request.force, &request.agents).await,
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

    fn comment(
        &self,
        tag: &str,
        marker: &str,
        content: Content,
    ) -> Result<ReviewComment<'_>, AppError> {
        let scene = Scene {
            github: &self.forge.github,
            repo: &self.repo,
            pull: &self.pull,
            identity: &self.identity,
            gatekeeper: &self.gatekeeper,
        };
        ReviewComment::new(scene, (tag, marker), content)
    }

    /// Fetches, loads the base's configuration, and checks what has to hold before anything runs.
    async fn prepare(&self, scope: Scope) -> Result<(Fetched, Trusted), Box<Blocked>> {
        let blocked = |error: AppError, why: fn(String) -> NotReviewed| {
            Box::new(Blocked {
                why: why(with_hint(&error)),
                message: with_hint(&error),
                trusted: None,
            })
        };
        let fetched = fetch(&self.forge, &self.repo, &self.pull, scope, &self.cancel)
            .await
            .map_err(|error| blocked(error, NotReviewed::CouldNotRun))?;
        let trusted = trusted::load(&fetched.input, &self.forge, self.environment, &self.cancel)
            .await
            .map_err(|error| blocked(error, NotReviewed::SetupMissing))?;
        match trusted::check_lock(&trusted.loaded, self.environment) {
            Ok(()) => Ok((fetched, trusted)),
            Err(error) => {
                let message = format!("{}: {error}", ECR_EXPECTED_TOKEN_ENV.name);
                let at = |name: &str, hosts: Vec<String>| {
                    hosts.iter().map(|host| format!("{name}@{host}")).collect()
                };
                let why = match error {
                    TokenLockError::Names { declared, expected } => {
                        NotReviewed::CredentialLock { expected, declared }
                    }
                    TokenLockError::Hosts {
                        name,
                        declared,
                        expected,
                    } => NotReviewed::CredentialLock {
                        expected: at(&name, expected),
                        declared: at(&name, declared),
                    },
                    TokenLockError::Item(_) => NotReviewed::CouldNotRun(message.clone()),
                };
                Err(Box::new(Blocked {
                    message,
                    why,
                    trusted: Some(trusted),
                }))
            }
        }
    }

    /// Leaves one comment that says that nothing was reviewed, and why.
    async fn could_not_run(&self, blocked: Blocked) -> Ended {
        let Blocked {
            why,
            message,
            trusted,
        } = blocked;
        self.log.line(&format!("nothing was reviewed: {message}"));
        let (tag, marker) = match &trusted {
            Some(trusted) => (
                trusted.loaded.config.comment_tag.as_str(),
                trusted.loaded.config.break_glass_marker.as_str(),
            ),
            None => (DEFAULT_TAG, "/skip-review"),
        };
        let content = Content::NotReviewed { why, quiet: false };
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
        let text = comment.summary();
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

    /// Reviews and posts; whatever fails on the way is said in the comment.
    async fn reviewed(&self, forced: bool, agents: &[String]) -> Result<Ended, AppError> {
        match Box::pin(self.review(forced, agents)).await {
            Ok(ended) => Ok(ended),
            Err(error) => {
                let message = with_hint(&error);
                let blocked = Blocked {
                    why: NotReviewed::CouldNotRun(message.clone()),
                    message,
                    trusted: None,
                };
                Ok(self.could_not_run(blocked).await)
            }
        }
    }

    /// Reviews and posts.
    async fn review(&self, forced: bool, agents: &[String]) -> Result<Ended, AppError> {
        let (fetched, trusted) = match self.prepare(Scope::Review).await {
            Ok(prepared) => prepared,
            Err(blocked) => return Ok(self.could_not_run(*blocked).await),
        };
        let config = &trusted.loaded.config;
        let (tag, marker) = (
            config.comment_tag.as_str(),
            config.break_glass_marker.as_str(),
        );
        if let Some(why) = gate::skip(&self.pull, &config.review, forced) {
            self.log.line(&format!("not reviewed: {why}"));
            // A comment that is there must stay true; on a pull request that nobody wants reviewed there is none.
            let content = Content::NotReviewed {
                why: NotReviewed::Skipped(why),
                quiet: true,
            };
            self.publish(&self.comment(tag, marker, content)?).await;
            return Ok(Ended::quiet());
        }
        let file = self.request.context_file.as_deref();
        let file = file
            .map(|path| ContextFile::read(path, self.environment))
            .transpose()?;
        let wanted = Wanted {
            agents,
            route: self.request.route,
            context: file.as_ref(),
        };
        let inputs =
            fingerprint(&fetched.input, &trusted, &wanted, &self.forge, &self.cancel).await?;

        // What is there decides whether a model is asked at all.
        if !forced && let Some(ended) = self.already(tag, marker, &inputs).await? {
            return Ok(ended);
        }

        let job = Job::new(&fetched.input, &wanted, described(&self.pull));
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
                let blocked = Blocked {
                    why: NotReviewed::CouldNotRun(problem.clone()),
                    message: problem,
                    trusted: Some(trusted),
                };
                return Ok(self.could_not_run(blocked).await);
            }
        };
        if let Some(line) = &reviewed.log
            && let Err(error) = surface::keep_run(line, &trusted.loaded, self.environment)
        {
            self.log
                .line(&format!("this run is not in the run log: {error}"));
        }
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

    /// What a run ends with that need not review: a maintainer said so, or nothing has changed.
    async fn already(
        &self,
        tag: &str,
        marker: &str,
        inputs: &str,
    ) -> Result<Option<Ended>, AppError> {
        let probe = self.comment(tag, marker, Content::Commands)?;
        let place = self.place();
        let comments = match place.comments().await {
            Ok(comments) => comments,
            // No reason not to review; posting will say it again.
            Err(error) => {
                self.log.line(&error.to_string());
                return Ok(None);
            }
        };
        let own = place.own(&comments, &probe);
        let (known, _) = probe.known(&comments, &own).await;
        let listed = |id: u64| comments.iter().any(|comment| comment.id == id);
        if known.state.is_skipped(listed) {
            self.log
                .line("not reviewed: a maintainer has said so in a comment");
            self.publish(&probe).await;
            return Ok(Some(Ended::quiet()));
        }
        let Some(review) = known
            .state
            .review
            .as_ref()
            .filter(|_| known.state.reusable(inputs))
        else {
            return Ok(None);
        };
        let ended = Ended::of(review);
        self.log.line(
            "nothing has changed since the review in the comment: it stands, and no model is called",
        );
        self.publish(&self.comment(tag, marker, Content::Reused)?)
            .await;
        Ok(Some(ended))
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
        )?;
        let comment = comment.at(live);
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
                format!(
                    "no finished review of #{} waits to be posted",
                    self.pull.number
                ),
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
            Err(blocked) => return Ok(self.could_not_run(*blocked).await),
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
            Err(blocked) => {
                self.log
                    .line(&format!("comment not read: {}", blocked.message));
                return Ok(Ended::failed());
            }
        };
        let config = &trusted.loaded.config;
        let (tag, marker) = (
            config.comment_tag.as_str(),
            config.break_glass_marker.as_str(),
        );
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
                    Agents::Named(agents) => agents.iter().map(|a| a.as_str().to_owned()).collect(),
                };
                drop(fetched);
                self.reviewed(true, &agents).await
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

//! The text of the comment, made from what is there and from what is new.

use std::sync::{Mutex, PoisonError};

use super::journal::{self, Gatekeeper};
use super::publish::{Compose, Composed};
use crate::app::{AppError, network};
use crate::github::{Comment, GitHub, GitHubError, Identity, PullRequest, RepoName};
use crate::port::BoxFuture;
use crate::render::comment::{Before, NotReviewed, Page, PrFacts, Subject, comment, step_summary};
use crate::state::comment::{
    Command, CommentState, Decoded, Outcome, Permission, StoredReview, Tag, apply_local,
};

/// What is new.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// A review.
    Review(Box<StoredReview>),
    /// The stored review stands for the present head.
    Reused,
    /// There is no review of the present head; with `quiet` a comment that is there says so, and none is made for it.
    NotReviewed {
        /// Why.
        why: NotReviewed,
        /// Makes no comment.
        quiet: bool,
    },
    /// Nothing but commands in comments.
    Commands,
    /// A command from the command line.
    Local {
        /// The command.
        command: Command,
        /// Who gives it.
        by: String,
    },
}

/// Where the comment goes, and in whose name.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) github: &'a GitHub,
    pub(super) repo: &'a RepoName,
    pub(super) pull: &'a PullRequest,
    pub(super) identity: &'a Identity,
    pub(super) gatekeeper: &'a Gatekeeper,
}

/// What the next comment says.
pub(super) struct ReviewComment<'a> {
    tag: Tag,
    marker: String,
    scene: Scene<'a>,
    pr: PrFacts,
    content: Content,
    /// What was composed last: for the step summary and the log.
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    summary: String,
    said: Vec<String>,
}

impl<'a> ReviewComment<'a> {
    /// `tag` and `marker` are the configuration's.
    pub(super) fn new(
        scene: Scene<'a>,
        (tag, marker): (&str, &str),
        content: Content,
    ) -> Result<Self, AppError> {
        let tag = Tag::new(tag)
            .map_err(|error| AppError::new(error.to_string(), "change `commentTag`"))?;
        let server = scene.github.endpoints().server.as_str();
        Ok(Self {
            tag,
            marker: marker.to_owned(),
            pr: PrFacts {
                server: server.trim_end_matches('/').to_owned(),
                repo: scene.repo.to_string(),
                number: scene.pull.number,
                live_head: Some(scene.pull.head.commit.as_str().to_owned()),
            },
            scene,
            content,
            last: Mutex::default(),
        })
    }

    /// Where the head is by now, as far as that is known.
    #[must_use]
    pub(super) fn at(mut self, live_head: Option<String>) -> Self {
        self.pr.live_head = live_head;
        self
    }

    /// What was composed last, as a step summary.
    pub(super) fn summary(&self) -> String {
        self.last().summary.clone()
    }

    /// What became of commands, for the log.
    pub(super) fn said(&self) -> Vec<String> {
        self.last().said.clone()
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the comments say, commands included that nobody has obeyed yet.
    pub(super) async fn known(
        &self,
        comments: &[Comment],
        own: &[&Comment],
    ) -> (Decoded, Vec<Outcome>) {
        let mut found = journal::known(&self.tag, own);
        let state = std::mem::take(&mut found.state);
        let Scene {
            github,
            repo,
            identity,
            gatekeeper,
            ..
        } = self.scene;
        let (state, outcomes) = journal::read(
            state,
            comments,
            &self.marker,
            identity,
            (gatekeeper, github, repo),
        )
        .await;
        found.state = state;
        (found, outcomes)
    }

    /// Brings the news into the state; gives what the comment is about, or why nothing is to be written.
    fn merge(
        &self,
        found: &mut Decoded,
        outcomes: &mut Vec<Outcome>,
        has_comment: bool,
        listed: &dyn Fn(u64) -> bool,
    ) -> Result<Subject, String> {
        let Decoded {
            state, earlier_ids, ..
        } = found;
        let skipped = |state: &CommentState| state.is_skipped(listed);
        let present = |state: &CommentState| {
            if skipped(state) {
                Subject::NotReviewed(NotReviewed::BreakGlass)
            } else {
                Subject::Review
            }
        };
        match &self.content {
            Content::Review(new) => {
                let live = self.pr.live_head.as_deref();
                let stored = state.review.as_ref();
                if stored.is_some_and(|stored| {
                    stored.head.as_deref() == live && new.head.as_deref() != live
                }) {
                    return Err("it is about a newer commit than this run".to_owned());
                }
                // A comment that is written a second time has this review already.
                if stored.is_none_or(|stored| (stored.at, &stored.head) != (new.at, &new.head)) {
                    let before = match stored {
                        Some(stored) => Some(Before::Review(stored)),
                        None if !earlier_ids.is_empty() => Some(Before::Ids(earlier_ids)),
                        None => None,
                    };
                    let mut new = new.as_ref().clone();
                    new.delta = before.map(|before| before.compare(&new, &state.dismissals));
                    state.review = Some(new);
                }
                Ok(present(state))
            }
            Content::Reused => {
                let head = self.scene.pull.head.commit.as_str();
                let same = state
                    .review
                    .as_ref()
                    .is_some_and(|stored| stored.head.as_deref() == Some(head));
                Ok(if same {
                    Subject::Review
                } else {
                    Subject::Reused {
                        head: head.to_owned(),
                    }
                })
            }
            Content::NotReviewed { quiet: true, .. } if !has_comment => {
                Err("there is none, and none is made to say that nothing was reviewed".to_owned())
            }
            Content::NotReviewed { why, .. } => Ok(Subject::NotReviewed(why.clone())),
            Content::Commands => {
                if !has_comment && !skipped(state) && state.review.is_none() {
                    return Err("there is no review yet; the next one reads the command".to_owned());
                }
                Ok(present(state))
            }
            Content::Local { command, by } => {
                let at = i64::try_from(network::now()).unwrap_or_default();
                let (changed, outcome) =
                    apply_local(std::mem::take(state), command.clone(), by, at);
                *state = changed;
                outcomes.push(outcome);
                Ok(present(state))
            }
        }
    }
}

impl Compose for ReviewComment<'_> {
    fn is_ours(&self, body: &str) -> bool {
        self.tag.marks(body)
    }

    fn compose<'a>(
        &'a self,
        comments: &'a [Comment],
        own: &'a [&'a Comment],
    ) -> BoxFuture<'a, Result<Composed, GitHubError>> {
        Box::pin(async move {
            let (mut found, mut outcomes) = self.known(comments, own).await;
            let listed = |id: u64| comments.iter().any(|comment| comment.id == id);
            let subject = self.merge(&mut found, &mut outcomes, !own.is_empty(), &listed);
            let said = outcomes.iter().filter_map(words).collect();
            let shown = match &subject {
                Ok(subject) => subject.clone(),
                Err(_) => match &self.content {
                    Content::NotReviewed { why, .. } => Subject::NotReviewed(why.clone()),
                    _ => Subject::Review,
                },
            };
            let page = Page {
                tag: &self.tag,
                marker: &self.marker,
                pr: &self.pr,
                state: &found.state,
                subject: &shown,
                damage: found.damage,
                outcomes: &outcomes,
            };
            *self.last() = Last {
                summary: step_summary(&page),
                said,
            };
            Ok(match subject {
                Ok(_) => Composed::Write(comment(&page).body),
                Err(why) => Composed::Keep(why),
            })
        })
    }
}

/// What became of a command, in a line.
fn words(outcome: &Outcome) -> Option<String> {
    let who = &outcome.author;
    match outcome.permission {
        Permission::Granted => {}
        Permission::Denied => {
            return Some(format!("{who} may not give commands: passed over"));
        }
        Permission::Unknown => {
            return Some(format!(
                "GitHub does not say whether {who} may give commands: left for the next run"
            ));
        }
    }
    let list = |ids: &[crate::model::Fingerprint]| {
        ids.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut text = match &outcome.command {
        Err(error) => format!("{who}: {error}"),
        Ok(Command::Dismiss { ids, .. }) => format!("{who} dismissed {}", list(ids)),
        Ok(Command::Undismiss(ids)) => format!("{who} took back the dismissal of {}", list(ids)),
        Ok(Command::Skip) => format!("{who} stopped reviews of this pull request"),
        Ok(Command::Review(_)) => return None,
    };
    if !outcome.unknown.is_empty() {
        text.push_str("; no finding has the id ");
        text.push_str(&list(&outcome.unknown));
    }
    if !outcome.needs_reason.is_empty() {
        text.push_str("; critical or a secret, so it stands without a reason after `--`: ");
        text.push_str(&list(&outcome.needs_reason));
    }
    Some(text)
}

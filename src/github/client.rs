//! The client: one request at a time, repeated by our own table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, HeaderValue, LOCATION};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use reqwest::Url;
use serde_json::Value;

use super::answer::Answer;
use super::retry::{Attempt, Next, Outcome, next};
use super::wire::{Wire, WireError};
use super::{Endpoints, GitHubError, RetryLimits};
use crate::http::Transport;
use crate::model::Secret;

/// The longest time for one exchange.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The largest answer: a page of 100 comments of 65,536 characters each.
const LARGEST: usize = 48 << 20;
/// A renamed repository answers with one redirect.
const REDIRECTS: u32 = 3;

/// How the client is built.
pub struct GitHubSettings {
    /// What carries the requests.
    pub transport: Arc<dyn Transport>,
    /// Where GitHub is.
    pub endpoints: Endpoints,
    /// The token; without one requests are anonymous.
    pub token: Option<Secret<String>>,
    /// How patient it is.
    pub limits: RetryLimits,
    /// Seconds since the Unix epoch.
    pub clock: fn() -> u64,
}

/// GitHub, as far as ecr talks to it. It has to be made inside a tokio runtime.
pub struct GitHub {
    octocrab: Octocrab,
    endpoints: Endpoints,
    authorization: Option<HeaderValue>,
    limits: RetryLimits,
    clock: fn() -> u64,
    sent: AtomicU32,
}

/// What to ask.
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) body: Option<Value>,
    /// Carrying it out twice is the same as once.
    pub(super) repeatable: bool,
    /// In words, after "cannot".
    pub(super) action: &'a str,
}

enum Sent {
    Answer(Answer),
    Lost(WireError),
}

impl std::fmt::Debug for GitHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitHub")
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

impl GitHub {
    /// Builds the client; nothing is sent.
    pub fn new(settings: GitHubSettings) -> Result<Self, GitHubError> {
        let authorization = settings
            .token
            .map(|token| {
                let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                    .map_err(|_| {
                        GitHubError::Client(
                            "the GitHub token holds a character that no token has".to_owned(),
                        )
                    })?;
                value.set_sensitive(true);
                Ok(value)
            })
            .transpose()?;
        let wire = Wire::new(settings.transport, TIMEOUT, LARGEST);
        // Addresses are absolute and the credential is added below: octocrab's own layers for both join base
        // paths in a way that is wrong on Enterprise Server.
        let octocrab = OctocrabBuilder::new_empty()
            .with_service(wire)
            .with_auth(AuthState::None)
            .build()
            .map_err(|error| GitHubError::Client(error.to_string()))?;
        Ok(Self {
            octocrab,
            endpoints: settings.endpoints,
            authorization,
            limits: settings.limits,
            clock: settings.clock,
            sent: AtomicU32::new(0),
        })
    }

    /// Where GitHub is.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// How many requests were sent so far, repeated ones included.
    pub fn requests(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Asks and gives the answer of a success.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Answer, GitHubError> {
        let action = ask.action;
        let mut url = ask.url.clone();
        let mut redirects = 0;
        loop {
            let answer = self.persist(&ask, &url).await?;
            if answer.status.is_success() {
                return Ok(answer);
            }
            if answer.status.is_redirection() && answer.status.as_u16() != 304 {
                redirects += 1;
                let target = self.redirect(&ask, &url, &answer);
                if let Some(target) = target.filter(|_| redirects <= REDIRECTS) {
                    url = target;
                    continue;
                }
            }
            return Err(GitHubError::Refused {
                action: action.to_owned(),
                status: answer.status.as_u16(),
                message: answer.message(),
                permission: answer.permission(),
            });
        }
    }

    /// Where a redirect leads, when it may be followed: to the same host, and for a change only where the method stays.
    fn redirect(&self, ask: &Ask<'_>, from: &Url, answer: &Answer) -> Option<Url> {
        let target = answer.headers.get(LOCATION)?.to_str().ok()?;
        let target = from.join(target).ok()?;
        let keeps_method = ask.method == Method::GET || matches!(answer.status.as_u16(), 307 | 308);
        (keeps_method && self.is_ours(&target)).then_some(target)
    }

    /// True for an address that the token may be sent to.
    pub(super) fn is_ours(&self, url: &Url) -> bool {
        let same = |ours: &Url| {
            ours.scheme() == url.scheme()
                && ours.host() == url.host()
                && ours.port_or_known_default() == url.port_or_known_default()
        };
        same(&self.endpoints.api) || same(&self.endpoints.graphql)
    }

    /// Sends until there is an answer to keep.
    async fn persist(&self, ask: &Ask<'_>, url: &Url) -> Result<Answer, GitHubError> {
        let mut waited = Duration::ZERO;
        for number in 1.. {
            let sent = self.send(ask, url).await?;
            let attempt = Attempt {
                repeatable: ask.repeatable,
                number,
                now: (self.clock)(),
            };
            let words = match &sent {
                Sent::Answer(answer) if !answer.status.is_success() => {
                    answer.message().to_ascii_lowercase()
                }
                _ => String::new(),
            };
            let outcome = match &sent {
                Sent::Answer(answer) => Outcome::Answer {
                    status: answer.status,
                    headers: &answer.headers,
                    words: &words,
                },
                Sent::Lost(error) => Outcome::Lost {
                    sent: error.sent,
                    transient: error.transient,
                },
            };
            let step = next(attempt, outcome, &self.limits);
            let pause = match step {
                Next::Stop => None,
                Next::Again(pause) | Next::Limited(pause) => (number < self.limits.attempts
                    && waited + pause <= self.limits.patience)
                    .then_some(pause),
            };
            if let Some(pause) = pause {
                tracing::debug!(action = ask.action, ?pause, "GitHub is asked again");
                tokio::time::sleep(pause).await;
                waited += pause;
                continue;
            }
            let action = ask.action.to_owned();
            return match (sent, step) {
                (Sent::Answer(answer), Next::Limited(wait)) => Err(GitHubError::Limited {
                    action,
                    message: answer.message(),
                    wait,
                }),
                (Sent::Answer(answer), _) => Ok(answer),
                (Sent::Lost(error), _) => Err(GitHubError::Unreachable {
                    action,
                    message: error.message,
                    perhaps_done: error.sent,
                }),
            };
        }
        Err(GitHubError::Client("no attempt was allowed".to_owned()))
    }

    /// Sends once.
    async fn send(&self, ask: &Ask<'_>, url: &Url) -> Result<Sent, GitHubError> {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(url.as_str())
            .header(ACCEPT, "application/vnd.github+json");
        if let Some(value) = &self.authorization
            && self.is_ours(url)
        {
            request = request.header(AUTHORIZATION, value);
        }
        let broken = |_| GitHubError::Client(format!("cannot {}: no such address", ask.action));
        // octocrab adds the version of the API.
        let request = self
            .octocrab
            .build_request(request, ask.body.as_ref())
            .map_err(broken)?;
        let response = match self.octocrab.execute(request).await {
            Ok(response) => response,
            Err(error) => return Ok(Sent::Lost(wire_error(&error))),
        };
        let (parts, body) = response.into_parts();
        let Ok(body) = body.collect().await else {
            return Ok(Sent::Lost(WireError {
                message: "the answer was cut".to_owned(),
                sent: true,
                transient: true,
            }));
        };
        Ok(Sent::Answer(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.to_bytes(),
        }))
    }
}

/// Our own error under octocrab's, whose text would hold a backtrace.
fn wire_error(error: &octocrab::Error) -> WireError {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if let Some(found) = inner.downcast_ref::<WireError>() {
            return found.clone();
        }
        cause = inner.source();
    }
    WireError {
        message: "the connection failed".to_owned(),
        sent: true,
        transient: true,
    }
}

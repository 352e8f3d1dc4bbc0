//! One try of one request, up to the moment at which its answer begins.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{HeaderMap, StatusCode, header};
use tokio::time::{Duration, Instant};

use super::classify::{self, Verdict};
use super::door::PassDoor;
use super::headers;
use super::meter::{AnswerMeter, Framing};
use super::operation::Operation;
use super::retry::Again;
use crate::gateway::seam::DoorError;
use crate::http::{Outgoing, TransportAnswer, TransportError};
use crate::ledger::Cap;
use crate::port::EngineError;

/// Bytes of an error body that are read, and of an answer's beginning that are held back.
const HELD: usize = 64 * 1024;
/// How long an error body may take.
const ERROR_BODY: Duration = Duration::from_secs(10);
/// Said of an answer that cannot be read.
pub(super) const NOT_THE_PROTOCOL: &str = "the provider's answer is not what its protocol says";
/// Rate-limit headers that are kept.
const EVIDENCE: usize = 32;

type Body = BoxStream<'static, Result<Bytes, TransportError>>;

/// An answer that has begun.
pub(super) struct Begun {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// What was read to see that it has begun.
    pub(super) pieces: VecDeque<Bytes>,
    pub(super) body: Body,
    /// Has read `pieces`.
    pub(super) meter: AnswerMeter,
}

/// A try that did not come to an answer.
pub(super) struct Failure {
    pub(super) verdict: Verdict,
    status: Option<StatusCode>,
    body: Bytes,
}

impl From<Failure> for DoorError {
    fn from(failure: Failure) -> Self {
        Self::Failed {
            error: failure.verdict.error,
            status: failure.status,
            body: failure.body,
        }
    }
}

fn failure(error: EngineError, again: Again, status: Option<StatusCode>) -> Failure {
    Failure {
        verdict: Verdict {
            error,
            again,
            overloaded: false,
        },
        status,
        body: Bytes::new(),
    }
}

impl PassDoor {
    /// Tries once. The outer error is the end of the pass, the inner one a failure of the try.
    pub(super) async fn attempt(
        &self,
        operation: Operation,
        request: &Outgoing,
    ) -> Result<Result<Begun, Failure>, DoorError> {
        self.state().ledger.requests += 1;
        let stall = self.grant.limits.stall;
        let sent = self
            .unless_over(tokio::time::timeout(
                stall,
                self.run.transport.send(request.clone()),
            ))
            .await?;
        let answer = match sent {
            Err(_) => return Ok(Err(failure(EngineError::Stalled(stall), Again::No, None))),
            Ok(Err(error)) => {
                return Ok(Err(Failure {
                    verdict: classify::of_transport(&error),
                    status: None,
                    body: Bytes::new(),
                }));
            }
            Ok(Ok(answer)) => answer,
        };
        let now = (self.run.clock)();
        self.keep_evidence(&answer, now);
        if !answer.status.is_success() {
            return self.failed(answer, now).await.map(Err);
        }
        match framing_of(&answer.headers) {
            Ok(framing) => self.peek(operation, framing, answer).await,
            Err(problem) => Ok(Err(failure(
                EngineError::Protocol(problem),
                Again::No,
                Some(answer.status),
            ))),
        }
    }

    /// A failure that holds the credential nowhere.
    pub(super) fn without_secret(&self, mut failure: Failure) -> Failure {
        failure.verdict.error = self.masked(failure.verdict.error);
        let quoted = self
            .grant
            .upstream
            .credential
            .secret()
            .is_some_and(|secret| {
                let secret = secret.expose().as_bytes();
                !secret.is_empty() && memchr::memmem::find(&failure.body, secret).is_some()
            });
        if quoted {
            failure.body = Bytes::new();
        }
        failure
    }

    /// Reads the error body and says what the failure means.
    async fn failed(&self, answer: TransportAnswer, now: u64) -> Result<Failure, DoorError> {
        let read = read_bounded(VecDeque::new(), answer.body);
        let body = self
            .unless_over(tokio::time::timeout(ERROR_BODY, read))
            .await?
            .unwrap_or_default();
        let verdict = classify::of_status(answer.status, &answer.headers, &body, now);
        if verdict.overloaded {
            self.state().ledger.rate_limits.overloaded += 1;
        }
        Ok(Failure {
            verdict,
            status: Some(answer.status),
            body,
        })
    }

    /// Holds the answer back until its first event that is no error, so that a stream that opens
    /// with "overloaded", or breaks off before it said anything, can still be repeated.
    async fn peek(
        &self,
        operation: Operation,
        framing: Framing,
        answer: TransportAnswer,
    ) -> Result<Result<Begun, Failure>, DoorError> {
        let mut meter = AnswerMeter::new(self.grant.upstream.protocol, framing);
        let mut body = answer.body;
        let mut pieces = VecDeque::new();
        let mut held = 0;
        let status = Some(answer.status);
        while operation.answers() && !meter.begun() && held < HELD {
            match self.next_piece(&mut body).await? {
                Ok(Some(piece)) => {
                    meter.feed(&piece);
                    held += piece.len();
                    pieces.push_back(piece);
                }
                Ok(None) => {
                    return Ok(Err(failure(
                        EngineError::Transient("the answer ended before it began".to_owned()),
                        Again::Soon(None),
                        status,
                    )));
                }
                Err(error) => {
                    let again = match error {
                        EngineError::Transient(_) => Again::Soon(None),
                        _ => Again::No,
                    };
                    return Ok(Err(failure(error, again, status)));
                }
            }
            if let Some(error) = meter.error() {
                let verdict = classify::of_wire(error, (self.run.clock)());
                if verdict.overloaded {
                    self.state().ledger.rate_limits.overloaded += 1;
                }
                return Ok(Err(Failure {
                    verdict,
                    status,
                    body: pieces.into_iter().next().unwrap_or_default(),
                }));
            }
            if meter.garbage() {
                return Ok(Err(failure(
                    EngineError::Protocol(NOT_THE_PROTOCOL.to_owned()),
                    Again::No,
                    status,
                )));
            }
        }
        Ok(Ok(Begun {
            status: answer.status,
            headers: headers::downward(&answer.headers),
            pieces,
            body,
            meter,
        }))
    }

    /// The next piece of a body; the outer error is the end of the pass. What has arrived already
    /// is taken without arming a timer.
    pub(super) async fn next_piece(
        &self,
        body: &mut Body,
    ) -> Result<Result<Option<Bytes>, EngineError>, DoorError> {
        let stall = self.grant.limits.stall;
        let next = match body.next().now_or_never() {
            Some(next) if Instant::now() < self.grant.deadline => next,
            Some(_) => return Err(DoorError::Cap(Cap::Time)),
            None => {
                match self
                    .unless_over(tokio::time::timeout(stall, body.next()))
                    .await?
                {
                    Ok(next) => next,
                    Err(_) => return Ok(Err(EngineError::Stalled(stall))),
                }
            }
        };
        Ok(match next {
            None => Ok(None),
            Some(Ok(piece)) => Ok(Some(piece)),
            Some(Err(error)) => Err(EngineError::Transient(error.to_string())),
        })
    }

    fn keep_evidence(&self, answer: &TransportAnswer, now: u64) {
        let evidence = &mut self.state().ledger.rate_limits;
        evidence.limited += u32::from(answer.status == StatusCode::TOO_MANY_REQUESTS);
        if let Some(after) = classify::retry_after(&answer.headers, now) {
            evidence.retry_after = Some(after);
        }
        for (name, value) in &answer.headers {
            let name = name.as_str();
            let limits =
                name.starts_with("x-ratelimit-") || name.starts_with("anthropic-ratelimit-");
            let kept = &mut evidence.headers;
            let room = kept.len() < EVIDENCE || kept.contains_key(name);
            if limits
                && room
                && let Ok(value) = value.to_str()
            {
                kept.insert(name.to_owned(), value.chars().take(200).collect());
            }
        }
    }
}

/// How a success body is framed; the error says what is wrong with it.
fn framing_of(headers: &HeaderMap) -> Result<Framing, String> {
    let text = |name| {
        headers
            .get(name)
            .and_then(|value: &http::HeaderValue| value.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let encoding = text(header::CONTENT_ENCODING);
    if !matches!(encoding.as_str(), "" | "identity") {
        return Err(
            "the provider's answer is compressed although that was not asked for".to_owned(),
        );
    }
    let kind = text(header::CONTENT_TYPE);
    if kind.starts_with("text/html") {
        Err("the provider answered with a web page: check baseUrl".to_owned())
    } else if kind.starts_with("text/event-stream") {
        Ok(Framing::Events)
    } else {
        Ok(Framing::Document)
    }
}

/// The beginning of a body, at most [`HELD`] bytes; what arrived before it broke off.
pub(super) async fn read_bounded(pieces: VecDeque<Bytes>, mut body: Body) -> Bytes {
    let mut out = BytesMut::new();
    for piece in pieces {
        out.extend_from_slice(&piece);
    }
    while out.len() < HELD {
        match body.next().await {
            Some(Ok(piece)) => out.extend_from_slice(&piece[..piece.len().min(HELD - out.len())]),
            Some(Err(_)) | None => break,
        }
    }
    out.freeze()
}

//! What the provider does, step by step.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Reply;

/// Something that a test opens when it wants the provider to go on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(CancellationToken);

impl Gate {
    /// Opens it, for good.
    pub(crate) fn open(&self) {
        self.0.cancel();
    }

    pub(super) async fn wait(&self) {
        self.0.cancelled().await;
    }
}

/// A piece of a body.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    /// Bytes.
    Data(Bytes),
    /// Nothing until the gate opens.
    Wait(Gate),
    /// The connection breaks.
    Cut,
    /// Nothing, for ever.
    Hang,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<Piece>,
}

/// What happens to one request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// A well-formed answer.
    Reply(Reply),
    /// A well-formed answer, of which only so many events arrive, and then this.
    Broken(Reply, usize, Piece),
    /// An answer as it stands.
    Raw(Raw),
    /// The connection breaks before an answer.
    Reset,
    /// No answer, for ever.
    Hang,
    /// Waits for the gate, then does the other step.
    After(Gate, Box<Step>),
}

impl From<Reply> for Step {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl Step {
    /// A status with a body; JSON when it looks like it.
    pub(crate) fn status(status: u16, body: &str) -> Self {
        let kind = if body.starts_with('{') {
            "application/json"
        } else {
            "text/html"
        };
        let mut headers = HeaderMap::new();
        headers.insert("content-type", kind.parse().unwrap());
        Self::Raw(Raw {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: vec![Piece::Data(Bytes::from(body.to_owned()))],
        })
    }

    /// An event stream as it stands.
    pub(crate) fn events(pieces: Vec<Piece>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "text/event-stream".parse().unwrap());
        Self::Raw(Raw {
            status: StatusCode::OK,
            headers,
            body: pieces,
        })
    }

    /// With one more header; only for answers as they stand.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        if let Self::Raw(raw) = &mut self {
            let name: HeaderName = name.parse().unwrap();
            raw.headers.insert(name, value.parse().unwrap());
        }
        self
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Recorded {
    /// A header's text, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// Everything that was sent, for searching by value.
    pub(crate) fn everything(&self) -> Vec<u8> {
        let mut all = self.path.clone().into_bytes();
        for (name, value) in &self.headers {
            all.push(b'\n');
            all.extend_from_slice(name.as_str().as_bytes());
            all.extend_from_slice(b": ");
            all.extend_from_slice(value.as_bytes());
        }
        all.push(b'\n');
        all.extend_from_slice(&self.body);
        all
    }
}

/// Says what happens to a request, by what it asks for.
pub(crate) type Answers = Arc<dyn Fn(&Recorded) -> Step + Send + Sync>;

/// Steps in order, then answers by request, and what was asked.
#[derive(Clone)]
pub(crate) struct Script {
    steps: Arc<Mutex<VecDeque<Step>>>,
    answers: Option<Answers>,
    seen: Arc<Mutex<Vec<Recorded>>>,
    cancelled: Arc<tokio::sync::Semaphore>,
}

impl Script {
    /// A script; when it is over every request gets a final error.
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            steps: Arc::new(Mutex::new(steps.into_iter().collect())),
            answers: None,
            seen: Arc::default(),
            cancelled: Arc::new(tokio::sync::Semaphore::new(0)),
        }
    }

    /// A script that answers each request by what it asks for, in whatever order they come.
    pub(crate) fn answering(answer: impl Fn(&Recorded) -> Step + Send + Sync + 'static) -> Self {
        Self {
            answers: Some(Arc::new(answer)),
            ..Self::new([])
        }
    }

    /// Adds a step.
    pub(crate) fn push(&self, step: impl Into<Step>) {
        self.steps.lock().unwrap().push_back(step.into());
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.seen.lock().unwrap().clone()
    }

    /// Waits until `count` answers were given up by whoever asked for them.
    pub(crate) async fn given_up(&self, count: u32) {
        self.cancelled.acquire_many(count).await.unwrap().forget();
    }

    pub(super) fn note_given_up(&self) {
        self.cancelled.add_permits(1);
    }

    /// Takes a request and says what happens to it.
    pub(super) fn next(&self, request: Recorded) -> Action {
        let step = self.steps.lock().unwrap().pop_front();
        let step = step.or_else(|| Some(self.answers.as_ref()?(&request)));
        let step = step.unwrap_or_else(|| {
            Step::status(500, "{\"error\":{\"message\":\"the script is over\"}}")
                .header("x-should-retry", "false")
        });
        let action = Action::of(step, &request);
        self.seen.lock().unwrap().push(request);
        action
    }
}

/// A step, made ready for the request at hand.
pub(super) struct Action {
    pub(super) gates: Vec<Gate>,
    pub(super) act: Act,
}

pub(super) enum Act {
    Answer(Raw),
    Reset,
    Hang,
}

impl Action {
    fn of(step: Step, request: &Recorded) -> Self {
        let act = match step {
            Step::After(gate, step) => {
                let mut action = Self::of(*step, request);
                action.gates.insert(0, gate);
                return action;
            }
            Step::Reply(reply) => Act::Answer(raw(&reply, request)),
            Step::Broken(reply, events, then) => {
                let mut raw = raw(&reply, request);
                raw.body.truncate(events);
                raw.body.push(then);
                Act::Answer(raw)
            }
            Step::Raw(raw) => Act::Answer(raw),
            Step::Reset => Act::Reset,
            Step::Hang => Act::Hang,
        };
        Self {
            gates: Vec::new(),
            act,
        }
    }
}

fn raw(reply: &Reply, request: &Recorded) -> Raw {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let stream = body["stream"] == serde_json::json!(true);
    let kind = if stream {
        "text/event-stream; charset=utf-8"
    } else {
        "application/json"
    };
    let mut headers = HeaderMap::new();
    headers.insert("content-type", kind.parse().unwrap());
    headers.insert("request-id", "req_1".parse().unwrap());
    Raw {
        status: StatusCode::OK,
        headers,
        body: reply
            .render(&request.path, &body)
            .into_iter()
            .map(|text| Piece::Data(Bytes::from(text)))
            .collect(),
    }
}

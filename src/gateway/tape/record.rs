//! Recording: a transport that passes every exchange on and writes it down.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use http::HeaderMap;

use super::canonical::canonical;
use super::file::{self, Answer, Body, Exchange, Header, TapeError};
use crate::http::{Outgoing, Transport, TransportAnswer, TransportError};

/// Bytes of one answer that are kept; what is longer is recorded as cut.
const MAX_ANSWER: usize = 128 << 20;

/// Records what passes through it.
pub struct Recorder {
    inner: Arc<dyn Transport>,
    tape: Arc<Tape>,
}

struct Tape {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    exchanges: usize,
    occurrences: HashMap<String, u32>,
    failed: Option<TapeError>,
}

impl Recorder {
    /// Begins a tape in a folder that is not there yet, or empty. `inner` does the work.
    pub fn begin(
        folder: &Path,
        header: &Header,
        inner: Arc<dyn Transport>,
    ) -> Result<Self, TapeError> {
        file::create(folder, header)?;
        Ok(Self {
            inner,
            tape: Arc::new(Tape {
                folder: folder.to_owned(),
                state: Mutex::default(),
            }),
        })
    }

    /// The first exchange that could not be written, if any: without it the tape is not whole.
    pub fn problem(&self) -> Option<TapeError> {
        self.tape.lock().failed.take()
    }
}

impl Tape {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of an exchange, and how many equal ones there were before it.
    fn open(&self, request: &str) -> (usize, u32) {
        let mut state = self.lock();
        let number = state.exchanges;
        state.exchanges += 1;
        let seen = state.occurrences.entry(request.to_owned()).or_default();
        let occurrence = *seen;
        *seen += 1;
        (number, occurrence)
    }
}

/// An exchange on its way: written when it ends, also when its reader goes away.
struct Open {
    tape: Arc<Tape>,
    number: usize,
    exchange: Option<Exchange>,
}

impl Open {
    fn end(&mut self, answer: Answer) {
        if let Some(mut exchange) = self.exchange.take() {
            exchange.answer = answer;
            if let Err(error) = file::write_exchange(&self.tape.folder, self.number, &exchange) {
                self.tape.lock().failed.get_or_insert(error);
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end(Answer::GivenUp);
    }
}

impl Transport for Recorder {
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>> {
        Box::pin(async move {
            let text = canonical(&request);
            let (number, occurrence) = self.tape.open(&text);
            let mut open = Open {
                tape: Arc::clone(&self.tape),
                number,
                exchange: Some(Exchange {
                    request: text,
                    occurrence,
                    answer: Answer::GivenUp,
                }),
            };
            match self.inner.send(request).await {
                Err(error) => {
                    let words = error.clone();
                    open.end(match words {
                        TransportError::Lost(error) => Answer::Lost { error },
                        TransportError::Connect(error) | TransportError::Unusable(error) => {
                            Answer::NotConnected { error }
                        }
                    });
                    Err(error)
                }
                Ok(answer) => {
                    let body = Recorded {
                        inner: answer.body,
                        status: answer.status.as_u16(),
                        headers: kept(&answer.headers),
                        bytes: Vec::new(),
                        open,
                    };
                    Ok(TransportAnswer {
                        body: Box::pin(body),
                        ..answer
                    })
                }
            }
        })
    }
}

/// The headers that mean something to the door.
fn kept(headers: &HeaderMap) -> Vec<(String, String)> {
    let means = |name: &str| {
        matches!(
            name,
            "content-type" | "content-encoding" | "retry-after" | "retry-after-ms"
        ) || name.starts_with("x-ratelimit-")
            || name.starts_with("anthropic-ratelimit-")
            || name.starts_with("x-codex-")
            || name == "x-should-retry"
    };
    headers
        .iter()
        .filter(|(name, _)| means(name.as_str()))
        .filter_map(|(name, value)| {
            let value = crate::detect::mask(value.to_str().ok()?).into_owned();
            Some((name.as_str().to_owned(), value))
        })
        .collect()
}

/// A body that is read and kept.
struct Recorded {
    inner: BoxStream<'static, Result<Bytes, TransportError>>,
    status: u16,
    headers: Vec<(String, String)>,
    bytes: Vec<u8>,
    open: Open,
}

impl Recorded {
    fn end(&mut self, cut: Option<String>) {
        let answer = Answer::Answered {
            status: self.status,
            headers: std::mem::take(&mut self.headers),
            body: Body::of(&std::mem::take(&mut self.bytes)),
            cut,
        };
        self.open.end(answer);
    }
}

impl Stream for Recorded {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = this.inner.as_mut().poll_next(context);
        match &next {
            Poll::Ready(Some(Ok(piece))) => {
                let room = MAX_ANSWER.saturating_sub(this.bytes.len());
                this.bytes
                    .extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.len() > room {
                    this.end(Some(format!("longer than {MAX_ANSWER} bytes")));
                }
            }
            Poll::Ready(Some(Err(error))) => {
                let words = match error {
                    TransportError::Lost(words)
                    | TransportError::Connect(words)
                    | TransportError::Unusable(words) => words.clone(),
                };
                this.end(Some(words));
            }
            Poll::Ready(None) => this.end(None),
            Poll::Pending => {}
        }
        next
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        if self.open.exchange.is_some() {
            self.end(Some("the reader went away".to_owned()));
        }
    }
}

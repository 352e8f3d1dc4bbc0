//! The provider without a socket, for tests on the paused clock.

use std::pin::Pin;

use bytes::Bytes;
use ecr::http::{Outgoing, Transport, TransportAnswer, TransportError};
use futures_util::StreamExt as _;
use futures_util::stream;

use super::script::Act;
use super::{Piece, Recorded, Script};

/// Plays a script in memory.
pub(crate) struct MemoryProvider {
    script: Script,
}

impl MemoryProvider {
    /// A provider that plays `script`.
    pub(crate) fn new(script: Script) -> Self {
        Self { script }
    }
}

impl Transport for MemoryProvider {
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>> {
        Box::pin(async move {
            let query = request
                .url
                .query()
                .map_or(String::new(), |q| format!("?{q}"));
            let action = self.script.next(Recorded {
                path: format!("{}{query}", request.url.path()),
                headers: request.headers,
                body: request.body,
            });
            let unfinished = GivenUp(Some(self.script.clone()));
            for gate in &action.gates {
                gate.wait().await;
            }
            let raw = match action.act {
                Act::Reset => {
                    unfinished.finished();
                    return Err(TransportError::Lost("reset".to_owned()));
                }
                Act::Hang => std::future::pending().await,
                Act::Answer(raw) => raw,
            };
            let pieces = raw.body.into_iter();
            let body = stream::unfold(
                (pieces, unfinished),
                |(mut pieces, unfinished)| async move {
                    loop {
                        let item: Result<Bytes, TransportError> = match pieces.next() {
                            None => {
                                unfinished.finished();
                                return None;
                            }
                            Some(Piece::Data(bytes)) => Ok(bytes),
                            Some(Piece::Wait(gate)) => {
                                gate.wait().await;
                                continue;
                            }
                            Some(Piece::Hang) => std::future::pending().await,
                            Some(Piece::Cut) => Err(TransportError::Lost("cut".to_owned())),
                        };
                        return Some((item, (pieces, unfinished)));
                    }
                },
            );
            Ok(TransportAnswer {
                status: raw.status,
                headers: raw.headers,
                body: body.boxed(),
            })
        })
    }
}

/// Says so when an exchange is dropped before its end.
pub(super) struct GivenUp(pub(super) Option<Script>);

impl GivenUp {
    pub(super) fn finished(mut self) {
        self.0 = None;
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(script) = self.0.take() {
            script.note_given_up();
        }
    }
}

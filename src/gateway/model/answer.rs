//! An answer on its way down, and the books of its call.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::sync::OwnedSemaphorePermit;

use super::attempt::{Begun, NOT_THE_PROTOCOL};
use super::classify;
use super::door::PassDoor;
use super::meter::{AnswerMeter, Measured};
use crate::gateway::seam::{AnswerEnd, DoorError, ModelAnswer};
use crate::http::TransportError;
use crate::ledger::{Estimate, Prices, Reservation, Spent};
use crate::model::{ModelId, TokenCounts, Usage};
use crate::port::EngineError;

/// How an answer came to its end.
#[derive(Clone, Copy)]
enum Ending<'a> {
    /// Nothing more comes from the provider.
    Arrived,
    /// It was cut: the connection, the deadline, the stall window, cancellation.
    Stopped(&'a DoorError),
    /// The client went away.
    ClientLeft,
}

/// A call whose room is reserved. Whatever becomes of it, its reservation is given back: when it
/// is dropped before it was sent, whole; after it was sent, less what it took or may have taken.
pub(super) struct OpenCall {
    door: Arc<PassDoor>,
    reservation: Option<Reservation>,
    estimate: Estimate,
    prices: Option<Prices>,
    /// The provider may have received it, and has not said that it failed.
    sent: bool,
    /// Frees the run's slot when the call is over.
    _slot: OwnedSemaphorePermit,
}

impl OpenCall {
    pub(super) fn new(
        door: Arc<PassDoor>,
        reservation: Reservation,
        estimate: Estimate,
        prices: Option<Prices>,
        slot: OwnedSemaphorePermit,
    ) -> Self {
        door.state().open_calls += 1;
        Self {
            door,
            reservation: Some(reservation),
            estimate,
            prices,
            sent: false,
            _slot: slot,
        }
    }

    /// A try begins (`true`), or is known to have come to nothing.
    pub(super) fn sent(&mut self, sent: bool) {
        self.sent = sent;
    }

    fn settle(&mut self, measured: Measured) -> bool {
        let Some(reservation) = self.reservation.take() else {
            return false;
        };
        let cost = self
            .prices
            .map(|prices| prices.cost(measured.tokens, measured.long_lived_writes));
        let TokenCounts {
            input,
            output,
            cache_read,
            cache_write,
            ..
        } = measured.tokens;
        self.door.run.books().settle(
            reservation,
            Spent {
                input: input.saturating_add(cache_read).saturating_add(cache_write),
                output,
                cost,
            },
        );
        let usage = if measured.exact {
            Usage::Exact(measured.tokens, cost)
        } else {
            Usage::Estimated(measured.tokens, cost)
        };
        let grant = &self.door.grant;
        {
            let mut state = self.door.state();
            state.ledger.usage = state.ledger.usage.plus(usage);
        }
        grant.meter.add(&grant.pass, usage);
        true
    }

    /// Closes the books of an answer that began. Only the first call counts.
    fn finish(&mut self, meter: &AnswerMeter, ending: Ending<'_>) {
        if !self.settle(meter.usage(self.estimate.input)) {
            return;
        }
        let now = (self.door.run.clock)();
        let verdict = meter.error().map(|error| classify::of_wire(error, now));
        let end = match ending {
            Ending::Arrived => meter.end(),
            Ending::Stopped(_) | Ending::ClientLeft => AnswerEnd::Cut,
        };
        if let Some(verdict) = &verdict
            && let EngineError::UsageLimited { resets_at } = verdict.error
        {
            let door = &self.door;
            door.run.breakers.trip(&door.grant.upstream, resets_at);
        }
        let provider = &self.door.grant.upstream.provider;
        let mut state = self.door.state();
        let ledger = &mut state.ledger;
        ledger.turns += 1;
        ledger.last_end = Some(end);
        if let Some(model) = meter.model() {
            ledger.model_answered = ModelId::new(&format!("{provider}/{model}")).ok();
        }
        let failed =
            verdict.is_some() || end == AnswerEnd::Cut && !matches!(ending, Ending::ClientLeft);
        state.broken = if failed { state.broken + 1 } else { 0 };
        let ledger = &mut state.ledger;
        if let Some(verdict) = verdict {
            ledger.rate_limits.overloaded += u32::from(verdict.overloaded);
            ledger.error = Some(self.door.masked(verdict.error));
        } else {
            match (ending, end) {
                (Ending::Stopped(DoorError::Cap(cap)), _) => ledger.cap = Some(*cap),
                (Ending::Stopped(DoorError::Failed { error, .. }), _) => {
                    ledger.error = Some(error.clone());
                }
                // Why it left is for the engine to say; the provider did nothing wrong.
                (Ending::ClientLeft, _) => {}
                (Ending::Arrived, AnswerEnd::Refused) => {
                    ledger.error = Some(EngineError::Refused("the model declined".to_owned()));
                }
                (Ending::Arrived, AnswerEnd::Cut) if meter.garbage() => {
                    ledger.error = Some(EngineError::Protocol(NOT_THE_PROTOCOL.to_owned()));
                }
                (Ending::Arrived, AnswerEnd::Cut) => {
                    ledger.error = Some(EngineError::Transient("the answer broke off".to_owned()));
                }
                (Ending::Arrived, AnswerEnd::Complete | AnswerEnd::Truncated) => {
                    ledger.error = None;
                }
            }
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if self.sent {
            // Nobody knows whether the provider counts it: the prompt is taken as spent.
            self.settle(Measured {
                tokens: TokenCounts {
                    input: self.estimate.input,
                    ..TokenCounts::default()
                },
                long_lived_writes: 0,
                exact: false,
            });
        } else if let Some(reservation) = self.reservation.take() {
            self.door.run.books().release(reservation);
        }
        self.door.state().open_calls -= 1;
        self.door.idle.notify_waiters();
    }
}

/// An answer that is being passed down.
pub(super) struct Serving {
    open: OpenCall,
    meter: AnswerMeter,
    pieces: VecDeque<Bytes>,
    /// Gone when the answer is over: dropping it closes the upstream connection.
    body: Option<BoxStream<'static, Result<Bytes, TransportError>>>,
}

impl Serving {
    /// Passes an answer down.
    pub(super) fn answer(begun: Begun, open: OpenCall) -> ModelAnswer {
        let Begun {
            status,
            headers,
            pieces,
            body,
            meter,
        } = begun;
        let mut serving = Self {
            open,
            meter,
            pieces,
            body: Some(body),
        };
        serving.close_books_if_complete();
        let body = stream::unfold(serving, |mut serving| async move {
            let piece = serving.next().await?;
            Some((piece, serving))
        });
        ModelAnswer {
            status,
            headers,
            body: body.boxed(),
        }
    }

    async fn next(&mut self) -> Option<Result<Bytes, DoorError>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Some(Ok(piece));
        }
        let body = self.body.as_mut()?;
        let next = match self.open.door.next_piece(body).await {
            Ok(Ok(next)) => Ok(next),
            Ok(Err(error)) => Err(DoorError::from(error)),
            Err(over) => Err(over),
        };
        match next {
            Ok(Some(piece)) => {
                self.meter.feed(&piece);
                self.close_books_if_complete();
                Some(Ok(piece))
            }
            Ok(None) => {
                self.body = None;
                self.open.finish(&self.meter, Ending::Arrived);
                // A clean end would read as an answer.
                self.broke_off().map(|error| Err(error.into()))
            }
            Err(stopped) => {
                self.body = None;
                self.open.finish(&self.meter, Ending::Stopped(&stopped));
                Some(Err(stopped))
            }
        }
    }

    /// What the client is told of an answer that ended without its end.
    fn broke_off(&self) -> Option<EngineError> {
        (self.meter.error().is_none() && self.meter.end() == AnswerEnd::Cut)
            .then(|| EngineError::Transient("the answer broke off".to_owned()))
    }

    /// The client may leave as soon as it has the last event, so the books are closed before it gets it.
    fn close_books_if_complete(&mut self) {
        if self.meter.complete() {
            self.open.finish(&self.meter, Ending::Arrived);
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.body.is_some() {
            self.open.finish(&self.meter, Ending::ClientLeft);
        }
    }
}

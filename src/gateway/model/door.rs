//! One pass at the model door: what is let through, and what becomes of it.
//!
//! @ref LLP 0010#the-model-door — what passes, and what a missing tool would look like

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{Method, StatusCode};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::{OpenCall, Serving};
use super::attempt::{Begun, Failure};
use super::breaker::Breakers;
use super::headers;
use super::operation::Operation;
use super::refusal;
use super::request::RequestFacts;
use super::retry::Retries;
use crate::gateway::seam::{DoorError, FinalStyle, ModelAnswer, ModelCall, PassGrant, PassLedger};
use crate::http::{Outgoing, Transport};
use crate::ledger::{Books, Cap, Estimate, PassCaps, PriceTable, Prices, RunCaps};
use crate::model::{ModelId, Secret, Usage};
use crate::port::{EngineError, ProgressEvent};

/// Model calls that a landing pass may still make after the model was told that time is up.
const LANDING_ROUNDS: u32 = 2;
/// Answers in a row that broke off: after so many the client is told to stop. Some repeat a call for ever
/// whose answer has no end.
const BROKEN: u32 = 3;
/// How long `close` waits for open calls to be settled.
const SETTLING: Duration = Duration::from_secs(1);

/// What the model doors of a run share.
pub(crate) struct RunDoorSettings {
    /// Sends the requests.
    pub(crate) transport: Arc<dyn Transport>,
    /// Caps of the run.
    pub(crate) caps: RunCaps,
    /// What models cost.
    pub(crate) prices: PriceTable,
    /// Model calls of the run at the same time; others wait.
    pub(crate) concurrent_calls: usize,
    /// Seconds since the Unix epoch.
    pub(crate) clock: fn() -> u64,
}

/// The run's side of the model door.
pub(crate) struct RunDoor {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) prices: PriceTable,
    pub(super) breakers: Breakers,
    pub(super) clock: fn() -> u64,
    slots: Arc<Semaphore>,
    books: Mutex<Books>,
}

impl RunDoor {
    /// A run that has spent nothing.
    pub(crate) fn new(settings: RunDoorSettings) -> Self {
        Self {
            transport: settings.transport,
            prices: settings.prices,
            breakers: Breakers::default(),
            clock: settings.clock,
            slots: Arc::new(Semaphore::new(settings.concurrent_calls.max(1))),
            books: Mutex::new(Books::new(settings.caps)),
        }
    }

    /// The run's books.
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pass's side of the model door.
pub(crate) struct PassDoor {
    pub(super) run: Arc<RunDoor>,
    pub(super) grant: PassGrant,
    pub(super) idle: Notify,
    placeholder: Secret<String>,
    opened: Instant,
    closed: CancellationToken,
    state: Mutex<State>,
}

/// What changes while a pass runs.
pub(super) struct State {
    pub(super) ledger: PassLedger,
    pub(super) open_calls: u32,
    /// The tools were found right once.
    tools_seen: bool,
    /// Token counts asked for.
    counts: u32,
    /// Model calls since the model was told that time is up.
    landing_rounds: u32,
    /// Answers in a row that began and failed.
    pub(super) broken: u32,
}

impl PassDoor {
    /// Opens the door for a pass.
    pub(crate) fn open(run: Arc<RunDoor>, grant: PassGrant, placeholder: Secret<String>) -> Self {
        let opened = Instant::now();
        let limits = &grant.limits;
        run.books().open(
            grant.pass.clone(),
            PassCaps {
                turns: limits.turns,
                tool_calls: limits.tool_calls,
                input_tokens: limits.input_tokens,
                output_tokens: limits.output_tokens,
                cost: limits.cost,
                time: grant.deadline.saturating_duration_since(opened),
                concurrent: limits.concurrent_calls,
            },
        );
        let ledger = PassLedger {
            usage: Usage::NONE,
            ..PassLedger::default()
        };
        if run.prices.of(&grant.model).is_none() {
            let text = format!(
                "no price known for {}: counted in tokens, money is not capped",
                grant.model
            );
            let activity = ProgressEvent::PassActivity(grant.pass.clone(), text);
            grant.progress.event(activity);
        }
        Self {
            run,
            grant,
            idle: Notify::new(),
            placeholder,
            opened,
            closed: CancellationToken::new(),
            state: Mutex::new(State {
                ledger,
                open_calls: 0,
                tools_seen: false,
                counts: 0,
                landing_rounds: 0,
                broken: 0,
            }),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child's stand-in for a key.
    pub(crate) fn placeholder(&self) -> &Secret<String> {
        &self.placeholder
    }

    /// Fires when the pass is over.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// The books as they stand.
    pub(crate) fn ledger(&self) -> PassLedger {
        let mut ledger = self.state().ledger.clone();
        if let Some(tools) = &self.grant.tools {
            ledger.tool_calls = tools.record().calls;
            ledger.finished = tools.finished();
        }
        ledger
    }

    /// Ends the pass: nothing is served any more, open calls are cut and settled.
    pub(crate) async fn close(&self) -> PassLedger {
        self.closed.cancel();
        let settled = async {
            loop {
                let notified = self.idle.notified();
                if self.state().open_calls == 0 {
                    break;
                }
                notified.await;
            }
        };
        // A caller that holds an answer without reading it settles when it lets go.
        let _ = tokio::time::timeout(SETTLING, settled).await;
        self.run.books().close(&self.grant.pass);
        self.ledger()
    }

    /// Ends the pass at once, for a port that is dropped.
    pub(crate) fn abandon(&self) {
        self.closed.cancel();
        self.run.books().close(&self.grant.pass);
    }

    /// An error as the client at hand takes it: status and JSON body.
    pub(crate) fn refusal(&self, error: &DoorError) -> (StatusCode, Bytes) {
        refusal::render(error, self.grant.style, self.grant.upstream.protocol)
    }

    /// Whether a path belongs to the model door.
    pub(crate) fn serves(path: &str) -> bool {
        Operation::of_path(path).is_some()
    }

    /// Performs one call.
    pub(crate) async fn call(self: &Arc<Self>, call: ModelCall) -> Result<ModelAnswer, DoorError> {
        let path = call.path.split('?').next().unwrap_or_default();
        let operation = Operation::of_path(path)
            .filter(|operation| operation.speaks(self.grant.upstream.protocol))
            .ok_or_else(|| {
                DoorError::from(EngineError::Protocol(
                    "the provider of this pass has no such operation".to_owned(),
                ))
            })?;
        if operation.answers() {
            let served = self.answer(operation, &call).await;
            if let Err(error) = &served
                && !self.is_finished()
            {
                self.note(error);
            }
            served
        } else {
            self.count(operation, &call).await
        }
    }

    /// Keeps an error in the books, where it decides what became of the pass.
    pub(super) fn note(&self, error: &DoorError) {
        let ledger = &mut self.state().ledger;
        match error {
            DoorError::Cap(cap) => ledger.cap = Some(*cap),
            DoorError::Failed { error, .. } => ledger.error = Some(error.clone()),
        }
    }

    fn alive(&self) -> Result<(), DoorError> {
        if self.closed.is_cancelled() || self.grant.cancel.is_cancelled() {
            return Err(EngineError::Cancelled.into());
        }
        if Instant::now() >= self.grant.deadline {
            return Err(DoorError::Cap(Cap::Time));
        }
        Ok(())
    }

    /// Waits for `work`, unless the pass ends first.
    pub(super) async fn unless_over<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, DoorError> {
        tokio::select! {
            biased;
            () = self.grant.cancel.cancelled() => Err(EngineError::Cancelled.into()),
            () = self.closed.cancelled() => Err(EngineError::Cancelled.into()),
            () = tokio::time::sleep_until(self.grant.deadline) => Err(DoorError::Cap(Cap::Time)),
            out = work => Ok(out),
        }
    }

    fn left(&self) -> Duration {
        self.grant
            .deadline
            .saturating_duration_since(Instant::now())
    }

    /// A call that asks the model for an answer.
    async fn answer(
        self: &Arc<Self>,
        operation: Operation,
        call: &ModelCall,
    ) -> Result<ModelAnswer, DoorError> {
        self.alive()?;
        self.check_broken()?;
        if self.is_finished() {
            return Err(EngineError::Cancelled.into());
        }
        let (facts, request) = self.read(operation, call)?;
        self.check_tools(&facts)?;
        self.check_landing()?;
        self.check_breaker()?;
        let slot = self
            .unless_over(Arc::clone(&self.run.slots).acquire_owned())
            .await?
            .map_err(|_| EngineError::Cancelled)?;
        self.check_breaker()?;
        let prices = self.prices(&facts);
        let output = facts
            .max_output
            .unwrap_or(u64::MAX)
            .min(self.grant.limits.max_output_per_call);
        let estimate = Estimate {
            input: facts.input_estimate,
            output,
            cost: prices
                .map(|prices| prices.ceiling(facts.input_estimate, output, facts.long_lived_cache)),
        };
        let reservation = self
            .run
            .books()
            .reserve(&self.grant.pass, estimate, self.opened.elapsed())
            .map_err(DoorError::Cap)?;
        let mut open = OpenCall::new(Arc::clone(self), reservation, estimate, prices, slot);
        let begun = self.begin(operation, &request, &mut open).await?;
        Ok(Serving::answer(begun, open))
    }

    /// Repeats the request until it begins to answer or is final.
    async fn begin(
        &self,
        operation: Operation,
        request: &Outgoing,
        open: &mut OpenCall,
    ) -> Result<Begun, DoorError> {
        let mut retries = Retries::default();
        loop {
            open.sent(true);
            let tried = self.attempt(operation, request).await?;
            let failure = match tried {
                Ok(begun) => return Ok(begun),
                Err(failure) => failure,
            };
            let failure = self.without_secret(failure);
            if let EngineError::Stalled(_) = failure.verdict.error {
                // The provider may be working on it all the same: it counts as sent.
                return Err(failure.into());
            }
            open.sent(false);
            if let EngineError::UsageLimited { resets_at } = failure.verdict.error {
                self.run.breakers.trip(&self.grant.upstream, resets_at);
            }
            let Some(wait) = retries.next(failure.verdict.again, self.left()) else {
                return Err(failure.into());
            };
            self.say(format!(
                "{}: trying again in {} s",
                failure.verdict.error,
                wait.as_secs()
            ));
            self.unless_over(tokio::time::sleep(wait)).await?;
            // Another pass may have learned meanwhile that the allowance is used up.
            self.check_breaker()?;
        }
    }

    /// A count of tokens: free of charge, no turn, tried once. Its failures say nothing about the
    /// pass, and the clients do without it.
    async fn count(
        &self,
        operation: Operation,
        call: &ModelCall,
    ) -> Result<ModelAnswer, DoorError> {
        self.alive()?;
        let (_, request) = self.read(operation, call)?;
        self.check_breaker()?;
        {
            let mut state = self.state();
            if state.counts >= self.grant.limits.turns {
                return Err(DoorError::Cap(Cap::Turns));
            }
            state.counts += 1;
        }
        let begun = self
            .attempt(operation, &request)
            .await?
            .map_err(|failure: Failure| DoorError::from(failure))?;
        let whole = self
            .unless_over(tokio::time::timeout(
                self.grant.limits.stall,
                super::attempt::read_bounded(begun.pieces, begun.body),
            ))
            .await?
            .map_err(|_| EngineError::Stalled(self.grant.limits.stall))?;
        Ok(ModelAnswer {
            status: begun.status,
            headers: begun.headers,
            body: stream::once(async { Ok(whole) }).boxed(),
        })
    }

    /// Reads a request and turns it into the one that goes out.
    fn read(
        &self,
        operation: Operation,
        call: &ModelCall,
    ) -> Result<(RequestFacts, Outgoing), DoorError> {
        let placeholder = self.placeholder.expose().as_bytes();
        let query = call.path.split_once('?').map(|(_, query)| query);
        let carried = memchr::memmem::find(&call.body, placeholder).is_some()
            || memchr::memmem::find(call.path.as_bytes(), placeholder).is_some();
        if carried {
            return Err(EngineError::Protocol(
                "the request carries the pass's placeholder outside of its credential headers"
                    .to_owned(),
            )
            .into());
        }
        let facts = RequestFacts::read(operation, &call.body).map_err(EngineError::Protocol)?;
        let upstream = &self.grant.upstream;
        let headers = headers::upward(&call.headers, upstream, self.placeholder.expose())
            .map_err(EngineError::Auth)?;
        let request = Outgoing {
            method: Method::POST,
            url: operation.address(upstream, query),
            headers,
            body: call.body.clone(),
        };
        Ok((facts, request))
    }

    /// The review was finished, and a model call more would buy nothing. The tools end at once when they are
    /// refused; our own loop does not ask again.
    fn is_finished(&self) -> bool {
        let tools = self.grant.tools.as_ref();
        self.grant.style != FinalStyle::Api && tools.is_some_and(|tools| tools.finished())
    }

    fn check_broken(&self) -> Result<(), DoorError> {
        let state = self.state();
        match &state.ledger.error {
            Some(error) if state.broken >= BROKEN => Err(error.clone().into()),
            _ => Ok(()),
        }
    }

    fn check_tools(&self, facts: &RequestFacts) -> Result<(), DoorError> {
        let mut state = self.state();
        let problem = facts.tools_problem(
            &self.grant.expected_tools,
            &self.grant.allowed_tools,
            !state.tools_seen,
        );
        if let Some(problem) = problem {
            return Err(EngineError::Protocol(problem).into());
        }
        state.tools_seen = true;
        Ok(())
    }

    fn check_landing(&self) -> Result<(), DoorError> {
        let Some(tools) = &self.grant.tools else {
            return Ok(());
        };
        let calls = tools.record().calls;
        let near = {
            let mut books = self.run.books();
            books.note_tool_calls(&self.grant.pass, calls);
            books.near(&self.grant.pass)
        };
        let landing = &self.grant.landing;
        if let Some(cap) = near {
            landing.begin(cap);
        }
        if !landing.announced() {
            return Ok(());
        }
        let mut state = self.state();
        state.landing_rounds += 1;
        if state.landing_rounds > LANDING_ROUNDS {
            return Err(DoorError::Cap(landing.reason().unwrap_or(Cap::Time)));
        }
        Ok(())
    }

    fn check_breaker(&self) -> Result<(), DoorError> {
        let now = (self.run.clock)();
        Ok(self.run.breakers.check(&self.grant.upstream, now)?)
    }

    /// The price of what is asked for; of what was granted when that is not known.
    fn prices(&self, facts: &RequestFacts) -> Option<Prices> {
        let asked = facts.model.as_ref().and_then(|model| {
            ModelId::new(&format!("{}/{model}", self.grant.upstream.provider)).ok()
        });
        asked
            .and_then(|model| self.run.prices.of(&model))
            .or_else(|| self.run.prices.of(&self.grant.model))
    }

    /// The same error without the credential: a provider may quote what it was shown.
    pub(super) fn masked(&self, error: EngineError) -> EngineError {
        let secret = self.grant.upstream.credential.secret();
        let Some(secret) = secret.map(Secret::expose).filter(|s| !s.is_empty()) else {
            return error;
        };
        let clean = |text: String| text.replace(secret.as_str(), "***");
        match error {
            EngineError::Unavailable(text) => EngineError::Unavailable(clean(text)),
            EngineError::Transient(text) => EngineError::Transient(clean(text)),
            EngineError::Refused(text) => EngineError::Refused(clean(text)),
            EngineError::Protocol(text) => EngineError::Protocol(clean(text)),
            other => other,
        }
    }

    /// Tells a person following the run.
    pub(super) fn say(&self, text: String) {
        self.grant
            .progress
            .event(ProgressEvent::PassActivity(self.grant.pass.clone(), text));
    }
}

//! The one task that owns the dispatcher: it turns what happens into events and carries actions out.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::collect::Collector;
use super::notes::plain;
use super::plan::PlannedPass;
use super::run::{EngineSet, TaskWriter};
use super::step::{Action, Dispatcher, Ending, Event, after};
use crate::diff::Diff;
use crate::model::{EngineName, ModelId};
use crate::port::{
    EngineError, FindingSink, Meter, PassContext, PassOutcome, PassRequest, Progress, ProgressEvent,
};
use crate::tree::Tree;

/// How long dropped futures may take to run their guards when the passes are over.
const DRAIN: Duration = Duration::from_secs(1);
/// How long an engine may take to say that it can run.
const PREFLIGHT: Duration = Duration::from_secs(30);

/// Lets a running pass (or who works for it) put more passes in the queue.
#[derive(Debug, Clone)]
pub struct Enqueue(mpsc::UnboundedSender<PlannedPass>);

impl Enqueue {
    /// Queues `pass`; false when the run takes no more.
    pub fn push(&self, pass: PlannedPass) -> bool {
        self.0.send(pass).is_ok()
    }
}

/// The other end of [`Enqueue`], for `RunDeps`.
#[derive(Debug)]
pub struct Incoming(mpsc::UnboundedReceiver<PlannedPass>);

/// A way into the queue of a run.
pub fn feed() -> (Enqueue, Incoming) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Enqueue(sender), Incoming(receiver))
}

/// What every pass of a run shares.
pub(super) struct Shared {
    pub(super) diff: Arc<Diff>,
    pub(super) tree: Option<Arc<dyn Tree>>,
    pub(super) collector: Arc<Collector>,
    pub(super) progress: Arc<dyn Progress>,
    pub(super) cancel: CancellationToken,
    pub(super) tasks: Option<TaskWriter>,
}

type AttemptEnd = Result<PassOutcome, EngineError>;

struct Driver<'a> {
    shared: &'a Shared,
    engines: &'a EngineSet,
    tasks: JoinSet<AttemptEnd>,
    running: HashMap<Id, u64>,
    handles: HashMap<u64, AbortHandle>,
}

/// Runs everything that is queued, and what comes in meanwhile, to its end. Gives how long at least one model pass was
/// running; how the passes ended is with the dispatcher.
pub(super) async fn dispatch(
    shared: &Shared,
    engines: &EngineSet,
    dispatcher: &mut Dispatcher,
    passes: Vec<PlannedPass>,
    incoming: &mut Incoming,
) -> Duration {
    let mut driver = Driver {
        shared,
        engines,
        tasks: JoinSet::new(),
        running: HashMap::new(),
        handles: HashMap::new(),
    };
    let mut model_time = Duration::ZERO;
    let mut since = Instant::now();
    let mut queued = passes.into_iter();
    let mut feeding = true;
    loop {
        let cancelled = shared.cancel.is_cancelled() && !dispatcher.is_cancelled();
        // What is planned goes in whole before anything else, so that the order of the plan holds.
        let mut next = || queued.next().or_else(|| incoming.0.try_recv().ok());
        let event = if cancelled {
            Event::Cancel
        } else if let Some(pass) = next() {
            Event::Enqueue(Box::new(pass))
        } else if dispatcher.is_done() {
            break;
        } else {
            let wake = dispatcher.next_wake();
            tokio::select! {
                biased;
                () = shared.cancel.cancelled(), if !dispatcher.is_cancelled() => Event::Cancel,
                pass = incoming.0.recv(), if feeding => {
                    let Some(pass) = pass else {
                        feeding = false;
                        continue;
                    };
                    Event::Enqueue(Box::new(pass))
                }
                Some(end) = driver.tasks.join_next_with_id() => match driver.ended(end) {
                    Some(event) => event,
                    None => continue,
                },
                () = sleep_until(wake.unwrap_or_else(|| after(Instant::now(), DRAIN))) => Event::Tick,
            }
        };
        let busy = dispatcher.model_active();
        let now = Instant::now();
        if busy {
            model_time += now.saturating_duration_since(since);
        }
        since = now;
        for action in dispatcher.step(now, event) {
            driver.perform(action);
        }
    }
    driver.drain().await;
    model_time
}

impl Driver<'_> {
    fn perform(&mut self, action: Action) {
        match action {
            Action::Start {
                attempt,
                pass,
                deadline,
            } => self.start(attempt, &pass, deadline),
            Action::Abort { attempt } => {
                if let Some(handle) = self.handles.remove(&attempt) {
                    self.running.remove(&handle.id());
                    handle.abort();
                }
            }
            Action::Settled(pass, outcome) => {
                self.shared.collector.close(&pass.id);
                let event = ProgressEvent::PassEnded(pass.id.clone(), outcome);
                self.shared.progress.event(event);
            }
        }
    }

    fn start(&mut self, attempt: u64, pass: &PlannedPass, deadline: Instant) {
        let shared = self.shared;
        let engine = self.engines.get(&pass.agent.engine);
        let interactive = engine
            .as_ref()
            .is_some_and(|engine| engine.capabilities().served_tools);
        shared.collector.open(&pass.id, &pass.agent.id, interactive);
        shared
            .progress
            .event(ProgressEvent::PassStarted(pass.id.clone()));
        let task = match (&pass.task, &shared.tasks) {
            (Some(task), _) => Arc::clone(task),
            (None, Some(write)) => write(pass, &shared.diff),
            (None, None) => Arc::from(""),
        };
        let request = PassRequest {
            id: pass.id.clone(),
            kind: pass.kind,
            agent: pass.agent.id.clone(),
            model: pass.agent.model.clone(),
            diff: Arc::clone(&shared.diff),
            files: Arc::clone(&pass.files),
            system: Arc::clone(&pass.agent.system),
            task,
            schema: pass.schema.clone(),
        };
        let context = PassContext {
            tree: shared.tree.clone(),
            sink: Arc::clone(&shared.collector) as Arc<dyn FindingSink>,
            meter: Arc::clone(&shared.collector) as Arc<dyn Meter>,
            progress: Arc::clone(&shared.progress),
            cancel: shared.cancel.child_token(),
            deadline,
        };
        let name = pass.agent.engine.clone();
        let handle = self.tasks.spawn(async move {
            match engine {
                Some(engine) => engine.run(request, context).await,
                None => Err(no_engine(&name)),
            }
        });
        self.running.insert(handle.id(), attempt);
        self.handles.insert(attempt, handle);
    }

    /// The event for a finished task; none when it was aborted before.
    fn ended(&mut self, end: Result<(Id, AttemptEnd), JoinError>) -> Option<Event> {
        let (id, ending) = match end {
            Ok((id, Ok(outcome))) => (id, Ending::Done(Box::new(outcome))),
            Ok((id, Err(error))) => (id, Ending::Failed(error)),
            Err(error) => {
                let id = error.id();
                let ending = match error.try_into_panic() {
                    Ok(payload) => Ending::Panicked(panic_text(payload.as_ref())),
                    Err(_) => Ending::Failed(EngineError::Cancelled),
                };
                (id, ending)
            }
        };
        let attempt = self.running.remove(&id)?;
        self.handles.remove(&attempt);
        Some(Event::Ended { attempt, ending })
    }

    /// Waits a moment for aborted futures to be dropped, so that their guards have run. One that
    /// blocks its thread is left behind: nothing can stop it, and its reports are refused.
    async fn drain(&mut self) {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(DRAIN, all).await.is_err() {
            tracing::warn!("an engine did not stop within {DRAIN:?} of being dropped");
        }
    }
}

fn no_engine(name: &EngineName) -> EngineError {
    EngineError::Unavailable(format!("there is no engine {name}"))
}

/// What a panic said, safe to show.
fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    plain(text.unwrap_or("no message"))
}

/// Asks every engine whether it can serve its models; gives those that cannot, with the reason.
pub(super) async fn preflight(
    engines: &EngineSet,
    wanted: HashMap<EngineName, Vec<ModelId>>,
    cancel: &CancellationToken,
    end: Instant,
) -> Vec<(EngineName, String)> {
    let mut tasks: JoinSet<Result<(), EngineError>> = JoinSet::new();
    let mut names = HashMap::new();
    for (name, models) in wanted {
        let engine = engines.get(&name);
        let missing = no_engine(&name);
        let handle = tasks.spawn(async move {
            match engine {
                Some(engine) => engine.preflight(&models).await,
                None => Err(missing),
            }
        });
        names.insert(handle.id(), name);
    }
    let end = end.min(after(Instant::now(), PREFLIGHT));
    let mut refused = Vec::new();
    while !names.is_empty() {
        let (id, problem) = tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(done) = tasks.join_next_with_id() => match done {
                Ok((id, Ok(()))) => (id, None),
                Ok((id, Err(error))) => (id, Some(error.to_string())),
                Err(error) => (error.id(), Some("the engine crashed while it was checked".to_owned())),
            },
            () = sleep_until(end) => break,
        };
        if let (Some(name), Some(problem)) = (names.remove(&id), problem) {
            refused.push((name, plain(&problem)));
        }
    }
    if !cancel.is_cancelled() {
        let silent = "the engine did not say in time that it can run";
        refused.extend(names.into_values().map(|name| (name, silent.to_owned())));
    }
    refused
}

//! The dispatcher's state machine: events in, actions out, no clock and no task of its own.
//!
//! @ref LLP 0004#the-queue — a pure step, timers outside

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ladder::Ladder;
use super::plan::PlannedPass;
use super::retry::{self, Remedy};
use crate::diff::Diff;
use crate::model::{EngineName, ModelId, NoteKind, PassId, PassOutcomeKind, RepoPath, Usage};
use crate::port::{Completion, EngineError, PassOutcome};

/// The budgets of a run. They nest: a pass ends with the passes' budget, and that with the run's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Passes that call a model at the same time; at least one.
    pub concurrency: usize,
    /// For one attempt of one pass.
    pub pass: Duration,
    /// For all passes together.
    pub passes: Duration,
    /// For the whole run.
    pub run: Duration,
}

/// How long a cancelled pass may take to clean up before its future is dropped.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// How long before its future is dropped a pass is told to be over, at most.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);
/// A pass with less time than this is not worth its money, unless all budgets are that small.
const LEAST_USEFUL: Duration = Duration::from_secs(10);
/// "Never", near enough: an instant that every platform can represent.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

const TIME_IS_UP: &str = "the time for passes is used up";

/// `start + by`, saturating.
pub(super) fn after(start: Instant, by: Duration) -> Instant {
    start.checked_add(by.min(FAR)).unwrap_or(start)
}

/// The instants that the limits amount to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) passes_end: Instant,
    /// Nothing is started later: it could not come to anything.
    pub(super) last_start: Instant,
    pub(super) pass: Duration,
    pub(super) slots: usize,
}

impl Budget {
    /// Counts from `run_start` for the run and from `now` for the passes.
    pub(super) fn new(limits: &Limits, run_start: Instant, now: Instant) -> Self {
        let passes_end = after(now, limits.passes).min(after(run_start, limits.run));
        let total = passes_end.saturating_duration_since(now);
        let useful = LEAST_USEFUL.min(total / 10).min(limits.pass / 10);
        Self {
            passes_end,
            last_start: passes_end.checked_sub(useful).unwrap_or(passes_end),
            pass: limits.pass,
            slots: limits.concurrency.max(1),
        }
    }
}

/// How one attempt ended.
#[derive(Debug)]
pub(super) enum Ending {
    Done(Box<PassOutcome>),
    Failed(EngineError),
    Panicked(String),
}

#[derive(Debug)]
pub(super) enum Event {
    /// A deadline may have passed.
    Tick,
    /// A new pass for the queue.
    Enqueue(Box<PlannedPass>),
    /// Attempt `attempt` is over.
    Ended { attempt: u64, ending: Ending },
    /// The run is to stop.
    Cancel,
}

#[derive(Debug)]
pub(super) enum Action {
    /// Start an attempt; `deadline` is what it is told, a little before its future is dropped.
    Start {
        attempt: u64,
        pass: Arc<PlannedPass>,
        deadline: Instant,
    },
    /// Drop the future of an attempt; its end, if it still comes, does not count.
    Abort { attempt: u64 },
    /// A pass will not run any more.
    Settled(Arc<PlannedPass>, PassOutcomeKind),
}

/// A pass that is over, however it went.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The pass.
    pub pass: Arc<PlannedPass>,
    /// How it ended.
    pub outcome: PassOutcomeKind,
    /// Why, unless it was complete; with the kind of note that it deserves.
    pub reason: Option<(NoteKind, String)>,
    /// How often it was started.
    pub attempts: u32,
    /// Tool calls of its last attempt.
    pub tool_calls: u32,
    /// From its first start to its end, waiting included.
    pub duration: Duration,
    /// What all its attempts used.
    pub usage: Usage,
    /// The model that answered.
    pub model_answered: Option<ModelId>,
    /// The structured reply.
    pub reply: Option<serde_json::Value>,
    /// Files that it did not examine.
    pub unexamined: Vec<(RepoPath, String)>,
}

struct Job {
    pass: Arc<PlannedPass>,
    attempts: u32,
    retries: HashMap<&'static str, usize>,
    usage: Option<Usage>,
    started: Option<Instant>,
    last_error: Option<String>,
    /// The budget left its last attempt less time than a pass should have.
    squeezed: bool,
}

impl Job {
    fn new(pass: PlannedPass) -> Self {
        Self {
            pass: Arc::new(pass),
            attempts: 0,
            retries: HashMap::new(),
            usage: None,
            started: None,
            last_error: None,
            squeezed: false,
        }
    }

    fn spend(&mut self, usage: Usage) {
        self.usage = Some(self.usage.map_or(usage, |sum| sum.plus(usage)));
    }
}

struct Active {
    job: Job,
    started: Instant,
    hard: Instant,
    /// Set once the run is cancelled.
    drop_at: Option<Instant>,
}

/// A provider on an engine, as far as a failure there says something about other passes.
type BreakerKey = (EngineName, Option<String>);

/// Gives what was metered of a pass since it was last asked, if anything.
pub(super) type TakeMetered = Box<dyn Fn(&PassId) -> Option<Usage> + Send>;

/// All the state of a dispatch. The queue has ended when nothing is queued, waiting or active.
pub(super) struct Dispatcher {
    diff: Arc<Diff>,
    ladder: Arc<dyn Ladder>,
    metered: TakeMetered,
    budget: Budget,
    queue: VecDeque<Job>,
    waiting: Vec<(Instant, Job)>,
    active: BTreeMap<u64, Active>,
    breakers: HashMap<BreakerKey, String>,
    settled: Vec<Settled>,
    next_attempt: u64,
    cancelled: bool,
}

impl Dispatcher {
    pub(super) fn new(
        diff: Arc<Diff>,
        ladder: Arc<dyn Ladder>,
        metered: TakeMetered,
        budget: Budget,
    ) -> Self {
        Self {
            diff,
            ladder,
            metered,
            budget,
            queue: VecDeque::new(),
            waiting: Vec::new(),
            active: BTreeMap::new(),
            breakers: HashMap::new(),
            settled: Vec::new(),
            next_attempt: 0,
            cancelled: false,
        }
    }

    /// Passes on `engine` will not be started; they fail with `reason`.
    pub(super) fn rule_out(&mut self, engine: EngineName, reason: String) {
        self.breakers.insert((engine, None), reason);
    }

    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.waiting.is_empty() && self.active.is_empty()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// The passes that are over and were not given out before.
    pub(super) fn take_settled(&mut self) -> Vec<Settled> {
        std::mem::take(&mut self.settled)
    }

    /// What comes next has this budget; engines and providers that failed stay out.
    pub(super) fn allow(&mut self, budget: Budget) {
        self.budget = budget;
    }

    /// True while a pass that calls a model runs.
    pub(super) fn model_active(&self) -> bool {
        self.slots_taken() > 0
    }

    fn slots_taken(&self) -> usize {
        let taken = self.active.values().filter(|a| a.job.pass.takes_slot());
        taken.count()
    }

    /// When `step` has to be called again at the latest.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let cuts = self
            .active
            .values()
            .map(|active| active.drop_at.unwrap_or(active.hard).min(active.hard));
        let retries = self.waiting.iter().map(|(at, _)| *at);
        let pending = !self.queue.is_empty() || !self.waiting.is_empty();
        let end = pending.then_some(self.budget.last_start);
        cuts.chain(retries).chain(end).min()
    }

    /// Takes one event at `now` and says what to do.
    pub(super) fn step(&mut self, now: Instant, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Tick => {}
            Event::Enqueue(pass) => self.queue.push_back(Job::new(*pass)),
            Event::Cancel => {
                self.cancelled = true;
                for active in self.active.values_mut() {
                    active.drop_at = Some(after(now, CANCEL_GRACE));
                }
            }
            Event::Ended { attempt, ending } => {
                if let Some(active) = self.active.remove(&attempt) {
                    self.ended(now, active.job, ending, &mut actions);
                }
            }
        }
        self.expire(now, &mut actions);
        self.wake_waiting(now);
        self.give_up_pending(now, &mut actions);
        self.start(now, &mut actions);
        actions
    }

    fn ended(&mut self, now: Instant, mut job: Job, ending: Ending, actions: &mut Vec<Action>) {
        let metered = (self.metered)(&job.pass.id);
        match ending {
            Ending::Done(outcome) => {
                let usage = match (outcome.usage, metered) {
                    (Usage::Unavailable, Some(metered)) => metered,
                    (usage, _) => usage,
                };
                job.spend(usage);
                self.done(now, job, *outcome, actions);
            }
            Ending::Panicked(message) => {
                job.spend(metered.unwrap_or_default());
                let text = format!("the engine crashed: {message}");
                self.settle(
                    now,
                    job,
                    PassOutcomeKind::Failed,
                    (NoteKind::PassFailed, text),
                    actions,
                );
            }
            Ending::Failed(error) => {
                // Unavailable promises that nothing was executed.
                let nothing = matches!(error, EngineError::Unavailable(_));
                let spent = if nothing {
                    Usage::NONE
                } else {
                    Usage::Unavailable
                };
                job.spend(metered.unwrap_or(spent));
                self.failed(now, job, &error, actions);
            }
        }
    }

    fn done(&mut self, now: Instant, job: Job, outcome: PassOutcome, actions: &mut Vec<Action>) {
        let (kind, reason) = match outcome.completion {
            Completion::Complete => (PassOutcomeKind::Complete, None),
            Completion::Truncated { reason } => (
                PassOutcomeKind::Truncated,
                Some((NoteKind::PassTruncated, reason)),
            ),
        };
        actions.push(Action::Settled(Arc::clone(&job.pass), kind));
        self.settled.push(Settled {
            outcome: kind,
            reason,
            attempts: job.attempts,
            tool_calls: outcome.tool_calls,
            duration: now.saturating_duration_since(job.started.unwrap_or(now)),
            usage: job.usage.unwrap_or_default(),
            model_answered: outcome.model_answered,
            reply: outcome.reply,
            unexamined: outcome.unexamined,
            pass: job.pass,
        });
    }

    fn failed(
        &mut self,
        now: Instant,
        mut job: Job,
        error: &EngineError,
        actions: &mut Vec<Action>,
    ) {
        let rule = retry::rule(error);
        let mut text = describe(error);
        if self.cancelled {
            let reason = (NoteKind::Interrupted, "interrupted".to_owned());
            self.settle(now, job, PassOutcomeKind::Failed, reason, actions);
            return;
        }
        let left = self.budget.last_start.saturating_duration_since(now);
        match rule.remedy {
            Remedy::Retry(_) | Remedy::RetryWhenTold(_) => {
                let done = job.retries.entry(rule.class).or_default();
                if let Some(delay) = retry::delay(error, *done) {
                    if delay < left {
                        *done += 1;
                        job.last_error = Some(text);
                        self.waiting.push((after(now, delay), job));
                        return;
                    }
                    text.push_str("; no time is left for another try");
                }
            }
            Remedy::Split => {
                let parts = self.ladder.instead(&job.pass, error, left, &self.diff);
                if !parts.is_empty() && !left.is_zero() {
                    text = match &parts[..] {
                        [one] if one.schema.is_some() => {
                            format!("{text}; tried again on what the diff shows")
                        }
                        _ => format!("{text}; split into {} passes", parts.len()),
                    };
                    let reason = (NoteKind::Info, text);
                    self.settle(now, job, PassOutcomeKind::Failed, reason, actions);
                    self.queue.extend(parts.into_iter().map(Job::new));
                    return;
                }
                if left.is_zero() || job.squeezed {
                    let reason = (NoteKind::Budget, TIME_IS_UP.to_owned());
                    self.settle(now, job, PassOutcomeKind::Failed, reason, actions);
                    return;
                }
            }
            Remedy::GiveUp => {}
            Remedy::TripBreaker => {
                let provider = job.pass.agent.model.as_ref();
                let provider = provider.map(|model| model.provider().to_owned());
                let key = (job.pass.agent.engine.clone(), provider);
                self.breakers.entry(key).or_insert_with(|| text.clone());
            }
        }
        let reason = (NoteKind::PassFailed, text);
        self.settle(now, job, PassOutcomeKind::Failed, reason, actions);
    }

    /// Drops what is over its deadline and has not ended by itself.
    fn expire(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let over: Vec<u64> = self
            .active
            .iter()
            .filter(|(_, a)| now >= a.hard || a.drop_at.is_some_and(|at| now >= at))
            .map(|(attempt, _)| *attempt)
            .collect();
        for attempt in over {
            let Some(active) = self.active.remove(&attempt) else {
                continue;
            };
            actions.push(Action::Abort { attempt });
            let took = now.saturating_duration_since(active.started);
            let mut job = active.job;
            job.spend((self.metered)(&job.pass.id).unwrap_or_default());
            self.failed(now, job, &EngineError::Timeout(took), actions);
        }
    }

    fn wake_waiting(&mut self, now: Instant) {
        let mut ready: Vec<(Instant, Job)> = Vec::new();
        let mut at = 0;
        while at < self.waiting.len() {
            if self.waiting[at].0 <= now {
                ready.push(self.waiting.swap_remove(at));
            } else {
                at += 1;
            }
        }
        // What has waited goes before what has not started yet, the longest wait first.
        ready.sort_by_key(|(at, _)| *at);
        for (_, job) in ready.into_iter().rev() {
            self.queue.push_front(job);
        }
    }

    /// When the run is cancelled or the passes' time is used up, nothing more is started.
    fn give_up_pending(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let (kind, words) = if self.cancelled {
            (NoteKind::Interrupted, "interrupted")
        } else if now >= self.budget.last_start {
            (NoteKind::Budget, TIME_IS_UP)
        } else {
            return;
        };
        let waiting = std::mem::take(&mut self.waiting)
            .into_iter()
            .map(|(_, job)| job);
        let pending: Vec<Job> = waiting.chain(std::mem::take(&mut self.queue)).collect();
        for mut job in pending {
            let (outcome, text) = match job.last_error.take() {
                Some(error) => (PassOutcomeKind::Failed, format!("{words} after: {error}")),
                None => (PassOutcomeKind::Skipped, words.to_owned()),
            };
            self.settle(now, job, outcome, (kind, text), actions);
        }
    }

    fn start(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let mut free = self.budget.slots.saturating_sub(self.slots_taken());
        let mut held = VecDeque::new();
        while let Some(mut job) = self.queue.pop_front() {
            if let Some(reason) = self.broken(&job.pass) {
                let reason = (NoteKind::PassFailed, reason);
                let outcome = if job.attempts > 0 {
                    PassOutcomeKind::Failed
                } else {
                    PassOutcomeKind::Skipped
                };
                self.settle(now, job, outcome, reason, actions);
                continue;
            }
            if job.pass.takes_slot() {
                if free == 0 {
                    held.push_back(job);
                    continue;
                }
                free -= 1;
            }
            let limit = job.pass.limit.unwrap_or(self.budget.pass);
            let hard = after(now, limit).min(self.budget.passes_end);
            let total = hard.saturating_duration_since(now);
            let told = total.saturating_sub(DEADLINE_GRACE.min(total / 10));
            let deadline = after(now, told);
            job.squeezed = hard < after(now, limit);
            job.attempts += 1;
            job.started.get_or_insert(now);
            let attempt = self.next_attempt;
            self.next_attempt += 1;
            actions.push(Action::Start {
                attempt,
                pass: Arc::clone(&job.pass),
                deadline,
            });
            let active = Active {
                job,
                started: now,
                hard,
                drop_at: None,
            };
            self.active.insert(attempt, active);
        }
        self.queue = held;
    }

    fn broken(&self, pass: &PlannedPass) -> Option<String> {
        let engine = pass.agent.engine.clone();
        let provider = pass.agent.model.as_ref();
        let provider = provider.map(|model| model.provider().to_owned());
        self.breakers
            .get(&(engine.clone(), None))
            .or_else(|| self.breakers.get(&(engine, provider)))
            .cloned()
    }

    fn settle(
        &mut self,
        now: Instant,
        job: Job,
        outcome: PassOutcomeKind,
        reason: (NoteKind, String),
        actions: &mut Vec<Action>,
    ) {
        actions.push(Action::Settled(Arc::clone(&job.pass), outcome));
        self.settled.push(Settled {
            outcome,
            reason: Some(reason),
            attempts: job.attempts,
            tool_calls: 0,
            duration: now.saturating_duration_since(job.started.unwrap_or(now)),
            usage: job.usage.unwrap_or(Usage::NONE),
            model_answered: None,
            reply: None,
            unexamined: Vec::new(),
            pass: job.pass,
        });
    }
}

/// The error for a person, with what the server said about when to come back.
fn describe(error: &EngineError) -> String {
    match error {
        EngineError::RateLimited {
            retry_after: Some(wait),
        } => format!("rate limited; the server asks to wait {} s", wait.as_secs()),
        EngineError::UsageLimited {
            resets_at: Some(at),
        } => format!("usage limit reached; it resets at {at} (seconds since 1970)"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::ladder::Halving;
    use crate::pipeline::plan::tests::{agent, diff_with};
    use crate::pipeline::plan::{PlanInput, plan};

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// A dispatcher over one file a chunk with two slots, 100 s a pass and 1,000 s for all.
    fn dispatcher(files: usize, now: Instant) -> (Dispatcher, Vec<PlannedPass>) {
        let diff = diff_with(&vec![1; files]);
        let limits = Limits {
            concurrency: 2,
            pass: secs(100),
            passes: secs(1_000),
            run: secs(2_000),
        };
        let passes = plan(&PlanInput {
            hidden: BTreeMap::new(),
            diff: Arc::clone(&diff),
            filtered: [].into(),
            checks: None,
            agents: vec![agent("one")],
            chunks: (0..files).map(|at| vec![at]).collect(),
            cross_cutting: None,
        })
        .passes;
        let budget = Budget::new(&limits, now, now);
        let dispatcher = Dispatcher::new(diff, Arc::new(Halving), Box::new(|_| None), budget);
        (dispatcher, passes)
    }

    fn feed(dispatcher: &mut Dispatcher, now: Instant, passes: Vec<PlannedPass>) -> Vec<Action> {
        let events = passes.into_iter().map(|p| Event::Enqueue(Box::new(p)));
        events
            .flat_map(|event| dispatcher.step(now, event))
            .collect()
    }

    fn started(actions: &[Action]) -> Vec<u64> {
        let attempt = |action: &Action| match action {
            Action::Start { attempt, .. } => Some(*attempt),
            _ => None,
        };
        actions.iter().filter_map(attempt).collect()
    }

    fn failed(attempt: u64, error: EngineError) -> Event {
        Event::Ended {
            attempt,
            ending: Ending::Failed(error),
        }
    }

    #[test]
    fn slots_are_given_out_and_taken_back() {
        let now = Instant::now();
        let (mut dispatcher, passes) = dispatcher(3, now);
        assert!(dispatcher.is_done());
        assert_eq!(started(&feed(&mut dispatcher, now, passes)), [0, 1]);
        let actions = dispatcher.step(now, failed(0, EngineError::Refused("no".into())));
        assert_eq!(started(&actions), [2]);
        assert!(matches!(
            actions[0],
            Action::Settled(_, PassOutcomeKind::Failed)
        ));
        for attempt in [1, 2] {
            dispatcher.step(now, failed(attempt, EngineError::Refused("no".into())));
        }
        assert!(dispatcher.is_done());
        assert_eq!(dispatcher.next_wake(), None);
        assert_eq!(dispatcher.take_settled().len(), 3);
    }

    #[test]
    fn a_waiting_retry_frees_its_slot_and_goes_first_when_its_time_comes() {
        let now = Instant::now();
        let (mut dispatcher, passes) = dispatcher(4, now);
        feed(&mut dispatcher, now, passes);
        let again = || EngineError::Transient("reset".into());
        assert_eq!(started(&dispatcher.step(now, failed(0, again()))), [2]);
        assert_eq!(started(&dispatcher.step(now, failed(1, again()))), [3]);
        assert_eq!(dispatcher.next_wake(), Some(now + secs(2)));
        let later = now + secs(2);
        assert_eq!(
            started(&dispatcher.step(later, Event::Tick)),
            [0; 0],
            "no slot"
        );
        dispatcher.step(later, failed(2, EngineError::Refused("no".into())));
        assert_eq!(dispatcher.active[&4].job.attempts, 2, "the retry");
    }

    #[test]
    fn an_attempt_over_its_deadline_is_aborted_and_its_late_end_is_ignored() {
        let now = Instant::now();
        let (mut dispatcher, mut passes) = dispatcher(1, now);
        // One that is without tools already is not replaced.
        passes[0].schema = Some(Arc::default());
        let actions = feed(&mut dispatcher, now, passes);
        let Action::Start { deadline, .. } = actions[0] else {
            panic!("{actions:?}");
        };
        assert_eq!(deadline, now + secs(98));
        assert_eq!(dispatcher.next_wake(), Some(now + secs(100)));
        let late = now + secs(100);
        let actions = dispatcher.step(late, Event::Tick);
        assert!(
            matches!(actions[0], Action::Abort { attempt: 0 }),
            "{actions:?}"
        );
        assert!(dispatcher.is_done());
        assert!(
            dispatcher
                .step(late, failed(0, EngineError::Overloaded))
                .is_empty()
        );
        let settled = dispatcher.take_settled();
        assert_eq!(settled.len(), 1);
        assert_eq!(settled[0].duration, secs(100));
    }

    #[test]
    fn cancelling_drops_what_waits_and_cuts_what_does_not_listen() {
        let now = Instant::now();
        let (mut dispatcher, passes) = dispatcher(3, now);
        feed(&mut dispatcher, now, passes);
        let actions = dispatcher.step(now, Event::Cancel);
        assert!(matches!(
            actions[..],
            [Action::Settled(_, PassOutcomeKind::Skipped)]
        ));
        assert_eq!(dispatcher.next_wake(), Some(now + CANCEL_GRACE));
        let actions = dispatcher.step(now + CANCEL_GRACE, Event::Tick);
        let aborts = actions.iter().filter(|a| matches!(a, Action::Abort { .. }));
        assert_eq!(aborts.count(), 2);
        assert!(dispatcher.is_done());
        let kinds = dispatcher
            .take_settled()
            .into_iter()
            .map(|s| s.reason.unwrap().0);
        assert!(kinds.into_iter().all(|kind| kind == NoteKind::Interrupted));
    }

    #[test]
    fn nothing_overflows() {
        let now = Instant::now();
        let limits = Limits {
            concurrency: 0,
            pass: Duration::MAX,
            passes: Duration::MAX,
            run: Duration::MAX,
        };
        let budget = Budget::new(&limits, now, now);
        assert_eq!(budget.slots, 1);
        assert!(budget.last_start > now && budget.last_start <= budget.passes_end);
    }
}

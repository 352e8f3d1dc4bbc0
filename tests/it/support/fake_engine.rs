//! An engine that plays a script: findings, delays on tokio's clock, every error, a panic, a hang.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::diff::{Diff, FileDiff, FileMode, Hunk};
use ecr::model::{
    Category, ChangeStatus, EngineName, FindingReport, Fingerprint, Location, ModelId, RepoPath,
    Severity, Side, Usage,
};
use ecr::pipeline::{Enqueue, PlannedPass};
use ecr::port::{
    BoxFuture, Capabilities, Completion, EngineError, FindingReceipt, PassContext, PassOutcome,
    PassRequest, ReviewEngine,
};
use serde_json::Value;
use tokio::time::{Instant, sleep, sleep_until};

/// One thing that a pass does.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Works for a while; stops at the deadline and on cancellation, as every engine has to.
    Work(Duration),
    /// Reports a finding.
    Report(FindingReport),
    /// Takes back the first finding that was accepted.
    RetractFirst,
    /// Meters usage.
    Meter(Usage),
    /// Puts a pass in the queue.
    Enqueue(Enqueue, Box<PlannedPass>),
    /// Fails.
    Fail(EngineError),
    /// Ends early.
    Truncate(&'static str),
    /// Says that it did not examine a file.
    Skip(RepoPath, &'static str),
    /// Another model answers.
    AnswerAs(ModelId),
    /// Gives a structured reply.
    Answer(Value),
    Panic(&'static str),
    /// Never ends, whatever the deadline and the token say.
    Hang,
}

/// One attempt as the engine saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) pass: String,
    pub(crate) at: Duration,
    pub(crate) deadline: Duration,
    pub(crate) files: usize,
    pub(crate) task: Arc<str>,
}

/// The scripted engine. A script is one attempt of the passes whose id starts with its key; the last
/// script of a key repeats, and a pass without a script completes at once.
pub(crate) struct FakeEngine {
    name: EngineName,
    capabilities: Capabilities,
    scripts: Mutex<HashMap<String, VecDeque<Vec<Act>>>>,
    pub(crate) preflight: Option<EngineError>,
    begun: Instant,
    seen: Mutex<Vec<Seen>>,
    receipts: Mutex<Vec<FindingReceipt>>,
    running: AtomicUsize,
    peak: AtomicUsize,
    cancelled: AtomicUsize,
}

struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeEngine {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: EngineName::new(name),
            capabilities: Capabilities {
                structured_output: false,
                usage_reporting: true,
                read_only: true,
                served_tools: false,
                prompt_caching: false,
                subagents: false,
            },
            scripts: Mutex::default(),
            preflight: None,
            begun: Instant::now(),
            seen: Mutex::default(),
            receipts: Mutex::default(),
            running: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            cancelled: AtomicUsize::new(0),
        }
    }

    pub(crate) fn with_capabilities(mut self, change: impl FnOnce(&mut Capabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    /// Adds the script of the next attempt of passes whose id starts with `prefix`.
    pub(crate) fn script(self, prefix: &str, acts: impl IntoIterator<Item = Act>) -> Self {
        self.scripts
            .lock()
            .unwrap()
            .entry(prefix.to_owned())
            .or_default()
            .push_back(acts.into_iter().collect());
        self
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// When each attempt of a pass began, in seconds since the engine was made.
    pub(crate) fn starts(&self, pass: &str) -> Vec<u64> {
        let seen = self.seen();
        let of_pass = seen.iter().filter(|seen| seen.pass == pass);
        of_pass.map(|seen| seen.at.as_secs()).collect()
    }

    pub(crate) fn receipts(&self) -> Vec<FindingReceipt> {
        self.receipts.lock().unwrap().clone()
    }

    /// Passes that were running at the same time at most.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    /// Passes that are running; dropped futures do not count.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// Passes that were stopped by their token.
    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn next_script(&self, pass: &str) -> Vec<Act> {
        let mut scripts = self.scripts.lock().unwrap();
        let key = scripts
            .keys()
            .filter(|key| pass.starts_with(key.as_str()))
            .max_by_key(|key| key.len())
            .cloned();
        let Some(queue) = key.and_then(|key| scripts.get_mut(&key)) else {
            return Vec::new();
        };
        if queue.len() > 1 {
            queue.pop_front().unwrap_or_default()
        } else {
            queue.front().cloned().unwrap_or_default()
        }
    }

    async fn play(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> Result<PassOutcome, EngineError> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(&self.running);
        self.peak.fetch_max(running, Ordering::SeqCst);
        self.seen.lock().unwrap().push(Seen {
            pass: request.id.to_string(),
            at: self.begun.elapsed(),
            deadline: context.deadline.saturating_duration_since(self.begun),
            files: request.files.len(),
            task: Arc::clone(&request.task),
        });
        let mut outcome = PassOutcome {
            completion: Completion::Complete,
            reply: None,
            usage: Usage::Unavailable,
            model_answered: request.model.clone(),
            tool_calls: 0,
            unexamined: Vec::new(),
        };
        if self.capabilities.usage_reporting {
            outcome.usage = Usage::NONE;
        }
        let mut accepted: Vec<Fingerprint> = Vec::new();
        for act in self.next_script(request.id.as_str()) {
            match act {
                Act::Work(time) => tokio::select! {
                    biased;
                    () = context.cancel.cancelled() => {
                        self.cancelled.fetch_add(1, Ordering::SeqCst);
                        return Err(EngineError::Cancelled);
                    }
                    () = sleep(time) => {}
                    () = sleep_until(context.deadline) => return Err(EngineError::Timeout(time)),
                },
                Act::Report(finding) => {
                    let receipt = context.sink.report(&request.id, finding);
                    if let FindingReceipt::Accepted(id) = &receipt {
                        accepted.push(id.clone());
                    }
                    self.receipts.lock().unwrap().push(receipt);
                }
                Act::RetractFirst => {
                    assert!(context.sink.retract(&request.id, &accepted[0], "not a bug"));
                }
                Act::Meter(usage) => context.meter.add(&request.id, usage),
                Act::Enqueue(queue, pass) => assert!(queue.push(*pass)),
                Act::Fail(error) => return Err(error),
                Act::Truncate(reason) => {
                    outcome.completion = Completion::Truncated {
                        reason: reason.to_owned(),
                    };
                }
                Act::Skip(path, reason) => outcome.unexamined.push((path, reason.to_owned())),
                Act::AnswerAs(model) => outcome.model_answered = Some(model),
                Act::Answer(reply) => outcome.reply = Some(reply),
                Act::Panic(message) => panic!("{message}"),
                Act::Hang => std::future::pending::<()>().await,
            }
        }
        Ok(outcome)
    }
}

impl ReviewEngine for FakeEngine {
    fn name(&self) -> EngineName {
        self.name.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn preflight<'a>(&'a self, _models: &'a [ModelId]) -> BoxFuture<'a, Result<(), EngineError>> {
        let answer = self.preflight.clone().map_or(Ok(()), Err);
        Box::pin(async move { answer })
    }

    fn run(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> BoxFuture<'_, Result<PassOutcome, EngineError>> {
        Box::pin(self.play(request, context))
    }
}

/// A diff of new files `f0`, `f1`, … with the given numbers of lines, `let f0_1 = value;` and so on.
pub(crate) fn diff_of(lines: &[u32]) -> Arc<Diff> {
    let mut patch = Vec::new();
    let mut files = Vec::new();
    for (at, &added) in lines.iter().enumerate() {
        let start = patch.len();
        for line in 1..=added {
            patch.extend_from_slice(format!("+let f{at}_{line} = value;\n").as_bytes());
        }
        let hunk = Hunk {
            old_start: 0,
            old_len: 0,
            new_start: 1,
            new_len: added,
            heading: start..start,
            body: start..patch.len(),
        };
        files.push(FileDiff {
            path: path(at),
            old_path: None,
            status: ChangeStatus::Added,
            score: None,
            old_mode: FileMode::default(),
            new_mode: FileMode(0o100_644),
            old_id: None,
            new_id: None,
            added,
            deleted: 0,
            binary: false,
            section: start..patch.len(),
            hunks: if added > 0 { vec![hunk] } else { Vec::new() },
        });
    }
    Arc::new(Diff {
        patch: patch.into(),
        files,
    })
}

/// The path of file number `at` of [`diff_of`].
pub(crate) fn path(at: usize) -> RepoPath {
    RepoPath::new(format!("f{at}")).unwrap()
}

/// A warning on a line of [`diff_of`] with the right evidence.
pub(crate) fn finding(file: usize, line: u32, title: &str) -> FindingReport {
    FindingReport {
        severity: Severity::Warning,
        category: Category::Correctness,
        location: Location {
            file: path(file),
            line: Some(line),
            end_line: None,
            side: Side::New,
            columns: None,
        },
        title: title.to_owned(),
        rationale: "It breaks.".to_owned(),
        suggestion: None,
        evidence: Some(format!("let f{file}_{line} = value;")),
        rule: None,
    }
}

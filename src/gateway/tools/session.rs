//! The tool session of one pass: who may call what when, and what was seen.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;

use super::arguments::{Arguments, echo};
use super::cache::TreeCache;
use super::diff::DiffRows;
use super::path::{Withheld, parse};
use super::record::Seen;
use super::specs::Tool;
use super::{diff, find, grep, read, report};
use crate::detect::mask_lines;
use crate::diff::Diff;
use crate::gateway::{Cap, Landing, ToolAnswer, ToolRecord, ToolSession, ToolSpec};
use crate::model::{PassId, RepoPath};
use crate::port::{BoxFuture, FindingSink};
use crate::prompt::{landing_hint, landing_refusal};

/// Calls kept free for the landing, at most.
const LANDING_CALLS: u32 = 10;

/// What a session serves.
pub struct SessionSettings {
    /// The pass it belongs to.
    pub pass: PassId,
    /// The tree under review; without one only `diff` and the reporting tools are offered.
    pub tree: Option<Arc<TreeCache>>,
    /// The whole change.
    pub diff: Arc<Diff>,
    /// What is never served.
    pub withheld: Arc<Withheld>,
    /// Takes what is reported.
    pub sink: Arc<dyn FindingSink>,
    /// Shared with the model door of the pass.
    pub landing: Arc<Landing>,
    /// Calls of the pass; the last tenth or so is kept for the landing.
    pub tool_calls: u32,
}

const FINISHED: &str = "the pass is finished: nothing more is served, end your turn";

/// How far the pass is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Open,
    /// `finish` was received; calls that came before it are still served.
    Finishing,
    Finished,
}

#[derive(Default)]
struct State {
    phase: Phase,
    in_flight: u32,
    calls: u32,
    seen: Seen,
    examined: Vec<RepoPath>,
    /// Calls of `report` that could not be read, less those that came in their place.
    unread: u32,
}

/// What the tools share.
pub(super) struct Shared {
    pub(super) settings: SessionSettings,
    /// Indices into the files of the diff, by the new and the old path.
    changed: HashMap<RepoPath, usize>,
    state: Mutex<State>,
    idle: Notify,
    /// The last diff that was rendered, for its next page.
    pub(super) rendered: Mutex<Option<(usize, Arc<DiffRows>)>>,
}

/// The tool door of one pass.
pub struct Session {
    shared: Arc<Shared>,
}

/// A call that is being served.
pub(super) struct InFlight(Arc<Shared>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.in_flight -= 1;
        if state.in_flight == 0 && state.phase == Phase::Finishing {
            state.phase = Phase::Finished;
            drop(state);
            self.0.idle.notify_waiters();
        }
    }
}

/// Sets its flag when the caller is gone.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a tool says: an answer, or what is wrong with the call.
pub(super) type Outcome = Result<String, String>;

fn answer(outcome: Outcome) -> ToolAnswer {
    let is_error = outcome.is_err();
    let text = outcome.unwrap_or_else(|words| words);
    // Content is masked already; names of files and what an error repeats are not.
    ToolAnswer {
        text: mask_lines(&text).into_owned(),
        is_error,
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tree; the tools that need it are not offered without.
    pub(super) fn tree(&self) -> Result<&TreeCache, String> {
        self.settings
            .tree
            .as_deref()
            .ok_or_else(|| "there is no tree, only the change: use diff".to_owned())
    }

    /// The changed file of that path, new or old, as an index into the diff.
    pub(super) fn changed(&self, path: &RepoPath) -> Option<usize> {
        self.changed.get(path).copied()
    }

    fn exists(&self, path: &RepoPath) -> bool {
        let in_tree = |tree: &Arc<TreeCache>| matches!(tree.kind(path), Ok(Some(_)));
        self.changed.contains_key(path) || self.settings.tree.as_ref().is_some_and(in_tree)
    }

    /// The path that a model means.
    pub(super) fn path(&self, text: &str) -> Result<RepoPath, String> {
        let meant = parse(text)?;
        Ok(match meant.unescaped {
            Some(other) if !self.exists(&meant.path) && self.exists(&other) => other,
            _ => meant.path,
        })
    }

    /// Refuses a path whose content is not served.
    pub(super) fn check_served(&self, path: &RepoPath) -> Result<(), String> {
        if self.settings.withheld.holds(path) {
            return Err("this file is held back: it is never served".to_owned());
        }
        Ok(())
    }

    /// Notes that the model was shown whole lines of a file.
    pub(super) fn saw(&self, path: &RepoPath, lines: RangeInclusive<u32>) {
        self.lock().seen.add(path, lines);
    }

    /// Lets a call in, or says why not. `finish` is no call in flight: it waits for those.
    ///
    /// A client that makes the calls of one turn at once may send `finish` before a report that the model wrote first,
    /// so reports are taken as long as the pass lives; no further turn can follow, the model door is closed.
    fn enter(self: &Arc<Self>, name: &str) -> Result<(Tool, Option<InFlight>), String> {
        let mut state = self.lock();
        let named = Tool::named(name).filter(|tool| self.offers(*tool));
        let late = state.phase != Phase::Open;
        if late && !(named.is_some_and(Tool::reports) && state.calls < self.settings.tool_calls) {
            return Err(FINISHED.to_owned());
        }
        let Some(tool) = named else {
            let names: Vec<_> = self.offered().map(Tool::name).collect();
            return Err(format!(
                "no tool {}: there is {}",
                echo(name),
                names.join(", ")
            ));
        };
        let landing = &self.settings.landing;
        let limit = self.settings.tool_calls;
        if state.calls.saturating_add(LANDING_CALLS.min(limit / 10)) >= limit {
            landing.begin(Cap::ToolCalls);
        }
        if let Some(cap) = landing.reason().filter(|_| tool.reads()) {
            landing.announce();
            return Err(landing_refusal(&cap.to_string()));
        }
        state.calls = state.calls.saturating_add(1);
        if tool == Tool::Finish {
            return Ok((tool, None));
        }
        state.in_flight += 1;
        Ok((tool, Some(InFlight(Arc::clone(self)))))
    }

    /// Takes `finish`: nobody gets in from here on.
    fn end(&self, examined: Vec<RepoPath>) -> Result<(), String> {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return Err(FINISHED.to_owned());
        }
        state.examined = examined;
        state.phase = match state.in_flight {
            0 => Phase::Finished,
            _ => Phase::Finishing,
        };
        Ok(())
    }

    /// Waits until the calls in flight are served.
    async fn finished(&self) {
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.lock().phase == Phase::Finished {
                return;
            }
            idle.await;
        }
    }

    async fn finish(&self, arguments: Value) -> Outcome {
        let mut arguments = Arguments::new("finish", arguments, &Tool::Finish.field_names())?;
        let examined = report::examined(self, &mut arguments)?;
        self.end(examined)?;
        self.finished().await;
        Ok("finished: end your turn now".to_owned())
    }

    async fn serve(self: Arc<Self>, name: String, arguments: Value) -> Outcome {
        let (tool, in_flight) = self.enter(&name)?;
        if tool == Tool::Finish {
            return self.finish(arguments).await;
        }
        let turn = match &self.settings.tree {
            Some(tree) if tool == Tool::Grep => {
                Arc::clone(&tree.search_turn).acquire_owned().await.ok()
            }
            _ => None,
        };
        let stop = StopOnDrop(Arc::default());
        let stopped = Arc::clone(&stop.0);
        let shared = Arc::clone(&self);
        let work = tokio::task::spawn_blocking(move || {
            let outcome = shared.perform(tool, arguments, &stopped);
            // Kept until here, whether or not somebody still waits for the answer.
            drop((turn, in_flight));
            outcome
        });
        let mut outcome = work
            .await
            .unwrap_or_else(|_| Err("internal error: this call was not served".to_owned()));
        if let Some(cap) = self.settings.landing.reason()
            && !tool.reads()
        {
            self.settings.landing.announce();
            let hint = landing_hint(&cap.to_string());
            let add = |words: String| format!("{words}\n{hint}");
            outcome = outcome.map(add).map_err(add);
        }
        outcome
    }

    fn offers(&self, tool: Tool) -> bool {
        self.settings.tree.is_some() || !tool.needs_tree()
    }

    fn offered(&self) -> impl Iterator<Item = Tool> + '_ {
        Tool::ALL.into_iter().filter(|tool| self.offers(*tool))
    }

    /// Serves a call that looks or reports. Blocks.
    fn perform(&self, tool: Tool, arguments: Value, stop: &AtomicBool) -> Outcome {
        let arguments = Arguments::new(tool.name(), arguments, &tool.field_names());
        if tool == Tool::Report {
            return self.report(arguments);
        }
        let mut arguments = arguments?;
        match tool {
            Tool::Read => read::read(self, &mut arguments),
            Tool::Grep => grep::grep(self, &mut arguments, stop),
            Tool::Glob => find::glob(self, &mut arguments),
            Tool::List => find::list(self, &mut arguments),
            Tool::Diff => diff::diff(self, &mut arguments),
            Tool::Retract => report::retract(self, &mut arguments),
            Tool::Report | Tool::Finish => Err("this is served elsewhere".to_owned()),
        }
    }

    /// A defect that could not be read and is not sent again is lost, which the pass has to say.
    fn report(&self, arguments: Result<Arguments, String>) -> Outcome {
        match arguments.and_then(|mut arguments| report::defect(self, &mut arguments)) {
            Ok(finding) => {
                let mut state = self.lock();
                state.unread = state.unread.saturating_sub(1);
                drop(state);
                report::report(self, finding)
            }
            Err(words) => {
                self.not_read();
                Err(words)
            }
        }
    }

    fn not_read(&self) {
        let mut state = self.lock();
        state.unread = state.unread.saturating_add(1);
    }
}

impl Session {
    /// Opens the tool door of a pass.
    pub fn new(settings: SessionSettings) -> Self {
        let mut changed = HashMap::with_capacity(settings.diff.files.len());
        for (at, file) in settings.diff.files.iter().enumerate() {
            if let Some(old) = &file.old_path {
                changed.entry(old.clone()).or_insert(at);
            }
        }
        // A new path goes before an old one of the same name.
        for (at, file) in settings.diff.files.iter().enumerate() {
            changed.insert(file.path.clone(), at);
        }
        Self {
            shared: Arc::new(Shared {
                settings,
                changed,
                state: Mutex::default(),
                idle: Notify::new(),
                rendered: Mutex::default(),
            }),
        }
    }
}

impl ToolSession for Session {
    fn tools(&self) -> Vec<ToolSpec> {
        self.shared.offered().map(Tool::spec).collect()
    }

    fn call(&self, name: &str, arguments: Value) -> BoxFuture<'_, ToolAnswer> {
        let served = Arc::clone(&self.shared).serve(name.to_owned(), arguments);
        Box::pin(async move { answer(served.await) })
    }

    fn unreadable(&self, name: &str) {
        if name == Tool::Report.name() {
            self.shared.not_read();
        }
    }

    fn finished(&self) -> bool {
        self.shared.lock().phase == Phase::Finished
    }

    fn record(&self) -> ToolRecord {
        let state = self.shared.lock();
        ToolRecord {
            calls: state.calls,
            seen: state.seen.files().clone(),
            examined: state.examined.clone(),
            unread: state.unread,
        }
    }
}

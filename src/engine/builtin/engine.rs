//! The engine around the rules.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio_util::sync::CancellationToken;

use super::checks::junk_root;
use super::examine::{Examined, examine};
use super::{CheckSettings, Hit};
use crate::model::{EngineName, FindingReport, Location, ModelId, RepoPath, RuleId, Side, Usage};
use crate::port::{
    BoxFuture, Capabilities, Completion, EngineError, PassContext, PassOutcome, PassRequest,
    ReviewEngine,
};

/// The most threads that check files; beyond, reading the tree is what takes the time.
const MAX_THREADS: usize = 8;
/// So many files are worth a thread of their own.
const FILES_PER_THREAD: usize = 16;
/// Longest title of a finding, in characters.
const MAX_TITLE: usize = 120;

/// Runs the built-in rules. It calls no model and needs no network.
#[derive(Debug, Clone)]
pub struct BuiltinEngine {
    settings: Arc<CheckSettings>,
}

impl BuiltinEngine {
    /// An engine with these settings.
    pub fn new(settings: CheckSettings) -> Self {
        Self {
            settings: Arc::new(settings),
        }
    }
}

impl ReviewEngine for BuiltinEngine {
    fn name(&self) -> EngineName {
        EngineName::new("builtin")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            structured_output: false,
            usage_reporting: true,
            read_only: true,
            served_tools: false,
            prompt_caching: false,
            subagents: false,
        }
    }

    fn preflight<'a>(&'a self, _models: &'a [ModelId]) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async { Ok(()) })
    }

    fn run(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> BoxFuture<'_, Result<PassOutcome, EngineError>> {
        let settings = Arc::clone(&self.settings);
        Box::pin(async move {
            if context.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            let cancel = context.cancel.clone();
            let deadline = context.deadline;
            let stop = cancel.child_token();
            // Without time nothing is begun; the race below could be won by a quick check.
            if context.remaining().is_zero() {
                stop.cancel();
            }
            // Dropping this future must silence the threads that it cannot join.
            let abandoned = CancellationToken::new();
            let _guard = abandoned.clone().drop_guard();
            let pass = Pass {
                request,
                context,
                settings,
                stop: stop.clone(),
                abandoned,
            };
            let mut task = tokio::task::spawn_blocking(move || pass.run());
            let joined = tokio::select! {
                joined = &mut task => joined,
                () = tokio::time::sleep_until(deadline) => {
                    stop.cancel();
                    task.await
                }
            };
            let outcome = joined
                .map_err(|_| EngineError::Protocol("a built-in check panicked".to_owned()))?;
            if cancel.is_cancelled() && outcome.completion != Completion::Complete {
                return Err(EngineError::Cancelled);
            }
            Ok(outcome)
        })
    }
}

/// One run over the request's files, on blocking threads.
struct Pass {
    request: PassRequest,
    context: PassContext,
    settings: Arc<CheckSettings>,
    /// Fires when no further file shall be begun.
    stop: CancellationToken,
    /// Fires when nobody waits for the result any more.
    abandoned: CancellationToken,
}

impl Pass {
    fn run(self) -> PassOutcome {
        let mut results = if self.settings.enabled {
            self.examine_all()
        } else {
            Vec::new()
        };
        results.sort_by_key(|(index, _)| *index);
        let expected = if self.settings.enabled {
            self.request.files.len()
        } else {
            0
        };
        let complete = results.len() == expected;
        let mut unexamined = self.missing(expected, &results);
        for (index, examined) in results {
            if self.abandoned.is_cancelled() {
                break;
            }
            let Some(path) = self.path(index) else {
                unexamined.extend(
                    self.request
                        .diff
                        .files
                        .first()
                        .map(|f| (f.path.clone(), "not in the diff".to_owned())),
                );
                continue;
            };
            for hit in examined.hits {
                self.report(path, hit);
            }
            unexamined.extend(examined.gaps.into_iter().map(|gap| (path.clone(), gap)));
        }
        PassOutcome {
            completion: if complete {
                Completion::Complete
            } else {
                Completion::Truncated {
                    reason: "stopped before every file was checked".to_owned(),
                }
            },
            reply: None,
            usage: Usage::NONE,
            model_answered: None,
            tool_calls: 0,
            unexamined,
        }
    }

    /// The path of the `index`-th file of the request.
    fn path(&self, index: usize) -> Option<&RepoPath> {
        let file = self.request.files.get(index)?;
        self.request.diff.files.get(*file).map(|f| &f.path)
    }

    /// The files that were not begun.
    fn missing(&self, expected: usize, results: &[(usize, Examined)]) -> Vec<(RepoPath, String)> {
        let done: BTreeSet<usize> = results.iter().map(|(index, _)| *index).collect();
        (0..expected)
            .filter(|index| !done.contains(index))
            .filter_map(|index| {
                Some((
                    self.path(index)?.clone(),
                    "the run was stopped first".to_owned(),
                ))
            })
            .collect()
    }

    fn examine_all(&self) -> Vec<(usize, Examined)> {
        let files = &self.request.files;
        let first_of_junk = self.first_of_junk();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut results = Vec::new();
            while !self.stop.is_cancelled() && !self.abandoned.is_cancelled() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(&at) = files.get(index) else {
                    break;
                };
                let examined = match self.request.diff.files.get(at) {
                    Some(file) => {
                        let tree = self.context.tree.as_deref();
                        examine(
                            &self.request.diff,
                            file,
                            tree,
                            first_of_junk.contains(&at),
                            &self.settings,
                        )
                    }
                    None => Examined::default(),
                };
                results.push((index, examined));
            }
            results
        };
        let threads = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MAX_THREADS);
        let threads = threads.min(files.len() / FILES_PER_THREAD + 1);
        if threads == 1 {
            return work();
        }
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut results = Vec::new();
            for worker in workers {
                match worker.join() {
                    Ok(part) => results.extend(part),
                    // A bug in a rule is a bug in ecr: let it come out, not turn into a clean review.
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            results
        })
    }

    /// Which files are the first under their generated folder.
    fn first_of_junk(&self) -> BTreeSet<usize> {
        let mut roots = BTreeSet::new();
        let files = &self.request.diff.files;
        self.request
            .files
            .iter()
            .copied()
            .filter(|at| {
                files
                    .get(*at)
                    .and_then(|f| junk_root(&f.path))
                    .is_some_and(|root| roots.insert(root))
            })
            .collect()
    }

    fn report(&self, path: &RepoPath, hit: Hit) {
        let (Some(text), Ok(rule)) = (self.settings.text_of(&hit.rule), RuleId::new(&hit.rule))
        else {
            return;
        };
        let evidence = hit
            .evidence
            .map(|line| String::from_utf8_lossy(&line).into_owned());
        // Without evidence the finding is about the file, not about a line.
        let on_line = evidence.is_some();
        let columns = hit
            .columns
            .and_then(|c| Some((u32::try_from(c.start).ok()?, u32::try_from(c.end).ok()?)));
        let title = hit.title.as_deref().unwrap_or(text.title);
        let finding = FindingReport {
            severity: text.severity,
            category: text.category,
            location: Location {
                file: path.clone(),
                line: on_line.then_some(hit.line),
                end_line: (on_line && hit.end_line > hit.line).then_some(hit.end_line),
                side: Side::New,
                columns: columns.filter(|_| on_line),
            },
            title: title.chars().take(MAX_TITLE).collect(),
            rationale: text.consequence.to_owned(),
            suggestion: text.remedy.map(ToOwned::to_owned),
            evidence,
            rule: Some(rule),
        };
        self.context.sink.report(&self.request.id, finding);
    }
}

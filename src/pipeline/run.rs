//! The whole run, from a plan to a report.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::collect::Collector;
use super::conclude::{Ending, conclude};
use super::dispatch::{Incoming, Shared, dispatch, feed, preflight};
use super::judges::{Court, Judges};
use super::ladder::Ladder;
use super::plan::{Plan, PlannedAgent, PlannedPass};
use super::route::{Router, narrow};
use super::step::{Budget, Dispatcher, Limits, after};
use crate::diff::Diff;
use crate::finding::Policy;
use crate::model::{CoverageNote, EngineName, InputInfo, ModelId, Review, SandboxInfo, ScopeName};
use crate::port::{Progress, ProgressEvent, ReviewEngine};
use crate::tree::Tree;

/// The engines of a run, by name.
#[derive(Clone, Default)]
pub struct EngineSet(HashMap<EngineName, Arc<dyn ReviewEngine>>);

impl EngineSet {
    /// No engines.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an engine under its own name; an older one of that name goes.
    pub fn insert(&mut self, engine: Arc<dyn ReviewEngine>) {
        self.0.insert(engine.name(), engine);
    }

    /// The engine of that name.
    pub fn get(&self, name: &EngineName) -> Option<Arc<dyn ReviewEngine>> {
        self.0.get(name).cloned()
    }
}

/// Writes the task of a pass from the files it is about, when it starts.
pub type TaskWriter = Arc<dyn Fn(&PlannedPass, &Diff) -> Arc<str> + Send + Sync>;

/// What is to be reviewed, and how.
pub struct RunInput {
    /// What is being reviewed.
    pub info: InputInfo,
    /// The sandbox that engines run in.
    pub sandbox: SandboxInfo,
    /// The passes; it holds the diff.
    pub plan: Plan,
    /// The tree under review, where there is one.
    pub tree: Option<Arc<dyn Tree>>,
    /// What the configuration hides.
    pub policy: Policy,
    /// The scope of a monorepo (`None`: the default one).
    pub scope: Option<ScopeName>,
    /// The budgets.
    pub limits: Limits,
    /// Picks the reviewers that the change needs; without one they all run.
    pub router: Option<Router>,
    /// Who judges what was found.
    pub judges: Judges,
    /// What earlier stages could not do.
    pub notes: Vec<CoverageNote>,
    /// When the run began; its budget counts from here.
    pub started: Instant,
}

/// What a run works with.
pub struct RunDeps {
    /// Takes what a person following the run may want to see.
    pub progress: Arc<dyn Progress>,
    /// Stops the run; it still concludes, never as an approval.
    pub cancel: CancellationToken,
    /// What to try instead of a pass that was too much.
    pub ladder: Arc<dyn Ladder>,
    /// Writes tasks; none when every engine does without.
    pub tasks: Option<TaskWriter>,
    /// Passes that come in while the run goes on.
    pub incoming: Option<Incoming>,
}

/// Runs the plan to its end and reports. Whatever fails becomes a note; it never fails itself.
pub async fn run(input: RunInput, engines: &EngineSet, deps: RunDeps) -> Review {
    let RunInput {
        mut plan, limits, ..
    } = input;
    let collector = Collector::new(
        Arc::clone(&plan.diff),
        input.tree.clone(),
        input.scope.clone(),
    );
    let collector = Arc::new(collector);
    let shared = Shared {
        diff: Arc::clone(&plan.diff),
        tree: input.tree,
        collector: Arc::clone(&collector),
        progress: deps.progress,
        cancel: deps.cancel,
        tasks: deps.tasks,
    };
    let others = [
        input.judges.coordinator.as_ref(),
        input.judges.verifier.as_ref(),
        input.router.as_ref().map(|router| &router.agent),
    ];
    let run_end = after(input.started, limits.run);
    let refused = preflight(engines, wanted(&plan, others), &shared.cancel, run_end).await;
    let meter = Arc::clone(&collector);
    let mut dispatcher = Dispatcher::new(
        Arc::clone(&plan.diff),
        deps.ladder,
        Box::new(move |pass| meter.take_metered(pass)),
        Budget::new(&limits, input.started, Instant::now()),
    );
    for (engine, reason) in refused {
        dispatcher.rule_out(engine, reason);
    }
    let mut settled = Vec::new();
    let mut notes = input.notes;
    if let Some(router) = &input.router {
        let around = (&shared, engines);
        let routed = narrow(&mut plan, router, around, &mut dispatcher, limits).await;
        settled.extend(routed.settled);
        notes.extend(routed.notes);
        dispatcher.allow(Budget::new(&limits, input.started, Instant::now()));
    }
    shared.progress.event(ProgressEvent::Planned {
        passes: plan.passes.len(),
        files: plan.diff.files.len(),
    });

    let mut incoming = deps.incoming.unwrap_or_else(|| feed().1);
    let passes = plan.passes.clone();
    let model_time = dispatch(&shared, engines, &mut dispatcher, passes, &mut incoming).await;
    settled.extend(dispatcher.take_settled());
    let mut collected = collector.finish();
    let court = Court {
        judges: &input.judges,
        shared: &shared,
        engines,
        dispatcher: &mut dispatcher,
        limits,
        started: input.started,
    };
    let judged = court.judge(&mut collected).await;
    settled.extend(judged.settled);
    notes.extend(judged.notes);

    conclude(
        Ending {
            info: input.info,
            sandbox: input.sandbox,
            plan: &plan,
            policy: input.policy,
            notes,
            settled,
            collected,
            overview: judged.overview,
            interrupted: shared.cancel.is_cancelled(),
            started: input.started,
            model_time: model_time + judged.model_time,
        },
        collector.grounder(),
    )
}

/// The models that each engine has to serve.
fn wanted(plan: &Plan, others: [Option<&PlannedAgent>; 3]) -> HashMap<EngineName, Vec<ModelId>> {
    let mut out: HashMap<EngineName, Vec<ModelId>> = HashMap::new();
    let reviewers = plan.passes.iter().map(|pass| pass.agent.as_ref());
    for agent in reviewers.chain(others.into_iter().flatten()) {
        let models = out.entry(agent.engine.clone()).or_default();
        if let Some(model) = &agent.model
            && !models.contains(model)
        {
            models.push(model.clone());
        }
    }
    out
}

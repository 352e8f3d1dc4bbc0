//! A run with one agent or several on the fake engine.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use ecr::diff::Diff;
use ecr::finding::Policy;
use ecr::model::{
    AgentId, EngineName, InputInfo, InputKind, ModelId, PassRecord, Review, SandboxInfo,
};
use ecr::pipeline::{
    EngineSet, Halving, Incoming, Judges, Limits, PlanInput, PlannedAgent, Router, RunDeps,
    RunInput, plan, run,
};
use ecr::port::{Progress, ProgressEvent, ReviewEngine};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::fake_engine::FakeEngine;

pub(crate) struct Silent;

impl Progress for Silent {
    fn event(&self, _event: ProgressEvent) {}
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// What to run; the defaults are two files in one chunk for the agent `one`, and the checks.
pub(crate) struct Case {
    pub(crate) diff: Arc<Diff>,
    pub(crate) filtered: BTreeMap<usize, String>,
    pub(crate) hidden: BTreeMap<usize, String>,
    pub(crate) agents: Vec<&'static str>,
    pub(crate) chunks: Vec<Vec<usize>>,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) cancel: CancellationToken,
    pub(crate) incoming: Option<Incoming>,
    pub(crate) judges: Judges,
    pub(crate) router: Option<Router>,
}

impl Case {
    pub(crate) fn new(diff: Arc<Diff>) -> Self {
        let files = diff.files.len();
        Self {
            diff,
            filtered: BTreeMap::new(),
            hidden: BTreeMap::new(),
            agents: vec!["one"],
            chunks: vec![(0..files).collect()],
            limits: Limits {
                concurrency: 4,
                pass: secs(100),
                passes: secs(1_000),
                run: secs(1_200),
            },
            policy: Policy::default(),
            cancel: CancellationToken::new(),
            incoming: None,
            judges: Judges::none(),
            router: None,
        }
    }

    pub(crate) fn agents(mut self, agents: &[&'static str]) -> Self {
        self.agents = agents.to_vec();
        self
    }

    /// Chunks of `size` files each.
    pub(crate) fn chunked(mut self, size: usize) -> Self {
        let size = NonZeroUsize::new(size).unwrap();
        let all: Vec<usize> = (0..self.diff.files.len()).collect();
        self.chunks = all.chunks(size.get()).map(<[usize]>::to_vec).collect();
        self
    }

    /// A coordinator and a verifier on the fake engine; `parallel` verifications at the same time.
    pub(crate) fn judged(mut self, parallel: usize) -> Self {
        self.judges = Judges {
            coordinator: Some(agent("coordinator", "fake")),
            verifier: Some(agent("verifier", "fake")),
            parallel,
            mark: "0123456789abcdef".to_owned(),
            ..Judges::none()
        };
        self
    }

    pub(crate) async fn run(self, engine: &Arc<FakeEngine>) -> Review {
        let mut engines = EngineSet::new();
        engines.insert(Arc::clone(engine) as Arc<dyn ReviewEngine>);
        engines.insert(Arc::new(FakeEngine::new("checks")));
        self.run_on(&engines).await
    }

    pub(crate) async fn run_on(self, engines: &EngineSet) -> Review {
        let agents: Vec<_> = self.agents.iter().map(|id| agent(id, "fake")).collect();
        let plan = plan(&PlanInput {
            hidden: self.hidden,
            diff: self.diff,
            filtered: self.filtered,
            checks: Some(PlannedAgent {
                model: None,
                ..agent("checks", "checks")
            }),
            cross_cutting: agents.first().cloned(),
            agents,
            chunks: self.chunks,
        });
        let input = RunInput {
            info: InputInfo {
                kind: InputKind::Range,
                base: None,
                head: None,
                base_name: None,
                repo: None,
                pr: None,
            },
            sandbox: SandboxInfo {
                level: "not_needed".into(),
                missing: vec![],
            },
            plan,
            tree: None,
            policy: self.policy,
            scope: None,
            limits: self.limits,
            router: self.router,
            judges: self.judges,
            notes: Vec::new(),
            started: Instant::now(),
        };
        let deps = RunDeps {
            progress: Arc::new(Silent),
            cancel: self.cancel,
            ladder: Arc::new(Halving),
            tasks: None,
            incoming: self.incoming,
        };
        run(input, engines, deps).await
    }
}

pub(crate) fn agent(id: &str, engine: &str) -> PlannedAgent {
    PlannedAgent {
        id: AgentId::new(id).unwrap(),
        engine: EngineName::new(engine),
        model: Some(ModelId::new("acme/one").unwrap()),
        system: "".into(),
        always_run: false,
    }
}

pub(crate) fn record<'a>(review: &'a Review, pass: &str) -> &'a PassRecord {
    let found = review.passes.iter().find(|p| p.id.as_str() == pass);
    found.unwrap_or_else(|| panic!("no pass {pass}: {:?}", review.passes))
}

/// Every changed line is in the receipt, and every file with its outcome and reason.
pub(crate) fn assert_adds_up(review: &Review, diff: &Diff) {
    let lines = |added: u32, deleted: u32| u64::from(added) + u64::from(deleted);
    let numstat: u64 = diff.files.iter().map(|f| lines(f.added, f.deleted)).sum();
    let totals = review.coverage.totals();
    assert_eq!(totals.changed_lines, numstat);
    assert_eq!(totals.files, diff.files.len() as u64);
    for (file, changed) in review.coverage.files.iter().zip(&diff.files) {
        assert_eq!(file.path, changed.path);
        let reviewed = file.outcome == ecr::model::FileOutcome::Reviewed;
        assert_eq!(file.reason.is_none(), reviewed, "{file:?}");
        assert!(file.reviewed_lines <= lines(file.added, file.deleted));
    }
}

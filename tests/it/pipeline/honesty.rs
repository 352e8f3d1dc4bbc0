//! Whatever becomes of the passes, no report reads as complete unless everything was reviewed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use ecr::model::{Decision, FileOutcome, ModelId, PassKind, PassOutcomeKind, Review, Severity};
use ecr::port::{EngineError, ReviewEngine};
use proptest::prelude::*;
use serde_json::json;

use super::support::{Case, assert_adds_up, secs};
use crate::support::fake_engine::{Act, FakeEngine, diff_of, finding, path};

fn act() -> impl Strategy<Value = Act> {
    let error = prop_oneof![
        Just(EngineError::Unavailable("gone".into())),
        Just(EngineError::Auth("no".into())),
        Just(EngineError::RateLimited { retry_after: None }),
        Just(EngineError::RateLimited {
            retry_after: Some(secs(40))
        }),
        Just(EngineError::UsageLimited { resets_at: None }),
        Just(EngineError::Overloaded),
        Just(EngineError::Transient("reset".into())),
        Just(EngineError::ContextOverflow),
        Just(EngineError::Refused("no".into())),
        Just(EngineError::SchemaUnmet("x".into())),
        Just(EngineError::Stalled(secs(3))),
        Just(EngineError::Timeout(secs(3))),
        Just(EngineError::Protocol("x".into())),
        Just(EngineError::Cancelled),
    ];
    prop_oneof![
        6 => (0u64..150).prop_map(|n| Act::Work(secs(n))),
        3 => error.prop_map(Act::Fail),
        1 => Just(Act::Truncate("turns")),
        1 => Just(Act::Hang),
        1 => Just(Act::Panic("bug")),
        1 => (0usize..6).prop_map(|at| Act::Skip(path(at), "too large")),
        1 => Just(Act::AnswerAs(ModelId::new("acme/other").unwrap())),
        2 => (0usize..6, 1u32..4, any::<bool>()).prop_map(|(at, line, critical)| {
            let mut report = finding(at, line, "Wrong");
            if critical {
                report.severity = Severity::Critical;
            }
            Act::Report(report)
        }),
        1 => prop_oneof![Just("confirmed"), Just("refuted"), Just("uncertain"), Just("?")]
            .prop_map(|word| Act::Answer(json!({"verdict": word, "reason": "so"}))),
    ]
}

#[derive(Debug, Clone)]
struct Setup {
    lines: Vec<u32>,
    filtered: Vec<usize>,
    agents: usize,
    chunk: usize,
    concurrency: usize,
    budget: u64,
    cancel_at: Option<u64>,
}

fn setup() -> impl Strategy<Value = Setup> {
    (
        proptest::collection::vec(0u32..9, 1..7),
        proptest::collection::vec(0usize..7, 0..3),
        0usize..3,
        1usize..4,
        1usize..4,
        20u64..600,
        proptest::option::weighted(0.2, 0u64..300),
    )
        .prop_map(
            |(lines, filtered, agents, chunk, concurrency, budget, cancel_at)| Setup {
                lines,
                filtered,
                agents,
                chunk,
                concurrency,
                budget,
                cancel_at,
            },
        )
}

const AGENTS: [&str; 3] = ["one", "two", "three"];

/// What the engine itself saw end well: the lines that truly were reviewed, by agent.
fn truly_reviewed(review: &Review) -> HashMap<(String, bool), Vec<String>> {
    let mut out: HashMap<(String, bool), Vec<String>> = HashMap::new();
    for pass in &review.passes {
        let counts = matches!(pass.kind, PassKind::Checks | PassKind::Review);
        if pass.outcome == PassOutcomeKind::Complete && counts {
            let key = (pass.agent.to_string(), pass.kind == PassKind::Checks);
            let files = pass.files.iter().map(ecr::model::RepoPath::to_lossy);
            out.entry(key).or_default().extend(files);
        }
    }
    out
}

fn check(setup: &Setup, scripts: &BTreeMap<String, Vec<Vec<Act>>>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let diff = diff_of(&setup.lines);
    let (review, engine) = runtime.block_on(async {
        let mut engine = FakeEngine::new("fake");
        let mut checks = FakeEngine::new("checks");
        for (prefix, attempts) in scripts {
            for acts in attempts {
                if prefix == "checks" {
                    checks = checks.script(prefix, acts.clone());
                } else {
                    engine = engine.script(prefix, acts.clone());
                }
            }
        }
        let engine = Arc::new(engine);
        let mut engines = ecr::pipeline::EngineSet::new();
        engines.insert(Arc::clone(&engine) as Arc<dyn ReviewEngine>);
        engines.insert(Arc::new(checks));
        let mut case = Case::new(Arc::clone(&diff))
            .chunked(setup.chunk)
            .agents(&AGENTS[..setup.agents])
            .judged(2);
        case.limits.concurrency = setup.concurrency;
        case.limits.passes = secs(setup.budget);
        case.limits.run = secs(setup.budget + 60);
        case.filtered = setup
            .filtered
            .iter()
            .map(|at| (*at, "noise".to_owned()))
            .collect();
        if let Some(at) = setup.cancel_at {
            let cancel = case.cancel.clone();
            tokio::spawn(async move {
                tokio::time::sleep(secs(at)).await;
                cancel.cancel();
            });
        }
        let begun = tokio::time::Instant::now();
        let review = case.run_on(&engines).await;
        assert!(begun.elapsed() <= secs(setup.budget + 60) + Duration::from_secs(1));
        (review, engine)
    });
    assert_eq!(engine.running(), 0);
    assert!(engine.peak() <= setup.concurrency);
    assert_adds_up(&review, &diff);

    let reviewed = truly_reviewed(&review);
    let covered = |agent: &str, checks: bool, file: &str| {
        let files = reviewed.get(&(agent.to_owned(), checks));
        files.is_some_and(|files| files.iter().any(|f| f == file))
    };
    for (at, file) in review.coverage.files.iter().enumerate() {
        let name = file.path.to_lossy();
        if file.outcome != FileOutcome::Reviewed {
            assert_eq!(file.reviewed_lines, 0);
            continue;
        }
        assert!(!setup.filtered.contains(&at));
        assert!(covered("checks", true, &name), "{name} not checked");
        for agent in &AGENTS[..setup.agents] {
            let nothing_to_read = setup.lines[at] == 0;
            assert!(
                nothing_to_read || covered(agent, false, &name),
                "{name} not seen by {agent}"
            );
        }
    }
    let missing = review
        .coverage
        .files
        .iter()
        .any(|f| matches!(f.outcome, FileOutcome::Partial | FileOutcome::Missed));
    if missing {
        assert!(!review.complete);
    }
    if review.decision == Decision::Approve {
        assert!(review.complete && review.findings.is_empty());
        assert!(setup.agents > 0);
    }
    if !review.complete {
        assert_ne!(review.decision, Decision::Approve);
        let honest = review.summary.contains("incomplete")
            || review.summary.contains("could not be completed")
            || review.summary.contains("interrupted");
        assert!(honest, "{}", review.summary);
        assert!(missing || review.notes.iter().any(|n| n.kind.is_gap()));
    }
    let ids: std::collections::HashSet<_> = review.passes.iter().map(|p| &p.id).collect();
    assert_eq!(ids.len(), review.passes.len(), "each pass is recorded once");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_gap_ever_reads_as_complete(
        setup in setup(),
        scripts in proptest::collection::btree_map(
            prop_oneof![
                Just("checks".to_owned()),
                Just("one/".to_owned()),
                Just("one/1".to_owned()),
                Just("one/1.a".to_owned()),
                Just("two/2".to_owned()),
                Just("cross".to_owned()),
                Just("coordinate".to_owned()),
                Just("verify".to_owned()),
            ],
            proptest::collection::vec(proptest::collection::vec(act(), 0..4), 1..4),
            0..5,
        ),
    ) {
        check(&setup, &scripts);
    }
}

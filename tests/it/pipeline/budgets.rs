//! Time: budgets, retries, cancellation, the queue.

use std::sync::Arc;
use std::time::Duration;

use ecr::model::{Decision, NoteKind, PassOutcomeKind};
use ecr::pipeline::{Plan, PlanInput, feed, plan};
use ecr::port::EngineError;
use tokio::time::Instant;

use super::support::{Case, agent, assert_adds_up, record, secs};
use crate::support::fake_engine::{Act, FakeEngine, diff_of, finding};

fn fake() -> FakeEngine {
    FakeEngine::new("fake")
}

fn transient() -> Act {
    Act::Fail(EngineError::Transient("reset".into()))
}

fn limited(after: Option<u64>) -> Act {
    Act::Fail(EngineError::RateLimited {
        retry_after: after.map(secs),
    })
}

#[tokio::test(start_paused = true)]
async fn retries_follow_the_table_exactly() {
    for (act, expected) in [
        (transient(), vec![0, 2, 10]),
        (Act::Fail(EngineError::Overloaded), vec![0, 2, 10]),
        (limited(None), vec![0, 15, 60, 150]),
        (limited(Some(20)), vec![0, 20, 40, 60]),
        (limited(Some(100_000)), vec![0]),
        (Act::Fail(EngineError::Stalled(secs(9))), vec![0, 0]),
        (Act::Fail(EngineError::SchemaUnmet("x".into())), vec![0, 0]),
        (Act::Fail(EngineError::Auth("no".into())), vec![0]),
        (Act::Fail(EngineError::Refused("no".into())), vec![0]),
        (Act::Fail(EngineError::Protocol("no".into())), vec![0]),
        (
            Act::Fail(EngineError::UsageLimited { resets_at: Some(9) }),
            vec![0],
        ),
    ] {
        let engine = Arc::new(fake().script("one/1", [act]));
        let diff = diff_of(&[3]);
        let review = Case::new(Arc::clone(&diff)).run(&engine).await;
        assert_eq!(engine.starts("one/1"), expected);
        let pass = record(&review, "one/1");
        assert_eq!(pass.outcome, PassOutcomeKind::Failed);
        assert_eq!(pass.attempts as usize, expected.len());
        assert_eq!(review.decision, Decision::CouldNotComplete);
        assert!(!review.complete);
        assert_adds_up(&review, &diff);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_recovers_is_complete() {
    let engine = fake()
        .script("one/1", [transient()])
        .script("one/1", [limited(Some(5))])
        .script("one/1", []);
    let engine = Arc::new(engine);
    let review = Case::new(diff_of(&[3])).run(&engine).await;
    assert_eq!(engine.starts("one/1"), [0, 2, 7]);
    assert_eq!(review.decision, Decision::Approve);
    assert!(review.complete, "{:?}", review.notes);
}

#[tokio::test(start_paused = true)]
async fn budgets_nest_and_hold_with_retries() {
    let engine = Arc::new(fake().script("one/1", [Act::Work(secs(60)), transient()]));
    let mut case = Case::new(diff_of(&[3]));
    case.limits.pass = Duration::MAX;
    case.limits.passes = secs(100);
    case.limits.run = secs(90);
    let begun = Instant::now();
    let review = case.run(&engine).await;
    assert!(begun.elapsed() <= secs(90), "{:?}", begun.elapsed());
    let seen = engine.seen();
    assert_eq!(seen.len(), 2, "the second attempt is cut by the run's end");
    assert!(seen.iter().all(|s| s.deadline <= secs(90)), "{seen:?}");
    assert_eq!(review.decision, Decision::CouldNotComplete);
    assert!(review.notes.iter().any(|n| n.kind == NoteKind::Budget));
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_in_the_time_is_not_started() {
    let engine = Arc::new(fake().script("one/", [Act::Work(secs(40))]));
    let diff = diff_of(&[4, 3, 2, 1]);
    let mut case = Case::new(Arc::clone(&diff)).chunked(1);
    case.limits.concurrency = 1;
    case.limits.passes = secs(100);
    let review = case.run(&engine).await;
    assert_eq!(engine.peak(), 1);
    let skipped = review
        .passes
        .iter()
        .filter(|p| p.outcome == PassOutcomeKind::Skipped);
    assert!(skipped.count() >= 1);
    assert!(!review.complete);
    assert_eq!(review.decision, Decision::ApproveWithComments);
    assert_adds_up(&review, &diff);
}

#[tokio::test(start_paused = true)]
async fn a_hang_is_cut_at_the_deadline_and_split_down_to_one_file() {
    let engine = fake()
        .script(
            "one/1",
            [Act::Report(finding(0, 1, "Wrong value")), Act::Hang],
        )
        .script("one/1", [Act::Hang])
        .script("one/1.a", [])
        .script("one/1.b", [Act::Hang]);
    let engine = Arc::new(engine);
    let diff = diff_of(&[3, 3, 3]);
    let begun = Instant::now();
    let review = Case::new(Arc::clone(&diff)).run(&engine).await;
    assert_eq!(
        begun.elapsed(),
        secs(300),
        "one limit for the whole, one for the half, one for what the diff shows"
    );
    assert_eq!(engine.starts("one/1.b.shown"), [200]);
    assert_eq!(engine.running(), 0, "dropped");
    assert_eq!(engine.starts("one/1.a"), [100]);
    assert_eq!(review.findings.len(), 1, "reported before the hang");
    let outcomes: Vec<_> = review
        .coverage
        .files
        .iter()
        .map(|f| f.outcome.as_str())
        .collect();
    assert_eq!(outcomes, ["reviewed", "reviewed", "partial"]);
    assert_eq!(review.decision, Decision::ApproveWithComments);
    assert!(!review.complete);
    assert_adds_up(&review, &diff);
}

#[tokio::test(start_paused = true)]
async fn an_overflow_splits_until_it_fits() {
    let engine = fake()
        .script("one/1", [Act::Fail(EngineError::ContextOverflow)])
        .script("one/1.a", [])
        .script("one/1.b", []);
    let engine = Arc::new(engine);
    let review = Case::new(diff_of(&[3, 3, 3])).run(&engine).await;
    assert!(review.complete, "{:?}", review.notes);
    assert_eq!(review.decision, Decision::Approve);
    let files: Vec<_> = engine.seen().iter().map(|s| s.files).collect();
    assert_eq!(files, [3, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_reaches_every_pass() {
    let engine = fake()
        .script("one/", [Act::Work(secs(50))])
        .script(
            "one/1",
            [
                Act::Report(finding(0, 1, "Wrong value")),
                Act::Work(secs(50)),
            ],
        )
        .script("one/2", [Act::Hang]);
    let engine = Arc::new(engine);
    let diff = diff_of(&[1, 1, 1, 1, 1, 1]);
    let case = Case::new(Arc::clone(&diff)).chunked(1);
    let cancel = case.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(secs(10)).await;
        cancel.cancel();
    });
    let begun = Instant::now();
    let review = case.run(&engine).await;
    assert!(begun.elapsed() <= secs(13), "{:?}", begun.elapsed());
    assert_eq!(engine.running(), 0);
    assert_eq!(
        engine.cancelled() + 2,
        engine.seen().len(),
        "all but the deaf one and the finished one"
    );
    assert_eq!(review.decision, Decision::CouldNotComplete);
    assert_eq!(review.findings.len(), 1);
    let interrupted = review
        .notes
        .iter()
        .filter(|n| n.kind == NoteKind::Interrupted);
    assert!(interrupted.count() >= 1);
    assert_adds_up(&review, &diff);
}

#[tokio::test(start_paused = true)]
async fn a_run_cancelled_before_it_starts_starts_nothing() {
    let engine = Arc::new(fake());
    let case = Case::new(diff_of(&[1]));
    case.cancel.cancel();
    let review = case.run(&engine).await;
    assert!(engine.seen().is_empty());
    assert_eq!(review.decision, Decision::CouldNotComplete);
}

#[tokio::test(start_paused = true)]
async fn the_queue_grows_while_others_are_active() {
    let diff = diff_of(&[2]);
    let Plan { passes, .. } = plan(&PlanInput {
        hidden: std::collections::BTreeMap::default(),
        diff: Arc::clone(&diff),
        filtered: [].into(),
        checks: None,
        agents: vec![agent("late", "fake")],
        chunks: vec![vec![0]],
        cross_cutting: None,
    });
    let (queue, incoming) = feed();
    let mut case = Case::new(diff);
    case.limits.concurrency = 1;
    case.incoming = Some(incoming);
    let engine = fake()
        .script(
            "one/1",
            [
                Act::Work(secs(5)),
                Act::Enqueue(queue, Box::new(passes[0].clone())),
                Act::Work(secs(5)),
            ],
        )
        .script("late/1", [Act::Work(secs(3))]);
    let engine = Arc::new(engine);
    let begun = Instant::now();
    let review = case.run(&engine).await;
    assert_eq!(engine.starts("late/1"), [10]);
    assert_eq!(begun.elapsed(), secs(13), "ends when nothing is active");
    assert_eq!(record(&review, "late/1").outcome, PassOutcomeKind::Complete);
    assert!(review.complete);
}

#[tokio::test(start_paused = true)]
async fn a_usage_limit_stops_the_other_passes_of_the_engine() {
    let engine = Arc::new(fake().script(
        "one/",
        [Act::Fail(EngineError::UsageLimited { resets_at: None })],
    ));
    let mut case = Case::new(diff_of(&[1; 8])).chunked(1);
    case.limits.concurrency = 1;
    let review = case.run(&engine).await;
    // The cross-cutting pass comes first and completes; the first of the others trips the breaker.
    assert_eq!(engine.seen().len(), 2);
    let notes: Vec<_> = review
        .notes
        .iter()
        .filter(|n| n.kind == NoteKind::PassFailed)
        .collect();
    assert_eq!(
        notes.len(),
        2,
        "one for the failure, one for all that was not run: {notes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn concurrency_holds_and_the_checks_need_no_slot() {
    let engine = Arc::new(fake().script("", [Act::Work(secs(1))]));
    let mut case = Case::new(diff_of(&[1; 10]))
        .chunked(1)
        .agents(&["one", "two"]);
    case.limits.concurrency = 3;
    let begun = Instant::now();
    let review = case.run(&engine).await;
    assert_eq!(engine.peak(), 3);
    assert_eq!(engine.seen().len(), 21);
    assert_eq!(begun.elapsed(), secs(7));
    assert_eq!(review.decision, Decision::Approve);
    assert_eq!(review.timing.total_ms, 7_000);
    assert_eq!(review.timing.overhead_ms, 0);
}

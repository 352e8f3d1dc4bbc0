//! What a run says: decisions, notes, findings, receipts.

use std::sync::Arc;

use ecr::finding::Policy;
use ecr::model::{
    Category, Cost, Decision, DropStage, FileOutcome, ModelId, NoteKind, PassOutcomeKind, Severity,
    TokenCounts, Usage, UsageConfidence,
};
use ecr::pipeline::{BINARY, EngineSet};
use ecr::port::{EngineError, FindingReceipt, ReviewEngine};

use super::support::{Case, assert_adds_up, record, secs};
use crate::support::fake_engine::{Act, FakeEngine, diff_of, finding, path};

fn fake() -> FakeEngine {
    FakeEngine::new("fake")
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_pass_and_nothing_else() {
    let engine = fake()
        .script(
            "one/1",
            [
                Act::Report(finding(0, 1, "Wrong value")),
                Act::Panic("bo\u{1b}om"),
            ],
        )
        .script("two/1", []);
    let review = Case::new(diff_of(&[2]))
        .agents(&["one", "two"])
        .run(&Arc::new(engine))
        .await;
    let pass = record(&review, "one/1");
    assert_eq!(pass.outcome, PassOutcomeKind::Failed);
    assert_eq!(pass.reason.as_deref(), Some("the engine crashed: bo om"));
    assert_eq!(review.findings.len(), 1, "kept");
    assert_eq!(review.decision, Decision::ApproveWithComments);
    assert_eq!(review.coverage.files[0].outcome, FileOutcome::Partial);
}

#[tokio::test(start_paused = true)]
async fn checks_alone_are_never_an_approval() {
    let checks = FakeEngine::new("checks");
    let mut engines = EngineSet::new();
    engines.insert(Arc::new(checks));
    let mut diff = diff_of(&[2, 5, 0]);
    Arc::make_mut(&mut diff).files[2].binary = true;
    let mut case = Case::new(Arc::clone(&diff)).agents(&[]);
    case.filtered.insert(1, "lockfile".into());
    let review = case.run_on(&engines).await;
    assert_eq!(review.decision, Decision::ChecksOnly);
    assert!(review.complete);
    assert!(review.notes.iter().any(|n| n.kind == NoteKind::ChecksOnly));
    let files: Vec<_> = review
        .coverage
        .files
        .iter()
        .map(|f| (f.outcome, f.reason.as_deref(), f.reviewed_lines))
        .collect();
    assert_eq!(
        files,
        [
            (FileOutcome::Reviewed, None, 2),
            (FileOutcome::Filtered, Some("lockfile"), 0),
            (FileOutcome::Filtered, Some(BINARY), 0),
        ]
    );
    assert_eq!(review.passes[0].files.len(), 3, "the checks see noise too");
    assert_eq!(review.usage.confidence(), UsageConfidence::Exact);
    assert_adds_up(&review, &diff);
}

#[tokio::test(start_paused = true)]
async fn text_that_the_diff_hides_is_a_gap_for_models_but_not_for_checks() {
    let mut diff = diff_of(&[2, 5, 0]);
    Arc::make_mut(&mut diff).files[2].binary = true;
    for (agents, outcome) in [
        (&["one"][..], FileOutcome::Partial),
        (&[], FileOutcome::Reviewed),
    ] {
        let mut case = Case::new(Arc::clone(&diff)).agents(agents);
        case.hidden = [(2, "a NUL byte".to_owned())].into();
        let review = case.run(&Arc::new(fake())).await;
        let file = &review.coverage.files[2];
        assert_eq!(file.outcome, outcome);
        assert_eq!(review.complete, agents.is_empty());
        let reason = file.reason.as_deref();
        assert_eq!(reason, (!agents.is_empty()).then_some("one: a NUL byte"));
    }
}

#[tokio::test(start_paused = true)]
async fn failed_checks_without_a_model_could_not_complete() {
    let checks = FakeEngine::new("checks").script("checks", [Act::Panic("bug")]);
    let mut engines = EngineSet::new();
    engines.insert(Arc::new(checks));
    let review = Case::new(diff_of(&[2])).agents(&[]).run_on(&engines).await;
    assert_eq!(review.decision, Decision::CouldNotComplete);
    assert_eq!(review.coverage.files[0].outcome, FileOutcome::Missed);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_cannot_run_is_said_once_and_nothing_is_started() {
    let mut engine = fake();
    engine.preflight = Some(EngineError::Auth("no key".into()));
    let engine = Arc::new(engine);
    let review = Case::new(diff_of(&[2; 6])).chunked(2).run(&engine).await;
    assert!(engine.seen().is_empty());
    assert_eq!(review.decision, Decision::CouldNotComplete);
    let failed: Vec<_> = review
        .notes
        .iter()
        .filter(|n| n.kind == NoteKind::PassFailed)
        .collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(
        failed[0].text.contains("authentication failed: no key"),
        "{failed:?}"
    );

    let mut only_checks = EngineSet::new();
    only_checks.insert(Arc::new(FakeEngine::new("checks")) as Arc<dyn ReviewEngine>);
    let review = Case::new(diff_of(&[2])).run_on(&only_checks).await;
    assert_eq!(review.decision, Decision::CouldNotComplete);
}

#[tokio::test(start_paused = true)]
async fn truncated_substituted_and_unexamined_are_gaps() {
    for (act, kind) in [
        (Act::Truncate("out of turns"), NoteKind::PassTruncated),
        (
            Act::AnswerAs(ModelId::new("acme/two").unwrap()),
            NoteKind::ModelSubstituted,
        ),
        (Act::Skip(path(0), "too large"), NoteKind::Missed),
    ] {
        let engine = fake().script("one/1", [act]).script("two/1", []);
        let review = Case::new(diff_of(&[2]))
            .agents(&["one", "two"])
            .run(&Arc::new(engine))
            .await;
        assert!(!review.complete, "{kind}");
        assert_ne!(review.decision, Decision::Approve, "{kind}");
        assert!(
            review.notes.iter().any(|n| n.kind == kind),
            "{:?}",
            review.notes
        );
    }
}

#[tokio::test(start_paused = true)]
async fn findings_are_merged_ordered_capped_and_explained() {
    let with = |severity, mut report: ecr::model::FindingReport| {
        report.severity = severity;
        Act::Report(report)
    };
    let engine = fake()
        .script(
            "one/1",
            [
                with(Severity::Warning, finding(1, 2, "Wrong value")),
                with(Severity::Critical, finding(1, 1, "Data is lost")),
                with(Severity::Suggestion, finding(0, 1, "Name it better")),
                with(Severity::Warning, finding(0, 2, "Leaks memory")),
                Act::RetractFirst,
            ],
        )
        .script(
            "two/1",
            [
                with(Severity::Warning, finding(1, 2, "Value is wrong")),
                with(Severity::Warning, finding(0, 3, "Race on start")),
            ],
        );
    let mut case = Case::new(diff_of(&[3, 3])).agents(&["one", "two"]);
    case.policy = Policy {
        include_suggestions: false,
        max_findings: Some(3),
    };
    let review = case.run(&Arc::new(engine)).await;
    let shown: Vec<_> = review.findings.iter().map(|f| f.title.as_str()).collect();
    assert_eq!(shown, ["Data is lost", "Leaks memory", "Race on start"]);
    assert_eq!(review.decision, Decision::RequestChanges);
    let stages: Vec<_> = review.dropped.iter().map(|d| d.stage).collect();
    assert!(
        stages.contains(&DropStage::Policy) && stages.contains(&DropStage::Cap),
        "{stages:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn who_can_mend_is_told_and_who_does_not_keeps_the_finding() {
    let misplaced = || {
        let mut report = finding(0, 3, "Wrong value");
        report.location.line = Some(1);
        report
    };
    let told = "evidence not at line 1; the only match is line 3";
    let interactive = || fake().with_capabilities(|c| c.served_tools = true);
    for (engine, answers) in [
        (interactive().script("one/1", [Act::Report(misplaced())]), 1),
        (
            interactive().script(
                "one/1",
                [
                    Act::Report(misplaced()),
                    Act::Report(finding(0, 3, "Wrong value")),
                ],
            ),
            2,
        ),
        (
            interactive().script(
                "one/1",
                [Act::Report(misplaced()), Act::Report(misplaced())],
            ),
            2,
        ),
        (
            interactive().script("one/1", [Act::Report(misplaced()), Act::Panic("dies")]),
            1,
        ),
    ] {
        let engine = Arc::new(engine);
        let review = Case::new(diff_of(&[3])).run(&engine).await;
        let receipts = engine.receipts();
        assert_eq!(receipts.len(), answers);
        assert_eq!(receipts[0], FindingReceipt::Rejected(told.into()));
        assert_eq!(review.findings.len(), 1);
        assert_eq!(review.findings[0].location.line, Some(3));
    }
    let engine = Arc::new(fake().script("one/1", [Act::Report(misplaced())]));
    let review = Case::new(diff_of(&[3])).run(&engine).await;
    assert!(matches!(engine.receipts()[0], FindingReceipt::Accepted(_)));
    assert_eq!(review.findings[0].location.line, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_finding_in_no_file_is_dropped_with_the_reason() {
    let engine = Arc::new(fake().script("one/1", [Act::Report(finding(7, 1, "Wrong"))]));
    let review = Case::new(diff_of(&[3])).run(&engine).await;
    assert!(review.findings.is_empty());
    assert_eq!(review.dropped[0].stage, DropStage::Grounding);
    assert_eq!(review.dropped[0].reason, "f7 is not in the diff");
}

#[tokio::test(start_paused = true)]
async fn a_leaked_secret_found_by_the_checks_requests_changes_even_if_models_fail() {
    let mut report = finding(0, 1, "A token is in the code");
    report.category = Category::Secrets;
    let checks = FakeEngine::new("checks").script("checks", [Act::Report(report)]);
    let mut engines = EngineSet::new();
    engines.insert(Arc::new(checks));
    let failing = fake().script("one", [Act::Fail(EngineError::Refused("no".into()))]);
    engines.insert(Arc::new(failing));
    let review = Case::new(diff_of(&[3])).run_on(&engines).await;
    assert_eq!(review.decision, Decision::RequestChanges);
    assert!(!review.complete);
}

#[tokio::test(start_paused = true)]
async fn usage_is_summed_over_attempts_and_keeps_its_confidence() {
    let used = |input| {
        let counts = TokenCounts {
            input,
            ..TokenCounts::default()
        };
        Usage::Exact(counts, Some(Cost(input)))
    };
    let engine = fake()
        .script(
            "one/1",
            [
                Act::Meter(used(10)),
                Act::Meter(used(5)),
                Act::Fail(EngineError::Overloaded),
            ],
        )
        .script("one/1", [Act::Meter(used(3)), Act::Work(secs(1))]);
    let engine = engine.with_capabilities(|c| c.usage_reporting = false);
    let review = Case::new(diff_of(&[3])).run(&Arc::new(engine)).await;
    assert_eq!(review.usage, used(18));
    assert_eq!(record(&review, "one/1").usage, used(18));

    let silent = fake().with_capabilities(|c| c.usage_reporting = false);
    let review = Case::new(diff_of(&[3])).run(&Arc::new(silent)).await;
    assert_eq!(record(&review, "one/1").usage, Usage::Unavailable);
}

//! The coordinator and the verifier, from candidates to the verdict.

use std::sync::Arc;

use ecr::finding::fingerprint;
use ecr::model::{
    Decision, DropStage, Finding, FindingReport, FindingStatus, NoteKind, PassKind,
    PassOutcomeKind, Review, Severity, VerificationStatus,
};
use ecr::pipeline::Router;
use ecr::port::EngineError;
use serde_json::{Value, json};

use super::support::{Case, agent, assert_adds_up, record, secs};
use crate::support::fake_engine::{Act, FakeEngine, diff_of, finding};

fn fake() -> FakeEngine {
    FakeEngine::new("fake")
}

fn report(file: usize, line: u32, title: &str, severity: Severity) -> FindingReport {
    FindingReport {
        severity,
        rationale: "Orders without items are charged, and marked as paid.".to_owned(),
        ..finding(file, line, title)
    }
}

fn id(report: &FindingReport) -> String {
    let evidence = report.evidence.as_deref();
    fingerprint(
        &report.location.file,
        report.category,
        evidence,
        &report.title,
    )
    .as_str()
    .to_owned()
}

fn says(verdict: &str) -> [Act; 1] {
    [Act::Answer(
        json!({"verdict": verdict, "reason": "Line 1 rules it out."}),
    )]
}

fn coordinates([merge, drop, edit]: &[Value; 3]) -> [Act; 1] {
    [Act::Answer(json!({
        "merge": merge, "drop": drop, "edit": edit, "summary": "Orders would be lost."
    }))]
}

fn of<'a>(review: &'a Review, title: &str) -> &'a Finding {
    let found = review.findings.iter().find(|f| f.title == title);
    found.unwrap_or_else(|| panic!("no {title}: {:#?} {:#?}", review.findings, review.dropped))
}

#[tokio::test(start_paused = true)]
async fn three_reviewers_a_cross_cutting_pass_a_coordinator_and_a_verifier_make_one_review() {
    use Severity::{Critical, Suggestion, Warning};
    let diff = diff_of(&[4; 4]);
    let null = report(0, 1, "Null dereference of the order", Warning);
    let same = report(0, 2, "The order is dereferenced when null", Warning);
    let grave = report(1, 1, "Anyone can delete an order", Critical);
    let vague = report(2, 1, "Is this intended?", Warning);
    let quiet = report(3, 1, "Slow for large orders", Suggestion);
    let contract = report(3, 2, "The caller still passes cents", Warning);
    let engine = fake()
        .script("one/1", [Act::Report(null.clone())])
        .script("two/1", [Act::Report(same.clone()), Act::Report(grave.clone())])
        .script("three/2", [Act::Report(vague.clone()), Act::Report(quiet.clone())])
        .script("cross-cutting", [Act::Report(contract)])
        .script(
            "coordinate",
            coordinates(&[
                json!([{"into": id(&null), "from": [id(&same)]}]),
                json!([{"id": id(&vague), "reason": "A question is no defect."}]),
                json!([{"id": id(&quiet), "severity": "warning", "title": null, "consequence": null}]),
            ]),
        )
        .script(&format!("verify/{}", id(&vague)), says("uncertain"))
        .script(&format!("verify/{}", id(&grave)), says("confirmed"));
    let engine = Arc::new(engine);
    let review = Case::new(Arc::clone(&diff))
        .chunked(2)
        .agents(&["one", "two", "three"])
        .judged(4)
        .run(&engine)
        .await;
    assert_adds_up(&review, &diff);
    assert_eq!(review.decision, Decision::RequestChanges);
    assert!(review.complete, "{:?}", review.notes);
    let titles: Vec<_> = review.findings.iter().map(|f| f.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "Anyone can delete an order",
            "Null dereference of the order",
            "Slow for large orders",
            "The caller still passes cents",
        ]
    );
    let agents: Vec<_> = review.findings[1]
        .agents
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(agents, ["one", "two"]);
    assert_eq!(
        review.findings[0].verification.status,
        VerificationStatus::Verified
    );
    let dropped: Vec<_> = review
        .dropped
        .iter()
        .map(|d| (d.finding.title.as_str(), d.stage))
        .collect();
    assert_eq!(
        dropped,
        [
            ("The order is dereferenced when null", DropStage::Dedupe),
            ("Is this intended?", DropStage::Coordination),
        ]
    );
    let kinds: Vec<_> = review.passes.iter().map(|p| p.kind).collect();
    let count = |kind| kinds.iter().filter(|k| **k == kind).count();
    assert_eq!(
        [
            PassKind::Review,
            PassKind::CrossCutting,
            PassKind::Coordinate,
            PassKind::Verify
        ]
        .map(count),
        [6, 1, 1, 2]
    );
    // What a model says of the whole goes when the set is not the one that it saw.
    assert!(
        !review.summary.contains("Orders would be lost"),
        "{}",
        review.summary
    );
    // The verifier sees the claim and the source, and none of the finder's arguments.
    let seen = engine.seen();
    let task = &seen
        .iter()
        .find(|s| s.pass.starts_with("verify/"))
        .unwrap()
        .task;
    assert!(task.contains("+let f1_1 = value;"), "{task}");
    assert!(!task.contains("Orders without items"), "{task}");
    let task = &seen.iter().find(|s| s.pass == "coordinate").unwrap().task;
    assert!(task.contains("Orders without items"), "{task}");
}

#[tokio::test(start_paused = true)]
async fn a_whole_set_keeps_the_coordinators_summary() {
    let engine = fake()
        .script(
            "one/1",
            [
                Act::Report(report(0, 1, "Wrong sum", Severity::Warning)),
                Act::Report(report(0, 3, "Leaks the handle", Severity::Warning)),
            ],
        )
        .script(
            "coordinate",
            coordinates(&[json!([]), json!([]), json!([])]),
        );
    let review = Case::new(diff_of(&[4]))
        .judged(4)
        .run(&Arc::new(engine))
        .await;
    assert!(
        review.summary.ends_with("Orders would be lost."),
        "{}",
        review.summary
    );
    assert_eq!(review.findings.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_critical_falls_only_to_two_refutations_and_even_then_it_is_listed() {
    let critical = report(0, 1, "Deletes all", Severity::Critical);
    let verify = format!("verify/{}", id(&critical));
    for (second, status, decision) in [
        (
            "refuted",
            FindingStatus::Disputed,
            Decision::ApproveWithComments,
        ),
        ("confirmed", FindingStatus::Open, Decision::RequestChanges),
        ("uncertain", FindingStatus::Open, Decision::RequestChanges),
        ("perhaps", FindingStatus::Open, Decision::RequestChanges),
    ] {
        let engine = fake()
            .script("one/1", [Act::Report(critical.clone())])
            .script(&verify, says("refuted"))
            .script(&format!("{verify}/2"), says(second));
        let engine = Arc::new(engine);
        let review = Case::new(diff_of(&[4])).judged(4).run(&engine).await;
        let found = of(&review, "Deletes all");
        assert_eq!(
            (found.status, review.decision),
            (status, decision),
            "{second}"
        );
        assert_eq!(found.verification.status, VerificationStatus::Uncertain);
        assert!(
            found
                .verification
                .reason
                .as_ref()
                .unwrap()
                .contains("Line 1 rules it out.")
        );
        assert_eq!(
            engine
                .seen()
                .iter()
                .filter(|s| s.pass.starts_with("verify/"))
                .count(),
            2
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_unfounded_warning_falls_to_one_and_says_why() {
    let mut lost = report(0, 1, "Wrong sum", Severity::Warning);
    lost.evidence = Some("this line stands nowhere".to_owned());
    let engine = fake()
        .script("one/1", [Act::Report(lost)])
        .script("verify/", says("refuted"));
    let engine = Arc::new(engine);
    let review = Case::new(diff_of(&[4])).judged(4).run(&engine).await;
    assert!(review.findings.is_empty());
    assert_eq!(review.dropped[0].stage, DropStage::Verification);
    assert_eq!(review.dropped[0].reason, "refuted: Line 1 rules it out.");
    let seen = engine.seen();
    let task = &seen
        .iter()
        .find(|s| s.pass.starts_with("verify/"))
        .unwrap()
        .task;
    assert!(task.contains("was not found in the file"), "{task}");
    assert_eq!(review.decision, Decision::Approve);
}

#[tokio::test(start_paused = true)]
async fn without_a_coordinator_that_works_the_findings_are_merged_by_rule_and_nothing_is_missing() {
    for act in [
        Act::Fail(EngineError::Refused("no".into())),
        Act::Fail(EngineError::SchemaUnmet("prose".into())),
        Act::Truncate("cut"),
        Act::Panic("bug"),
        Act::Hang,
        Act::Answer(json!({"merge": "all", "drop": 3})),
    ] {
        let engine = fake()
            .script(
                "one/1",
                [
                    Act::Report(report(0, 1, "Wrong sum", Severity::Warning)),
                    Act::Report(report(0, 3, "Leaks the handle", Severity::Warning)),
                ],
            )
            .script("coordinate", [act.clone()]);
        let review = Case::new(diff_of(&[4]))
            .judged(4)
            .run(&Arc::new(engine))
            .await;
        assert_eq!(review.findings.len(), 2, "{act:?}");
        assert!(review.complete, "{act:?}: {:?}", review.notes);
        let failed = record(&review, "coordinate").outcome != PassOutcomeKind::Complete;
        let said = review
            .notes
            .iter()
            .any(|n| n.kind == NoteKind::Info && n.text.contains("merged by rule"));
        assert_eq!(failed, said, "{act:?}: {:?}", review.notes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_verification_that_fails_leaves_the_finding_and_a_gap() {
    for act in [
        Act::Fail(EngineError::Refused("no".into())),
        Act::Panic("bug"),
        Act::Hang,
        Act::Answer(json!({"verdict": "approve"})),
    ] {
        let engine = fake()
            .script(
                "one/1",
                [Act::Report(report(0, 1, "Deletes all", Severity::Critical))],
            )
            .script("verify/", [act.clone()]);
        let case = Case::new(diff_of(&[4])).judged(4);
        let begun = tokio::time::Instant::now();
        let run = case.limits.run;
        let review = case.run(&Arc::new(engine)).await;
        assert!(begun.elapsed() <= run + secs(1));
        let found = of(&review, "Deletes all");
        assert_eq!(
            found.verification.status,
            VerificationStatus::Unverified,
            "{act:?}"
        );
        assert_eq!(review.decision, Decision::RequestChanges);
        assert!(!review.complete, "{act:?}: {:?}", review.notes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_critical_that_was_taken_back_is_looked_at_and_returns_when_it_holds() {
    for (verdict, back) in [
        ("confirmed", true),
        ("refuted", false),
        ("uncertain", false),
    ] {
        let engine = fake()
            .script(
                "one/1",
                [
                    Act::Report(report(0, 1, "Deletes all", Severity::Critical)),
                    Act::RetractFirst,
                ],
            )
            .script("verify/", says(verdict));
        let review = Case::new(diff_of(&[4]))
            .judged(4)
            .run(&Arc::new(engine))
            .await;
        assert_eq!(review.findings.len(), usize::from(back), "{verdict}");
        assert_eq!(review.dropped.len(), usize::from(!back), "{verdict}");
        let decision = if back {
            Decision::RequestChanges
        } else {
            Decision::Approve
        };
        assert_eq!(review.decision, decision);
    }
}

#[tokio::test(start_paused = true)]
async fn the_limits_hold_for_judges_too() {
    let reports = (1..=9)
        .map(|line| Act::Report(report(0, line, &format!("Bug {line}"), Severity::Critical)));
    let slow = |verdict: &str| {
        let [answer] = says(verdict);
        [Act::Work(secs(30)), answer]
    };
    for (parallel, concurrency, peak) in [(2, 4, 2), (8, 3, 3)] {
        let engine = fake()
            .script("one/1", reports.clone())
            .script(
                "coordinate",
                coordinates(&[json!([]), json!([]), json!([])]),
            )
            .script("verify/", slow("confirmed"));
        let engine = Arc::new(engine);
        let mut case = Case::new(diff_of(&[9])).judged(parallel);
        case.limits.concurrency = concurrency;
        let review = case.run(&engine).await;
        assert_eq!(engine.peak(), peak);
        assert_eq!(review.findings.len(), 9);
    }
    // The run's time ends while half of them wait.
    let engine = fake()
        .script("one/1", reports.clone())
        .script(
            "coordinate",
            coordinates(&[json!([]), json!([]), json!([])]),
        )
        .script("verify/", slow("confirmed"));
    let engine = Arc::new(engine);
    let mut case = Case::new(diff_of(&[9])).judged(1);
    case.limits.run = secs(100);
    let begun = tokio::time::Instant::now();
    let review = case.run(&engine).await;
    assert!(begun.elapsed() <= secs(101));
    assert!(!review.complete);
    assert_eq!(review.decision, Decision::RequestChanges);
    let of_status = |status| {
        review
            .findings
            .iter()
            .filter(|f| f.verification.status == status)
            .count()
    };
    assert_eq!(of_status(VerificationStatus::Verified), 3);
    assert_eq!(of_status(VerificationStatus::Unverified), 6);
    assert!(
        review.notes.iter().any(|n| n.kind == NoteKind::Budget),
        "{:?}",
        review.notes
    );
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_asks_no_judge() {
    let engine = fake().script(
        "one/1",
        [
            Act::Report(report(0, 1, "Deletes all", Severity::Critical)),
            Act::Work(secs(50)),
        ],
    );
    let engine = Arc::new(engine);
    let case = Case::new(diff_of(&[4])).judged(4);
    let cancel = case.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(secs(10)).await;
        cancel.cancel();
    });
    let review = case.run(&engine).await;
    assert_eq!(engine.seen().len(), 1);
    assert_eq!(
        of(&review, "Deletes all").verification.status,
        VerificationStatus::Grounded
    );
    assert!(!review.complete);
}

#[tokio::test(start_paused = true)]
async fn the_router_leaves_out_whom_it_does_not_name_and_errs_towards_all() {
    let concern = |id: &str| (agent(id, "fake").id, format!("what {id} looks for"));
    let answer = |names: Value| [Act::Answer(json!({"agents": names}))];
    for (script, ran, said) in [
        (answer(json!(["two", "nobody"])), &["two"][..], true),
        (
            answer(json!(["one", "two", "three"])),
            &["one", "two", "three"],
            false,
        ),
        (answer(json!(["nobody"])), &["one", "two", "three"], false),
        (answer(json!([])), &["one", "two", "three"], false),
        (
            [Act::Fail(EngineError::Refused("no".into()))],
            &["one", "two", "three"],
            false,
        ),
    ] {
        let engine = Arc::new(fake().script("route", script.clone()));
        let diff = diff_of(&[2, 2]);
        let mut case = Case::new(Arc::clone(&diff)).agents(&["one", "two", "three"]);
        case.router = Some(Router {
            agent: agent("router", "fake"),
            concerns: ["one", "two", "three"].map(concern).into(),
            mark: "0123456789abcdef".to_owned(),
        });
        let review = case.run(&engine).await;
        let reviewed: Vec<_> = review
            .passes
            .iter()
            .filter(|pass| pass.kind == PassKind::Review)
            .map(|pass| pass.agent.as_str())
            .collect();
        assert_eq!(reviewed, ran, "{script:?}");
        let note = review.notes.iter().find(|n| n.text.contains("--route"));
        assert_eq!(note.is_some(), said, "{script:?}");
        assert!(review.complete, "{:?}", review.notes);
        assert_adds_up(&review, &diff);
        let task = &engine.seen()[0].task;
        assert!(
            task.contains("- two: what two looks for") && task.contains("\n- f1"),
            "{task}"
        );
    }
}

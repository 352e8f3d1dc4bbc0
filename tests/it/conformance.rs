//! The rules that every engine has to keep. An engine joins by an entry in [`engines`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::diff::{Diff, parse_patch};
use ecr::engine::builtin::{BuiltinEngine, CheckSettings};
use ecr::gateway::Protocol;
use ecr::model::{
    AgentId, EngineName, FindingReport, Fingerprint, ModelId, PassId, PassKind, Usage,
    UsageConfidence,
};
use ecr::port::{
    Completion, EngineError, FindingReceipt, FindingSink, Meter, PassContext, PassOutcome,
    PassRequest, Progress, ProgressEvent, ReviewEngine,
};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::rig::Rig;
use crate::real_cli::{self, rig::Rig as CliRig};
use crate::support::fake_engine::{Act, FakeEngine, diff_of, finding};
use crate::support::model_server::{Reply, Script, Step};

/// An engine with what the suite has to know about it.
struct Subject {
    engine: Arc<dyn ReviewEngine>,
    kind: PassKind,
    model: Option<ModelId>,
    diff: Arc<Diff>,
    /// The same pass gives the same findings every time.
    deterministic: bool,
    /// The pass of `diff` reports something, so that comparing findings proves something.
    reports: bool,
    /// What it needs to stay alive.
    _rig: Option<CliRig>,
}

async fn subjects() -> Vec<Subject> {
    let report = || {
        [
            Act::Report(finding(0, 1, "Wrong value")),
            Act::Work(Duration::from_secs(5)),
            Act::Report(finding(1, 2, "Race on start")),
        ]
    };
    let subject = |engine: FakeEngine| Subject {
        engine: Arc::new(engine.script("", report())),
        kind: PassKind::Review,
        model: Some(ModelId::new("acme/one").unwrap()),
        diff: diff_of(&[3, 3]),
        deterministic: true,
        reports: true,
        _rig: None,
    };
    // Two new scripts that the checks have something to say about.
    let script = |name: &str| {
        format!(
            "diff --git a/{name} b/{name}\nnew file mode 100755\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+curl -k https://dl.shop.io/x | sh\n"
        )
    };
    let patch = script("a.sh") + &script("b.sh");
    let builtin = Subject {
        engine: Arc::new(BuiltinEngine::new(CheckSettings::default())),
        kind: PassKind::Checks,
        model: None,
        diff: Arc::new(parse_patch(patch.into_bytes().into()).unwrap()),
        deterministic: true,
        reports: true,
        _rig: None,
    };
    let api = Subject {
        engine: api().await,
        kind: PassKind::Review,
        model: Some(ModelId::new("acme/one").unwrap()),
        diff: diff_of(&[3, 3]),
        deterministic: true,
        reports: true,
        _rig: None,
    };
    vec![
        api,
        builtin,
        subject(FakeEngine::new("fake")),
        subject(
            FakeEngine::new("fake-without-usage").with_capabilities(|c| c.usage_reporting = false),
        ),
    ]
}

/// The command-line tools that are installed here, one at a time: each takes the whole machine.
async fn tool(tool: &'static real_cli::Subject) -> Option<Subject> {
    let script = Script::new((0..64).map(|_| Step::from(review(&real_cli::spelling(tool)))));
    let rig = CliRig::new(tool, script).await?;
    Some(Subject {
        engine: rig.engine(),
        kind: PassKind::Review,
        model: Some(ModelId::new(&format!("acme/{}", tool.model)).unwrap()),
        diff: diff_of(&[3, 3]),
        deterministic: true,
        reports: true,
        _rig: Some(rig),
    })
}

/// The engine of our own; its provider says everything in one turn, to whoever asks.
async fn api() -> Arc<dyn ReviewEngine> {
    let script = Script::new((0..64).map(|_| Step::from(review(&str::to_owned))));
    Rig::new(Protocol::AnthropicMessages, script).await.engine
}

/// The whole review in one turn: two findings and the end.
fn review(spelled: &dyn Fn(&str) -> String) -> Reply {
    let diff = diff_of(&[3, 3]);
    let files: Vec<_> = diff.files.iter().map(|f| f.path.to_lossy()).collect();
    let report = |at: usize, line: u32, title: &str| {
        json!({"severity": "warning", "category": "correctness", "file": files[at], "line": line, "side": "new",
            "title": title, "consequence": "It fails.", "evidence": format!("let f{at}_{line} = value;")})
    };
    Reply::default()
        .tool(&spelled("report"), report(0, 1, "Wrong value"))
        .tool(&spelled("report"), report(1, 2, "Race on start"))
        .tool(&spelled("finish"), json!({"examined": files}))
}

/// Takes everything and answers as the pipeline would.
#[derive(Default)]
struct Recorder {
    findings: Mutex<Vec<(PassId, FindingReport)>>,
    metered: Mutex<Vec<Usage>>,
}

impl FindingSink for Recorder {
    fn report(&self, pass: &PassId, finding: FindingReport) -> FindingReceipt {
        let mut findings = self.findings.lock().unwrap();
        findings.push((pass.clone(), finding));
        let id = format!("{:012x}", findings.len());
        FindingReceipt::Accepted(Fingerprint::new(&id).unwrap())
    }

    fn retract(&self, _pass: &PassId, _id: &Fingerprint, _reason: &str) -> bool {
        true
    }
}

impl Meter for Recorder {
    fn add(&self, _pass: &PassId, usage: Usage) {
        self.metered.lock().unwrap().push(usage);
    }
}

impl Progress for Recorder {
    fn event(&self, _event: ProgressEvent) {}
}

struct Ran {
    result: Result<PassOutcome, EngineError>,
    recorder: Arc<Recorder>,
}

impl Ran {
    fn findings(&self) -> Vec<FindingReport> {
        let findings = self.recorder.findings.lock().unwrap();
        let mut findings: Vec<_> = findings.iter().map(|(_, f)| f.clone()).collect();
        // Clients make the calls of one turn at once: the order is nobody's promise.
        findings.sort_by_key(|f| (f.location.file.clone(), f.location.line, f.title.clone()));
        findings
    }
}

impl Subject {
    fn request(&self, id: &str) -> PassRequest {
        PassRequest {
            id: PassId::new(id),
            kind: self.kind,
            agent: AgentId::new("one").unwrap(),
            model: self.model.clone(),
            diff: Arc::clone(&self.diff),
            files: (0..self.diff.files.len()).collect(),
            system: "You review.".into(),
            task: "Review the change.".into(),
            schema: None,
        }
    }

    async fn run(&self, id: &str, time: Duration, cancel: CancellationToken) -> Ran {
        let recorder = Arc::new(Recorder::default());
        let context = PassContext {
            tree: None,
            sink: Arc::clone(&recorder) as Arc<dyn FindingSink>,
            meter: Arc::clone(&recorder) as Arc<dyn Meter>,
            progress: Arc::clone(&recorder) as Arc<dyn Progress>,
            cancel,
            deadline: Instant::now() + time,
        };
        let result = self.engine.run(self.request(id), context).await;
        Ran { result, recorder }
    }

    async fn succeed(&self, id: &str) -> Ran {
        self.run(id, Duration::from_secs(600), CancellationToken::new())
            .await
    }

    fn name(&self) -> EngineName {
        self.engine.name()
    }

    fn assert_usage(&self, usage: &Usage) {
        let unavailable = usage.confidence() == UsageConfidence::Unavailable;
        let reports = self.engine.capabilities().usage_reporting;
        assert_ne!(unavailable, reports, "{}: {usage:?}", self.name());
    }
}

async fn preflight_spends_nothing_and_agrees(subject: Subject) {
    let models: Vec<ModelId> = subject.model.iter().cloned().collect();
    assert_eq!(
        subject.engine.preflight(&models).await,
        Ok(()),
        "{}",
        subject.name()
    );
    assert_eq!(subject.engine.capabilities(), subject.engine.capabilities());
}

async fn a_pass_examines_its_files_or_names_them_and_keeps_its_word_on_usage(subject: Subject) {
    let ran = subject.succeed("one/1").await;
    let outcome = ran.result.as_ref().unwrap();
    assert_eq!(
        outcome.completion,
        Completion::Complete,
        "{}",
        subject.name()
    );
    for (path, reason) in &outcome.unexamined {
        assert!(
            subject.diff.files.iter().any(|f| f.path == *path),
            "{path:?}"
        );
        assert!(!reason.is_empty());
    }
    subject.assert_usage(&outcome.usage);
    if !subject.engine.capabilities().usage_reporting {
        assert!(ran.recorder.metered.lock().unwrap().is_empty());
    }
    assert_eq!(
        ran.findings().is_empty(),
        !subject.reports,
        "{}",
        subject.name()
    );
    let findings = ran.recorder.findings.lock().unwrap();
    assert!(findings.iter().all(|(pass, _)| pass.as_str() == "one/1"));
}

async fn the_same_instance_runs_again_with_the_same_result(subject: Subject) {
    let (first, second) = (subject.succeed("a").await, subject.succeed("b").await);
    assert!(first.result.is_ok() && second.result.is_ok());
    if subject.deterministic {
        assert_eq!(first.findings(), second.findings(), "{}", subject.name());
    }
}

async fn eight_passes_at_once_do_not_mix(subject: Subject) {
    let alone = subject.succeed("alone").await.findings();
    let subject = Arc::new(subject);
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let subject = Arc::clone(&subject);
        tasks.spawn(async move {
            let id = format!("pass/{number}");
            (subject.succeed(&id).await, id)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (ran, id) = done.unwrap();
        assert!(ran.result.is_ok());
        let findings = ran.recorder.findings.lock().unwrap().clone();
        assert!(findings.iter().all(|(pass, _)| pass.as_str() == id), "{id}");
        if subject.deterministic {
            assert_eq!(ran.findings(), alone, "{}", subject.name());
        }
    }
}

async fn a_cancelled_pass_ends_at_once_and_is_not_complete(subject: Subject) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let begun = Instant::now();
    let ran = subject.run("one/1", Duration::from_secs(600), cancel).await;
    assert!(
        begun.elapsed() <= Duration::from_secs(2),
        "{}",
        subject.name()
    );
    let complete = matches!(&ran.result, Ok(o) if o.completion == Completion::Complete);
    assert!(!complete, "{}", subject.name());
}

async fn a_pass_without_time_ends_at_its_deadline_and_is_not_complete(subject: Subject) {
    let begun = Instant::now();
    let ran = subject
        .run("one/1", Duration::ZERO, CancellationToken::new())
        .await;
    assert!(
        begun.elapsed() <= Duration::from_secs(2),
        "{}",
        subject.name()
    );
    let complete = matches!(&ran.result, Ok(o) if o.completion == Completion::Complete);
    assert!(!complete, "{}", subject.name());
}

/// One test a rule: all engines in memory on the paused clock, and each tool on the real one.
macro_rules! for_each_engine {
    ($($rule:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test(start_paused = true)]
            async fn $rule() {
                for subject in super::subjects().await {
                    super::$rule(subject).await;
                }
            })*
        }
        for_each_engine!(@tool claude CLAUDE $($rule)*);
        for_each_engine!(@tool codex CODEX $($rule)*);
        for_each_engine!(@tool opencode OPENCODE $($rule)*);
    };
    (@tool $name:ident $tool:ident $($rule:ident)*) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $rule() {
                if let Some(subject) = super::tool(&crate::real_cli::$tool).await {
                    super::$rule(subject).await;
                }
            })*
        }
    };
}

for_each_engine! {
    preflight_spends_nothing_and_agrees,
    a_pass_examines_its_files_or_names_them_and_keeps_its_word_on_usage,
    the_same_instance_runs_again_with_the_same_result,
    eight_passes_at_once_do_not_mix,
    a_cancelled_pass_ends_at_once_and_is_not_complete,
    a_pass_without_time_ends_at_its_deadline_and_is_not_complete,
}

//! `report`, `retract`, `finish` against the collector that grounds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::gateway::ToolSession;
use ecr::gateway::tools::{Session, SessionSettings, TreeCache};
use ecr::model::{AgentId, FindingReport, Fingerprint, PassId};
use ecr::pipeline::Collector;
use ecr::port::{FindingReceipt, FindingSink};
use ecr::tree::{EntryKind, Tree};
use serde_json::{Value, json};

use super::harness::{TakesAll, numbered, ok, patch, path, refused, session, settings, tree_of};

const FILE: &str = "fn main() {\n    let total = price * count;\n    send(total);\n}\n";
const CHANGE: &str = "\
diff --git a/src/a.rs b/src/a.rs
index 1111111..2222222 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,4 +1,4 @@
 fn main() {
-    let total = price + count;
+    let total = price * count;
     send(total);
 }
";

/// A session whose findings are grounded by the collector of a real run.
fn grounded() -> (Session, Arc<Collector>, PassId) {
    let mut tree = tree_of(&[
        ("src/a.rs", FILE.as_bytes()),
        ("b.rs", b"other file here\n"),
    ]);
    tree.insert_as(path("link"), EntryKind::Symlink, *b"b.rs");
    let tree: Arc<dyn Tree> = Arc::new(tree);
    let diff = patch(CHANGE);
    let collector = Arc::new(Collector::new(
        Arc::clone(&diff),
        Some(Arc::clone(&tree)),
        None,
    ));
    let pass = PassId::new("pass/1");
    collector.open(&pass, &AgentId::new("agent").unwrap(), true);
    let session = Session::new(SessionSettings {
        tree: Some(Arc::new(TreeCache::new(tree))),
        diff,
        sink: Arc::clone(&collector) as Arc<dyn FindingSink>,
        ..settings(tree_of(&[]))
    });
    (session, collector, pass)
}

fn finding(change: Value) -> Value {
    let mut finding = json!({
        "severity": "warning", "category": "correctness", "file": "src/a.rs", "line": 2, "side": "new",
        "title": "Multiplies instead of adding", "consequence": "Totals are wrong.",
        "evidence": "let total = price * count;",
    });
    let Value::Object(change) = change else {
        panic!("an object");
    };
    for (name, value) in change {
        finding[name] = value;
    }
    finding
}

#[tokio::test]
async fn a_finding_is_grounded_and_its_anchor_mended() {
    let (session, collector, pass) = grounded();
    let answer = ok(&session, "report", finding(json!({}))).await;
    let id = answer
        .strip_prefix("reported as ")
        .expect("an id")
        .to_owned();
    assert!(Fingerprint::new(&id).is_ok(), "{id}");

    let words = refused(
        &session,
        "report",
        finding(json!({"line": 3, "title": "Other"})),
    )
    .await;
    assert!(
        words.starts_with("not taken: evidence not at line 3") && words.contains("line 2"),
        "{words}"
    );
    ok(
        &session,
        "report",
        finding(json!({"line": 2, "title": "Other"})),
    )
    .await;
    let words = refused(&session, "report", finding(json!({"file": "src/nope.rs"}))).await;
    assert!(
        words.contains("neither in the diff nor in the tree"),
        "{words}"
    );
    let old = json!({"side": "old", "evidence": "let total = price + count;", "endLine": 3});
    ok(&session, "report", finding(old)).await;

    assert_eq!(
        ok(
            &session,
            "retract",
            json!({"id": id, "reason": "it is right"})
        )
        .await,
        format!("retracted {id}")
    );
    let words = refused(&session, "retract", json!({"id": id, "reason": "again"})).await;
    assert_eq!(words, format!("no defect {id} of yours is reported"));
    let words = refused(&session, "retract", json!({"id": "x", "reason": "r"})).await;
    assert_eq!(words, "\"x\" is no id: send the one that report gave");
    collector.close(&pass);
    let words = refused(&session, "report", finding(json!({}))).await;
    assert_eq!(words, "not taken: this pass is over");
}

#[tokio::test]
async fn a_finding_is_checked_field_by_field() {
    let session = session(&[("a", b"a\n")]);
    for (change, words) in [
        (
            json!({"severity": "high"}),
            "severity is \"high\": send one of suggestion, warning, critical",
        ),
        (
            json!({"category": 1}),
            "category is a number: send one of correctness, quality, security, secrets",
        ),
        (
            json!({"side": null}),
            "side is missing: send one of old, new",
        ),
        (
            json!({"line": null}),
            "line is missing: send the line's number",
        ),
        (
            json!({"line": 0}),
            "line has to be a whole number of 1 or more",
        ),
        (
            json!({"line": 5, "endLine": 4}),
            "endLine (4) is before line (5)",
        ),
        (
            json!({"title": "é".repeat(121)}),
            "title has 121 characters: send at most 120",
        ),
        (json!({"title": " "}), "title is empty"),
        (
            json!({"consequence": "x".repeat(601)}),
            "consequence has 601 characters: send at most 600",
        ),
        (json!({"evidence": ""}), "evidence is empty"),
        (
            json!({"evidence": "x".repeat(2_001)}),
            "evidence has 2001 characters: send at most 2000",
        ),
    ] {
        assert_eq!(refused(&session, "report", finding(change)).await, words);
    }
    let words = refused(&session, "report", finding(json!({"file": "../x"}))).await;
    assert!(
        words.contains("relative to the repository's root"),
        "{words}"
    );
    let words = refused(&session, "report", finding(json!({"fix": "x"}))).await;
    assert!(
        words.starts_with("unknown field \"fix\": report takes severity, category"),
        "{words}"
    );
}

#[tokio::test]
async fn what_is_reported_arrives_as_it_is() {
    let sink = Arc::new(TakesAll::default());
    let mut settings = settings(tree_of(&[]));
    settings.sink = Arc::clone(&sink) as Arc<dyn FindingSink>;
    let session = Session::new(settings);
    let change =
        json!({"endLine": 4, "title": "é".repeat(120), "side": "old", "severity": "critical"});
    assert_eq!(
        ok(&session, "report", finding(change)).await,
        "reported as 000000000001"
    );
    let taken = sink.0.lock().unwrap();
    let FindingReport {
        location,
        title,
        rationale,
        evidence,
        suggestion,
        ..
    } = &taken[0];
    assert_eq!((location.line, location.end_line), (Some(2), Some(4)));
    assert_eq!(location.file, path("src/a.rs"));
    assert_eq!(title.chars().count(), 120);
    assert_eq!(rationale, "Totals are wrong.");
    assert_eq!(evidence.as_deref(), Some("let total = price * count;"));
    assert_eq!(*suggestion, None);
}

#[tokio::test]
async fn finish_ends_the_pass() {
    let (session, ..) = grounded();
    for (ask, words) in [
        (json!({}), "examined has to be an array of strings"),
        (
            json!({"examined": "src/a.rs"}),
            "examined has to be an array of strings",
        ),
        (
            json!({"examined": [1]}),
            "examined has to be an array of strings",
        ),
        (
            json!({"examined": [], "ok": true}),
            "unknown field \"ok\": finish takes examined",
        ),
    ] {
        assert_eq!(refused(&session, "finish", ask).await, words);
        assert!(!session.finished());
    }
    let examined = json!({"examined": ["src/a.rs", "./src/a.rs", "b.rs", "../x", "nope"]});
    assert_eq!(
        ok(&session, "finish", examined).await,
        "finished: end your turn now"
    );
    assert!(session.finished());
    let record = session.record();
    assert_eq!(
        record.examined,
        [path("src/a.rs")],
        "only what is changed counts, once"
    );
    assert!(
        record.seen.is_empty(),
        "nothing was read: the engine makes a note of it"
    );
    for (tool, ask) in [
        ("read", json!({"path": "b.rs"})),
        ("finish", json!({"examined": []})),
        ("nope", json!({})),
    ] {
        let words = refused(&session, tool, ask).await;
        assert_eq!(
            words,
            "the pass is finished: nothing more is served, end your turn"
        );
    }
    assert_eq!(session.record().calls, record.calls);
    // What the model wrote in the same turn may come later.
    ok(&session, "report", finding(json!({}))).await;
    assert!(session.finished());
}

/// Takes a finding only when the test says so.
struct Gated {
    gate: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
    inner: TakesAll,
}

impl FindingSink for Gated {
    fn report(&self, pass: &PassId, finding: FindingReport) -> FindingReceipt {
        let gate = self.gate.lock().unwrap().take();
        if let Some(gate) = gate {
            gate.recv().unwrap();
        }
        self.inner.report(pass, finding)
    }
    fn retract(&self, pass: &PassId, id: &Fingerprint, reason: &str) -> bool {
        self.inner.retract(pass, id, reason)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finish_waits_for_calls_in_flight() {
    let (open, gate) = std::sync::mpsc::channel();
    let sink = Arc::new(Gated {
        gate: Mutex::new(Some(gate)),
        inner: TakesAll::default(),
    });
    let mut settings = settings(tree_of(&[]));
    settings.sink = Arc::clone(&sink) as Arc<dyn FindingSink>;
    let session = Arc::new(Session::new(settings));
    let call = |tool: &'static str, ask: Value| {
        let session = Arc::clone(&session);
        tokio::spawn(async move { session.call(tool, ask).await })
    };
    let report = call("report", finding(json!({})));
    while session.record().calls == 0 || sink.gate.lock().unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    let finish = call("finish", json!({"examined": []}));
    let words = "the pass is finished: nothing more is served, end your turn";
    while session.call("list", json!({"path": ""})).await.text != words {
        tokio::task::yield_now().await;
    }
    assert!(
        !session.finished() && !finish.is_finished(),
        "a report is still in flight"
    );
    // The client of `finish` may hang up: the pass ends all the same.
    finish.abort();
    assert!(finish.await.is_err());
    open.send(()).unwrap();
    assert_eq!(report.await.unwrap().text, "reported as 000000000001");
    while !session.finished() {
        tokio::task::yield_now().await;
    }
    assert_eq!(sink.inner.0.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_at_once_and_finish_among_them() {
    let text = numbered(500, |n| format!("line {n}"));
    let mut settings = settings(tree_of(&[("f", text.as_bytes())]));
    let sink = Arc::new(TakesAll::default());
    settings.sink = Arc::clone(&sink) as Arc<dyn FindingSink>;
    let session = Arc::new(Session::new(settings));
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..10_000u32 {
        let session = Arc::clone(&session);
        calls.spawn(async move {
            match n % 4 {
                _ if n == 9_000 => session.call("finish", json!({"examined": ["f"]})).await,
                0 => {
                    session
                        .call(
                            "read",
                            json!({"path": "f", "from": n % 500 + 1, "to": n % 500 + 1}),
                        )
                        .await
                }
                1 => session.call("glob", json!({"pattern": "*"})).await,
                2 => session.call("report", finding(json!({}))).await,
                _ => session.call("list", json!({"path": "x"})).await,
            }
        });
    }
    let work = async {
        let (mut served, mut reported) = (0, 0);
        while let Some(answer) = calls.join_next().await {
            let text = answer.unwrap().text;
            served += u32::from(!text.starts_with("the pass is finished"));
            reported += usize::from(text.starts_with("reported as"));
        }
        (served, reported)
    };
    let (served, reported) = tokio::time::timeout(Duration::from_secs(120), work)
        .await
        .expect("no deadlock");
    assert!(session.finished());
    assert_eq!(session.record().calls, served);
    assert_eq!(
        sink.0.lock().unwrap().len(),
        reported,
        "every accepted finding was answered"
    );
    let ranges = session.record().seen.remove(&path("f")).unwrap_or_default();
    assert!(ranges.len() <= 250);
}

#[tokio::test]
async fn a_defect_that_cannot_be_read_is_counted_until_it_is_mended() {
    let (session, _, _) = grounded();
    let broken = || finding(json!({"line": null}));
    for unread in 1..=2 {
        refused(&session, "report", broken()).await;
        assert_eq!(session.record().unread, unread);
    }
    session.unreadable("report");
    session.unreadable("read");
    assert_eq!(session.record().unread, 3);
    // One that can be read counts, whether or not it is taken.
    ok(&session, "report", finding(json!({}))).await;
    refused(&session, "report", finding(json!({"file": "nowhere.rs"}))).await;
    assert_eq!(session.record().unread, 1);
}

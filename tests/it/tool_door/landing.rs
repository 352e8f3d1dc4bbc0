//! The soft landing, on the paused clock.

use std::sync::Arc;
use std::time::Duration;

use ecr::gateway::tools::Session;
use ecr::gateway::{Cap, Landing, ToolSession};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use super::harness::{ok, refused, settings, tree_of};

fn finding() -> Value {
    json!({"severity": "warning", "category": "quality", "file": "f", "line": 1, "side": "new", "title": "t",
        "consequence": "c", "evidence": "text"})
}

const LOOKS: [(&str, &str); 5] = [
    ("read", "path"),
    ("grep", "pattern"),
    ("glob", "pattern"),
    ("list", "path"),
    ("diff", "path"),
];

async fn looks_are_refused(session: &Session, cause: &str) {
    for (tool, field) in LOOKS {
        let words = refused(session, tool, json!({field: "f"})).await;
        assert!(
            words.starts_with(&format!("Not served: the {cause} is nearly used up.")),
            "{words}"
        );
        assert!(
            words.contains("report") && words.contains("finish"),
            "{words}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn near_the_deadline_only_reporting_is_served() {
    let landing = Arc::new(Landing::new(
        Instant::now() + Duration::from_secs(600),
        Duration::from_secs(60),
    ));
    let mut settings = settings(tree_of(&[("f", b"text\n")]));
    settings.landing = Arc::clone(&landing);
    let session = Session::new(settings);
    advance(Duration::from_secs(539)).await;
    assert_eq!(ok(&session, "read", json!({"path": "f"})).await, "1\ttext");
    assert_eq!(
        ok(&session, "report", finding()).await,
        "reported as 000000000001"
    );
    assert!(!landing.announced());

    advance(Duration::from_secs(1)).await;
    let calls = session.record().calls;
    looks_are_refused(&session, "time of the pass").await;
    assert!(landing.announced());
    assert_eq!(
        session.record().calls,
        calls,
        "what is refused is not served"
    );
    let answer = ok(&session, "report", finding()).await;
    let hint = "\nThe time of the pass is nearly used up: report what is left and call finish.";
    assert_eq!(answer, format!("reported as 000000000002{hint}"));
    let answer = ok(
        &session,
        "retract",
        json!({"id": "000000000002", "reason": "r"}),
    )
    .await;
    assert_eq!(answer, format!("retracted 000000000002{hint}"));
    let words = refused(&session, "report", json!({})).await;
    assert!(words.ends_with(hint), "{words}");

    advance(Duration::from_secs(6_000)).await;
    ok(&session, "report", finding()).await;
    assert_eq!(
        ok(&session, "finish", json!({"examined": []})).await,
        "finished: end your turn now"
    );
    assert!(session.finished());
    let words = refused(&session, "list", json!({"path": ""})).await;
    assert_eq!(
        words,
        "the pass is finished: nothing more is served, end your turn"
    );
}

#[tokio::test(start_paused = true)]
async fn the_last_calls_are_kept_for_the_landing() {
    for (limit, looks) in [(100, 90), (20, 18), (5, 5), (1, 1), (0, 0), (1_000, 990)] {
        let mut settings = settings(tree_of(&[("f", b"text\n")]));
        settings.tool_calls = limit;
        let landing = Arc::clone(&settings.landing);
        let session = Session::new(settings);
        for _ in 0..looks {
            ok(&session, "read", json!({"path": "f"})).await;
        }
        assert_eq!(landing.reason(), None, "{limit}");
        looks_are_refused(&session, "tool calls of the pass").await;
        assert_eq!(landing.reason(), Some(Cap::ToolCalls));
        for _ in 0..30 {
            ok(&session, "report", finding()).await;
        }
        ok(&session, "finish", json!({"examined": ["f"]})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_other_door_may_begin_it() {
    let settings = settings(tree_of(&[("f", b"text\n")]));
    let landing = Arc::clone(&settings.landing);
    let session = Session::new(settings);
    ok(&session, "read", json!({"path": "f"})).await;
    landing.begin(Cap::RunCost);
    looks_are_refused(&session, "money of the run").await;
    assert!(landing.announced());
}

//! What goes wrong, and what becomes of the pass: its class, its time, and what is left of it.

use std::time::{Duration, Instant};

use ecr::gateway::Protocol;
use ecr::port::{Completion, EngineError};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::rig::{Rig, children, finish, look};
use crate::api::rig::PROTOCOLS;
use crate::support::model_server::{Gate, Piece, Reply, Script, Step};

fn class(result: &Result<ecr::port::PassOutcome, EngineError>) -> &'static str {
    match result {
        Ok(outcome) if outcome.completion == Completion::Complete => "complete",
        Ok(_) => "truncated",
        Err(error) => match error {
            EngineError::Unavailable(_) => "unavailable",
            EngineError::Auth(_) => "auth",
            EngineError::RateLimited { .. } => "rate",
            EngineError::UsageLimited { .. } => "usage",
            EngineError::Overloaded => "overloaded",
            EngineError::Transient(_) => "transient",
            EngineError::ContextOverflow => "overflow",
            EngineError::Refused(_) => "refused",
            EngineError::SchemaUnmet(_) => "schema",
            EngineError::Stalled(_) => "stalled",
            EngineError::Timeout(_) => "timeout",
            EngineError::Protocol(_) => "protocol",
            EngineError::Cancelled => "cancelled",
        },
    }
}

fn final_status(status: u16, body: &str) -> Step {
    Step::status(status, body).header("x-should-retry", "false")
}

fn error(kind: &str, message: &str) -> String {
    json!({"error": {"type": kind, "code": kind, "message": message}}).to_string()
}

/// Name, what the provider does to every call, the class, and how often it is asked at most.
fn table() -> Vec<(&'static str, Step, &'static str, usize)> {
    let reply = || Reply::text(&"word ".repeat(200));
    let chunk = |delta: &str| {
        Piece::Data(
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{delta}\"}}}}]}}\n\n"
            )
            .into(),
        )
    };
    let overloaded = Piece::Data(
        "data: {\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}\n\n".into(),
    );
    vec![
        (
            "401",
            Step::status(401, &error("invalid_api_key", "Incorrect key sk-abc")),
            "auth",
            1,
        ),
        (
            "403",
            Step::status(403, &error("permission_error", "no")),
            "auth",
            1,
        ),
        (
            "402",
            Step::status(402, &error("billing", "pay")),
            "usage",
            1,
        ),
        (
            "404",
            Step::status(404, &error("model_not_found", "no such model")),
            "unavailable",
            1,
        ),
        (
            "400",
            Step::status(400, &error("invalid_request_error", "bad tools")),
            "protocol",
            1,
        ),
        (
            "429",
            final_status(429, &error("rate_limit_error", "slow")),
            "rate",
            1,
        ),
        (
            "429 for an hour",
            Step::status(429, &error("rate_limit_error", "slow")).header("retry-after", "3600"),
            "usage",
            1,
        ),
        (
            "quota",
            Step::status(429, &error("insufficient_quota", "plan")),
            "usage",
            1,
        ),
        (
            "500",
            final_status(500, &error("server_error", "oops")),
            "transient",
            1,
        ),
        (
            "502 html",
            final_status(502, "<html>Bad gateway</html>"),
            "transient",
            1,
        ),
        (
            "529",
            final_status(529, &error("overloaded_error", "busy")),
            "overloaded",
            1,
        ),
        (
            "overflow",
            Step::status(400, &error("context_length_exceeded", "too long")),
            "overflow",
            1,
        ),
        ("413", Step::status(413, ""), "overflow", 1),
        ("refusal", Reply::text("No.").refused().into(), "refused", 1),
        (
            "html",
            Step::status(200, "<html>Sign in</html>"),
            "protocol",
            1,
        ),
        (
            "no json",
            Step::events(vec![Piece::Data("data: {\"id\": \"x\", broken\n\n".into())]),
            "protocol",
            1,
        ),
        ("hang", Step::Hang, "stalled", 1),
        (
            "hang in the middle",
            Step::Broken(reply(), 1, Piece::Hang),
            "stalled",
            3,
        ),
        (
            "cut in the middle",
            Step::Broken(reply(), 1, Piece::Cut),
            "transient",
            3,
        ),
        ("no end", Step::events(vec![chunk("half")]), "transient", 3),
        (
            "overloaded in the middle",
            Step::events(vec![chunk("half"), overloaded]),
            "overloaded",
            3,
        ),
        (
            "cut by the output limit",
            Reply::text("I think").truncated().into(),
            "truncated",
            1,
        ),
        ("nothing", Reply::text("").into(), "truncated", 1),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_has_its_class_and_leaves_nothing() {
    for (name, step, expected, most) in table() {
        let script = Script::new((0..40).map(|_| step.clone()));
        let Some(rig) = Rig::new(Protocol::OpenAiChat, script).await else {
            return;
        };
        let begun = Instant::now();
        let result = rig.run().await;
        assert_eq!(class(&result), expected, "{name}: {result:?}");
        let asked = rig.script.requests().len();
        assert!(asked <= most, "{name}: asked {asked} times");
        assert!(begun.elapsed() < Duration::from_secs(40), "{name}");
        let words = format!("{result:?} {:?}", rig.told.0.lock().unwrap());
        assert!(!words.contains("sk-abc"), "{name}: {words}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doors_view_is_the_same_in_each_protocol() {
    for protocol in PROTOCOLS {
        for (step, expected) in [
            (
                Step::status(401, &error("authentication_error", "x")),
                "auth",
            ),
            (Reply::text("No.").refused().into(), "refused"),
            (Reply::text("I think").truncated().into(), "truncated"),
        ] {
            let script = Script::new([look().into(), step]);
            let Some(rig) = Rig::new(protocol, script).await else {
                return;
            };
            let result = rig.run().await;
            assert_eq!(class(&result), expected, "{protocol:?}: {result:?}");
            assert_eq!(rig.script.requests().len(), 2, "{protocol:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_off_once_is_asked_again_and_the_pass_goes_on() {
    let broken = Step::Broken(Reply::text(&"word ".repeat(200)), 1, Piece::Cut);
    let script = Script::new([look().into(), broken, finish().into()]);
    let Some(rig) = Rig::new(Protocol::OpenAiChat, script).await else {
        return;
    };
    assert_eq!(class(&rig.run().await), "complete");
}

#[tokio::test(flavor = "multi_thread")]
async fn deadline_and_cancellation_end_it_at_once() {
    let hang = || Script::new([look().into(), Step::Hang]);
    let Some(mut rig) = Rig::new(Protocol::OpenAiChat, hang()).await else {
        return;
    };
    rig.time = Duration::from_secs(5);
    let begun = Instant::now();
    let result = rig.run().await;
    assert!(
        matches!(class(&result), "timeout" | "stalled"),
        "{result:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(8));
    drop(rig);

    let rig = Rig::new(Protocol::OpenAiChat, hang()).await.unwrap();
    let cancel = rig.cancel.clone();
    let asked = async {
        while rig.script.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(children(&rig.binary).len(), 1);
        cancel.cancel();
        Instant::now()
    };
    let (result, cancelled) = tokio::join!(rig.pass("one/1"), asked);
    assert_eq!(class(&result), "cancelled");
    assert!(cancelled.elapsed() < Duration::from_secs(3));
    rig.nothing_is_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_is_dropped_leaves_nothing() {
    let Some(rig) = Rig::new(Protocol::OpenAiChat, Script::new([Step::Hang])).await else {
        return;
    };
    let asked = async {
        while rig.script.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        result = rig.pass("one/1") => panic!("{result:?}"),
        () = asked => {}
    }
    rig.nothing_is_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_killed_is_no_review() {
    let gate = Gate::default();
    let script = Script::new([Step::After(gate.clone(), Box::new(finish().into()))]);
    let Some(rig) = Rig::new(Protocol::OpenAiChat, script).await else {
        return;
    };
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let before = rig.script.requests().len();
        let killed = async {
            while rig.script.requests().len() == before {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let children = children(&rig.binary);
            let pid = rustix::process::Pid::from_raw(children[0].cast_signed()).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        };
        let (result, ()) = tokio::join!(rig.pass("one/1"), killed);
        assert_eq!(class(&result), "protocol", "{result:?}");
        rig.nothing_is_left();
        rig.script.push(Step::Hang);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_placeholder_dies_with_the_pass_and_the_configuration_with_it() {
    let gate = Gate::default();
    let script = Script::new([Step::After(gate.clone(), Box::new(finish().into()))]);
    let Some(rig) = Rig::new(Protocol::OpenAiChat, script).await else {
        return;
    };
    let address = rig.doors.gateway().address();
    let ask = async |placeholder: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {placeholder}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let spy = async {
        while rig.script.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let folder = rig.folders().remove(0);
        let config = std::fs::read_to_string(folder.join("opencode.json")).unwrap();
        let mode =
            std::os::unix::fs::MetadataExt::mode(&folder.join("opencode.json").metadata().unwrap());
        assert_eq!(mode & 0o077, 0, "{mode:o}");
        let config: serde_json::Value = serde_json::from_str(&config).unwrap();
        let key = config["provider"]["ecr"]["options"]["apiKey"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(ask(&key).await, "200");
        gate.open();
        key
    };
    let (result, key) = tokio::join!(rig.pass("one/1"), spy);
    assert_eq!(class(&result), "complete");
    assert_eq!(ask(&key).await, "401");
    rig.nothing_is_left();
}

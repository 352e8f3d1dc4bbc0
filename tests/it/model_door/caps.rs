//! What a pass and a run may spend, the tools a pass must offer, and the soft landing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ecr::gateway::{Cap, DoorError, ModelCall, ModelDoor as _, PassGrant, Protocol};
use ecr::ledger::RunCaps;
use ecr::model::{Cost, ModelId, PassId};
use ecr::port::EngineError;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::rig::{Rig, Tools, ask, body, call, class};
use crate::support::model_server::{Gate, Reply, ReplyUsage, Script, Step};

const CHAT: Protocol = Protocol::OpenAiChat;

fn replies(count: usize, usage: ReplyUsage) -> Script {
    Script::new((0..count).map(|_| Reply::text("x").usage(usage).into()))
}

fn small() -> ReplyUsage {
    ReplyUsage {
        input: 10,
        output: 5,
        cached: 0,
        written: 0,
    }
}

/// Calls until one is refused; how many were served, and why the last was not.
async fn until_refused(rig: &Rig, grant: PassGrant) -> (usize, DoorError) {
    let port = rig.gateway.open_pass(grant).unwrap();
    for served in 0..100 {
        if let Err(error) = ask(&port, call(CHAT, true)).await {
            assert_eq!(
                rig.script.requests().len(),
                served,
                "a refused call is not sent"
            );
            let DoorError::Cap(cap) = error else {
                panic!("{error}");
            };
            let ledger = port.close().await;
            assert_eq!((ledger.cap, ledger.error), (Some(cap), None));
            return (served, error);
        }
    }
    panic!("never refused");
}

/// Sets a cap, given a call's input estimate; the cap, and how many calls fit.
type Case = (fn(&mut PassGrant, u64), Cap, usize);

#[tokio::test(start_paused = true)]
async fn each_cap_of_a_pass_refuses_in_time() {
    // The body is 127 bytes, so 43 tokens are expected of each call, and 100 of output.
    let estimate = (body(true).to_string().len() as u64).div_ceil(3);
    let cases: Vec<Case> = vec![
        (|grant, _| grant.limits.turns = 3, Cap::Turns, 3),
        (
            |grant, estimate| grant.limits.input_tokens = 10 + estimate,
            Cap::InputTokens,
            2,
        ),
        (
            |grant, _| grant.limits.output_tokens = 109,
            Cap::OutputTokens,
            2,
        ),
        // A call costs 60 micro-dollars, and 1043 are reserved.
        (
            |grant, estimate| grant.limits.cost = Some(Cost(60 * 2 + 1000 + estimate)),
            Cap::Cost,
            3,
        ),
    ];
    for (set, cap, served) in cases {
        let rig = Rig::in_memory(replies(10, small())).await;
        let mut grant = rig.grant(CHAT);
        set(&mut grant, estimate);
        assert_eq!(
            until_refused(&rig, grant).await,
            (served, DoorError::Cap(cap))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_run_caps_all_passes() {
    for (caps, cap) in [
        (
            RunCaps {
                tokens: Some(200),
                cost: None,
            },
            Cap::RunTokens,
        ),
        (
            RunCaps {
                tokens: None,
                cost: Some(Cost(1200)),
            },
            Cap::RunCost,
        ),
    ] {
        let rig = Rig::with_caps(replies(10, small()), caps).await;
        let mut refused = None;
        for n in 0..10 {
            let mut grant = rig.grant(CHAT);
            grant.pass = PassId::new(format!("pass-{n}"));
            let port = rig.gateway.open_pass(grant).unwrap();
            if let Err(error) = ask(&port, call(CHAT, true)).await {
                refused = Some((n, error));
                break;
            }
        }
        let (n, error) = refused.unwrap();
        assert!(n > 1, "some fit");
        assert_eq!(error, DoorError::Cap(cap));
        assert!(rig.gateway.tokens() <= 200 && rig.gateway.cost() <= Cost(1200));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_count_in_full() {
    let gate = Gate::default();
    let held = || {
        Step::After(
            gate.clone(),
            Box::new(Reply::text("x").usage(small()).into()),
        )
    };
    let rig = Rig::in_memory(Script::new([held(), held(), held(), held()])).await;
    let mut grant = rig.grant(CHAT);
    grant.limits.output_tokens = 250;
    let port = rig.gateway.open_pass(grant).unwrap();
    let opening = async {
        tokio::task::yield_now().await;
        gate.open();
    };
    let (a, b, c, ()) = tokio::join!(
        ask(&port, call(CHAT, true)),
        ask(&port, call(CHAT, true)),
        ask(&port, call(CHAT, true)),
        opening
    );
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(
        c,
        Err(DoorError::Cap(Cap::OutputTokens)),
        "two took 200 of 250"
    );
    assert!(
        ask(&port, call(CHAT, true)).await.is_ok(),
        "they gave 190 back"
    );
}

#[tokio::test(start_paused = true)]
async fn too_many_calls_at_once_are_refused_for_the_pass() {
    let gate = Gate::default();
    let held = || Step::After(gate.clone(), Box::new(Reply::text("x").into()));
    let rig = Rig::in_memory(Script::new([held(), held()])).await;
    let mut grant = rig.grant(CHAT);
    grant.limits.concurrent_calls = 1;
    let port = rig.gateway.open_pass(grant).unwrap();
    let second = async {
        let result = ask(&port, call(CHAT, true)).await;
        gate.open();
        result
    };
    let (first, second) = tokio::join!(ask(&port, call(CHAT, true)), second);
    assert!(first.is_ok());
    assert_eq!(second, Err(DoorError::Cap(Cap::Concurrency)));
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_runs_slots_wait() {
    let gate = Gate::default();
    let held = || Step::After(gate.clone(), Box::new(Reply::text("x").into()));
    let rig = Rig::in_memory(Script::new((0..12).map(|_| held()))).await;
    let ports: Vec<_> = (0..12)
        .map(|n| {
            let mut grant = rig.grant(CHAT);
            grant.pass = PassId::new(format!("pass-{n}"));
            rig.gateway.open_pass(grant).unwrap()
        })
        .collect();
    let calls =
        futures_util::future::join_all(ports.iter().map(|port| ask(port, call(CHAT, true))));
    let opening = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(rig.script.requests().len(), 8, "the rig has eight slots");
        gate.open();
    };
    let (results, ()) = tokio::join!(calls, opening);
    assert!(results.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_is_counted_in_tokens() {
    let rig = Rig::in_memory(replies(1, small())).await;
    let mut grant = rig.grant(CHAT);
    grant.model = ModelId::new("p/unknown").unwrap();
    grant.limits.cost = Some(Cost(1));
    let port = rig.gateway.open_pass(grant).unwrap();
    let mut body = body(true);
    body["model"] = json!("unknown");
    ask(&port, with_body(CHAT, &body)).await.unwrap();
    let ledger = port.close().await;
    assert_eq!(ledger.usage.cost(), None);
    assert_eq!(ledger.usage.tokens().unwrap().input, 10);
    assert_eq!(rig.gateway.unpriced_calls(), 1);
    let said = rig.notebook.said.lock().unwrap().join("\n");
    assert!(
        said.contains("no price") && said.contains("p/unknown"),
        "{said}"
    );
}

fn with_body(protocol: Protocol, body: &Value) -> ModelCall {
    let mut call = call(protocol, true);
    call.body = Bytes::from(body.to_string());
    call
}

#[tokio::test(start_paused = true)]
async fn a_pass_without_its_tools_is_refused_at_once() {
    let rig = Rig::in_memory(replies(3, small())).await;
    let with_tools = |names: &[&str]| {
        let mut body = body(true);
        body["tools"] = names
            .iter()
            .map(|name| json!({"type": "function", "function": {"name": name}}))
            .collect();
        with_body(CHAT, &body)
    };
    let mut grant = rig.grant(CHAT);
    grant.expected_tools = vec!["tree_read".to_owned(), "tree_grep".to_owned()];
    let port = rig.gateway.open_pass(grant.clone()).unwrap();
    let EngineError::Protocol(problem) = class(ask(&port, with_tools(&["tree_read"])).await) else {
        panic!();
    };
    assert!(problem.contains("tree_grep"), "{problem}");
    let whole = with_tools(&["tree_read", "tree_grep"]);
    assert!(ask(&port, whole.clone()).await.is_ok());
    assert!(
        ask(&port, call(CHAT, true)).await.is_ok(),
        "a later summary has no tools"
    );
    let EngineError::Protocol(problem) =
        class(ask(&port, with_tools(&["tree_read", "bash"])).await)
    else {
        panic!();
    };
    assert!(problem.contains("bash"), "{problem}");
    assert_eq!(rig.script.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn two_rounds_after_time_is_up_the_status_is_final() {
    let rig = Rig::in_memory(replies(10, small())).await;
    let tools = Arc::new(Tools::default());
    let mut grant = rig.grant(CHAT);
    grant.tools = Some(Arc::clone(&tools) as _);
    grant.limits.turns = 6;
    let landing = Arc::clone(&grant.landing);
    let port = rig.gateway.open_pass(grant).unwrap();
    for turn in 0..4 {
        assert_eq!(landing.reason(), None, "turn {turn}");
        ask(&port, call(CHAT, true)).await.unwrap();
    }
    ask(&port, call(CHAT, true)).await.unwrap();
    assert_eq!(
        landing.reason(),
        Some(Cap::Turns),
        "two turns were left before this one"
    );

    // Another pass: its tool calls are used up, the tool door says so, two rounds follow.
    let rig = Rig::in_memory(replies(10, small())).await;
    let mut grant = rig.grant(CHAT);
    grant.tools = Some(Arc::clone(&tools) as _);
    grant.limits.tool_calls = 2;
    let landing = Arc::clone(&grant.landing);
    let port = rig.gateway.open_pass(grant).unwrap();
    ask(&port, call(CHAT, true)).await.unwrap();
    *tools.calls.lock().unwrap() = 2;
    ask(&port, call(CHAT, true)).await.unwrap();
    assert_eq!(landing.reason(), Some(Cap::ToolCalls));
    landing.announce();
    ask(&port, call(CHAT, true)).await.unwrap();
    ask(&port, call(CHAT, true)).await.unwrap();
    let last = ask(&port, call(CHAT, true)).await;
    assert_eq!(last, Err(DoorError::Cap(Cap::ToolCalls)));
    assert_eq!(port.close().await.tool_calls, 2);
}

#[tokio::test(start_paused = true)]
async fn the_landing_begins_before_the_deadline() {
    let rig = Rig::in_memory(Script::new([])).await;
    let grant = rig.grant(CHAT);
    assert_eq!(grant.landing.reason(), None);
    tokio::time::advance(Duration::from_secs(3600 - 60)).await;
    assert_eq!(grant.landing.reason(), Some(Cap::Time));
}

#[tokio::test(start_paused = true)]
async fn counting_tokens_is_no_turn_and_no_money() {
    let rig = Rig::in_memory(replies(2, small())).await;
    let port = rig.open(Protocol::AnthropicMessages);
    let mut count = call(Protocol::AnthropicMessages, false);
    count.path = "/v1/messages/count_tokens?beta=true".to_owned();
    let mut answer = port.call(count).await.unwrap();
    let text = answer.body.next().await.unwrap().unwrap();
    assert_eq!(text, "{\"input_tokens\":10}");
    let ledger = port.ledger();
    assert_eq!((ledger.turns, ledger.usage), (0, ecr::model::Usage::NONE));
    assert_eq!(
        rig.script.requests()[0].path,
        "/v1/messages/count_tokens?beta=true"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_served_is_not_sent() {
    let rig = Rig::in_memory(replies(1, small())).await;
    let port = rig.open(CHAT);
    for path in [
        "/v1/messages",
        "/v1/models",
        "/v1/../x",
        "",
        "http://evil.test/v1/chat/completions",
    ] {
        let mut other = call(CHAT, true);
        other.path = path.to_owned();
        assert!(
            matches!(class(ask(&port, other).await), EngineError::Protocol(_)),
            "{path}"
        );
    }
    let mut garbage = call(CHAT, true);
    garbage.body = Bytes::from_static(b"{");
    assert!(matches!(
        class(ask(&port, garbage).await),
        EngineError::Protocol(_)
    ));
    let mut leaking = call(CHAT, true);
    leaking.body = Bytes::from(json!({"x": port.placeholder().expose()}).to_string());
    assert!(matches!(
        class(ask(&port, leaking).await),
        EngineError::Protocol(_)
    ));
    assert_eq!(rig.script.requests().len(), 0);
}

//! Every fault a provider can have: its class, how often the door repeats it, and what the books say.
//! On the paused clock: waits take no time and are measured exactly.

use std::time::Duration;

use bytes::Bytes;
use ecr::gateway::{AnswerEnd, Cap, DoorError, ModelDoor as _, Protocol};
use ecr::model::{ModelId, Usage};
use ecr::port::EngineError;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time::Instant;

use super::rig::{NOW, PROTOCOLS, Rig, ask, call, class, counts, key};
use crate::support::model_server::{Gate, Piece, Reply, ReplyUsage, Script, Step};

const CHAT: Protocol = Protocol::OpenAiChat;

fn ok() -> Step {
    Reply::text("fine").into()
}

/// Plays `steps` to one streaming call; gives its result, the seconds it took and the requests.
async fn play(
    protocol: Protocol,
    steps: Vec<Step>,
) -> (
    Result<String, DoorError>,
    u64,
    usize,
    ecr::gateway::PassLedger,
) {
    let rig = Rig::in_memory(Script::new(steps)).await;
    let port = rig.open(protocol);
    let start = Instant::now();
    let result = ask(&port, call(protocol, true)).await;
    let took = start.elapsed().as_secs();
    let requests = rig.script.requests().len();
    (result, took, requests, port.close().await)
}

#[tokio::test(start_paused = true)]
async fn usage_is_exact_in_all_protocols_streaming_and_not() {
    let usage = ReplyUsage {
        input: 1000,
        output: 50,
        cached: 300,
        written: 0,
    };
    for protocol in PROTOCOLS {
        for stream in [true, false] {
            let reply = Reply::text("hello")
                .tool("read", json!({"path": "a"}))
                .usage(usage)
                .model("m-2027");
            let rig = Rig::in_memory(Script::new([reply.into()])).await;
            let port = rig.open(protocol);
            let text = ask(&port, call(protocol, stream)).await.unwrap();
            assert!(text.contains("hello"));
            let ledger = port.close().await;
            assert_eq!(counts(&ledger), (1000, 50, true), "{protocol:?} {stream}");
            assert_eq!(ledger.usage.tokens().unwrap().cache_read, 300);
            assert_eq!(ledger.usage.cost().unwrap().0, 1000 + 500);
            assert_eq!(
                ledger.model_answered,
                Some(ModelId::new("p/m-2027").unwrap())
            );
            assert_eq!(
                (ledger.turns, ledger.requests, ledger.last_end),
                (1, 1, Some(AnswerEnd::Complete))
            );
            assert_eq!((ledger.error, ledger.cap), (None, None));
            assert_eq!(
                rig.notebook.usages.lock().unwrap().as_slice(),
                [ledger.usage]
            );
            assert_eq!(
                rig.gateway.tokens(),
                1000 + 300 + 50,
                "nothing stays reserved"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ends_are_told_apart() {
    for protocol in PROTOCOLS {
        for stream in [true, false] {
            let rig = Rig::in_memory(Script::new([
                Reply::text("half").truncated().into(),
                Reply::text("no").refused().into(),
                ok(),
            ]))
            .await;
            let port = rig.open(protocol);
            ask(&port, call(protocol, stream)).await.unwrap();
            let ledger = port.ledger();
            assert_eq!(
                (ledger.last_end, ledger.error),
                (Some(AnswerEnd::Truncated), None)
            );
            ask(&port, call(protocol, stream)).await.unwrap();
            let ledger = port.ledger();
            assert_eq!(
                ledger.last_end,
                Some(AnswerEnd::Refused),
                "{protocol:?} {stream}"
            );
            assert!(matches!(ledger.error, Some(EngineError::Refused(_))));
            ask(&port, call(protocol, stream)).await.unwrap();
            assert_eq!(port.ledger().error, None, "a later success clears it");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn transient_faults_are_repeated_after_2_and_8_seconds() {
    let faults: Vec<fn() -> Step> = vec![
        || Step::Reset,
        || Step::status(500, "{\"error\":{\"message\":\"x\"}}"),
        || Step::status(502, "<html>bad gateway</html>"),
        || Step::status(503, ""),
        || {
            Step::status(
                529,
                "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            )
        },
        // An answer that opens with an error, or breaks before it said anything, has not begun.
        || {
            Step::events(vec![Piece::Data(Bytes::from_static(b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"))])
        },
        || Step::events(vec![Piece::Cut]),
        || Step::events(vec![]),
        || {
            Step::events(vec![
                Piece::Data(Bytes::from_static(b": waiting\n\n")),
                Piece::Cut,
            ])
        },
    ];
    for protocol in PROTOCOLS {
        for fault in &faults {
            let (result, took, requests, ledger) =
                play(protocol, vec![fault(), fault(), ok()]).await;
            assert!(result.unwrap().contains("fine"));
            assert_eq!((took, requests), (10, 3), "{:?}", fault());
            assert_eq!(
                (ledger.turns, ledger.requests, ledger.error.clone()),
                (1, 3, None)
            );
            assert_eq!(counts(&ledger), (100, 20, true));

            let (result, took, requests, ledger) =
                play(protocol, vec![fault(), fault(), fault(), ok()]).await;
            let error = class(result);
            assert!(
                matches!(error, EngineError::Transient(_) | EngineError::Overloaded),
                "{error:?}"
            );
            assert_eq!((took, requests), (10, 3), "{:?}", fault());
            assert_eq!((ledger.error, ledger.turns), (Some(error), 0));
            assert_eq!(ledger.usage, Usage::NONE, "nothing was served");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limits_wait_by_the_table_or_by_the_servers_word() {
    let limited = || {
        Step::status(
            429,
            "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}",
        )
    };
    let (result, took, requests, ledger) =
        play(CHAT, vec![limited(), limited(), limited(), ok()]).await;
    assert!(result.is_ok());
    assert_eq!((took, requests), (15 + 45 + 90, 4));
    assert_eq!(ledger.rate_limits.limited, 3);

    let (result, took, requests, _) =
        play(CHAT, vec![limited(), limited(), limited(), limited(), ok()]).await;
    assert_eq!(
        class(result),
        EngineError::RateLimited { retry_after: None }
    );
    assert_eq!((took, requests), (150, 4));

    let word = || {
        limited()
            .header("retry-after", "3")
            .header("x-ratelimit-remaining-requests", "0")
    };
    let (result, took, _, ledger) = play(CHAT, vec![word(), word(), ok()]).await;
    assert!(result.is_ok());
    assert_eq!(took, 6);
    assert_eq!(ledger.rate_limits.retry_after, Some(Duration::from_secs(3)));
    assert_eq!(
        ledger.rate_limits.headers["x-ratelimit-remaining-requests"],
        "0"
    );

    let (result, took, requests, _) =
        play(CHAT, vec![limited().header("retry-after", "300"), ok()]).await;
    let after = Some(Duration::from_secs(300));
    assert_eq!(
        class(result),
        EngineError::RateLimited { retry_after: after }
    );
    assert_eq!((took, requests), (0, 1), "five minutes are not waited for");
}

#[tokio::test(start_paused = true)]
async fn final_faults_are_asked_once() {
    let limit = |resets_at| EngineError::UsageLimited { resets_at };
    let cases: Vec<(Step, EngineError)> = vec![
        (
            Step::status(400, "{\"error\":{\"code\":\"context_length_exceeded\"}}"),
            EngineError::ContextOverflow,
        ),
        (Step::status(413, ""), EngineError::ContextOverflow),
        (Step::status(402, ""), limit(None)),
        (
            Step::status(
                429,
                "{\"error\":{\"type\":\"usage_limit_reached\",\"resets_at\":1800009999}}",
            ),
            limit(Some(1_800_009_999)),
        ),
        (
            Step::status(429, "{}").header("retry-after", "7200"),
            limit(Some(NOW + 7200)),
        ),
        (
            Step::status(401, "{}"),
            EngineError::Auth("the provider refused the credential (401)".to_owned()),
        ),
        (
            Step::status(403, "{}"),
            EngineError::Auth("the provider refused the credential (403)".to_owned()),
        ),
        (
            Step::status(404, "{}"),
            EngineError::Unavailable(
                "the provider does not know the model or the address".to_owned(),
            ),
        ),
        (
            Step::status(400, "{}"),
            EngineError::Protocol("the provider refused the request (400)".to_owned()),
        ),
        (
            Step::status(200, "<html>login</html>"),
            EngineError::Protocol(
                "the provider answered with a web page: check baseUrl".to_owned(),
            ),
        ),
        (
            Step::status(
                200,
                "{\"error\":{\"code\":\"invalid_prompt\",\"message\":\"no\"}}",
            ),
            EngineError::Refused("invalid_prompt: no".to_owned()),
        ),
        (
            Step::status(200, "garbage").header("content-type", "application/json"),
            EngineError::Protocol("the provider's answer is not what its protocol says".to_owned()),
        ),
        (
            Step::events(vec![Piece::Data(Bytes::from_static(b"data: not json\n\n"))]),
            EngineError::Protocol("the provider's answer is not what its protocol says".to_owned()),
        ),
        (
            Step::status(200, "{}").header("content-encoding", "gzip"),
            EngineError::Protocol(
                "the provider's answer is compressed although that was not asked for".to_owned(),
            ),
        ),
    ];
    for protocol in PROTOCOLS {
        for (step, expected) in &cases {
            let (result, took, requests, ledger) = play(protocol, vec![step.clone(), ok()]).await;
            assert_eq!(class(result), *expected, "{step:?}");
            assert_eq!((took, requests), (0, 1), "{step:?}");
            assert_eq!(ledger.error.as_ref(), Some(expected));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_byte_within_the_window_is_stalled() {
    for protocol in PROTOCOLS {
        let reply = Reply::text("never");
        for (step, turns) in [
            (Step::Hang, 0),
            (Step::events(vec![Piece::Hang]), 0),
            (Step::Broken(reply, 1, Piece::Hang), 1),
        ] {
            let (result, took, requests, ledger) = play(protocol, vec![step.clone(), ok()]).await;
            let stalled = EngineError::Stalled(Duration::from_secs(60));
            assert_eq!(class(result), stalled, "{step:?}");
            assert_eq!((took, requests), (60, 1), "{step:?}");
            assert_eq!((ledger.error.clone(), ledger.turns), (Some(stalled), turns));
            let (input, _, exact) = counts(&ledger);
            assert!(input > 0 && !exact, "the provider may have counted it");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn slow_but_alive_is_no_stall() {
    let gates: Vec<_> = (0..4).map(|_| Gate::default()).collect();
    let mut pieces = Vec::new();
    for gate in &gates {
        pieces.push(Piece::Data(Bytes::from_static(
            b"event: ping\ndata: {\"type\":\"ping\"}\n\n",
        )));
        pieces.push(Piece::Wait(gate.clone()));
    }
    for event in Reply::text("late").render("/v1/messages", &json!({"stream": true, "model": "m"}))
    {
        pieces.push(Piece::Data(Bytes::from(event)));
    }
    let rig = Rig::in_memory(Script::new([Step::events(pieces)])).await;
    let port = rig.open(Protocol::AnthropicMessages);
    let opener = async {
        for gate in &gates {
            tokio::time::sleep(Duration::from_secs(50)).await;
            gate.open();
        }
    };
    let (result, ()) = tokio::join!(ask(&port, call(Protocol::AnthropicMessages, true)), opener);
    assert!(result.unwrap().contains("late"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_not_repeated_and_is_estimated() {
    for protocol in PROTOCOLS {
        let long = "x".repeat(3000);
        let reply = || Reply::text(&long);
        // The text is in the third event, or in the first of chat completions.
        let events = if protocol == CHAT { 1 } else { 3 };
        let steps = vec![Step::Broken(reply(), events, Piece::Cut), ok()];
        let (result, took, requests, ledger) = play(protocol, steps).await;
        assert!(matches!(class(result), EngineError::Transient(_)));
        assert_eq!((took, requests), (0, 1), "it had begun");
        assert_eq!((ledger.turns, ledger.last_end), (1, Some(AnswerEnd::Cut)));
        assert!(matches!(ledger.error, Some(EngineError::Transient(_))));
        let (input, output, exact) = counts(&ledger);
        assert!(
            input > 0 && (1000..1100).contains(&output) && !exact,
            "{protocol:?} {output}"
        );
    }
    // A stream that ends cleanly, but without its last event, is cut all the same.
    let rig = Rig::in_memory(Script::new([Step::Broken(
        Reply::text("x"),
        2,
        Piece::Data(Bytes::new()),
    )]))
    .await;
    let port = rig.open(Protocol::AnthropicMessages);
    let result = ask(&port, call(Protocol::AnthropicMessages, true)).await;
    assert!(
        matches!(class(result), EngineError::Transient(_)),
        "the client must not take it for an answer"
    );
    let ledger = port.close().await;
    assert_eq!(ledger.last_end, Some(AnswerEnd::Cut));
    assert!(matches!(ledger.error, Some(EngineError::Transient(_))));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_repeats_what_breaks_off_is_stopped() {
    let cut = || Step::Broken(Reply::text("x"), 1, Piece::Cut);
    // Whole answers in between begin the count anew.
    let steps = [cut(), cut(), ok(), cut(), cut(), cut(), ok()];
    let rig = Rig::in_memory(Script::new(steps)).await;
    let port = rig.open(CHAT);
    for broken in [true, true, false, true, true, true, true] {
        let result = ask(&port, call(CHAT, true)).await;
        assert_eq!(result.is_err(), broken, "{result:?}");
    }
    assert_eq!(rig.script.requests().len(), 6, "the last one was not sent");
    let ledger = port.close().await;
    assert!(matches!(ledger.error, Some(EngineError::Transient(_))));
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_middle_decides_the_class() {
    let mut events =
        Reply::text("x").render("/v1/responses", &json!({"stream": true, "model": "m"}));
    events.pop();
    events.push("data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_is_overloaded\",\"message\":\"x\"}}}\n\n".to_owned());
    let step = Step::events(
        events
            .into_iter()
            .map(|e| Piece::Data(Bytes::from(e)))
            .collect(),
    );
    let (result, _, requests, ledger) = play(Protocol::OpenAiResponses, vec![step, ok()]).await;
    assert!(result.is_ok(), "it is passed down as it is");
    assert_eq!((requests, ledger.error), (1, Some(EngineError::Overloaded)));
    assert_eq!(ledger.rate_limits.overloaded, 1);
}

#[tokio::test(start_paused = true)]
async fn a_used_up_allowance_stops_the_whole_run() {
    let gone = Step::status(429, "{\"error\":{\"type\":\"usage_limit_reached\"}}");
    let rig = Rig::in_memory(Script::new([gone, ok()])).await;
    let first = rig.open(CHAT);
    let limit = EngineError::UsageLimited { resets_at: None };
    assert_eq!(class(ask(&first, call(CHAT, true)).await), limit);
    let mut grant = rig.grant(CHAT);
    grant.pass = ecr::model::PassId::new("pass-2");
    let second = rig.gateway.open_pass(grant.clone()).unwrap();
    assert_eq!(class(ask(&second, call(CHAT, true)).await), limit);
    assert_eq!(rig.script.requests().len(), 1, "the second was not sent");

    let mut other = (*grant.upstream).clone();
    other.credential = ecr::gateway::Credential::None;
    grant.upstream = other.into();
    grant.pass = ecr::model::PassId::new("pass-3");
    let third = rig.gateway.open_pass(grant).unwrap();
    assert!(
        ask(&third, call(CHAT, true)).await.is_ok(),
        "another credential goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_pass_cannot_afford_is_not_begun() {
    let rig = Rig::in_memory(Script::new([Step::status(429, "{}"), ok()])).await;
    let mut grant = rig.grant(CHAT);
    grant.deadline = Instant::now() + Duration::from_secs(10);
    let port = rig.gateway.open_pass(grant).unwrap();
    let start = Instant::now();
    let error = class(ask(&port, call(CHAT, true)).await);
    assert_eq!(error, EngineError::RateLimited { retry_after: None });
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn deadline_and_cancellation_end_everything_at_once() {
    for step in [Step::Hang, Step::Broken(Reply::text("x"), 1, Piece::Hang)] {
        let rig = Rig::in_memory(Script::new([step.clone()])).await;
        let mut grant = rig.grant(CHAT);
        grant.deadline = Instant::now() + Duration::from_secs(20);
        let port = rig.gateway.open_pass(grant).unwrap();
        let start = Instant::now();
        let result = ask(&port, call(CHAT, true)).await;
        assert_eq!(result, Err(DoorError::Cap(Cap::Time)), "{step:?}");
        assert_eq!(start.elapsed().as_secs(), 20);
        assert_eq!(port.ledger().cap, Some(Cap::Time));
        assert_eq!(
            ask(&port, call(CHAT, true)).await,
            Err(DoorError::Cap(Cap::Time))
        );
    }
    for step in [
        Step::Hang,
        Step::Broken(Reply::text("x"), 1, Piece::Hang),
        Step::status(429, "{}"),
    ] {
        let rig = Rig::in_memory(Script::new([step.clone()])).await;
        let grant = rig.grant(CHAT);
        let cancel = grant.cancel.clone();
        let port = rig.gateway.open_pass(grant).unwrap();
        let cancelling = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(ask(&port, call(CHAT, true)), cancelling);
        assert_eq!(class(result), EngineError::Cancelled, "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_settles_what_is_open() {
    let rig = Rig::in_memory(Script::new([Step::Broken(
        Reply::text("x"),
        1,
        Piece::Hang,
    )]))
    .await;
    let port = rig.open(CHAT);
    let mut answer = port.call(call(CHAT, true)).await.unwrap();
    assert!(answer.body.next().await.unwrap().is_ok());
    let reading = tokio::spawn(async move { answer.body.next().await });
    tokio::task::yield_now().await;
    let ledger = port.close().await;
    assert_eq!((ledger.turns, ledger.last_end), (1, Some(AnswerEnd::Cut)));
    assert!(matches!(reading.await.unwrap(), Some(Err(_))));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_wants_is_cancelled_upstream() {
    let rig = Rig::in_memory(Script::new([
        Step::Broken(Reply::text("x"), 1, Piece::Hang),
        Step::Hang,
        ok(),
    ]))
    .await;
    let port = rig.open(CHAT);
    let answer = port.call(call(CHAT, true)).await.unwrap();
    drop(answer);
    rig.script.given_up(1).await;
    let ledger = port.ledger();
    assert_eq!(
        (ledger.turns, ledger.error, ledger.last_end),
        (1, None, Some(AnswerEnd::Cut))
    );

    let waiting = tokio::time::timeout(Duration::from_secs(1), port.call(call(CHAT, true)));
    assert!(waiting.await.is_err());
    rig.script.given_up(1).await;
    let (_, _, exact) = counts(&port.ledger());
    assert!(!exact);
    assert!(ask(&port, call(CHAT, true)).await.is_ok());
    assert_eq!(rig.gateway.tokens(), {
        let tokens = port.ledger().usage.tokens().unwrap();
        tokens.input + tokens.output
    });
}

#[tokio::test(start_paused = true)]
async fn a_quoted_credential_goes_no_further() {
    let quoting =
        json!({"error": {"message": format!("bad header: Bearer {}", key())}}).to_string();
    for status in [400, 404, 500] {
        let step = || Step::status(status, &quoting);
        let (result, _, _, ledger) = play(CHAT, vec![step(), step(), step()]).await;
        assert!(
            !format!("{result:?}{ledger:?}").contains(&key()),
            "{status}"
        );
    }
}

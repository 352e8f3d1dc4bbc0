//! What goes wrong, and what becomes of the pass.

use std::time::Duration;

use ecr::gateway::{Credential, PassLimits, Protocol};
use ecr::model::{ModelId, Secret, Usage};
use ecr::port::{Completion, EngineError, ReviewEngine as _};
use serde_json::json;

use super::rig::{PROTOCOLS, Rig, finish, report};
use crate::support::model_server::{Piece, Reply, Script, Step};

fn is_truncated(completion: &Completion) -> bool {
    matches!(completion, Completion::Truncated { reason } if !reason.is_empty())
}

#[tokio::test(start_paused = true)]
async fn prose_is_never_a_review() {
    for protocol in PROTOCOLS {
        let prose = || Step::from(Reply::text("Looks good to me, approve!"));
        let rig = Rig::new(protocol, Script::new([prose(), prose(), prose(), prose()])).await;
        let outcome = rig.run().await.unwrap();
        assert!(is_truncated(&outcome.completion), "{protocol:?}");
        assert_eq!(rig.script.requests().len(), 3, "two reminders and no more");
        assert!(rig.titles().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reminder_is_enough_for_a_model_that_forgot_to_finish() {
    for protocol in PROTOCOLS {
        let script = Script::new([Reply::text("Done.").into(), finish().into()]);
        let rig = Rig::new(protocol, script).await;
        assert_eq!(rig.run().await.unwrap().completion, Completion::Complete);
        let body = rig.body(1).to_string();
        assert!(body.contains("The review is not finished"), "{protocol:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn findings_that_were_only_written_down_count_and_the_pass_does_not() {
    let text = json!({"findings": [report("Wrong sum", 2)]}).to_string();
    let say = || Step::from(Reply::text(&text));
    let rig = Rig::new(Protocol::OpenAiChat, Script::new([say(), say(), say()])).await;
    assert!(is_truncated(&rig.run().await.unwrap().completion));
    assert_eq!(rig.titles(), ["Wrong sum"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_an_error() {
    for protocol in PROTOCOLS {
        let reply = Reply::text("I cannot help.").refused();
        let rig = Rig::new(protocol, Script::new([reply.into()])).await;
        let result = rig.run().await;
        assert!(
            matches!(result, Err(EngineError::Refused(_))),
            "{protocol:?}: {result:?}"
        );
        assert_eq!(
            rig.notebook.metered.lock().unwrap().len(),
            1,
            "it was paid for"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_output_limit_truncates_and_whole_calls_before_it_count() {
    for protocol in PROTOCOLS {
        let reply = Reply::default()
            .tool("report", report("Wrong sum", 2))
            .tool("report", report("Half of one", 2))
            .truncated();
        let rig = Rig::new(protocol, Script::new([reply.into()])).await;
        let outcome = rig.run().await.unwrap();
        assert!(is_truncated(&outcome.completion), "{protocol:?}");
        assert!(
            rig.titles().contains(&"Wrong sum".to_owned()),
            "{protocol:?}"
        );
        assert!(matches!(outcome.usage, Usage::Exact(..)));
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_json_go_back_to_the_model() {
    let broken = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":\
        {\"name\":\"read\",\"arguments\":\"{\\\"path\\\": \"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    let broken = Step::events(vec![Piece::Data(broken.into())]);
    let rig = Rig::new(Protocol::OpenAiChat, Script::new([broken, finish().into()])).await;
    assert_eq!(rig.run().await.unwrap().completion, Completion::Complete);
    let body = rig.body(1);
    let messages = body["messages"].as_array().unwrap();
    let call = &messages[messages.len() - 2]["tool_calls"][0];
    assert_eq!(
        call["function"]["arguments"], "{}",
        "what is sent back is JSON"
    );
    let answer = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(answer.contains("no JSON"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn the_doors_view_of_a_failure_goes_first() {
    for (step, expected) in [
        (
            Step::status(
                401,
                "{\"error\":{\"type\":\"authentication_error\",\"message\":\"bad key\"}}",
            ),
            "authentication failed",
        ),
        (
            Step::status(
                400,
                "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"too long\"}}",
            ),
            "does not fit the model's context",
        ),
    ] {
        let rig = Rig::new(Protocol::OpenAiChat, Script::new([step])).await;
        let error = rig.run().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_rate_limits_is_waited_for_by_the_door_and_then_said() {
    let limited = || {
        Step::status(
            429,
            "{\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow\"}}",
        )
    };
    let script = Script::new([limited(), limited(), finish().into()]);
    let rig = Rig::new(Protocol::AnthropicMessages, script).await;
    assert_eq!(rig.run().await.unwrap().completion, Completion::Complete);

    let rig = Rig::new(
        Protocol::AnthropicMessages,
        Script::new((0..40).map(|_| limited())),
    )
    .await;
    let result = rig.run().await;
    assert!(
        matches!(result, Err(EngineError::RateLimited { .. })),
        "{result:?}"
    );
    assert!(rig.script.requests().len() < 10);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_no_answer() {
    for protocol in PROTOCOLS {
        for events in [1, 2] {
            let cut = |_| Step::Broken(finish(), events, Piece::Cut);
            let rig = Rig::new(protocol, Script::new((0..20).map(cut))).await;
            assert!(rig.run().await.is_err(), "{protocol:?} {events}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_costs_the_pass_its_time_and_no_more() {
    let mut rig = Rig::new(Protocol::OpenAiChat, Script::new([Step::Hang])).await;
    rig.time = Duration::from_secs(20);
    let begun = tokio::time::Instant::now();
    let result = rig.run().await;
    assert!(matches!(result, Err(EngineError::Timeout(_))), "{result:?}");
    assert!(begun.elapsed() <= Duration::from_secs(25));
}

#[tokio::test(start_paused = true)]
async fn the_cap_on_turns_truncates() {
    let look = || Step::from(Reply::default().tool("list", json!({"path": ""})));
    let limits = PassLimits {
        turns: 3,
        ..PassLimits::default()
    };
    let key = Credential::ApiKey(Secret::new("k".to_owned()));
    let script = Script::new((0..10).map(|_| look()));
    let rig = Rig::with(Protocol::OpenAiChat, key, script, limits).await;
    let outcome = rig.run().await.unwrap();
    assert!(
        is_truncated(&outcome.completion),
        "{:?}",
        outcome.completion
    );
    assert!(rig.script.requests().len() <= 3);
}

#[tokio::test(start_paused = true)]
async fn tokens_of_plans_are_refused_before_anything_is_sent() {
    let secret = || Secret::new(["plan", "token"].join("-"));
    let plans = [
        Credential::Oauth(secret()),
        Credential::ChatGpt {
            token: secret(),
            account: "acct".to_owned(),
        },
    ];
    for credential in plans {
        let script = Script::new([finish().into()]);
        let rig = Rig::with(
            Protocol::AnthropicMessages,
            credential,
            script,
            PassLimits::default(),
        )
        .await;
        let models = [ModelId::new("acme/big").unwrap()];
        for error in [
            rig.engine.preflight(&models).await.unwrap_err(),
            rig.run().await.unwrap_err(),
        ] {
            let EngineError::Unavailable(words) = error else {
                panic!("{error:?}");
            };
            assert!(
                words.contains("engines.acme") && !words.contains("plan-token"),
                "{words}"
            );
        }
        assert!(rig.script.requests().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_was_neither_read_nor_named_is_said() {
    let reply = Reply::default().tool("finish", json!({"examined": []}));
    let rig = Rig::new(Protocol::OpenAiResponses, Script::new([reply.into()])).await;
    let outcome = rig.run().await.unwrap();
    assert_eq!(outcome.unexamined.len(), 1, "{:?}", outcome.unexamined);
}

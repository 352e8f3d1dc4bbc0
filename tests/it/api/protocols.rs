//! What goes out and comes back in each protocol.

use std::sync::Arc;

use ecr::gateway::Protocol;
use ecr::model::{PassKind, TokenCounts, Usage};
use ecr::port::{Completion, EngineError};
use serde_json::{Value, json};

use super::rig::{PROTOCOLS, Rig, finish, report};
use crate::support::model_server::{Reply, ReplyUsage, Script, Step};

/// Reads, reports wrongly, reports rightly, finishes.
fn review() -> Vec<Step> {
    let read = json!({"path": "src/a.rs", "from": 1, "to": 3});
    vec![
        Reply::text("Let me see.")
            .tool("read", read)
            .tool("grep", json!({"pattern": "fn b"}))
            .into(),
        Reply::default()
            .tool("report", report("bad anchor", 9))
            .into(),
        Reply::default()
            .tool("report", report("Wrong sum", 2))
            .into(),
        finish()
            .usage(ReplyUsage {
                input: 7,
                output: 3,
                cached: 90,
                written: 0,
            })
            .into(),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_review_runs_to_its_end_in_every_protocol() {
    for protocol in PROTOCOLS {
        let rig = Rig::new(protocol, Script::new(review())).await;
        let outcome = rig.run().await.unwrap();
        assert_eq!(outcome.completion, Completion::Complete, "{protocol:?}");
        assert_eq!(rig.titles(), ["Wrong sum"], "{protocol:?}");
        assert_eq!(outcome.tool_calls, 5);
        assert!(outcome.unexamined.is_empty());
        let Usage::Exact(tokens, _) = outcome.usage else {
            panic!("{protocol:?}: {:?}", outcome.usage);
        };
        let expected = TokenCounts {
            input: 307,
            output: 63,
            cache_read: 90,
            ..TokenCounts::default()
        };
        assert_eq!(tokens, expected, "{protocol:?}");
        assert_eq!(rig.notebook.metered.lock().unwrap().len(), 4);
        let seen = rig.notebook.seen.lock().unwrap();
        let lines: Vec<_> = seen
            .iter()
            .map(|(path, lines)| (path.to_lossy(), lines.clone()))
            .collect();
        assert!(
            lines.contains(&("src/a.rs".to_owned(), vec![1..=3])),
            "{lines:?}"
        );
        assert!(outcome.model_answered.unwrap().as_str().ends_with("/big"));
    }
}

/// The answers of the tools, as they went back to the model.
fn results(body: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = body["messages"]
        .as_array()
        .or_else(|| body["input"].as_array());
    let mut out = Vec::new();
    for message in messages.unwrap() {
        if message["role"] == "tool" {
            out.push(text(&message["content"]));
        }
        if message["type"] == "function_call_output" {
            out.push(text(&message["output"]));
        }
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                out.push(text(&block["content"]));
            }
        }
    }
    out
}

#[tokio::test(start_paused = true)]
async fn the_whole_conversation_goes_back_with_the_answers_in_the_order_of_the_calls() {
    for protocol in PROTOCOLS {
        let rig = Rig::new(protocol, Script::new(review())).await;
        rig.run().await.unwrap();
        let results = results(&rig.body(3));
        assert_eq!(results.len(), 4, "{protocol:?}: {results:?}");
        assert!(results[0].contains("let total"), "{results:?}");
        assert!(results[1].contains("src/b.rs"), "{results:?}");
        assert!(
            results[2].contains("the only match is line 2"),
            "{results:?}"
        );
        assert!(results[3].starts_with("reported as "), "{results:?}");
        let first = rig.body(0);
        let tools: Vec<_> = first["tools"].as_array().unwrap().iter().collect();
        let name = |tool: &Value| {
            let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
            name.unwrap().to_owned()
        };
        let names: Vec<_> = tools.iter().map(|tool| name(tool)).collect();
        assert!(
            ["read", "report", "finish"]
                .iter()
                .all(|n| names.iter().any(|m| m == n))
        );
        for key in ["temperature", "thinking", "reasoning", "reasoning_effort"] {
            assert!(first[key].is_null(), "{key} is off by default");
        }
    }
}

fn marks(value: &Value) -> usize {
    match value {
        Value::Object(map) => {
            usize::from(map.contains_key("cache_control")) + map.values().map(marks).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(marks).sum(),
        _ => 0,
    }
}

#[tokio::test(start_paused = true)]
async fn anthropic_gets_at_most_four_cache_marks_and_an_unchanging_beginning() {
    let rig = Rig::new(Protocol::AnthropicMessages, Script::new(review())).await;
    rig.run().await.unwrap();
    let bodies: Vec<_> = (0..4).map(|at| rig.body(at)).collect();
    let counts: Vec<_> = bodies.iter().map(marks).collect();
    assert_eq!(counts, [2, 3, 4, 4]);
    for body in &bodies {
        assert_eq!(body["system"], bodies[0]["system"]);
        assert_eq!(body["tools"], bodies[0]["tools"]);
        assert_eq!(body["messages"][0], bodies[0]["messages"][0]);
    }
    let last = bodies[3]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(marks(last), 1, "the last answer of a tool");
}

fn verdict() -> Arc<Value> {
    Arc::new(
        json!({"type": "object", "properties": {"verified": {"type": "boolean"}, "reason": {"type": "string"}},
        "required": ["verified", "reason"]}),
    )
}

#[tokio::test(start_paused = true)]
async fn a_schema_goes_out_in_the_providers_own_form_and_the_reply_comes_back() {
    for (protocol, place) in [
        (Protocol::AnthropicMessages, "/output_config/format/schema"),
        (Protocol::OpenAiResponses, "/text/format/schema"),
        (Protocol::OpenAiChat, "/response_format/json_schema/schema"),
    ] {
        let reply = Reply::text("{\"verified\": true, \"reason\": \"seen\"}");
        let mut rig = Rig::new(protocol, Script::new([reply.into()])).await;
        (rig.schema, rig.kind) = (Some(verdict()), PassKind::Verify);
        let outcome = rig.run().await.unwrap();
        assert_eq!(outcome.completion, Completion::Complete);
        assert_eq!(
            outcome.reply,
            Some(json!({"verified": true, "reason": "seen"}))
        );
        let body = rig.body(0);
        let schema = body.pointer(place).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{protocol:?}");
        assert!(body["tools"].is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_does_not_fit_its_schema_is_no_reply() {
    for text in ["All is well.", "{}", "{\"verified\": true}", "null", ""] {
        let script = Script::new([Reply::text(text).into()]);
        let mut rig = Rig::new(Protocol::OpenAiChat, script).await;
        (rig.schema, rig.kind) = (Some(verdict()), PassKind::Verify);
        let result = rig.run().await;
        assert!(
            matches!(result, Err(EngineError::SchemaUnmet(_))),
            "{text}: {result:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_review_without_tools_reports_what_its_reply_lists() {
    let finding = report("Wrong sum", 2);
    for (text, complete, titles) in [
        (json!({"findings": []}).to_string(), true, vec![]),
        (
            json!({"findings": [finding]}).to_string(),
            true,
            vec!["Wrong sum"],
        ),
        (
            json!({"findings": [finding, 7]}).to_string(),
            false,
            vec!["Wrong sum"],
        ),
        ("{\"findings\": [".to_owned(), false, vec![]),
    ] {
        let script = Script::new([Reply::text(&text).into()]);
        let mut rig = Rig::new(Protocol::OpenAiResponses, script).await;
        rig.schema = Some(Arc::new(ecr::reply::findings_schema()));
        let outcome = rig.run().await.unwrap();
        assert_eq!(
            outcome.completion == Completion::Complete,
            complete,
            "{text}"
        );
        assert_eq!(rig.titles(), titles, "{text}");
    }
}

/// What we add to a request: neither the set-up's texts, nor the change, nor the schemas of the tools.
#[tokio::test(start_paused = true)]
async fn a_request_carries_at_most_two_kilobytes_of_ours() {
    let diff = super::rig::diff();
    let section = diff.files[0].section.len();
    let method = ecr::prompt::reviewer_system("", "").len();
    let task = ecr::prompt::ReviewTask {
        diff: &diff,
        files: &[0],
        filtered: &[None],
        mark: "0123456789abcdef",
        hide: |section| section.into(),
        context: "",
        answer: None,
    };
    let frame = task.text().len() - section;
    for protocol in PROTOCOLS {
        let rig = Rig::new(protocol, Script::new([finish().into()])).await;
        rig.run().await.unwrap();
        let mut body = rig.body(0);
        let said = |tool: &Value| {
            let text = tool["description"].as_str();
            text.or(tool["function"]["description"].as_str())
                .unwrap()
                .len()
        };
        let said: usize = body["tools"].as_array().unwrap().iter().map(said).sum();
        body["tools"] = json!([]);
        let envelope = body.to_string().len() - "You review.".len() - "The task.".len();
        let ours = method + frame + said + envelope;
        assert!(
            ours <= 2_048,
            "{protocol:?}: {method} + {frame} + {said} + {envelope} = {ours}"
        );
    }
}

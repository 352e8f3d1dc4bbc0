//! What a pass does when nothing goes wrong, and what a model may do with its tools.

use std::sync::Arc;

use ecr::gateway::{PassLimits, Protocol};
use ecr::model::{ModelId, PassKind, Usage};
use ecr::port::{Completion, EngineError};
use serde_json::{Value, json};

use super::rig::{Rig, finish, look};
use crate::api::rig::{PROTOCOLS, report};
use crate::support::model_server::{Reply, ReplyUsage, Script, Step};

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_pass_in_each_protocol() {
    for protocol in PROTOCOLS {
        let usage = ReplyUsage {
            input: 1_000,
            output: 50,
            cached: 300,
            written: 0,
        };
        let wrong = json!({"severity": "warning"});
        let script = Script::new([
            look().usage(usage).into(),
            Reply::default()
                .tool("tree_report", wrong)
                .tool("tree_report", report("Wrong sum", 2))
                .usage(usage)
                .into(),
            finish().usage(usage).into(),
        ]);
        let Some(rig) = Rig::new(protocol, script).await else {
            return;
        };
        let outcome = rig.run().await.unwrap();
        assert_eq!(outcome.completion, Completion::Complete, "{protocol:?}");
        assert_eq!(rig.titles(), ["Wrong sum"]);
        assert_eq!(outcome.tool_calls, 4);
        assert_eq!(outcome.unexamined, []);
        assert_eq!(
            outcome.model_answered,
            Some(ModelId::new("acme/org/big").unwrap())
        );
        let Usage::Exact(tokens, _) = outcome.usage else {
            panic!("{:?}", outcome.usage);
        };
        let turns = rig.script.requests().len() as u64;
        assert_eq!(turns, 3, "none after `finish`");
        assert_eq!(
            (tokens.input, tokens.output, tokens.cache_read),
            (1_000 * turns, 50 * turns, 300 * turns),
            "{protocol:?}"
        );
        // The refused report is said to the model in the tool door's own words.
        let third = rig.body(2).to_string();
        assert!(third.contains("title"), "{third}");
        let told = rig.told.0.lock().unwrap();
        assert!(told.contains(&"read src/a.rs".to_owned()), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_holds_our_prompt_our_tools_and_nothing_of_the_machine() {
    let script = Script::new([finish().into()]);
    let Some(mut rig) = Rig::new(Protocol::OpenAiChat, script).await else {
        return;
    };
    rig.task = "/help\n@/etc/passwd {env:PATH} !`id`\n\"quoted\" \\ \u{1f600}".to_owned();
    rig.system = "System {env:PATH} {file:/etc/passwd} ".to_owned() + &"long ".repeat(60_000);
    rig.run().await.unwrap();
    let body = rig.body(0);
    assert_eq!(body["model"], "org/big");
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(
        system.starts_with(rig.system.trim_end()),
        "{}",
        &system[..200]
    );
    assert_eq!(body["messages"][1]["content"], rig.task.as_str());
    assert_eq!(body["messages"].as_array().unwrap().len(), 2);
    let mut tools: Vec<_> = body["tools"].as_array().unwrap().iter().collect();
    tools.sort_by_key(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    let names: Vec<_> = tools
        .iter()
        .map(|t| t["function"]["name"].as_str().unwrap())
        .collect();
    assert!(
        names.iter().all(|name| name.starts_with("tree_")),
        "{names:?}"
    );
    assert!(names.contains(&"tree_report") && names.contains(&"tree_finish"));
    // What OpenCode adds of its own.
    let added = &system[rig.system.trim_end().len()..];
    assert!(added.len() < 800, "{added}");
    assert!(added.contains("Is directory a git repo: no"), "{added}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_its_own_do_not_exist() {
    let escape = Reply::default()
        .tool("bash", json!({"command": "id > /tmp/opencode-was-here"}))
        .tool("read", json!({"filePath": "/etc/passwd"}))
        .tool(
            "write",
            json!({"filePath": "/tmp/opencode-was-here", "content": "x"}),
        )
        .tool(
            "webfetch",
            json!({"url": "http://127.0.0.1:9", "format": "text"}),
        )
        .tool(
            "task",
            json!({"description": "x", "prompt": "x", "subagent_type": "general"}),
        )
        .tool("list_mcp_resources", json!({}))
        .tool("tree_nosuch", json!({}));
    let same = Reply::default()
        .tool("tree_read", json!({"path": "src/b.rs"}))
        .tool("tree_read", json!({"path": "src/b.rs"}))
        .tool("tree_read", json!({"path": "src/b.rs"}))
        .tool("tree_read", json!({"path": "src/b.rs"}));
    let script = Script::new([escape.into(), same.into(), finish().into()]);
    let Some(rig) = Rig::new(Protocol::OpenAiChat, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert_eq!(outcome.completion, Completion::Complete);
    assert_eq!(outcome.tool_calls, 5, "four equal reads and `finish`");
    assert!(!std::path::Path::new("/tmp/opencode-was-here").exists());
    let answers = rig.body(1).to_string();
    assert!(!answers.contains("root:"), "{answers}");
    assert_eq!(answers.matches("unavailable tool").count(), 7, "{answers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn prose_is_never_a_review() {
    let script = Script::new([look().into(), Reply::text("Looks good, approve!").into()]);
    let Some(rig) = Rig::new(Protocol::AnthropicMessages, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert!(matches!(outcome.completion, Completion::Truncated { .. }));

    let reply = json!({"findings": [report("Wrong sum", 2)]}).to_string();
    let script = Script::new([Reply::text(&reply).into()]);
    drop(rig);
    let rig = Rig::new(Protocol::OpenAiResponses, script).await.unwrap();
    let outcome = rig.run().await.unwrap();
    assert!(matches!(outcome.completion, Completion::Truncated { .. }));
    assert_eq!(rig.titles(), ["Wrong sum"], "what was written down is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_is_asked_for_and_checked_by_us() {
    let schema = json!({"type": "object", "properties": {"verdict": {"type": "string"}},
        "required": ["verdict"], "additionalProperties": false});
    for (protocol, text, expected) in [
        (
            Protocol::OpenAiChat,
            "{\"verdict\":\"holds\"}",
            Some(json!({"verdict": "holds"})),
        ),
        (
            Protocol::AnthropicMessages,
            "Sure:\n```json\n{\"verdict\":\"holds\"}\n```",
            Some(json!({"verdict": "holds"})),
        ),
        (Protocol::OpenAiResponses, "{\"opinion\":\"holds\"}", None),
        (Protocol::OpenAiChat, "I think it holds.", None),
        (Protocol::OpenAiChat, "", None),
    ] {
        let Some(mut rig) = Rig::new(protocol, Script::new([Reply::text(text).into()])).await
        else {
            return;
        };
        rig.schema = Some(Arc::new(schema.clone()));
        rig.kind = PassKind::Verify;
        let result = rig.run().await;
        let body = rig.body(0);
        assert_eq!(body["tools"].as_array().map_or(0, Vec::len), 0);
        assert!(body.to_string().contains("JSON schema"), "{body}");
        if protocol == Protocol::OpenAiChat {
            assert_eq!(body["response_format"]["type"], "json_schema", "{body}");
        }
        match expected {
            Some(expected) => {
                let outcome = result.unwrap();
                assert_eq!(outcome.reply, Some(expected), "{text}");
                assert_eq!(outcome.completion, Completion::Complete);
            }
            None => assert!(
                matches!(result, Err(EngineError::SchemaUnmet(_))),
                "{text}: {result:?}"
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_of_tools_ends_with_the_turns() {
    let limits = PassLimits {
        turns: 4,
        ..PassLimits::default()
    };
    let script = Script::new((0..40).map(|_| Step::from(look())));
    let Some(rig) = Rig::with(Protocol::OpenAiChat, script, limits).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert!(
        matches!(outcome.completion, Completion::Truncated { .. }),
        "{:?}",
        outcome.completion
    );
    assert!(rig.script.requests().len() <= 4);
    assert!(matches!(outcome.usage, Usage::Exact(..)));
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_arguments_go_back_to_the_model() {
    let broken = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":\
        {\"name\":\"tree_read\",\"arguments\":\"{\\\"path\\\": \"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let broken = Step::events(vec![crate::support::model_server::Piece::Data(
        broken.into(),
    )]);
    let script = Script::new([broken, finish().into()]);
    let Some(rig) = Rig::new(Protocol::OpenAiChat, script).await else {
        return;
    };
    assert_eq!(rig.run().await.unwrap().completion, Completion::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn six_passes_at_once_take_turns() {
    let script = Script::new([]);
    let Some(rig) = Rig::new(Protocol::OpenAiChat, script).await else {
        return;
    };
    // Whoever comes, in whatever order: a first call is answered by `finish`, all is over after it.
    for _ in 0..6 {
        rig.script.push(finish());
    }
    let rig = Arc::new(rig);
    let mut passes = tokio::task::JoinSet::new();
    for n in 0..6 {
        let rig = Arc::clone(&rig);
        passes.spawn(async move { rig.pass(&format!("one/{n}")).await });
    }
    let mut most = 0;
    let mut done = 0;
    while done < 6 {
        tokio::select! {
            Some(outcome) = passes.join_next() => {
                assert_eq!(outcome.unwrap().unwrap().completion, Completion::Complete);
                done += 1;
            }
            () = tokio::time::sleep(std::time::Duration::from_millis(50)) => {
                most = most.max(super::rig::children(&rig.binary).len());
            }
        }
    }
    assert_eq!(most, 2, "at most two at the same time");
    rig.nothing_is_left();
    let _: Value = rig.body(0);
}

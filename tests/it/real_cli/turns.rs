//! What a pass does when nothing goes wrong, and what a model may do with its tools.

use std::sync::Arc;

use ecr::gateway::{PassLimits, Protocol};
use ecr::model::{ModelId, PassKind, Usage};
use ecr::port::{Completion, EngineError};
use serde_json::{Value, json};

use super::Subject;
use super::rig::{Rig, children, finish, look, speaks, spelled};
use crate::api::rig::report;
use crate::support::model_server::{Piece, Reply, ReplyUsage, Script, Step};

pub(super) async fn a_clean_pass(subject: &'static Subject) {
    let usage = ReplyUsage {
        input: 1_000,
        output: 50,
        cached: 300,
        written: 0,
    };
    let script = Script::new([
        look(subject).usage(usage).into(),
        Reply::default()
            .tool(&spelled(subject, "report"), json!({"severity": "warning"}))
            .tool(&spelled(subject, "report"), report("Wrong sum", 2))
            .usage(usage)
            .into(),
        finish(subject).usage(usage).into(),
        Reply::text("Done.").usage(usage).into(),
    ]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert_eq!(outcome.completion, Completion::Complete);
    assert_eq!(rig.titles(), ["Wrong sum"]);
    assert_eq!(outcome.tool_calls, 4);
    assert_eq!(outcome.unexamined, []);
    let asked = ModelId::new(&format!("acme/{}", subject.model)).unwrap();
    assert_eq!(outcome.model_answered, Some(asked));
    let Usage::Exact(tokens, _) = outcome.usage else {
        panic!("{:?}", outcome.usage);
    };
    let turns = rig.script.requests().len() as u64;
    assert_eq!(turns, 3, "none after `finish`");
    assert_eq!(
        (tokens.input, tokens.output, tokens.cache_read),
        (1_000 * turns, 50 * turns, 300 * turns)
    );
    // The refused report is said to the model in the tool door's own words.
    let third = rig.body(2).to_string();
    assert!(third.contains("title"), "{third}");
    let told = rig.told.0.lock().unwrap();
    assert!(told.contains(&"read src/a.rs".to_owned()), "{told:?}");
}

pub(super) async fn the_request_is_ours(subject: &'static Subject) {
    let script = Script::new([finish(subject).into()]);
    let Some(mut rig) = Rig::new(subject, script).await else {
        return;
    };
    rig.task =
        String::from("/help\n@/etc/passwd {env:PATH} !`id` ${HOME}\n\"quoted\" \\ \u{1f600} &lt;");
    rig.system =
        "System {env:PATH} {file:/etc/passwd} ${HOME} ".to_owned() + &"long ".repeat(60_000);
    rig.run().await.unwrap();
    let body = rig.body(0);
    assert_eq!(body["model"], subject.model);
    // So Codex names the agent that nobody started.
    let named = |text: String| text.replace("\"agent_name\":\"/root\"", "");
    let texts: Vec<_> = strings(&body).into_iter().map(named).collect();
    let has = |text: &str| texts.iter().any(|known| known.contains(text));
    assert!(has(&rig.task), "the task as it is");
    assert!(has(rig.system.trim_end()), "the system prompt as it is");
    // Apart from ours there is little.
    let ours = rig.task.len() + rig.system.len();
    let others: usize = texts
        .iter()
        .filter(|text| !text.contains(rig.system.trim_end()))
        .map(String::len)
        .sum();
    let tools = body["tools"].to_string().len();
    let rest = others.saturating_sub(tools);
    assert!(rest < 6_000, "{rest} bytes besides our {ours}");
    for word in ["/root", "root:x:", "hostname"] {
        assert!(
            !texts
                .iter()
                .any(|text| !text.contains("System {env") && text.contains(word)),
            "{word}: {:?}",
            texts
                .iter()
                .filter(|text| !text.contains("System {env") && text.contains(word))
                .collect::<Vec<_>>()
        );
    }
}

/// Every text in a JSON value.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

pub(super) async fn tools_of_its_own_do_not_exist(subject: &'static Subject) {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("was-here");
    let arguments = json!({
        "command": format!("id > {}", mark.display()), "cmd": ["touch", mark], "file_path": "/etc/passwd",
        "filePath": "/etc/passwd", "path": "/etc/passwd", "content": "x", "url": "http://127.0.0.1:9/",
        "prompt": "x", "description": "x", "subagent_type": "general",
    });
    let mut escape = Reply::default();
    for tool in subject.own_tools {
        escape = escape.tool(tool, arguments.clone());
    }
    let read = spelled(subject, "read");
    let mut same = Reply::default();
    for _ in 0..4 {
        same = same.tool(&read, json!({"path": "src/b.rs"}));
    }
    let script = Script::new([escape.into(), same.into(), finish(subject).into()]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert_eq!(outcome.completion, Completion::Complete);
    assert_eq!(outcome.tool_calls, 5, "four equal reads and `finish`");
    assert!(!mark.exists());
    let answers = rig.body(1).to_string();
    assert!(!answers.contains("root:x:"), "{answers}");
}

pub(super) async fn prose_is_never_a_review(subject: &'static Subject) {
    let script = Script::new([
        look(subject).into(),
        Reply::text("Looks good, approve!").into(),
    ]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert!(matches!(outcome.completion, Completion::Truncated { .. }));
    drop(rig);

    let reply = json!({"findings": [report("Wrong sum", 2)]}).to_string();
    let script = Script::new([Reply::text(&reply).into()]);
    let rig = Rig::new(subject, script).await.unwrap();
    let outcome = rig.run().await.unwrap();
    assert!(matches!(outcome.completion, Completion::Truncated { .. }));
    assert_eq!(rig.titles(), ["Wrong sum"], "what was written down is kept");
}

pub(super) async fn a_schema_is_asked_for_and_checked(subject: &'static Subject) {
    let schema = json!({"type": "object", "properties": {"verdict": {"type": "string"}},
        "required": ["verdict"], "additionalProperties": false});
    let right = json!({"verdict": "holds"});
    let wrong = json!({"opinion": "holds"});
    let say = |value: &Value| match subject.answer_tool {
        Some(tool) => Reply::default().tool(tool, value.clone()),
        None => Reply::text(&value.to_string()),
    };
    let cases = [
        ("right", vec![say(&right)], Some(right.clone())),
        ("wrong", vec![say(&wrong); 8], None),
        ("prose", vec![Reply::text("I think it holds."); 4], None),
        ("nothing", vec![Reply::text(""); 4], None),
    ];
    for (name, replies, expected) in cases {
        let script = Script::new(replies.into_iter().map(Step::from));
        let Some(mut rig) = Rig::new(subject, script).await else {
            return;
        };
        rig.schema = Some(Arc::new(schema.clone()));
        rig.kind = PassKind::Verify;
        let result = rig.run().await;
        let body = rig.body(0).to_string();
        assert!(body.contains("verdict"), "{name}: {body}");
        assert!(!body.contains(&rig.spelled("report")), "{name}: {body}");
        match expected {
            Some(expected) => {
                let outcome = result.unwrap();
                assert_eq!(outcome.reply, Some(expected), "{name}");
                assert_eq!(outcome.completion, Completion::Complete, "{name}");
            }
            None => assert!(
                matches!(result, Err(EngineError::SchemaUnmet(_))),
                "{name}: {result:?}"
            ),
        }
    }
    // The schemas that ecr really asks with.
    for (kind, schema) in [(PassKind::Review, ecr::reply::findings_schema())] {
        let reply = json!({"findings": [report("Wrong sum", 2)]});
        let script = Script::new([say(&reply).into()]);
        let mut rig = Rig::new(subject, script).await.unwrap();
        rig.schema = Some(Arc::new(schema));
        rig.kind = kind;
        let outcome = rig.run().await.unwrap();
        assert_eq!(outcome.completion, Completion::Complete, "{kind:?}");
        assert_eq!(rig.titles(), ["Wrong sum"]);
    }
}

pub(super) async fn a_loop_of_tools_ends_with_the_turns(subject: &'static Subject) {
    let limits = PassLimits {
        turns: 4,
        ..PassLimits::default()
    };
    let script = Script::new((0..40).map(|_| Step::from(look(subject))));
    let Some(rig) = Rig::with(subject, script, limits).await else {
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

pub(super) async fn broken_arguments_go_back_to_the_model(subject: &'static Subject) {
    let events: &[&str] = if speaks(subject, Protocol::AnthropicMessages) {
        &[
            r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"usage":{"input_tokens":10,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"mcp__tree__read","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"path\": "}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
            r#"{"type":"message_stop"}"#,
        ]
    } else {
        return;
    };
    let text: String = events
        .iter()
        .map(|event| {
            let kind: Value = serde_json::from_str(event).unwrap();
            let kind = kind["type"].as_str().unwrap();
            ["event: ", kind, "\ndata: ", event, "\n\n"].concat()
        })
        .collect();
    let broken = Step::events(vec![Piece::Data(text.into())]);
    let script = Script::new([broken, finish(subject).into()]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    assert_eq!(rig.run().await.unwrap().completion, Completion::Complete);
}

pub(super) async fn another_model_is_recorded(subject: &'static Subject) {
    let script = Script::new([finish(subject).model("somebody-else-1").into()]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    let answered = outcome.model_answered.unwrap();
    assert_eq!(answered.name(), "somebody-else-1");
}

pub(super) async fn six_passes_at_once(subject: &'static Subject) {
    let script = Script::new([]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    // Whoever comes, in whatever order: a first call is answered by `finish`, all is over after it.
    for _ in 0..6 {
        rig.script.push(finish(subject));
    }
    let program = rig.program().await;
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
                most = most.max(children(&program).len());
            }
        }
    }
    assert!((1..=subject.at_once).contains(&most), "{most} at once");
    rig.nothing_is_left().await;
}

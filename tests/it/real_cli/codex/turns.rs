//! What only Codex does with a turn.

use std::sync::Arc;

use ecr::model::PassKind;
use ecr::port::Completion;
use serde_json::json;

use super::super::CODEX;
use super::super::rig::{Rig, finish};
use crate::support::model_server::{Piece, Reply, Script, Step};

#[tokio::test(flavor = "multi_thread")]
async fn the_strict_schema_goes_out_and_its_nulls_do_not_come_back() {
    let schema = json!({"type": "object", "required": ["verdict"],
        "properties": {"verdict": {"type": "string", "minLength": 1}, "why": {"type": "string"}}});
    let answer = json!({"verdict": "holds", "why": null});
    let script = Script::new([Reply::text(&answer.to_string()).into()]);
    let Some(mut rig) = Rig::new(&CODEX, script).await else {
        return;
    };
    rig.schema = Some(Arc::new(schema));
    rig.kind = PassKind::Verify;
    let outcome = rig.run().await.unwrap();
    assert_eq!(outcome.reply, Some(json!({"verdict": "holds"})));
    let body = rig.body(0);
    let format = &body["text"]["format"];
    assert_eq!(format["strict"], true, "{body}");
    assert_eq!(
        format["schema"],
        json!({"type": "object", "required": ["verdict", "why"], "additionalProperties": false,
            "properties": {"verdict": {"type": "string"}, "why": {"type": ["string", "null"]}}})
    );
    assert_eq!(body["tools"].as_array().map_or(0, Vec::len), 0, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_arguments_go_back_to_the_model() {
    let item = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "namespace": "mcp__tree",
        "name": "read", "arguments": "{\"path\": ", "status": "completed"});
    let response = json!({"id": "resp_1", "object": "response", "status": "completed", "model": CODEX.model,
        "output": [item], "error": null, "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}});
    let text: Vec<String> = [
        json!({"type": "response.created", "response": {"id": "resp_1", "model": CODEX.model}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ]
    .iter()
    .map(|event| {
        let kind = event["type"].as_str().unwrap();
        format!("event: {kind}\ndata: {event}\n\n")
    })
    .collect();
    let broken = Step::events(vec![Piece::Data(text.concat().into())]);
    let script = Script::new([broken, finish(&CODEX).into()]);
    let Some(rig) = Rig::new(&CODEX, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert_eq!(outcome.completion, Completion::Complete);
    assert_eq!(outcome.tool_calls, 1, "only `finish` reached the tool door");
    let second = rig.body(1).to_string();
    assert!(second.contains("EOF while parsing"), "{second}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_resource_tools_find_no_such_method() {
    let mut calls = Reply::default();
    let tools = [
        ("list_mcp_resources", json!({"server": "tree"})),
        ("list_mcp_resource_templates", json!({"server": "tree"})),
        (
            "read_mcp_resource",
            json!({"server": "tree", "uri": "file:///etc/passwd"}),
        ),
    ];
    for (tool, arguments) in &tools {
        calls = calls.tool(tool, arguments.clone());
    }
    let script = Script::new([calls.into(), finish(&CODEX).into()]);
    let Some(rig) = Rig::new(&CODEX, script).await else {
        return;
    };
    let outcome = rig.run().await.unwrap();
    assert_eq!(outcome.completion, Completion::Complete);
    let second = rig.body(1);
    let answers: Vec<_> = second["input"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| item["output"].to_string())
        .collect();
    assert_eq!(answers.len(), tools.len(), "{second}");
    for answer in answers {
        assert!(answer.contains("-32601"), "{answer}");
        assert!(!answer.contains("root:x:"), "{answer}");
    }
}

//! The protocols besides the one of the table, and what only this tool needs.

use std::sync::Arc;

use ecr::model::PassKind;
use ecr::port::{Completion, EngineError};
use serde_json::json;

use super::super::rig::{Rig, finish};
use super::super::{OPENCODE, OPENCODE_MESSAGES, OPENCODE_RESPONSES, Subject, turns};
use crate::support::model_server::{Piece, Reply, Script, Step};

#[tokio::test(flavor = "multi_thread")]
async fn messages() {
    turns::a_clean_pass(&OPENCODE_MESSAGES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses() {
    turns::a_clean_pass(&OPENCODE_RESPONSES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_goes_out_where_the_package_lets_it_and_in_words_everywhere() {
    let schema = json!({"type": "object", "properties": {"verdict": {"type": "string"}},
        "required": ["verdict"], "additionalProperties": false});
    let right = Some(json!({"verdict": "holds"}));
    let cases: [(&'static Subject, &str, _); 3] = [
        (&OPENCODE, "{\"verdict\":\"holds\"}", right.clone()),
        (
            &OPENCODE_MESSAGES,
            "Sure:\n```json\n{\"verdict\":\"holds\"}\n```",
            right,
        ),
        (&OPENCODE_RESPONSES, "{\"opinion\":\"holds\"}", None),
    ];
    for (subject, text, expected) in cases {
        let Some(mut rig) = Rig::new(subject, Script::new([Reply::text(text).into()])).await else {
            return;
        };
        rig.schema = Some(Arc::new(schema.clone()));
        rig.kind = PassKind::Verify;
        let result = rig.run().await;
        let body = rig.body(0);
        assert_eq!(body["tools"].as_array().map_or(0, Vec::len), 0);
        assert!(body.to_string().contains("JSON schema"), "{body}");
        assert_eq!(
            body["response_format"]["type"] == "json_schema",
            std::ptr::eq(subject, &raw const OPENCODE),
            "{body}"
        );
        match expected {
            Some(expected) => assert_eq!(result.unwrap().reply, Some(expected), "{text}"),
            None => assert!(
                matches!(result, Err(EngineError::SchemaUnmet(_))),
                "{text}: {result:?}"
            ),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_arguments_go_back_to_the_model() {
    let broken = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":\
        {\"name\":\"tree_read\",\"arguments\":\"{\\\"path\\\": \"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let broken = Step::events(vec![Piece::Data(broken.into())]);
    let script = Script::new([broken, finish(&OPENCODE).into()]);
    let Some(rig) = Rig::new(&OPENCODE, script).await else {
        return;
    };
    assert_eq!(rig.run().await.unwrap().completion, Completion::Complete);
}

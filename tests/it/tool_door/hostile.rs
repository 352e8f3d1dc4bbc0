//! Hostile callers: paths, sizes, random arguments and random JSON-RPC.

use std::sync::Arc;

use ecr::gateway::ToolSession;
use ecr::gateway::tools::Session;
use ecr::tree::EntryKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::{check_size, patch, path, settings, tree_of};
use super::mcp::Client;

const CHANGE: &str = "\
diff --git a/a.rs b/a.rs
index 1111111..2222222 100644
--- a/a.rs
+++ b/a.rs
@@ -1 +1 @@
-one
+two
";

fn small() -> Session {
    let mut tree = tree_of(&[("a.rs", b"two\n"), ("src/b.rs", b"fn b() {}\n")]);
    tree.insert_as(path("out"), EntryKind::Symlink, *b"/etc");
    let mut settings = settings(tree);
    settings.diff = patch(CHANGE);
    Session::new(settings)
}

#[tokio::test]
async fn no_path_leads_out() {
    let session = small();
    let odd = [
        "../../etc/passwd",
        "/etc/passwd",
        "a.rs/../../x",
        ".git/config",
        "src/.git/HEAD",
        ".GIT/config",
        "a\0.rs",
        "%2e%2e/etc/passwd",
        "..%2f..%2fetc",
        "%00",
        "C:\\Windows\\win.ini",
        "\\\\server\\share",
        "..\\..\\x",
        "out/passwd",
        "out",
        "file:///etc/passwd",
        "~/.ssh/id_rsa",
        "$HOME",
        "src//b.rs",
        "src/./b.rs",
        "./../a.rs",
        "a.rs/",
        "a.rs/x",
        "\u{202e}sr.a",
        "/proc/self/environ",
        ".",
        "..",
        "",
        " ",
        "\n",
        "-",
        "--help",
    ];
    for text in odd {
        for (tool, field) in [("read", "path"), ("diff", "path"), ("list", "path")] {
            let answer = session.call(tool, json!({field: text})).await;
            check_size(&answer);
            let fine = answer.is_error
                || answer.text == "[a symbolic link to /etc]"
                || (tool == "list" && matches!(text, "." | ""));
            assert!(fine, "{tool} {text:?}: {}", answer.text);
            assert!(!answer.text.contains("root:"), "{}", answer.text);
        }
    }
    assert!(session.record().seen.is_empty());
}

#[tokio::test]
async fn oversized_and_deep_arguments_are_refused_in_few_words() {
    let session = small();
    let mut deep = json!("x");
    for _ in 0..120 {
        deep = json!([deep]);
    }
    let long = "x".repeat(1 << 20);
    for (tool, ask) in [
        ("read", json!({"path": long})),
        ("read", json!({"path": deep})),
        ("read", json!({ long.as_str(): 1 })),
        ("read", json!([1, 2])),
        ("read", json!("path")),
        ("grep", json!({"pattern": long})),
        ("glob", json!({"pattern": long})),
        ("glob", json!({"pattern": "{".repeat(1_000)})),
        ("retract", json!({"id": long, "reason": "x"})),
        ("finish", json!({"examined": vec!["a"; 5_001]})),
        (long.as_str(), json!({})),
    ] {
        let answer = session.call(tool, ask).await;
        assert!(
            answer.is_error && answer.text.len() < 500,
            "{:.40}: {:.600}",
            tool,
            answer.text
        );
    }
    assert!(!session.finished());
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a.rs".to_owned()),
        Just("src".to_owned()),
        Just("**".to_owned()),
        Just("warning".to_owned()),
        Just("security".to_owned()),
        Just("new".to_owned()),
        Just("000000000001".to_owned()),
        any::<String>(),
        "[(){}\\[\\]|*+?.\\\\^$a-c0-9,-]{0,12}",
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0u32..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Objects with the fields of the tools and any values.
fn arguments() -> impl Strategy<Value = Value> {
    let field = prop::sample::select(vec![
        "path",
        "from",
        "to",
        "column",
        "pattern",
        "glob",
        "context",
        "severity",
        "category",
        "file",
        "line",
        "endLine",
        "side",
        "title",
        "consequence",
        "evidence",
        "id",
        "reason",
        "examined",
        "other",
    ]);
    prop_oneof![
        4 => prop::collection::vec((field, any_json()), 0..5).prop_map(|fields| {
            Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        }),
        1 => any_json(),
    ]
}

fn tool() -> impl Strategy<Value = String> {
    let names = [
        "read", "grep", "glob", "list", "diff", "report", "retract", "finish",
    ];
    prop_oneof![9 => prop::sample::select(names.map(str::to_owned).to_vec()), 1 => any::<String>()]
}

fn method() -> impl Strategy<Value = String> {
    let names = [
        "initialize",
        "tools/list",
        "tools/call",
        "ping",
        "server/discover",
        "resources/list",
        "prompts/get",
        "notifications/initialized",
        "notifications/cancelled",
        "logging/setLevel",
        "completion/complete",
        "tasks/get",
        "subscriptions/listen",
        "resources/subscribe",
        "skills/list",
    ];
    prop_oneof![9 => prop::sample::select(names.map(str::to_owned).to_vec()), 1 => any::<String>()]
}

/// A body that is nearly, or not at all, a request.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![
        any::<u32>().prop_map(Value::from),
        word().prop_map(Value::from),
        any_json()
    ];
    let call = (id.clone(), tool(), arguments()).prop_map(|(id, tool, arguments)| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
    });
    let request = (id, method(), any_json())
        .prop_map(|(id, method, params)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    let valid =
        prop_oneof![call, request, any_json()].prop_map(|value| value.to_string().into_bytes());
    let cut = (valid.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(
        |(mut body, at, byte)| {
            if !body.is_empty() {
                let at = at.index(body.len());
                body[at] = byte;
            }
            body
        },
    );
    prop_oneof![3 => valid, 1 => cut, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_call_gets_an_answer(calls in prop::collection::vec((tool(), arguments()), 1..8)) {
        runtime().block_on(async {
            let session = small();
            for (tool, arguments) in calls {
                let answer = session.call(&tool, arguments).await;
                check_size(&answer);
                assert!(!answer.text.is_empty());
                assert!(!answer.text.starts_with("internal error"), "{}", answer.text);
            }
        });
    }

    #[test]
    fn any_body_gets_an_answer_or_a_refusal(body in body()) {
        runtime().block_on(async {
            let client = Client::new(Arc::new(small()), "fuzz");
            let (status, answer) = client.post(body).await;
            assert!(!status.is_server_error(), "{status}: {answer}");
            if status.is_success() && answer != json!("") {
                assert!(answer.get("result").is_some() || answer.get("error").is_some(), "{answer}");
            }
        });
    }
}

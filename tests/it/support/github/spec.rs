//! GitHub's description of its API, and what a request breaks of it.

use std::sync::OnceLock;

use serde_json::{Value, json};

const SLIM: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/github/openapi-slim.json"
));

fn spec() -> &'static Value {
    static SPEC: OnceLock<Value> = OnceLock::new();
    SPEC.get_or_init(|| serde_json::from_str(SLIM).unwrap())
}

fn resolve(value: &'static Value) -> &'static Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => resolve(spec().pointer(&reference[1..]).unwrap()),
        None => value,
    }
}

/// What is wrong with a request; empty when it is as described.
pub(super) fn problems(
    method: &str,
    path: &str,
    query: &[(String, String)],
    body: &[u8],
) -> Vec<String> {
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let paths = spec()["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let parts: Vec<&str> = template.trim_start_matches('/').split('/').collect();
        parts.len() == segments.len()
            && parts
                .iter()
                .zip(&segments)
                .all(|(p, s)| p.starts_with('{') || p == s)
    };
    let mut found: Vec<_> = paths.iter().filter(|(t, _)| fits(t)).collect();
    // The one with the fewest parameters: `/issues/comments/1` is no issue.
    found.sort_by_key(|(template, _)| template.matches('{').count());
    let Some((template, operations)) = found.first() else {
        return vec![format!("{method} {path}: no such path")];
    };
    let Some(operation) = operations.get(method.to_ascii_lowercase()) else {
        return vec![format!("{method} {template}: no such method")];
    };
    let mut problems = Vec::new();
    let parameters: Vec<&Value> = operation
        .get("parameters")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(resolve)
        .collect();
    for (name, _) in query {
        let known = parameters
            .iter()
            .any(|p| p["in"] == "query" && p["name"] == json!(name));
        if !known {
            problems.push(format!("{method} {template}: no such parameter `{name}`"));
        }
    }
    let schema = operation.pointer("/requestBody/content/application~1json/schema");
    match (schema, body.is_empty()) {
        (None, true) => {}
        (None, false) => problems.push(format!("{method} {template}: takes no body")),
        (Some(schema), _) => match serde_json::from_slice::<Value>(body) {
            Err(error) => problems.push(format!("{method} {template}: {error}")),
            Ok(value) => {
                let schema = json!({"allOf": [schema], "components": spec()["components"]});
                let validator = jsonschema::draft7::new(&schema).unwrap();
                for error in validator.iter_errors(&value) {
                    problems.push(format!("{method} {template}: {error}"));
                }
            }
        },
    }
    problems
}

#[test]
fn the_description_is_heard() {
    let at = |method: &str, path: &str, query: &[(&str, &str)], body: &str| {
        let query: Vec<_> = query
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        problems(method, path, &query, body.as_bytes()).len()
    };
    let comments = "/repos/octo/demo/issues/1/comments";
    assert_eq!(at("GET", comments, &[("per_page", "100")], ""), 0);
    assert_eq!(at("GET", comments, &[("sort", "x")], ""), 1);
    assert_eq!(at("POST", comments, &[], r#"{"body":"x"}"#), 0);
    assert_eq!(at("POST", comments, &[], r#"{"text":"x"}"#), 1);
    assert_eq!(
        at("POST", "/repos/octo/demo/issues/comments/1", &[], "{}"),
        1
    );
    assert_eq!(at("GET", "/repos/octo/demo/nonsense", &[], ""), 1);
}

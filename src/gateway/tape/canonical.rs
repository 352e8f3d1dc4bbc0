//! Requests as they are compared: what differs between two runs of the same review is left out, credentials are masked.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::detect;
use crate::http::Outgoing;

/// What changes from run to run: pattern and what stands in its place.
const VARYING: &[(&str, &str)] = &[
    // Our stand-in for a key, and our folders.
    ("ecr-pass-[A-Za-z0-9_-]{43}", "<placeholder>"),
    ("[^\\s\"'`]*/ecr-run-[A-Za-z0-9]{6,}", "<run>"),
    ("127\\.0\\.0\\.1:[0-9]{1,5}", "127.0.0.1:<port>"),
    // Sessions, requests, messages of a client, also as `msg_…`.
    (
        "(?:\\b|_)[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\\b",
        "<id>",
    ),
    // How long a tool took, as Codex tells the model.
    ("\\bWall time: [0-9.]+ seconds\\b", "Wall time: <time>"),
    // Days and times, as clients tell them to the model.
    (
        "\\b20[0-9]{2}-[01][0-9]-[0-3][0-9](?:[T ][0-2][0-9]:[0-5][0-9](?::[0-5][0-9](?:\\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?\\b",
        "<date>",
    ),
    (
        "\\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* [0-9]{1,2},? 20[0-9]{2}\\b",
        "<date>",
    ),
];

/// Fields in which a client names itself, its user or its session.
const LEFT_OUT: &[&str] = &[
    "client_metadata",
    "metadata",
    "prompt_cache_key",
    "safety_identifier",
    "session_id",
    "user",
];

static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    VARYING
        .iter()
        .filter_map(|(pattern, word)| Some((Regex::new(pattern).ok()?, *word)))
        .collect()
});

/// A request as it is compared and as it stands on the tape: the path, and the body as text of many short lines. The host
/// is left out: a tape serves whatever address the configuration names.
pub(super) fn canonical(request: &Outgoing) -> String {
    let head = format!("{} {}\n", request.method, request.url.path());
    let body = match serde_json::from_slice::<Value>(&request.body) {
        Ok(mut value) => {
            if let Value::Object(fields) = &mut value {
                fields.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
                fields.sort_keys();
            }
            tidy(&mut value);
            serde_json::to_string_pretty(&value).unwrap_or_default()
        }
        Err(_) => text(&String::from_utf8_lossy(&request.body)),
    };
    head + &body
}

/// Masks every text. Keys of an object come from a client's schema, not from the change, and stay.
fn tidy(value: &mut Value) {
    match value {
        Value::String(words) => *words = text(words),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => fields.values_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn text(words: &str) -> String {
    let mut out = detect::mask(words).into_owned();
    for (pattern, word) in PATTERNS.iter() {
        if pattern.is_match(&out) {
            out = pattern.replace_all(&out, *word).into_owned();
        }
    }
    out
}

/// What distinguishes two canonical requests: the lines around the first difference, and how many differ.
pub(super) fn difference(recorded: &str, asked: &str) -> String {
    const SHOWN: usize = 240;
    let (mut left, mut right) = (recorded.lines(), asked.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (left.next(), right.next()) {
            (None, None) => return "nothing differs".to_owned(),
            (a, b) if a == b => {}
            (a, b) => {
                let (a, b) = (a.unwrap_or("(end)"), b.unwrap_or("(end)"));
                let same = a
                    .char_indices()
                    .zip(b.chars())
                    .find(|((_, x), y)| x != y)
                    .map_or(a.len().min(b.len()), |((at, _), _)| at);
                let from = a[..same]
                    .char_indices()
                    .rev()
                    .nth(60)
                    .map_or(0, |(at, _)| at);
                let part = |line: &str| -> String {
                    let lead = if from > 0 { "…" } else { "" };
                    let part: String = line
                        .get(from..)
                        .unwrap_or_default()
                        .chars()
                        .take(SHOWN)
                        .collect();
                    crate::model::printable(&format!("{lead}{part}")).into_owned()
                };
                return format!(
                    "line {number} of the request:\n  recorded: {}\n  now:      {}",
                    part(a),
                    part(b)
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;

    fn request(host: &str, body: &Value) -> Outgoing {
        Outgoing {
            method: http::Method::POST,
            url: format!("{host}/v1/messages").parse().unwrap(),
            headers: http::HeaderMap::new(),
            body: Bytes::from(body.to_string()),
        }
    }

    #[test]
    fn what_changes_from_run_to_run_is_left_out() {
        let body = |date: &str, id: &str, run: &str, port: u16| {
            json!({
                "model": "m", "metadata": {"user_id": id}, "prompt_cache_key": id,
                "system": format!("Today is {date}. cwd /tmp/x/ecr-run-{run}/cwd, session {id}, msg_{id}"),
                "messages": [{"role": "user", "content": format!("http://127.0.0.1:{port}/mcp")}],
            })
        };
        let a = body(
            "2026-12-01",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "aB3dE9",
            4000,
        );
        let b = body(
            "2026-12-02",
            "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "Zz81kq",
            50_001,
        );
        assert_eq!(
            canonical(&request("http://127.0.0.1:1", &a)),
            canonical(&request("https://api.test", &b))
        );
        let mut other = a.clone();
        other["system"] = json!("Something else");
        assert_ne!(
            canonical(&request("http://h", &a)),
            canonical(&request("http://h", &other))
        );
    }

    #[test]
    fn credentials_of_a_request_are_not_on_the_tape() {
        let token = ["ghp_", &"a1B2c3D4e5F6".repeat(3)].concat();
        let text = canonical(&request(
            "http://h",
            &json!({"messages": [{"content": format!("+token = \"{token}\"\n")}]}),
        ));
        assert!(!text.contains(&token), "{text}");
    }

    #[test]
    fn the_first_difference_is_shown_with_its_surroundings() {
        let a = format!("POST /\n\"{}the old word\"", "é".repeat(400));
        let b = a.replace("old", "new");
        let words = difference(&a, &b);
        assert!(words.contains("line 2"), "{words}");
        assert!(
            words.contains("the old word") && words.contains("the new word"),
            "{words}"
        );
        assert!(words.chars().count() < 400, "{words}");
        assert!(difference("a", "a\nb\u{1b}[31m").contains("\\u{1b}"));
        for (a, b) in [("é", "e"), ("", "x"), ("aé", "aè"), ("日本", "日")] {
            assert!(difference(a, b).contains("line 1"), "{a} {b}");
        }
    }
}

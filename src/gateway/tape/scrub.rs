//! Answers without credentials. A credential may be cut into many events of a stream, so each text of an answer is looked
//! at as a whole.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::detect;

/// Fields that carry a text piece by piece.
const PIECES: &[&str] = &[
    "arguments",
    "content",
    "delta",
    "partial_json",
    "reasoning",
    "reasoning_content",
    "signature",
    "text",
    "thinking",
];

/// The answer with everything that looks like a credential masked.
pub(super) fn scrub(body: &str) -> String {
    let body = whole_texts(body);
    detect::mask(&body).into_owned()
}

/// A stream of events in which a text with a credential stands whole in its first piece, masked.
fn whole_texts(body: &str) -> String {
    let mut lines: Vec<Line> = body.split_inclusive('\n').map(Line::read).collect();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for line in &lines {
        if let Some(event) = &line.event {
            walk(event, &mut String::new(), &mut |path, piece| {
                // A credential that one piece holds whole is masked there; only what is left needs the pieces together.
                texts
                    .entry(path.to_owned())
                    .or_default()
                    .push_str(&detect::mask(piece));
            });
        }
    }
    texts.retain(|_, text| *detect::mask(text) != **text);
    if texts.is_empty() {
        return body.to_owned();
    }
    let mut left: BTreeMap<String, String> = texts
        .iter()
        .map(|(path, text)| (path.clone(), detect::mask(text).into_owned()))
        .collect();
    let mut out = String::with_capacity(body.len());
    for line in &mut lines {
        let Some(event) = line.event.as_mut() else {
            out.push_str(line.text);
            continue;
        };
        let mut changed = false;
        replace(event, &mut String::new(), &mut |path, piece| {
            if texts.contains_key(path) && !piece.is_empty() {
                *piece = left.remove(path).unwrap_or_default();
                changed = true;
            }
        });
        if changed {
            out.push_str("data: ");
            out.push_str(&event.to_string());
            out.push('\n');
        } else {
            out.push_str(line.text);
        }
    }
    out
}

struct Line<'a> {
    text: &'a str,
    event: Option<Value>,
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Self {
        let event = text
            .strip_prefix("data:")
            .and_then(|data| serde_json::from_str(data).ok())
            .filter(Value::is_object);
        Self { text, event }
    }
}

/// A part of a text is known by where it stands and by the numbers around it (`index`, `output_index`).
fn step(path: &mut String, name: &str, fields: &serde_json::Map<String, Value>) {
    path.push('/');
    path.push_str(name);
    for number in ["index", "output_index", "content_index", "item_id"] {
        if let Some(value) = fields.get(number) {
            path.extend(["[", number, "=", &value.to_string(), "]"]);
        }
    }
}

fn walk(value: &Value, path: &mut String, see: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let length = path.len();
                step(path, name, fields);
                match inner {
                    Value::String(piece) if PIECES.contains(&name.as_str()) => see(path, piece),
                    _ => walk(inner, path, see),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, path, see)),
        _ => {}
    }
}

fn replace(value: &mut Value, path: &mut String, change: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::Object(fields) => {
            let around = fields.clone();
            for (name, inner) in fields.iter_mut() {
                let length = path.len();
                step(path, name, &around);
                match inner {
                    Value::String(piece) if PIECES.contains(&name.as_str()) => change(path, piece),
                    _ => replace(inner, path, change),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| replace(item, path, change)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn token() -> String {
        ["ghp_", &"a1B2c3D4e5F6".repeat(3)].concat()
    }

    #[test]
    fn a_credential_cut_into_events_is_masked_and_the_rest_stays() {
        let text = format!("the key \"{}\" is in the file", token());
        let mut body = String::new();
        for (at, piece) in text.as_bytes().chunks(7).enumerate() {
            let piece = std::str::from_utf8(piece).unwrap();
            let event = json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": piece}});
            body.extend(["event: e\ndata: ", &event.to_string(), "\n\n"]);
            let other = json!({"type": "content_block_delta", "index": 0, "delta": {"text": format!("{at}")}});
            body.extend(["data: ", &other.to_string(), "\n\n"]);
        }
        let scrubbed = scrub(&body);
        let read = |body: &str, index: u64| -> String {
            body.lines()
                .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data:")?).ok())
                .filter(|event| event["index"] == index)
                .filter_map(|event| Some(event["delta"]["text"].as_str()?.to_owned()))
                .collect()
        };
        let got = read(&scrubbed, 1);
        assert!(
            got.starts_with("the key \"ghp_") && got.ends_with("\" is in the file"),
            "{got}"
        );
        assert!(!got.contains(&token()));
        assert_eq!(read(&scrubbed, 0), read(&body, 0));
        assert_eq!(
            scrubbed.matches("\n\n").count(),
            body.matches("\n\n").count()
        );
    }

    #[test]
    fn a_text_that_is_repeated_whole_stays_where_it_stands() {
        let whole = format!("see {} here", token());
        let event = |text: &str| {
            format!(
                "data: {}\n\n",
                json!({"item": {"content": [{"text": text}]}})
            )
        };
        let body = [event(""), event(&whole), event(&whole)].concat();
        let scrubbed = scrub(&body);
        assert!(!scrubbed.contains(&token()));
        let texts: Vec<bool> = scrubbed
            .split_terminator("\n\n")
            .map(|event| event.contains("see ghp_") && event.contains(" here"))
            .collect();
        assert_eq!(texts, [false, true, true]);
    }

    #[test]
    fn an_answer_without_credentials_is_not_touched() {
        let body = "event: x\r\ndata: {\"a\": 1 }\r\n\r\n: comment\n\ndata: [DONE]\n\n";
        assert_eq!(scrub(body), body);
        assert_eq!(
            scrub("{\"content\": \"plain\"}"),
            "{\"content\": \"plain\"}"
        );
    }
}

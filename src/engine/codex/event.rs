//! The lines that `codex exec --json` prints.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use super::fault::{CUT, classify, is_of_door};
use crate::engine::cli::{Activity, EventReader, Exit, Said, shown};

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    item: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    message: String,
}

/// Reads the lines of one pass and remembers what they add up to. The usage in them is not taken: the model
/// door has counted it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    schema: Option<Value>,
    /// The last message of the model, of the attempt at hand.
    text: String,
    end: End,
    /// The text was longer than a line may be.
    lost: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    None,
    Completed,
    Failed(String),
}

impl Reader {
    /// For a pass whose answer is held to the strict form of `schema`.
    pub(super) fn new(schema: Option<&Value>) -> Self {
        Self {
            schema: schema.cloned(),
            ..Self::default()
        }
    }

    fn item(&mut self, item: &Value) -> Option<Activity> {
        match item["type"].as_str()? {
            "agent_message" => {
                item["text"]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(&mut self.text);
                self.lost = false;
                None
            }
            "mcp_tool_call" => Some(tool(item)),
            // A warning, whatever its name.
            "error" => Some(shown(item["message"].as_str()?)),
            _ => None,
        }
    }
}

impl EventReader for Reader {
    fn line(&mut self, line: &[u8], cut: bool) -> Option<Activity> {
        if cut {
            self.lost |= memchr::memmem::find(line, b"\"type\":\"agent_message\"").is_some();
            return None;
        }
        let event = serde_json::from_slice::<Event>(line).ok()?;
        match event.kind.as_str() {
            "item.completed" => self.item(&event.item),
            "turn.completed" => {
                self.end = End::Completed;
                None
            }
            "turn.failed" => {
                let message = event.error["message"].as_str().unwrap_or_default();
                self.end = End::Failed(message.to_owned());
                // Said by the result, and before by an event of its own.
                None
            }
            "error" => {
                let message = event.message;
                let again = message.starts_with("Reconnecting");
                if again {
                    // What the attempt said that broke off is no answer.
                    self.text.clear();
                } else if self.end == End::None {
                    self.end = End::Failed(message.clone());
                }
                (!is_of_door(&message)).then(|| {
                    if again {
                        "asking again".to_owned()
                    } else {
                        classify(&message, now()).to_string()
                    }
                })
            }
            _ => None,
        }
    }

    fn said(&mut self, exit: Exit<'_>) -> Said {
        let text = std::mem::take(&mut self.text);
        match std::mem::take(&mut self.end) {
            End::Completed if self.lost => Said::Cut(text, "its length"),
            End::Completed => Said::Text(match &self.schema {
                Some(schema) => relaxed(schema, text),
                None => text,
            }),
            End::Failed(message) if message.starts_with(CUT) => Said::Cut(text, "the output limit"),
            End::Failed(message) => Said::Failed(classify(&message, now())),
            // Without a turn there is no event: what is wrong stands in stderr.
            End::None if exit.code == Some(0) => Said::Nothing,
            End::None => super::fault::of_start(exit.stderr).map_or(Said::Nothing, Said::Failed),
        }
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// `read src/a.rs`, `grep failed: why`.
fn tool(item: &Value) -> Activity {
    let name = shown(item["tool"].as_str().unwrap_or("?"));
    if item["status"] == "failed" {
        let why = item["error"]["message"].as_str();
        let why = why.or_else(|| item["result"]["content"][0]["text"].as_str());
        return format!("{name} failed: {}", shown(why.unwrap_or_default()));
    }
    let subject = ["path", "pattern", "file", "title"]
        .iter()
        .find_map(|key| item["arguments"][key].as_str());
    match subject {
        Some(subject) => format!("{name} {}", shown(subject)),
        None => name,
    }
}

/// An answer to the strict form of `schema` as one to `schema` itself: what is optional there and null here is
/// left out. A text that is no JSON stays as it is.
fn relaxed(schema: &Value, text: String) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
        return text;
    };
    relax(schema, schema, &mut value);
    value.to_string()
}

fn relax(root: &Value, schema: &Value, value: &mut Value) {
    let schema = target(root, schema);
    for list in ["anyOf", "oneOf", "allOf"] {
        for branch in schema[list].as_array().into_iter().flatten() {
            relax(root, branch, value);
        }
    }
    match value {
        Value::Array(items) => {
            for item in items {
                relax(root, &schema["items"], item);
            }
        }
        Value::Object(fields) => {
            let Some(properties) = schema["properties"].as_object() else {
                return;
            };
            let required: Vec<&str> = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            fields.retain(|name, value| {
                let optional = properties.contains_key(name) && !required.contains(&name.as_str());
                !(optional && value.is_null() && !nullable(root, &properties[name]))
            });
            for (name, property) in properties {
                if let Some(value) = fields.get_mut(name) {
                    relax(root, property, value);
                }
            }
        }
        _ => {}
    }
}

/// Where a `$ref` of this document leads; one step, which is all that our schemas have.
fn target<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    schema["$ref"]
        .as_str()
        .and_then(|at| root.pointer(at.strip_prefix('#')?))
        .unwrap_or(schema)
}

/// Whether null is an answer of its own.
fn nullable(root: &Value, schema: &Value) -> bool {
    let schema = target(root, schema);
    let null = Value::from("null");
    schema["type"] == null
        || schema["type"]
            .as_array()
            .is_some_and(|kinds| kinds.contains(&null))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::port::EngineError;

    const DONE: Exit<'static> = Exit {
        code: Some(0),
        stderr: "",
    };

    fn read(lines: &[Value]) -> (Reader, Vec<Activity>) {
        let mut reader = Reader::default();
        let told = lines
            .iter()
            .filter_map(|line| reader.line(line.to_string().as_bytes(), false))
            .collect();
        (reader, told)
    }

    fn says(text: &str) -> Value {
        json!({"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}})
    }

    fn completed() -> Value {
        json!({"type": "turn.completed", "usage": {"input_tokens": 1}})
    }

    #[test]
    fn only_a_completed_turn_has_a_last_word() {
        let (mut reader, _) = read(&[says("one"), says("two"), completed()]);
        assert_eq!(reader.said(DONE), Said::Text("two".to_owned()));
        let (mut reader, _) = read(&[says("one")]);
        assert_eq!(reader.said(DONE), Said::Nothing);
        let (mut reader, _) = read(&[completed()]);
        assert_eq!(reader.said(DONE), Said::Text(String::new()));
    }

    #[test]
    fn what_broke_off_is_no_answer() {
        let again = json!({"type": "error", "message": "Reconnecting... 1/2 (idle)"});
        let (mut reader, told) = read(&[says("partial"), again, completed()]);
        assert_eq!(reader.said(DONE), Said::Text(String::new()));
        assert_eq!(told, ["asking again"]);
    }

    #[test]
    fn a_cut_answer_is_cut() {
        let message = format!("{CUT}: max_output_tokens");
        let failed = json!({"type": "turn.failed", "error": {"message": message}});
        let (mut reader, _) = read(&[says("partial"), failed]);
        let cut = Said::Cut("partial".to_owned(), "the output limit");
        assert_eq!(reader.said(DONE), cut);
        let (mut reader, _) = read(&[completed()]);
        reader.line(
            b"{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\"",
            true,
        );
        assert_eq!(
            reader.said(DONE),
            Said::Cut(String::new(), "its length"),
            "too long for a line"
        );
    }

    #[test]
    fn tools_and_warnings_are_told_without_controls() {
        let call = |item: Value| json!({"type": "item.completed", "item": item});
        let (_, told) = read(&[
            call(
                json!({"type": "mcp_tool_call", "tool": "read", "arguments": {"path": "a\u{1b}b"}, "status": "completed"}),
            ),
            call(
                json!({"type": "mcp_tool_call", "tool": "grep", "status": "failed", "error": {"message": "no\nway"}}),
            ),
            call(json!({"type": "error", "message": "odd\u{202e}"})),
            call(json!({"type": "reasoning", "text": "hm"})),
        ]);
        assert_eq!(
            told,
            ["read a\\u{1b}b", "grep failed: no way", "odd\\u{202e}"]
        );
    }

    #[test]
    fn the_end_that_the_door_makes_is_not_told() {
        let body = json!({"error": {"code": "ecr_final", "message": "ecr: cancelled"}}).to_string();
        let (mut reader, told) = read(&[
            json!({"type": "error", "message": body}),
            json!({"type": "turn.failed", "error": {"message": body}}),
        ]);
        assert!(told.is_empty(), "{told:?}");
        let said = reader.said(DONE);
        assert!(
            matches!(said, Said::Failed(EngineError::Protocol(_))),
            "{said:?}"
        );
    }

    #[test]
    fn nulls_of_the_strict_form_are_left_out() {
        let schema = json!({"type": "object", "required": ["a", "n"], "properties": {
            "a": {"type": "string"}, "b": {"type": "integer"}, "n": {"type": ["string", "null"]},
            "o": {"type": ["string", "null"]},
            "list": {"type": "array", "items": {"$ref": "#/$defs/place"}},
            "one": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "string"}]}},
            "$defs": {"place": {"type": "object", "properties": {"line": {"type": "integer"}}}}});
        let strict_answer = json!({"a": "x", "b": null, "n": null, "o": null, "list": [{"line": null}, {"line": 3}],
            "one": {"line": null}, "more": null});
        let plain: Value =
            serde_json::from_str(&relaxed(&schema, strict_answer.to_string())).unwrap();
        assert_eq!(
            plain,
            json!({"a": "x", "n": null, "o": null, "list": [{}, {"line": 3}], "one": {}, "more": null})
        );
        assert_eq!(relaxed(&schema, "no {".to_owned()), "no {");
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in ".{0,80}", kind in "[a-z.]{0,16}") {
            let mut reader = Reader::new(Some(&json!({"type": "object"})));
            reader.line(line.as_bytes(), false);
            reader.line(json!({"type": kind, "item": line, "error": line}).to_string().as_bytes(), false);
            let said = reader.said(DONE);
            prop_assert!(matches!(said, Said::Nothing | Said::Text(_) | Said::Failed(_)));
        }
    }
}

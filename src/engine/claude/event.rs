//! The lines that `claude --output-format stream-json` prints.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::fault::failed;
use super::launch::SERVER;
use crate::engine::cli::{Activity, EventReader, Exit, Said, shown};
use crate::port::EngineError;

/// Reads the lines of one pass. The usage in them is not taken: the model door has counted it.
pub(super) struct Reader {
    /// The tools that it has to offer, and no others.
    tools: BTreeSet<String>,
    has_server: bool,
    schema: bool,
    /// What is wrong with how it says it was set up.
    setup: Option<String>,
    begun: bool,
    /// The texts of the last answer.
    text: String,
    last_message: Option<String>,
    resets_at: Option<u64>,
    result: Option<Value>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    rate_limit_info: Value,
}

impl Reader {
    /// A reader for a pass in which the model is to be offered exactly `tools`.
    pub(super) fn new(tools: BTreeSet<String>, schema: bool) -> Self {
        let prefix = format!("mcp__{SERVER}__");
        Self {
            has_server: tools.iter().any(|tool| tool.starts_with(&prefix)),
            tools,
            schema,
            setup: None,
            begun: false,
            text: String::new(),
            last_message: None,
            resets_at: None,
            result: None,
        }
    }

    /// Compares what it says of itself with what was asked for.
    fn init(&mut self, init: &Value) {
        self.begun = true;
        let texts = |key: &str| -> BTreeSet<String> {
            let list = init[key].as_array().into_iter().flatten();
            list.filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        };
        let servers: Vec<(&str, &str)> = init["mcp_servers"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|server| {
                let text = |key: &str| server[key].as_str().unwrap_or_default();
                (text("name"), text("status"))
            })
            .collect();
        let wanted: &[(&str, &str)] = if self.has_server {
            &[(SERVER, "connected")]
        } else {
            &[]
        };
        self.setup = if servers != wanted {
            Some(format!("its MCP servers are {servers:?}"))
        } else if texts("tools") != self.tools {
            Some(format!("its tools are {:?}", texts("tools")))
        } else if !texts("slash_commands").is_empty() {
            Some("it has slash commands".to_owned())
        } else if init["permissionMode"] != "dontAsk" {
            Some("it may ask for permissions".to_owned())
        } else {
            None
        };
    }

    fn assistant(&mut self, message: &Value) -> Option<Activity> {
        // One event a block: those of an answer have the same id.
        let id = message["id"].as_str().map(str::to_owned);
        if id != self.last_message {
            self.text.clear();
            self.last_message = id;
        }
        let mut told = None;
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => self
                    .text
                    .push_str(block["text"].as_str().unwrap_or_default()),
                Some("tool_use") => told = Some(tool(block)),
                _ => {}
            }
        }
        told
    }
}

impl EventReader for Reader {
    fn line(&mut self, line: &[u8], cut: bool) -> Option<Activity> {
        let event: Event = serde_json::from_slice(line).ok().filter(|_| !cut)?;
        match (event.kind.as_str(), event.subtype.as_deref()) {
            ("system", Some("init")) => {
                let init = serde_json::from_slice(line).unwrap_or_default();
                self.init(&init);
                self.setup
                    .as_ref()
                    .map(|problem| format!("not as it was started: {problem}"))
            }
            // Errors come as an answer of this model; they are in the result too.
            ("assistant", _) if event.message["model"] == "<synthetic>" => None,
            ("assistant", _) => self.assistant(&event.message),
            ("rate_limit_event", _) => {
                let resets = event.rate_limit_info["resetsAt"].as_u64();
                self.resets_at = resets.or(self.resets_at);
                None
            }
            ("result", _) => {
                self.result = serde_json::from_slice(line).ok();
                None
            }
            _ => None,
        }
    }

    fn said(&mut self, exit: Exit<'_>) -> Said {
        if let Some(problem) = &self.setup {
            let problem = shown(problem);
            return Said::Failed(EngineError::Protocol(format!(
                "Claude Code is not set up as it was started: {problem}"
            )));
        }
        let Some(result) = &self.result else {
            return Said::Nothing;
        };
        let succeeded = exit.code == Some(0)
            && result["subtype"] == "success"
            && result["is_error"] == Value::Bool(false);
        if !succeeded {
            return failed(result, self.resets_at, &self.text);
        }
        if !self.begun {
            return Said::Failed(EngineError::Protocol(
                "Claude Code did not say how it is set up".to_owned(),
            ));
        }
        match &result["structured_output"] {
            // It says "success" without one when the model spoke instead.
            Value::Null if self.schema => Said::Failed(EngineError::SchemaUnmet(
                "the model answered in text instead of in the form asked for".to_owned(),
            )),
            answer if self.schema => Said::Text(answer.to_string()),
            _ => Said::Text(
                result["result"]
                    .as_str()
                    .unwrap_or(self.text.as_str())
                    .to_owned(),
            ),
        }
    }
}

/// `read src/a.rs`.
fn tool(block: &Value) -> Activity {
    let name = block["name"].as_str().unwrap_or("?");
    let name = name.strip_prefix("mcp__tree__").unwrap_or(name);
    let subject = ["path", "pattern", "file", "title"]
        .iter()
        .find_map(|key| block["input"][key].as_str());
    match subject {
        Some(subject) => format!("{name} {subject}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn tools() -> BTreeSet<String> {
        ["mcp__tree__read".to_owned(), "mcp__tree__finish".to_owned()].into()
    }

    fn init() -> Value {
        json!({"type": "system", "subtype": "init", "tools": ["mcp__tree__read", "mcp__tree__finish"],
            "mcp_servers": [{"name": "tree", "status": "connected"}], "slash_commands": [],
            "permissionMode": "dontAsk", "skills": ["x"], "unknown": {"a": 1}})
    }

    fn exit(code: i32) -> Exit<'static> {
        Exit {
            code: Some(code),
            stderr: "",
        }
    }

    fn read(reader: &mut Reader, events: &[Value]) -> Vec<Activity> {
        let lines = events.iter().map(Value::to_string);
        lines
            .filter_map(|line| reader.line(line.as_bytes(), false))
            .collect()
    }

    fn class(said: &Said) -> &'static str {
        match said {
            Said::Text(_) => "spoke",
            Said::Cut(..) => "cut",
            Said::Nothing => "nothing",
            Said::Failed(error) => match error {
                EngineError::Unavailable(_) => "unavailable",
                EngineError::Auth(_) => "auth",
                EngineError::RateLimited { .. } => "rate",
                EngineError::UsageLimited { .. } => "usage",
                EngineError::Overloaded => "overloaded",
                EngineError::Transient(_) => "transient",
                EngineError::ContextOverflow => "overflow",
                EngineError::Refused(_) => "refused",
                EngineError::SchemaUnmet(_) => "schema",
                EngineError::Protocol(_) => "protocol",
                other => panic!("{other}"),
            },
        }
    }

    #[test]
    fn every_captured_result_has_its_class() {
        let captures = include_str!("../../../tests/fixtures/claude/results.jsonl");
        let mut seen = BTreeSet::new();
        for line in captures.lines() {
            let capture: Value = serde_json::from_str(line).unwrap();
            let schema = capture["schema"].as_bool().unwrap();
            let mut reader = Reader::new(tools(), schema);
            read(&mut reader, &[init(), capture["result"].clone()]);
            let code = capture["code"].as_i64().unwrap();
            let said = reader.said(exit(i32::try_from(code).unwrap()));
            assert_eq!(capture["expected"], class(&said), "{line}: {said:?}");
            seen.insert(class(&said));
        }
        assert_eq!(seen.len(), 12, "{seen:?}");
    }

    #[test]
    fn a_turn_is_told_and_its_last_text_is_the_answer() {
        let message = |id: &str, block: Value| json!({"type": "assistant", "message": {"id": id, "model": "m", "content": [block]}});
        let mut reader = Reader::new(tools(), false);
        let told = read(
            &mut reader,
            &[
                json!({"type": "system", "subtype": "ui_invalidate"}),
                init(),
                message("m1", json!({"type": "text", "text": "I look."})),
                message(
                    "m1",
                    json!({"type": "tool_use", "name": "mcp__tree__read", "input": {"path": "src/a.rs"}}),
                ),
                message("m2", json!({"type": "text", "text": "Done."})),
                json!({"type": "result", "subtype": "error_max_turns", "is_error": true, "errors": []}),
            ],
        );
        assert_eq!(told, ["read src/a.rs"]);
        assert_eq!(
            reader.said(exit(1)),
            Said::Cut("Done.".to_owned(), "the limit of its turns")
        );
    }

    #[test]
    fn another_set_up_than_asked_for_is_no_success() {
        let success =
            json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok"});
        let mut fine = Reader::new(tools(), false);
        read(&mut fine, &[init(), success.clone()]);
        assert_eq!(fine.said(exit(0)), Said::Text("ok".to_owned()));
        for (key, value) in [
            ("mcp_servers", json!([])),
            ("mcp_servers", json!([{"name": "tree", "status": "failed"}])),
            (
                "mcp_servers",
                json!([{"name": "tree", "status": "pending"}]),
            ),
            (
                "mcp_servers",
                json!([{"name": "tree", "status": "connected"}, {"name": "evil", "status": "connected"}]),
            ),
            ("tools", json!(["mcp__tree__read"])),
            (
                "tools",
                json!(["mcp__tree__read", "mcp__tree__finish", "Bash"]),
            ),
            ("slash_commands", json!(["help"])),
            ("permissionMode", json!("bypassPermissions")),
        ] {
            let mut other = init();
            other[key] = value;
            let mut reader = Reader::new(tools(), false);
            read(&mut reader, &[other.clone(), success.clone()]);
            assert_eq!(class(&reader.said(exit(0))), "protocol", "{other}");
        }
        // Nor is silence about it, a killed process, or an exit code that says otherwise.
        let mut reader = Reader::new(tools(), false);
        read(&mut reader, std::slice::from_ref(&success));
        assert_eq!(class(&reader.said(exit(0))), "protocol");
        let mut reader = Reader::new(tools(), false);
        read(&mut reader, &[init(), success]);
        assert_eq!(class(&reader.said(exit(143))), "protocol");
    }

    #[test]
    fn the_reset_of_a_plan_is_kept() {
        let mut reader = Reader::new(tools(), false);
        read(
            &mut reader,
            &[
                init(),
                json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1_900_000_000}}),
                json!({"type": "result", "subtype": "success", "is_error": true, "api_error": "usage_limit_reached",
                    "api_error_status": 429, "result": "Other words."}),
            ],
        );
        let resets_at = Some(1_900_000_000);
        assert_eq!(
            reader.said(exit(1)),
            Said::Failed(EngineError::UsageLimited { resets_at })
        );
    }

    proptest! {
        #[test]
        fn no_line_does_harm(lines in proptest::collection::vec(".{0,80}", 0..8), code in 0..2_i32) {
            let mut reader = Reader::new(tools(), true);
            for line in &lines {
                reader.line(line.as_bytes(), false);
            }
            prop_assert_eq!(reader.said(exit(code)), Said::Nothing);
        }
    }
}

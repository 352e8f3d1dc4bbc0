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

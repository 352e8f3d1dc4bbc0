//! `OpenAI` Responses, without state at the provider.

use serde_json::{Value, json};

use super::fault;
use super::wire::{Setting, ToolCall, Turn, TurnEnd, TurnReader, Wire, arguments, broke_off, text};
use crate::gateway::ToolAnswer;
use crate::port::EngineError;

/// Output items of one turn.
const MAX_ITEMS: usize = 10_000;

/// The conversation.
pub(super) struct Responses {
    setting: Setting,
    input: Vec<Value>,
}

impl Responses {
    pub(super) fn new(setting: Setting) -> Self {
        let task =
            json!({"role": "user", "content": [{"type": "input_text", "text": &*setting.task}]});
        Self {
            setting,
            input: vec![task],
        }
    }
}

impl Wire for Responses {
    fn path(&self) -> &'static str {
        "/v1/responses"
    }

    fn request(&self) -> Value {
        let setting = &self.setting;
        let mut body = json!({
            "model": setting.model,
            "input": self.input,
            "max_output_tokens": setting.max_output,
            "stream": true,
            "store": false,
        });
        if !setting.system.is_empty() {
            body["instructions"] = json!(&*setting.system);
        }
        if !setting.tools.is_empty() {
            let tools = setting.tools.iter().map(|tool| {
                // Optional arguments are part of our tools, so they are not strict; we validate them.
                json!({"type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.input_schema, "strict": false})
            });
            body["tools"] = tools.collect();
            body["parallel_tool_calls"] = json!(true);
        }
        if let Some(schema) = &setting.schema {
            let schema = super::schema::strict(schema);
            body["text"] = json!({"format": {"type": "json_schema", "name": "reply", "strict": true, "schema": schema}});
        }
        if let Some(effort) = setting.effort.word() {
            body["reasoning"] = json!({"effort": effort});
            // Thoughts go back to the model as a sealed item, since nothing is stored there.
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        body
    }

    fn reader(&self) -> Box<dyn TurnReader> {
        Box::new(ResponseReader::default())
    }

    fn push_turn(&mut self, turn: &Turn, answers: &[(String, ToolAnswer)]) {
        self.input.extend(turn.echo.iter().cloned());
        for (id, answer) in answers {
            self.input.push(
                json!({"type": "function_call_output", "call_id": id, "output": answer.text}),
            );
        }
    }

    fn push_text(&mut self, text: &str) {
        self.input
            .push(json!({"role": "user", "content": [{"type": "input_text", "text": text}]}));
    }
}

#[derive(Default)]
struct ResponseReader {
    items: Vec<Value>,
    /// `completed`, or why it is incomplete.
    end: Option<String>,
}

impl TurnReader for ResponseReader {
    fn event(&mut self, event: &Value) -> Result<(), EngineError> {
        match text(event, "/type") {
            "response.output_item.done" => {
                if self.items.len() >= MAX_ITEMS {
                    return Err(EngineError::Protocol("too many output items".to_owned()));
                }
                self.items.push(event["item"].clone());
                Ok(())
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.document(&event["response"])
            }
            "error" => {
                let error = event
                    .get("error")
                    .filter(|e| e.is_object())
                    .unwrap_or(event);
                Err(fault::of_error(error))
            }
            _ => Ok(()),
        }
    }

    fn document(&mut self, document: &Value) -> Result<(), EngineError> {
        if document["error"].is_object() {
            return Err(fault::of_error(&document["error"]));
        }
        // Some servers repeat the items at the end, some send them there only.
        if self.items.is_empty()
            && let Some(items) = document["output"].as_array()
        {
            self.items = items.iter().take(MAX_ITEMS).cloned().collect();
        }
        self.end = match text(document, "/status") {
            "completed" => Some("completed".to_owned()),
            "incomplete" => Some(text(document, "/incomplete_details/reason").to_owned()),
            "failed" => return Err(EngineError::Transient("the response failed".to_owned())),
            _ => None,
        };
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Turn, EngineError> {
        let end = self.end.ok_or_else(broke_off)?;
        let mut turn = Turn {
            text: String::new(),
            calls: Vec::new(),
            end: TurnEnd::Complete,
            echo: Vec::new(),
        };
        let mut refusal = None;
        for mut item in self.items {
            match text(&item, "/type") {
                "message" => {
                    for part in item["content"].as_array().into_iter().flatten() {
                        turn.text.push_str(text(part, "/text"));
                        if text(part, "/type") == "refusal" {
                            refusal = Some(text(part, "/refusal").chars().take(200).collect());
                        }
                    }
                }
                "function_call" if text(&item, "/status") != "incomplete" => {
                    turn.calls.push(ToolCall {
                        id: text(&item, "/call_id").to_owned(),
                        name: text(&item, "/name").to_owned(),
                        arguments: arguments(text(&item, "/arguments")),
                    });
                }
                "function_call" => continue,
                // Without its sealed content a thought names something that the provider did not store.
                "reasoning" if item["encrypted_content"].is_null() => continue,
                _ => {}
            }
            if let Some(item) = item.as_object_mut() {
                // Ids name stored items; nothing is stored.
                item.remove("id");
            }
            turn.echo.push(item);
        }
        turn.end = match (end.as_str(), refusal) {
            (_, Some(refusal)) => TurnEnd::Refused(refusal),
            ("completed", None) => TurnEnd::Complete,
            ("content_filter", None) => TurnEnd::Refused("the provider's filter".to_owned()),
            _ => TurnEnd::Truncated,
        };
        Ok(turn)
    }
}

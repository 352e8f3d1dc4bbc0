//! Anthropic Messages.

use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

use super::fault;
use super::wire::{
    Effort, Setting, ToolCall, Turn, TurnEnd, TurnReader, Wire, arguments, broke_off, text,
};
use crate::gateway::ToolAnswer;
use crate::port::EngineError;

/// Content blocks of one turn.
const MAX_BLOCKS: usize = 10_000;
/// Tokens of thought by effort; the answer has to fit beside them.
const THOUGHT: [(Effort, u64); 3] = [
    (Effort::Low, 2_048),
    (Effort::Medium, 6_144),
    (Effort::High, 12_288),
];

/// The conversation.
pub(super) struct Messages {
    setting: Setting,
    messages: Vec<Value>,
}

impl Messages {
    pub(super) fn new(setting: Setting) -> Self {
        let task = json!({"role": "user", "content": [{"type": "text", "text": &*setting.task}]});
        Self {
            setting,
            messages: vec![task],
        }
    }

    fn thinking(&self) -> Option<u64> {
        let (_, budget) = THOUGHT.iter().find(|(e, _)| *e == self.setting.effort)?;
        (*budget < self.setting.max_output).then_some(*budget)
    }
}

/// Everything up to the last block of a message is kept in the provider's cache.
fn mark(message: &mut Value) {
    if let Some(block) = message["content"].as_array_mut().and_then(|c| c.last_mut()) {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

impl Wire for Messages {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        headers
    }

    fn request(&self) -> Value {
        let setting = &self.setting;
        let mut messages = self.messages.clone();
        // Four marks are allowed: the system prompt (with the tools before it), the task, and the two
        // last turns of ours, so that the one before is found again however many blocks follow it.
        if let Some(task) = messages.first_mut() {
            mark(task);
        }
        let ours = messages
            .iter_mut()
            .skip(1)
            .rev()
            .filter(|m| m["role"] == "user");
        for message in ours.take(2) {
            mark(message);
        }
        let mut body = json!({
            "model": setting.model,
            "max_tokens": setting.max_output,
            "stream": true,
            "messages": messages,
        });
        if !setting.system.is_empty() {
            body["system"] = json!([{
                "type": "text", "text": &*setting.system, "cache_control": {"type": "ephemeral"},
            }]);
        }
        if !setting.tools.is_empty() {
            let tools = setting.tools.iter().map(|tool| {
                json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
            });
            body["tools"] = tools.collect();
        }
        if let Some(schema) = &setting.schema {
            let schema = super::schema::strict(schema);
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
        if let Some(budget) = self.thinking() {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
        }
        body
    }

    fn reader(&self) -> Box<dyn TurnReader> {
        Box::new(MessageReader::default())
    }

    fn push_turn(&mut self, turn: &Turn, answers: &[(String, ToolAnswer)]) {
        // A turn may be empty, a message may not.
        if !turn.echo.is_empty() {
            self.messages
                .push(json!({"role": "assistant", "content": turn.echo}));
        }
        if !answers.is_empty() {
            let results = answers.iter().map(|(id, answer)| {
                json!({"type": "tool_result", "tool_use_id": id, "content": answer.text, "is_error": answer.is_error})
            });
            self.messages
                .push(json!({"role": "user", "content": results.collect::<Value>()}));
        }
    }

    fn push_text(&mut self, text: &str) {
        self.messages
            .push(json!({"role": "user", "content": [{"type": "text", "text": text}]}));
    }
}

/// A content block while it arrives.
struct Block {
    head: Value,
    /// What arrived of its text, its thought or the JSON of its input.
    text: String,
    signature: String,
    stopped: bool,
}

#[derive(Default)]
struct MessageReader {
    blocks: Vec<Block>,
    stop: Option<String>,
    whole: bool,
}

impl MessageReader {
    fn begin(&mut self, block: &Value, stopped: bool) -> Result<(), EngineError> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(EngineError::Protocol("too many content blocks".to_owned()));
        }
        self.blocks.push(Block {
            head: block.clone(),
            text: String::new(),
            signature: String::new(),
            stopped,
        });
        Ok(())
    }
}

impl TurnReader for MessageReader {
    fn event(&mut self, event: &Value) -> Result<(), EngineError> {
        match text(event, "/type") {
            "content_block_start" => self.begin(&event["content_block"], false)?,
            "content_block_delta" => {
                if let Some(block) = self.blocks.last_mut() {
                    for key in ["/delta/text", "/delta/partial_json", "/delta/thinking"] {
                        block.text.push_str(text(event, key));
                    }
                    block.signature.push_str(text(event, "/delta/signature"));
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.blocks.last_mut() {
                    block.stopped = true;
                }
            }
            "message_delta" => {
                if let Some(stop) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.stop = Some(stop.to_owned());
                }
            }
            "message_stop" => self.whole = true,
            "error" => return Err(fault::of_error(&event["error"])),
            _ => {}
        }
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<(), EngineError> {
        if text(document, "/type") == "error" {
            return Err(fault::of_error(&document["error"]));
        }
        for block in document["content"].as_array().into_iter().flatten() {
            self.begin(block, true)?;
        }
        self.stop = document["stop_reason"].as_str().map(str::to_owned);
        self.whole = self.stop.is_some();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Turn, EngineError> {
        let Some(stop) = self.stop.filter(|_| self.whole) else {
            return Err(broke_off());
        };
        let truncated = matches!(
            stop.as_str(),
            "max_tokens" | "model_context_window_exceeded"
        );
        let mut turn = Turn {
            text: String::new(),
            calls: Vec::new(),
            end: TurnEnd::Complete,
            echo: Vec::new(),
        };
        let last = self.blocks.len().saturating_sub(1);
        for (at, mut part) in self.blocks.into_iter().enumerate() {
            match text(&part.head, "/type").to_owned().as_str() {
                "text" => {
                    let whole = format!("{}{}", text(&part.head, "/text"), part.text);
                    turn.text.push_str(&whole);
                    if whole.trim().is_empty() {
                        continue;
                    }
                    part.head["text"] = Value::String(whole);
                }
                "thinking" => {
                    let whole = format!("{}{}", text(&part.head, "/thinking"), part.text);
                    part.head["thinking"] = Value::String(whole);
                    if !part.signature.is_empty() {
                        part.head["signature"] = Value::String(part.signature);
                    }
                }
                "tool_use" => {
                    // The call that the limit cut is not one; those before it are.
                    if truncated && at == last {
                        continue;
                    }
                    let input = match &part.head["input"] {
                        Value::Object(map) if !map.is_empty() => Ok(part.head["input"].clone()),
                        _ if part.stopped => arguments(&part.text),
                        _ => Err("the call broke off".to_owned()),
                    };
                    part.head["input"] = match &input {
                        Ok(Value::Object(map)) => Value::Object(map.clone()),
                        _ => Value::Object(Map::new()),
                    };
                    turn.calls.push(ToolCall {
                        id: text(&part.head, "/id").to_owned(),
                        name: text(&part.head, "/name").to_owned(),
                        arguments: input,
                    });
                }
                _ => {}
            }
            turn.echo.push(part.head);
        }
        if truncated {
            turn.end = TurnEnd::Truncated;
        } else if stop == "refusal" {
            turn.end = TurnEnd::Refused(turn.text.chars().take(200).collect());
        }
        Ok(turn)
    }
}

//! `OpenAI` chat completions, as many servers speak it.

use serde_json::{Value, json};

use super::fault;
use super::wire::{Setting, ToolCall, Turn, TurnEnd, TurnReader, Wire, arguments, broke_off, text};
use crate::gateway::ToolAnswer;
use crate::port::EngineError;

/// Tool calls of one turn.
const MAX_CALLS: usize = 1_000;

/// The conversation.
pub(super) struct Chat {
    setting: Setting,
    messages: Vec<Value>,
}

impl Chat {
    pub(super) fn new(setting: Setting) -> Self {
        let mut messages = Vec::new();
        if !setting.system.is_empty() {
            messages.push(json!({"role": "system", "content": &*setting.system}));
        }
        messages.push(json!({"role": "user", "content": &*setting.task}));
        Self { setting, messages }
    }
}

impl Wire for Chat {
    fn path(&self) -> &'static str {
        "/v1/chat/completions"
    }

    fn request(&self) -> Value {
        let setting = &self.setting;
        let mut body = json!({
            "model": setting.model,
            "messages": self.messages,
            "stream": true,
            "stream_options": {"include_usage": true},
        });
        // The provider's own newer models refuse the name that every other server knows.
        let limit = if setting.provider == "openai" {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body[limit] = json!(setting.max_output);
        if !setting.tools.is_empty() {
            let tools = setting.tools.iter().map(|tool| {
                json!({"type": "function", "function": {"name": tool.name,
                    "description": tool.description, "parameters": tool.input_schema}})
            });
            body["tools"] = tools.collect();
        }
        if let Some(schema) = &setting.schema {
            let schema = super::schema::strict(schema);
            body["response_format"] = json!({"type": "json_schema",
                "json_schema": {"name": "reply", "strict": true, "schema": schema}});
        }
        if let Some(effort) = setting.effort.word() {
            body["reasoning_effort"] = json!(effort);
        }
        body
    }

    fn reader(&self) -> Box<dyn TurnReader> {
        Box::new(ChatReader::default())
    }

    fn push_turn(&mut self, turn: &Turn, answers: &[(String, ToolAnswer)]) {
        self.messages.extend(turn.echo.iter().cloned());
        for (id, answer) in answers {
            self.messages
                .push(json!({"role": "tool", "tool_call_id": id, "content": answer.text}));
        }
    }

    fn push_text(&mut self, text: &str) {
        self.messages.push(json!({"role": "user", "content": text}));
    }
}

#[derive(Default)]
struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Default)]
struct ChatReader {
    text: String,
    refusal: String,
    calls: Vec<PartialCall>,
    finish: Option<String>,
}

impl ChatReader {
    /// Takes a message, whole or a piece of it.
    fn take(&mut self, message: &Value) -> Result<(), EngineError> {
        self.text.push_str(text(message, "/content"));
        self.refusal.push_str(text(message, "/refusal"));
        for (at, piece) in message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let id = text(piece, "/id");
            // Servers that send whole calls may leave the index out, or send 0 for each.
            let index = piece["index"].as_u64().unwrap_or(at as u64);
            let known = self.calls.iter().rposition(|call| {
                call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id)
            });
            let place = known.unwrap_or(self.calls.len());
            if known.is_none() {
                if self.calls.len() >= MAX_CALLS {
                    return Err(EngineError::Protocol("too many tool calls".to_owned()));
                }
                self.calls.push(PartialCall {
                    index,
                    ..PartialCall::default()
                });
            }
            let call = &mut self.calls[place];
            if call.id.is_empty() {
                call.id.push_str(id);
            }
            if call.name.is_empty() {
                call.name.push_str(text(piece, "/function/name"));
            }
            match &piece["function"]["arguments"] {
                Value::String(piece) => call.arguments.push_str(piece),
                whole @ Value::Object(_) => call.arguments = whole.to_string(),
                _ => {}
            }
        }
        Ok(())
    }
}

impl TurnReader for ChatReader {
    fn event(&mut self, event: &Value) -> Result<(), EngineError> {
        if event["error"].is_object() {
            return Err(fault::of_error(&event["error"]));
        }
        let choice = &event["choices"][0];
        self.take(&choice["delta"])?;
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn document(&mut self, document: &Value) -> Result<(), EngineError> {
        if document["error"].is_object() {
            return Err(fault::of_error(&document["error"]));
        }
        let choice = &document["choices"][0];
        self.take(&choice["message"])?;
        self.finish = choice["finish_reason"].as_str().map(str::to_owned);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Turn, EngineError> {
        let finish = self.finish.take().ok_or_else(broke_off)?;
        let truncated = finish == "length";
        if truncated {
            // The limit cut the last call; those before it are whole.
            self.calls.pop();
        }
        for (at, call) in self.calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{at}");
            }
        }
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            let calls = self.calls.iter().map(|call| {
                // A server that renders calls by a template may choke on what is no JSON.
                let arguments = match arguments(&call.arguments) {
                    Ok(_) if !call.arguments.trim().is_empty() => call.arguments.as_str(),
                    _ => "{}",
                };
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": arguments}})
            });
            message["tool_calls"] = calls.collect();
        }
        let calls = self.calls.iter().map(|call| ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: arguments(&call.arguments),
        });
        let calls: Vec<_> = calls.collect();
        let end = if !self.refusal.is_empty() {
            TurnEnd::Refused(self.refusal.chars().take(200).collect())
        } else if finish == "content_filter" {
            TurnEnd::Refused("the provider's filter".to_owned())
        } else if truncated {
            TurnEnd::Truncated
        } else {
            TurnEnd::Complete
        };
        Ok(Turn {
            text: self.text,
            calls,
            end,
            echo: vec![message],
        })
    }
}

//! Well-formed answers in the three protocols, streaming and not.

use serde_json::{Value, json};

/// Token counts of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyUsage {
    /// Fresh input.
    pub(crate) input: u64,
    /// Output.
    pub(crate) output: u64,
    /// Read from the cache.
    pub(crate) cached: u64,
    /// Written to the cache.
    pub(crate) written: u64,
}

impl Default for ReplyUsage {
    fn default() -> Self {
        Self {
            input: 100,
            output: 20,
            cached: 0,
            written: 0,
        }
    }
}

/// What a model says in one turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    text: Option<String>,
    tools: Vec<(String, Value)>,
    usage: ReplyUsage,
    model: Option<String>,
    end: End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum End {
    #[default]
    Natural,
    Truncated,
    Refused,
}

impl Reply {
    /// A text.
    pub(crate) fn text(text: &str) -> Self {
        Self {
            text: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// With a tool call besides what it says already; `Reply::default()` says nothing.
    pub(crate) fn tool(mut self, name: &str, arguments: Value) -> Self {
        self.tools.push((name.to_owned(), arguments));
        self
    }

    /// With these counts.
    pub(crate) fn usage(mut self, usage: ReplyUsage) -> Self {
        self.usage = usage;
        self
    }

    /// Answered by another model than the one asked for.
    pub(crate) fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Cut by the output limit.
    pub(crate) fn truncated(mut self) -> Self {
        self.end = End::Truncated;
        self
    }

    /// Declined.
    pub(crate) fn refused(mut self) -> Self {
        self.end = End::Refused;
        self
    }

    /// The events (or the one document) of the answer to a request for `path` with `body`.
    pub(crate) fn render(&self, path: &str, body: &Value) -> Vec<String> {
        let asked = body["model"].as_str().unwrap_or("model");
        let model = self.model.as_deref().unwrap_or(asked);
        let stream = body["stream"] == json!(true);
        if path.contains("/count_tokens") {
            return vec![json!({"input_tokens": self.usage.input}).to_string()];
        }
        // Clients go by ids: those of one conversation are all different, as a provider's are.
        let said = |key: &str| body[key].as_array().map_or(0, Vec::len);
        let turn = said("messages").max(said("input"));
        let parts = if path.contains("/messages") {
            self.anthropic(model, stream, turn)
        } else if path.contains("/responses") {
            self.responses(model, stream, turn)
        } else {
            self.chat(model, stream, turn)
        };
        if !stream {
            return parts.iter().map(|(_, value)| value.to_string()).collect();
        }
        let mut events: Vec<_> = parts
            .iter()
            .map(|(name, value)| match name {
                Some(name) => format!("event: {name}\ndata: {value}\n\n"),
                None => format!("data: {value}\n\n"),
            })
            .collect();
        if path.contains("/chat/completions") {
            events.push("data: [DONE]\n\n".to_owned());
        }
        events
    }

    fn anthropic(&self, model: &str, stream: bool, turn: usize) -> Vec<(Option<String>, Value)> {
        let ReplyUsage {
            input,
            output,
            cached,
            written,
        } = self.usage;
        let usage = |output| {
            json!({"input_tokens": input, "output_tokens": output,
                "cache_read_input_tokens": cached, "cache_creation_input_tokens": written})
        };
        let stop = match self.end {
            End::Truncated => "max_tokens",
            End::Refused => "refusal",
            End::Natural if self.tools.is_empty() => "end_turn",
            End::Natural => "tool_use",
        };
        let mut blocks = Vec::new();
        if let Some(text) = &self.text {
            blocks.push((
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
                json!({"type": "text", "text": text}),
            ));
        }
        for (n, (name, arguments)) in self.tools.iter().enumerate() {
            let head = json!({"type": "tool_use", "id": format!("toolu_{turn}_{n}"), "name": name, "input": {}});
            let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
            let whole = json!({"type": "tool_use", "id": format!("toolu_{turn}_{n}"), "name": name, "input": arguments});
            blocks.push((head, delta, whole));
        }
        if !stream {
            let content: Vec<_> = blocks.into_iter().map(|(_, _, whole)| whole).collect();
            return vec![(
                None,
                json!({"id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": model,
                "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage(output)}),
            )];
        }
        let mut events = vec![
            json!({"type": "message_start", "message": {"id": format!("msg_{turn}"), "type": "message",
            "role": "assistant", "model": model, "content": [], "stop_reason": null, "usage": usage(1)}}),
        ];
        for (index, (head, delta, _)) in blocks.into_iter().enumerate() {
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": head}),
            );
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        events.push(
            json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": output}}),
        );
        events.push(json!({"type": "message_stop"}));
        named(events)
    }

    fn responses(&self, model: &str, stream: bool, turn: usize) -> Vec<(Option<String>, Value)> {
        let ReplyUsage {
            input,
            output,
            cached,
            ..
        } = self.usage;
        let mut items = Vec::new();
        let mut deltas = Vec::new();
        if let Some(text) = &self.text {
            let part = match self.end {
                End::Refused => json!({"type": "refusal", "refusal": text}),
                End::Natural | End::Truncated => {
                    json!({"type": "output_text", "text": text, "annotations": []})
                }
            };
            items.push(
                json!({"type": "message", "id": format!("msg_{turn}"), "role": "assistant", "content": [part]}),
            );
            deltas.push(
                json!({"type": "response.output_text.delta", "item_id": format!("msg_{turn}"), "delta": text}),
            );
        }
        for (n, (name, arguments)) in self.tools.iter().enumerate() {
            let (namespace, name) = match name.rsplit_once("__") {
                Some((namespace, name)) => (Some(namespace), name),
                None => (None, name.as_str()),
            };
            let mut item = json!({"type": "function_call", "id": format!("fc_{turn}_{n}"), "call_id": format!("call_{turn}_{n}"),
                "name": name, "arguments": arguments.to_string(), "status": "completed"});
            if let Some(namespace) = namespace {
                item["namespace"] = json!(namespace);
            }
            items.push(item);
        }
        let (status, details) = match self.end {
            End::Truncated => ("incomplete", json!({"reason": "max_output_tokens"})),
            End::Natural | End::Refused => ("completed", Value::Null),
        };
        let whole = json!({"id": format!("resp_{turn}"), "object": "response", "status": status, "incomplete_details": details,
            "model": model, "output": items, "error": null, "usage": {"input_tokens": input + cached,
            "input_tokens_details": {"cached_tokens": cached}, "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + cached + output}});
        if !stream {
            return vec![(None, whole)];
        }
        let mut events = vec![json!({"type": "response.created",
            "response": {"id": format!("resp_{turn}"), "object": "response", "status": "in_progress", "model": model}})];
        for (index, item) in items.iter().enumerate() {
            events.push(
                json!({"type": "response.output_item.added", "output_index": index, "item": item}),
            );
        }
        events.append(&mut deltas);
        for (index, item) in items.iter().enumerate() {
            events.push(
                json!({"type": "response.output_item.done", "output_index": index, "item": item}),
            );
        }
        events.push(json!({"type": format!("response.{status}"), "response": whole}));
        named(events)
    }

    fn chat(&self, model: &str, stream: bool, turn: usize) -> Vec<(Option<String>, Value)> {
        let ReplyUsage {
            input,
            output,
            cached,
            ..
        } = self.usage;
        let usage = json!({"prompt_tokens": input + cached, "completion_tokens": output,
            "total_tokens": input + cached + output, "prompt_tokens_details": {"cached_tokens": cached}});
        let finish = match self.end {
            End::Truncated => "length",
            End::Refused => "content_filter",
            End::Natural if self.tools.is_empty() => "stop",
            End::Natural => "tool_calls",
        };
        let calls: Vec<_> = self
            .tools
            .iter()
            .enumerate()
            .map(|(n, (name, arguments))| {
                json!({"index": n, "id": format!("call_{turn}_{n}"), "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()}})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": self.text});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        if !stream {
            return vec![(
                None,
                json!({"id": "c", "object": "chat.completion", "model": model, "usage": usage,
                "choices": [{"index": 0, "message": message, "finish_reason": finish}]}),
            )];
        }
        let chunk = |delta: Value, finish: Value| {
            json!({"id": "c", "object": "chat.completion.chunk", "model": model, "usage": null,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        };
        vec![
            (None, chunk(message, Value::Null)),
            (None, chunk(json!({}), json!(finish))),
            (
                None,
                json!({"id": "c", "object": "chat.completion.chunk", "model": model, "choices": [], "usage": usage}),
            ),
        ]
    }
}

fn named(events: Vec<Value>) -> Vec<(Option<String>, Value)> {
    events
        .into_iter()
        .map(|event| (event["type"].as_str().map(str::to_owned), event))
        .collect()
}

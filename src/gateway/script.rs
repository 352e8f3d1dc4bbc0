//! A model that plays a script, in the place of a provider: for the self-tests of the doors and of the jar. Nothing
//! leaves the process.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use crate::http::{Outgoing, Transport, TransportAnswer, TransportError};

/// What the scripted model does in one turn.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptTurn {
    /// It calls tools: names as the client spells them, and arguments.
    Calls(Vec<(String, Value)>),
    /// It speaks.
    Text(String),
}

/// Answers model calls in all three protocols, a turn each; when the script is over it says `Done.`
#[derive(Debug, Default)]
pub struct ScriptedModel {
    turns: Mutex<VecDeque<ScriptTurn>>,
    seen: Mutex<Vec<Bytes>>,
}

impl ScriptedModel {
    /// A model that does these turns in order.
    pub fn new(turns: impl IntoIterator<Item = ScriptTurn>) -> Self {
        Self {
            turns: Mutex::new(turns.into_iter().collect()),
            seen: Mutex::default(),
        }
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Bytes> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn answer(&self, request: Outgoing) -> TransportAnswer {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let number = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(request.body);
            seen.len()
        };
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns
            .pop_front()
            .unwrap_or_else(|| ScriptTurn::Text("Done.".to_owned()));
        drop(turns);
        let said = Said {
            model: body["model"].as_str().unwrap_or("model"),
            number,
            turn,
        };
        let path = request.url.path();
        let (whole, events) = if path.ends_with("/messages") {
            said.messages()
        } else if path.ends_with("/responses") {
            said.responses()
        } else {
            said.chat()
        };
        let (kind, text) = if body["stream"] == json!(true) {
            let chat = path.ends_with("/chat/completions");
            ("text/event-stream", as_events(&events, chat))
        } else {
            ("application/json", whole.to_string())
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        TransportAnswer {
            status: StatusCode::OK,
            headers,
            body: stream::once(std::future::ready(Ok(Bytes::from(text)))).boxed(),
        }
    }
}

impl Transport for ScriptedModel {
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>> {
        Box::pin(std::future::ready(Ok(self.answer(request))))
    }
}

/// One answer: the document, and the same as events of a stream.
type Answer = (Value, Vec<Value>);

struct Said<'a> {
    model: &'a str,
    number: usize,
    turn: ScriptTurn,
}

impl Said<'_> {
    fn calls(&self) -> &[(String, Value)] {
        match &self.turn {
            ScriptTurn::Calls(calls) => calls,
            ScriptTurn::Text(_) => &[],
        }
    }

    fn text(&self) -> Option<&str> {
        match &self.turn {
            ScriptTurn::Calls(_) => None,
            ScriptTurn::Text(text) => Some(text),
        }
    }

    /// Clients go by ids, so no two are alike.
    fn id(&self, kind: &str, at: usize) -> String {
        format!("{kind}_{}_{at}", self.number)
    }

    fn messages(&self) -> Answer {
        let usage = json!({"input_tokens": 10, "output_tokens": 5,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0});
        let stop = match self.turn {
            ScriptTurn::Calls(_) => "tool_use",
            ScriptTurn::Text(_) => "end_turn",
        };
        let text = self.text().map(|text| {
            (
                json!({"type": "text", "text": text}),
                json!({"type": "text", "text": ""}),
                json!({"type": "text_delta", "text": text}),
            )
        });
        let calls = self.calls().iter().enumerate().map(|(at, (name, arguments))| {
            let block = |input: &Value| json!({"type": "tool_use", "id": self.id("toolu", at), "name": name, "input": input});
            let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
            (block(arguments), block(&json!({})), delta)
        });
        let blocks: Vec<_> = text.into_iter().chain(calls).collect();
        let message = |content: Vec<&Value>, stop: Value| {
            json!({"id": self.id("msg", 0), "type": "message", "role": "assistant", "model": self.model,
                "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage})
        };
        let whole = message(
            blocks.iter().map(|(whole, ..)| whole).collect(),
            stop.into(),
        );
        let mut events =
            vec![json!({"type": "message_start", "message": message(Vec::new(), Value::Null)})];
        for (index, (_, head, delta)) in blocks.iter().enumerate() {
            events.extend([
                json!({"type": "content_block_start", "index": index, "content_block": head}),
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
                json!({"type": "content_block_stop", "index": index}),
            ]);
        }
        events.extend([
            json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
            json!({"type": "message_stop"}),
        ]);
        (whole, events)
    }

    fn responses(&self) -> Answer {
        let text = self.text().map(|text| {
            json!({"type": "message", "id": self.id("msg", 0), "role": "assistant",
                "content": [{"type": "output_text", "text": text, "annotations": []}]})
        });
        let calls = self.calls().iter().enumerate().map(|(at, (name, arguments))| {
            let mut item = json!({"type": "function_call", "id": self.id("fc", at), "call_id": self.id("call", at),
                "name": name, "arguments": arguments.to_string(), "status": "completed"});
            // Codex offers the tools of a server in a namespace of its own.
            if let Some((namespace, name)) = name.rsplit_once("__") {
                item["namespace"] = json!(namespace);
                item["name"] = json!(name);
            }
            item
        });
        let items: Vec<_> = text.into_iter().chain(calls).collect();
        let whole = json!({"id": self.id("resp", 0), "object": "response", "status": "completed", "model": self.model,
            "output": items, "error": null, "incomplete_details": null, "usage": {"input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}});
        let mut events = vec![json!({"type": "response.created", "response":
            {"id": self.id("resp", 0), "object": "response", "status": "in_progress", "model": self.model}})];
        for kind in ["added", "done"] {
            events.extend(items.iter().enumerate().map(|(index, item)| {
                json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
            }));
        }
        events.push(json!({"type": "response.completed", "response": whole}));
        (whole, events)
    }

    fn chat(&self) -> Answer {
        let calls: Vec<_> = self
            .calls()
            .iter()
            .enumerate()
            .map(|(at, (name, arguments))| {
                json!({"index": at, "id": self.id("call", at), "type": "function",
                    "function": {"name": name, "arguments": arguments.to_string()}})
            })
            .collect();
        let finish = if calls.is_empty() {
            "stop"
        } else {
            "tool_calls"
        };
        let mut message = json!({"role": "assistant", "content": self.text()});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
        let document = |kind: &str, part: &str, content: &Value, finish: Value| {
            json!({"id": self.id("chat", 0), "object": kind, "model": self.model, "usage": usage,
                "choices": [{"index": 0, part: content, "finish_reason": finish}]})
        };
        let whole = document("chat.completion", "message", &message, finish.into());
        let chunk = "chat.completion.chunk";
        let events = vec![
            document(chunk, "delta", &message, Value::Null),
            document(chunk, "delta", &json!({}), finish.into()),
        ];
        (whole, events)
    }
}

/// The text of an event stream.
fn as_events(events: &[Value], chat: bool) -> String {
    let mut text = String::new();
    for event in events {
        if let Some(kind) = event["type"].as_str() {
            let _ = writeln!(text, "event: {kind}");
        }
        let _ = write!(text, "data: {event}\n\n");
    }
    if chat {
        text.push_str("data: [DONE]\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    async fn say(model: &ScriptedModel, path: &str, stream: bool) -> (String, String) {
        let request = Outgoing {
            method: Method::POST,
            url: format!("http://127.0.0.1:9{path}").parse().unwrap(),
            headers: HeaderMap::new(),
            body: json!({"model": "m-1", "stream": stream}).to_string().into(),
        };
        let answer = model.send(request).await.unwrap();
        let kind = answer.headers[CONTENT_TYPE].to_str().unwrap().to_owned();
        let pieces: Vec<_> = answer.body.collect().await;
        let text = pieces.into_iter().map(|piece| piece.unwrap().to_vec());
        let text = text.collect::<Vec<_>>().concat();
        (kind, String::from_utf8(text).unwrap())
    }

    #[tokio::test]
    async fn every_protocol_calls_tools_and_speaks() {
        for path in ["/v1/messages", "/v1/responses", "/v1/chat/completions"] {
            for stream in [false, true] {
                let calls =
                    ScriptTurn::Calls(vec![("mcp__tree__read".into(), json!({"path": "a"}))]);
                let model = ScriptedModel::new([calls, ScriptTurn::Text("Fine.".into())]);
                let (kind, text) = say(&model, path, stream).await;
                assert_eq!(kind.contains("event-stream"), stream);
                assert!(text.contains("read") && text.contains("path"), "{text}");
                assert!(text.contains("m-1"), "{text}");
                assert!(say(&model, path, stream).await.1.contains("Fine."));
                assert!(say(&model, path, stream).await.1.contains("Done."));
                assert_eq!(model.requests().len(), 3);
            }
        }
    }
}

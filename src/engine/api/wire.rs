//! What the three protocols have in common: a conversation that is sent whole, and a turn that is read.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::Value;

use crate::gateway::{Protocol, ToolAnswer, ToolSpec};
use crate::port::EngineError;

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// As little as the provider does by itself.
    #[default]
    Default,
    /// A little.
    Low,
    /// More.
    Medium,
    /// Much.
    High,
}

impl Effort {
    /// The word of `OpenAI`'s protocols; none for what the provider does by itself.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Self::Default => None,
            Self::Low => Some("low"),
            Self::Medium => Some("medium"),
            Self::High => Some("high"),
        }
    }
}

/// What stays the same over a pass.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    /// The model's name at its provider.
    pub(super) model: String,
    /// The provider's id.
    pub(super) provider: String,
    pub(super) system: Arc<str>,
    pub(super) task: Arc<str>,
    pub(super) tools: Vec<ToolSpec>,
    pub(super) schema: Option<Arc<Value>>,
    pub(super) max_output: u64,
    pub(super) effort: Effort,
}

/// A tool call that the model asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolCall {
    /// The provider's name of it, repeated with its answer.
    pub(super) id: String,
    pub(super) name: String,
    /// Its arguments, or what is wrong with them.
    pub(super) arguments: Result<Value, String>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// The model said all it wanted, or asks for tools.
    Complete,
    /// Cut by the output limit or the context window.
    Truncated,
    /// The model or a filter declined.
    Refused(String),
}

/// One turn of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) end: TurnEnd,
    /// The turn in the protocol's own form, to be sent back as it is.
    pub(super) echo: Vec<Value>,
}

/// One conversation in one protocol.
pub(super) trait Wire: Send + Sync {
    /// The path of a call.
    fn path(&self) -> &'static str;

    /// The protocol's headers, where it has some of its own.
    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// The next request.
    fn request(&self) -> Value;

    /// Reads the answer to it.
    fn reader(&self) -> Box<dyn TurnReader>;

    /// Adds the model's turn and the answers to its calls, in the order of the calls.
    fn push_turn(&mut self, turn: &Turn, answers: &[(String, ToolAnswer)]);

    /// Adds words of ours.
    fn push_text(&mut self, text: &str);
}

/// Takes the events of one answer.
pub(super) trait TurnReader: Send {
    /// The next event.
    fn event(&mut self, event: &Value) -> Result<(), EngineError>;

    /// The whole answer, from a server that does not stream.
    fn document(&mut self, document: &Value) -> Result<(), EngineError>;

    /// The turn; an error when the answer broke off.
    fn finish(self: Box<Self>) -> Result<Turn, EngineError>;
}

/// The conversation of a pass in its provider's protocol.
pub(super) fn wire(protocol: Protocol, setting: Setting) -> Box<dyn Wire> {
    match protocol {
        Protocol::AnthropicMessages => Box::new(super::anthropic::Messages::new(setting)),
        Protocol::OpenAiResponses => Box::new(super::responses::Responses::new(setting)),
        Protocol::OpenAiChat => Box::new(super::chat::Chat::new(setting)),
    }
}

/// The arguments of a call from their text; none at all are an empty object.
pub(super) fn arguments(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(text).map_err(|error| format!("the arguments are no JSON: {error}"))
}

/// What an answer that stops before its end means.
pub(super) fn broke_off() -> EngineError {
    EngineError::Transient("the answer broke off".to_owned())
}

/// A text at a path in a JSON value, or nothing.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

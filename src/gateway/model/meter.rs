//! What an answer says about itself, read from the wire while it passes by: usage, the model that
//! answered, how it ended, errors. Nothing of the answer is kept.

use super::scan::{Scalar, Scanner, Sink};
use super::sse::{EventSink, Splitter};
use crate::gateway::seam::{AnswerEnd, Protocol};
use crate::ledger::estimated_tokens;
use crate::model::TokenCounts;

/// How an answer's body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON document.
    Document,
}

/// An error inside of an answer. All texts are the provider's own words, cut short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WireError {
    /// `error.type`.
    pub(super) kind: String,
    /// `error.code`.
    pub(super) code: String,
    /// `error.message`.
    pub(super) message: String,
    /// `error.resets_at`, seconds since the epoch.
    pub(super) resets_at: Option<u64>,
}

/// Usage of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measured {
    /// The counts.
    pub(super) tokens: TokenCounts,
    /// The part of `tokens.cache_write` that is kept for an hour.
    pub(super) long_lived_writes: u64,
    /// Whether the provider reported all of them.
    pub(super) exact: bool,
}

/// Raw counts as the provider sent them; the last word wins.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    written_long: Option<u64>,
    reasoning: Option<u64>,
}

/// What one event (or the whole document) said.
#[derive(Debug, Default)]
struct Event {
    kind: String,
    error: Option<WireError>,
    message: String,
    code: String,
    text_bytes: u64,
    anything: bool,
}

/// What the answer said so far.
#[derive(Debug, Default)]
struct Facts {
    model: Option<String>,
    counts: Counts,
    /// `stop_reason` or `finish_reason`.
    stop: Option<String>,
    /// `response.status`.
    status: Option<String>,
    incomplete: Option<String>,
    refused: bool,
    error: Option<WireError>,
    /// Bytes of what the model wrote.
    text_bytes: u64,
    events: u64,
    finished: bool,
    garbage: bool,
}

/// Reads one answer as it passes by.
#[derive(Debug)]
pub(super) struct AnswerMeter {
    protocol: Protocol,
    framing: Framing,
    splitter: Splitter,
    reader: Reader,
    bytes: u64,
}

#[derive(Debug)]
struct Reader {
    scanner: Scanner,
    event: Event,
    facts: Facts,
    /// The first bytes of the event's data, to know `[DONE]` by.
    head: Vec<u8>,
}

const DONE: &[u8] = b"[DONE]";

impl AnswerMeter {
    /// A meter for an answer.
    pub(super) fn new(protocol: Protocol, framing: Framing) -> Self {
        Self {
            protocol,
            framing,
            splitter: Splitter::new(),
            reader: Reader {
                scanner: Scanner::new(),
                event: Event::default(),
                facts: Facts::default(),
                head: Vec::new(),
            },
            bytes: 0,
        }
    }

    /// Reads the next piece of the body.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        match self.framing {
            Framing::Events => self.splitter.feed(bytes, &mut self.reader),
            Framing::Document => {
                let reader = &mut self.reader;
                let mut sink = Picker {
                    event: &mut reader.event,
                    facts: &mut reader.facts,
                };
                reader.scanner.feed(bytes, &mut sink);
                if reader.scanner.broken() {
                    reader.facts.garbage = true;
                } else if reader.scanner.done() && !reader.facts.finished {
                    reader.end_event();
                    reader.facts.finished = true;
                }
            }
        }
    }

    /// Whether the answer has begun: an event that is no error, or a byte of a document.
    pub(super) fn begun(&self) -> bool {
        match self.framing {
            Framing::Events => self.reader.facts.events > 0,
            Framing::Document => {
                self.bytes > 0 && !self.reader.facts.garbage && self.reader.facts.error.is_none()
            }
        }
    }

    /// The body is not what was announced.
    pub(super) fn garbage(&self) -> bool {
        self.reader.facts.garbage
    }

    /// The error that the answer carried.
    pub(super) fn error(&self) -> Option<&WireError> {
        self.reader.facts.error.as_ref()
    }

    /// The model that answered, in the provider's spelling.
    pub(super) fn model(&self) -> Option<&str> {
        self.reader.facts.model.as_deref()
    }

    /// Whether everything that matters has been said: the end, and the usage.
    pub(super) fn complete(&self) -> bool {
        let facts = &self.reader.facts;
        facts.finished && (self.protocol != Protocol::OpenAiChat || facts.counts.output.is_some())
            || facts.error.is_some()
    }

    /// How the answer ended, supposed that nothing more comes.
    pub(super) fn end(&self) -> AnswerEnd {
        let facts = &self.reader.facts;
        let stop = facts.stop.as_deref().unwrap_or_default();
        let incomplete = facts.incomplete.as_deref().unwrap_or_default();
        let status = facts.status.as_deref().unwrap_or_default();
        if facts.refused
            || matches!(stop, "refusal" | "content_filter" | "safety")
            || incomplete == "content_filter"
        {
            AnswerEnd::Refused
        } else if matches!(
            stop,
            "max_tokens" | "length" | "model_context_window_exceeded"
        ) || status == "incomplete"
            || !incomplete.is_empty()
        {
            AnswerEnd::Truncated
        } else if !facts.finished || facts.garbage || facts.error.is_some() || status == "failed" {
            AnswerEnd::Cut
        } else {
            AnswerEnd::Complete
        }
    }

    /// The usage, supposed that nothing more comes. `prompt_estimate` stands in for an input that
    /// was not reported.
    pub(super) fn usage(&self, prompt_estimate: u64) -> Measured {
        let Facts {
            counts,
            finished,
            text_bytes,
            ..
        } = &self.reader.facts;
        let cached = counts.cached.unwrap_or(0);
        let written = counts.written.unwrap_or(0);
        let reported = counts.input.map(|input| match self.protocol {
            // Anthropic counts cached input apart, the others inside.
            Protocol::AnthropicMessages => input,
            Protocol::OpenAiResponses | Protocol::OpenAiChat => {
                input.saturating_sub(cached).saturating_sub(written)
            }
        });
        let exact = *finished && counts.input.is_some() && counts.output.is_some();
        let output = counts.output.unwrap_or(0);
        let written_text = match self.framing {
            Framing::Events => *text_bytes,
            Framing::Document if *finished => *text_bytes,
            Framing::Document => self.bytes,
        };
        Measured {
            tokens: TokenCounts {
                input: reported.unwrap_or(prompt_estimate),
                output: if exact {
                    output
                } else {
                    output.max(estimated_tokens(written_text))
                },
                cache_read: cached,
                cache_write: written,
                reasoning: counts.reasoning.unwrap_or(0),
            },
            long_lived_writes: counts.written_long.unwrap_or(0),
            exact,
        }
    }
}

impl EventSink for Reader {
    fn data(&mut self, piece: &[u8]) {
        let room = (DONE.len() + 1).saturating_sub(self.head.len());
        self.head.extend_from_slice(&piece[..piece.len().min(room)]);
        let mut sink = Picker {
            event: &mut self.event,
            facts: &mut self.facts,
        };
        self.scanner.feed(piece, &mut sink);
    }

    fn end(&mut self) {
        if self.head == DONE {
            self.facts.finished |= self.facts.stop.is_some();
        } else if self.scanner.done() {
            self.end_event();
        } else {
            self.facts.garbage = true;
        }
        self.event = Event::default();
        self.head.clear();
        self.scanner.reset();
    }
}

impl Reader {
    fn end_event(&mut self) {
        let event = std::mem::take(&mut self.event);
        let facts = &mut self.facts;
        facts.text_bytes = facts.text_bytes.saturating_add(event.text_bytes);
        let mut error = event.error;
        if event.kind == "error" && error.is_none() {
            // A Responses stream puts the error's fields beside the type.
            error = Some(WireError {
                code: event.code,
                message: event.message,
                ..WireError::default()
            });
        }
        match event.kind.as_str() {
            "message_stop" | "response.completed" | "response.incomplete" => facts.finished = true,
            "response.failed" => {
                facts.finished = true;
                error.get_or_insert_default();
            }
            "response.refusal.delta" => facts.refused = true,
            _ => {}
        }
        // Chat completions have no typed end: the reason to finish is one.
        facts.finished |= event.kind.is_empty() && facts.stop.is_some();
        if let Some(error) = error {
            facts.error.get_or_insert(error);
        } else if event.anything && event.kind != "ping" {
            facts.events += 1;
        }
    }
}

struct Picker<'a> {
    event: &'a mut Event,
    facts: &'a mut Facts,
}

impl Sink for Picker<'_> {
    fn scalar(&mut self, path: &str, value: Scalar<'_>) {
        self.event.anything = true;
        match value {
            Scalar::Bare(word) => {
                if let Ok(number) = word.parse::<u64>() {
                    self.number(path, number);
                } else if word != "null" && path == "error.code" {
                    word.clone_into(&mut self.error().code);
                }
            }
            Scalar::Text(text, length) => self.text(path, text, length),
        }
    }
}

impl Picker<'_> {
    fn error(&mut self) -> &mut WireError {
        self.event.error.get_or_insert_default()
    }

    fn number(&mut self, path: &str, number: u64) {
        let counts = &mut self.facts.counts;
        // `message.usage` (Anthropic's first event) and `response.usage` mean the same as `usage`.
        let place = path
            .strip_prefix("message.")
            .or_else(|| path.strip_prefix("response."))
            .unwrap_or(path);
        match place {
            "usage.input_tokens" | "usage.prompt_tokens" => counts.input = Some(number),
            "usage.output_tokens" | "usage.completion_tokens" => counts.output = Some(number),
            "usage.cache_read_input_tokens"
            | "usage.input_tokens_details.cached_tokens"
            | "usage.prompt_tokens_details.cached_tokens" => counts.cached = Some(number),
            "usage.cache_creation_input_tokens"
            | "usage.input_tokens_details.cache_write_tokens"
            | "usage.prompt_tokens_details.cache_write_tokens" => counts.written = Some(number),
            "usage.cache_creation.ephemeral_1h_input_tokens" => counts.written_long = Some(number),
            "usage.output_tokens_details.thinking_tokens"
            | "usage.output_tokens_details.reasoning_tokens"
            | "usage.completion_tokens_details.reasoning_tokens" => counts.reasoning = Some(number),
            "error.resets_at" => self.error().resets_at = Some(number),
            "error.code" => self.error().code = number.to_string(),
            _ => {}
        }
    }

    fn text(&mut self, path: &str, text: &str, length: u64) {
        match path {
            "type" => self.event.kind = short(text),
            "model" | "message.model" | "response.model" => self.facts.model = Some(short(text)),
            "stop_reason" | "delta.stop_reason" | "choices[].finish_reason" => {
                self.facts.stop = Some(short(text));
            }
            "status" | "response.status" => self.facts.status = Some(short(text)),
            "incomplete_details.reason" | "response.incomplete_details.reason" => {
                self.facts.incomplete = Some(short(text));
            }
            "response.output[].content[].type" | "output[].content[].type" => {
                self.facts.refused |= text == "refusal";
            }
            "choices[].delta.refusal" | "choices[].message.refusal" => {
                self.facts.refused |= !text.is_empty();
            }
            "error.type" => self.error().kind = short(text),
            "error.code" | "response.error.code" => self.error().code = short(text),
            "error" | "error.message" | "response.error.message" => {
                self.error().message = short(text);
            }
            "code" => self.event.code = short(text),
            "message" => self.event.message = short(text),
            "delta"
            | "delta.text"
            | "delta.partial_json"
            | "delta.thinking"
            | "choices[].delta.content"
            | "choices[].delta.reasoning"
            | "choices[].delta.reasoning_content"
            | "choices[].delta.tool_calls[].function.arguments"
            | "choices[].message.content"
            | "choices[].message.tool_calls[].function.arguments"
            | "content[].text"
            | "content[].thinking"
            | "output[].content[].text"
            | "output[].arguments" => {
                self.event.text_bytes = self.event.text_bytes.saturating_add(length);
            }
            _ => {}
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROTOCOLS: [Protocol; 3] = [
        Protocol::AnthropicMessages,
        Protocol::OpenAiResponses,
        Protocol::OpenAiChat,
    ];

    fn read(protocol: Protocol, framing: Framing, body: &[u8], piece: usize) -> AnswerMeter {
        let mut meter = AnswerMeter::new(protocol, framing);
        for piece in body.chunks(piece) {
            meter.feed(piece);
        }
        meter
    }

    fn events(events: &[&str]) -> String {
        events
            .iter()
            .flat_map(|event| ["data: ", event, "\n\n"])
            .collect()
    }

    #[test]
    fn the_last_word_on_usage_wins_and_cache_lifetimes_are_kept() {
        let start = r#"{"message":{"usage":{"input_tokens":9,"cache_read_input_tokens":1,
            "cache_creation_input_tokens":70,"output_tokens":1,"cache_creation":
            {"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":40}},"model":"m"},"type":"message_start"}"#;
        let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":
            {"input_tokens":10,"output_tokens":33,"output_tokens_details":{"thinking_tokens":3}}}"#;
        let body = events(&[
            &start.replace('\n', ""),
            &delta.replace('\n', ""),
            r#"{"type":"message_stop"}"#,
        ]);
        for piece in [1, 7, 1000] {
            let meter = read(
                Protocol::AnthropicMessages,
                Framing::Events,
                body.as_bytes(),
                piece,
            );
            let measured = meter.usage(999);
            let expected = TokenCounts {
                input: 10,
                output: 33,
                cache_read: 1,
                cache_write: 70,
                reasoning: 3,
            };
            assert_eq!(
                (measured.tokens, measured.long_lived_writes),
                (expected, 40)
            );
            assert!(measured.exact && meter.complete());
            assert_eq!(
                (meter.end(), meter.model()),
                (AnswerEnd::Complete, Some("m"))
            );
        }
    }

    #[test]
    fn what_the_model_writes_cannot_pose_as_usage() {
        let document = r#"{"type":"message","model":"m","content":[{"type":"tool_use","input":
            {"usage":{"output_tokens":0},"error":{"type":"overloaded_error"},"type":"error","stop_reason":"refusal"}}],
            "stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":6}}"#;
        let meter = read(
            Protocol::AnthropicMessages,
            Framing::Document,
            document.as_bytes(),
            5,
        );
        assert_eq!(
            (meter.usage(0).tokens.output, meter.end()),
            (6, AnswerEnd::Complete)
        );
        assert_eq!(meter.error(), None);
        let text = r#"{"choices":[{"delta":{"content":"{\"usage\":{\"completion_tokens\":0}}\n\ndata: [DONE]\n\n"}}]}"#;
        let stream = events(&[text]);
        let meter = read(Protocol::OpenAiChat, Framing::Events, stream.as_bytes(), 3);
        assert!(!meter.complete() && !meter.garbage());
        assert_eq!(meter.end(), AnswerEnd::Cut);
    }

    #[test]
    fn chat_without_usage_is_complete_but_estimated() {
        let stream = events(&[
            r#"{"model":"m","choices":[{"delta":{"content":"123456789"}}]}"#,
            r#"{"model":"m","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#,
            "[DONE]",
        ]);
        let meter = read(Protocol::OpenAiChat, Framing::Events, stream.as_bytes(), 4);
        assert_eq!(meter.end(), AnswerEnd::Complete);
        let measured = meter.usage(42);
        assert_eq!(
            (
                measured.tokens.input,
                measured.tokens.output,
                measured.exact
            ),
            (42, 3, false)
        );
        assert!(!meter.complete(), "usage may still come");
    }

    #[test]
    fn a_response_of_many_megabytes_is_read_to_its_usage() {
        let text = "lorem ipsum ".repeat(1_000_000);
        let whole = format!(
            r#"{{"type":"response.completed","response":{{"output":[{{"content":[{{"text":"{text}"}}]}}],
            "status":"completed","usage":{{"input_tokens":7,"input_tokens_details":{{"cached_tokens":2}},"output_tokens":8}}}}}}"#
        )
        .replace('\n', "");
        let stream = events(&[&whole]);
        let meter = read(
            Protocol::OpenAiResponses,
            Framing::Events,
            stream.as_bytes(),
            8192,
        );
        let tokens = meter.usage(0).tokens;
        assert_eq!((tokens.input, tokens.cache_read, tokens.output), (5, 2, 8));
        assert!(meter.complete());
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece in 1usize..9) {
            for protocol in PROTOCOLS {
                for framing in [Framing::Events, Framing::Document] {
                    let meter = read(protocol, framing, &bytes, piece);
                    let _ = (meter.usage(1), meter.end(), meter.complete());
                }
            }
        }

        /// How the bytes are cut decides nothing.
        #[test]
        fn pieces_do_not_matter(text in ".{0,40}", piece in 1usize..40) {
            let delta = serde_json::json!({"choices": [{"delta": {"content": text}}]}).to_string();
            let stream = events(&[&delta, r#"{"choices":[{"finish_reason":"length"}]}"#]);
            let whole = read(Protocol::OpenAiChat, Framing::Events, stream.as_bytes(), usize::MAX);
            let cut = read(Protocol::OpenAiChat, Framing::Events, stream.as_bytes(), piece);
            prop_assert_eq!(whole.usage(1), cut.usage(1));
            prop_assert_eq!(cut.end(), AnswerEnd::Truncated);
        }
    }
}

//! What the two doors, the engines and the run promise each other.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use reqwest::Url;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ledger::Cap;
use crate::model::{Cost, ModelId, PassId, RepoPath, Secret, Usage};
use crate::port::{BoxFuture, EngineError, Meter, Progress};

/// A wire protocol of a model provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Anthropic Messages (`/v1/messages`).
    AnthropicMessages,
    /// `OpenAI` Responses (`/v1/responses`).
    OpenAiResponses,
    /// `OpenAI` chat completions (`/v1/chat/completions`), spoken by most local servers too.
    OpenAiChat,
}

/// What is shown to the provider in place of the placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// Nothing (a local server).
    None,
    /// An API key: `x-api-key` for Anthropic, `Authorization: Bearer` for the others.
    ApiKey(Secret<String>),
    /// A bearer token, whatever the protocol.
    Bearer(Secret<String>),
    /// A token of a Claude plan.
    Oauth(Secret<String>),
    /// A token of a `ChatGPT` plan and the account it belongs to.
    ChatGpt {
        /// The access token.
        token: Secret<String>,
        /// Goes out as `chatgpt-account-id`.
        account: String,
    },
}

impl Credential {
    /// The secret itself, when there is one.
    pub fn secret(&self) -> Option<&Secret<String>> {
        match self {
            Self::None => None,
            Self::ApiKey(secret) | Self::Bearer(secret) | Self::Oauth(secret) => Some(secret),
            Self::ChatGpt { token, .. } => Some(token),
        }
    }
}

/// Where the model calls of a pass go; the only place they can go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The provider's id in the configuration.
    pub provider: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// The address in the form of the provider's own SDK: Anthropic's without `/v1` (with it works
    /// too), the others' with their version; a bare host means `/v1`. No query, no user part.
    pub base_url: Url,
    /// Shown to it.
    pub credential: Credential,
}

/// How a final error is worded so that the client at hand takes it as final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FinalStyle {
    /// Claude Code with its retries at 0: status 403.
    Claude,
    /// Codex: status 400.
    Codex,
    /// `OpenCode`: status 400.
    OpenCode,
    /// Our own loop: a typed [`DoorError`].
    Api,
}

/// The caps of one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassLimits {
    /// Model calls.
    pub turns: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Input tokens of all calls, cached ones included.
    pub input_tokens: u64,
    /// Output tokens of all calls.
    pub output_tokens: u64,
    /// Output tokens reserved for one call at most, whatever the request asks for.
    pub max_output_per_call: u64,
    /// Money, when it is capped.
    pub cost: Option<Cost>,
    /// Model calls of the pass at the same time.
    pub concurrent_calls: u32,
    /// How long an open model call may stay without a byte from upstream.
    pub stall: Duration,
}

impl Default for PassLimits {
    fn default() -> Self {
        Self {
            turns: 60,
            tool_calls: 200,
            input_tokens: 5_000_000,
            output_tokens: 200_000,
            max_output_per_call: 16_000,
            cost: None,
            concurrent_calls: 4,
            stall: Duration::from_secs(180),
        }
    }
}

/// The soft landing of a pass, shared by both doors. It begins near the deadline, or when a door sees
/// a cap come near; the tool door then serves only `report` and `finish` and says so (`announce`);
/// two model calls after the first such answer the model door gives its final status.
#[derive(Debug)]
pub struct Landing {
    begins: Instant,
    /// 0 is "flying"; else the cap's place in `CAPS` plus one.
    cap: AtomicU32,
    announced: AtomicU32,
}

const CAPS: [Cap; 9] = [
    Cap::Turns,
    Cap::ToolCalls,
    Cap::InputTokens,
    Cap::OutputTokens,
    Cap::Cost,
    Cap::Time,
    Cap::Concurrency,
    Cap::RunTokens,
    Cap::RunCost,
];

impl Landing {
    /// A landing that begins by itself `grace` before `deadline`.
    pub fn new(deadline: Instant, grace: Duration) -> Self {
        Self {
            begins: deadline.checked_sub(grace).unwrap_or_else(Instant::now),
            cap: AtomicU32::new(0),
            announced: AtomicU32::new(0),
        }
    }

    /// Begins the landing because of `cap`; the first cap stays.
    pub fn begin(&self, cap: Cap) {
        let place = CAPS.iter().position(|&known| known == cap).unwrap_or(0) as u32 + 1;
        // A lost race means that another cap came first, which is what "first" says.
        let _ = self
            .cap
            .compare_exchange(0, place, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Why the pass is landing; `None` while it is not.
    pub fn reason(&self) -> Option<Cap> {
        match self.cap.load(Ordering::Acquire) {
            0 => (Instant::now() >= self.begins).then_some(Cap::Time),
            place => CAPS.get(place as usize - 1).copied(),
        }
    }

    /// The tool door told the model, in an answer, that time is up.
    pub fn announce(&self) {
        self.announced.store(1, Ordering::Release);
    }

    /// Whether the model has been told.
    pub fn announced(&self) -> bool {
        self.announced.load(Ordering::Acquire) != 0
    }
}

/// What a pass may do at the doors.
#[derive(Clone)]
pub struct PassGrant {
    /// Unique within the run.
    pub pass: PassId,
    /// The model asked for; prices go by it.
    pub model: ModelId,
    /// Where its model calls go.
    pub upstream: Arc<Upstream>,
    /// How a final error is worded.
    pub style: FinalStyle,
    /// Its tools; none for a pass without the tool door.
    pub tools: Option<Arc<dyn ToolSession>>,
    /// The exact tool names its first model request has to offer, as the client spells them
    /// (`mcp__tree__read`, …).
    pub expected_tools: Vec<String>,
    /// Names that may be offered besides (codex's three resource tools, …).
    pub allowed_tools: Vec<String>,
    /// Its caps.
    pub limits: PassLimits,
    /// When it has to be over.
    pub deadline: Instant,
    /// Shared with its tool session.
    pub landing: Arc<Landing>,
    /// Fires when it has to stop at once.
    pub cancel: CancellationToken,
    /// Takes what a person may want to see.
    pub progress: Arc<dyn Progress>,
    /// Takes what each model call used.
    pub meter: Arc<dyn Meter>,
}

/// What the provider said about its limits, last word wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateLimitEvidence {
    /// Answers with status 429.
    pub limited: u32,
    /// Answers that said "overloaded" (529, or the word in an error body).
    pub overloaded: u32,
    /// The last `retry-after`.
    pub retry_after: Option<Duration>,
    /// The last `x-ratelimit-*` and `anthropic-ratelimit-*` headers, by name; at most 32.
    pub headers: BTreeMap<String, String>,
}

/// How the last answer of a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The model said all it wanted, or asks for tools.
    Complete,
    /// Cut by the output limit or the context window.
    Truncated,
    /// The model or the provider's filter declined.
    Refused,
    /// The stream broke off.
    Cut,
}

/// The books of a pass at the model door. They decide first what became of the pass.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PassLedger {
    /// Sum of all its model calls.
    pub usage: Usage,
    /// Model calls that reached the provider and were answered, token counting left out.
    pub turns: u32,
    /// Requests to the provider, the door's own repetitions included.
    pub requests: u32,
    /// Tool calls served.
    pub tool_calls: u32,
    /// The model that answered last, `provider/name`.
    pub model_answered: Option<ModelId>,
    /// Why the pass failed as the door saw it. It stays unset when a later call succeeded.
    pub error: Option<EngineError>,
    /// The cap at which a call was refused: the pass is truncated, not failed.
    pub cap: Option<Cap>,
    /// How the last answer ended.
    pub last_end: Option<AnswerEnd>,
    /// What the provider said about its limits.
    pub rate_limits: RateLimitEvidence,
    /// Whether the tool door received `finish`.
    pub finished: bool,
}

/// A model call, as an HTTP request without its host.
#[derive(Debug, Clone)]
pub struct ModelCall {
    /// Path and query: `/v1/messages`, `/v1/responses`, `/v1/chat/completions`, …
    pub path: String,
    /// Headers of the protocol (`anthropic-version`, …); those that carry a credential are dropped.
    pub headers: HeaderMap,
    /// The JSON body, sent as it is.
    pub body: Bytes,
}

/// The answer to a model call: always a success status, its body still arriving.
pub struct ModelAnswer {
    /// The provider's status.
    pub status: StatusCode,
    /// The provider's headers, hop-by-hop ones left out.
    pub headers: HeaderMap,
    /// The body, in the pieces in which it arrived. Dropping it cancels the upstream call.
    pub body: BoxStream<'static, Result<Bytes, DoorError>>,
}

/// Why a model call was not served to its end. It is final: the door has repeated what can be repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// A bound was met; nothing was sent.
    #[error("{0} used up")]
    Cap(Cap),
    /// The call failed.
    #[error("{error}")]
    Failed {
        /// The class.
        error: EngineError,
        /// The provider's status, when it answered.
        status: Option<StatusCode>,
        /// The provider's error body, at most 64 KiB; empty when there is none.
        body: Bytes,
    },
}

impl From<EngineError> for DoorError {
    fn from(error: EngineError) -> Self {
        Self::Failed {
            error,
            status: None,
            body: Bytes::new(),
        }
    }
}

/// The model door of one pass, as the engine of our own uses it (in memory, no socket).
pub trait ModelDoor: Send + Sync {
    /// Performs one model call: metered, capped, repeated where that is right, recorded.
    fn call(&self, call: ModelCall) -> BoxFuture<'_, Result<ModelAnswer, DoorError>>;
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// Its name, without any prefix that a client adds.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: serde_json::Value,
    /// It changes nothing, so several calls may run at once.
    pub read_only: bool,
}

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAnswer {
    /// Text for the model.
    pub text: String,
    /// Whether the text says what was wrong with the call.
    pub is_error: bool,
}

/// What a pass did at the tool door.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolRecord {
    /// Calls served.
    pub calls: u32,
    /// Lines shown, 1-based, sorted and merged, by file.
    pub seen: BTreeMap<RepoPath, Vec<RangeInclusive<u32>>>,
    /// Changed files that the model says, in `finish`, it has examined.
    pub examined: Vec<RepoPath>,
    /// Defects in calls of `report` that could not be read and were not sent again.
    pub unread: u32,
}

/// The tool door of one pass; the same object serves MCP and the in-memory loop.
pub trait ToolSession: Send + Sync {
    /// The tools it offers, always in the same order.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Performs one call. Arguments are validated here and nowhere else.
    fn call(&self, name: &str, arguments: serde_json::Value) -> BoxFuture<'_, ToolAnswer>;

    /// Notes a call whose arguments are no JSON, so that `call` cannot be asked.
    fn unreadable(&self, name: &str);

    /// Whether `finish` was received.
    fn finished(&self) -> bool;

    /// What the pass did so far.
    fn record(&self) -> ToolRecord;
}

/// The body of an answer at the listener.
pub type DoorBody = BoxBody<Bytes, Infallible>;

/// Speaks MCP over HTTP for one pass. The listener has checked the placeholder and read the body
/// (bounded) before it calls.
pub trait ToolService: Send + Sync {
    /// Answers one request to `/mcp`.
    fn handle(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<DoorBody>>;
}

/// Makes the MCP service of a pass from its tool session.
pub type ToolServiceFactory = fn(Arc<dyn ToolSession>) -> Arc<dyn ToolService>;

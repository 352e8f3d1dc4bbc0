//! The engine seam. An engine performs exactly one headless pass: no retry, no loop over passes, no policy.
//!
//! @ref LLP 0004#the-engine-seam — one pass, no policy

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{BoxFuture, FindingSink, Progress};
use crate::diff::Diff;
use crate::model::{AgentId, EngineName, ModelId, PassId, PassKind, RepoPath, Usage};
use crate::tree::Tree;

/// What an engine can do. There is no default: each field is a claim that the conformance suite checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// It can be held to a JSON schema.
    pub structured_output: bool,
    /// It reports what a pass used; when false, every outcome's usage is unavailable.
    pub usage_reporting: bool,
    /// It can be confined to reading.
    pub read_only: bool,
    /// It takes its tools from our tool door.
    pub served_tools: bool,
    /// Repeated context is billed once.
    pub prompt_caching: bool,
    /// It may start agents of its own.
    pub subagents: bool,
}

/// One pass to run.
#[derive(Debug, Clone)]
pub struct PassRequest {
    /// Unique within the run.
    pub id: PassId,
    /// What it is for.
    pub kind: PassKind,
    /// Who reviews.
    pub agent: AgentId,
    /// The model asked for; none for an engine without models.
    pub model: Option<ModelId>,
    /// The whole diff; `files` says which part this pass is about.
    pub diff: Arc<Diff>,
    /// Indices into `diff.files`, ascending.
    pub files: Arc<[usize]>,
    /// The system prompt, byte-stable for an agent within a run; empty for an engine without models.
    pub system: Arc<str>,
    /// The task; empty for an engine without models.
    pub task: Arc<str>,
    /// The JSON schema that the reply has to satisfy, for passes without tools.
    pub schema: Option<Arc<serde_json::Value>>,
}

/// What a pass may use while it runs.
#[derive(Clone)]
pub struct PassContext {
    /// The tree under review; `None` when there is none (a bare patch).
    pub tree: Option<Arc<dyn Tree>>,
    /// Takes findings the moment they are reported.
    pub sink: Arc<dyn FindingSink>,
    /// Takes what was used.
    pub meter: Arc<dyn Meter>,
    /// Takes what a person may want to see.
    pub progress: Arc<dyn Progress>,
    /// Fires when the pass has to stop at once.
    pub cancel: CancellationToken,
    /// When the pass has to be over.
    pub deadline: Instant,
}

impl PassContext {
    /// Time left until the deadline.
    pub fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// How far a pass came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// It ran to its end: `finish` was received, or an explicit (perhaps empty) structured answer.
    Complete,
    /// It was cut short; what it reported is kept.
    Truncated {
        /// Why.
        reason: String,
    },
}

/// What a pass gives back when it did not fail. Its findings went through the sink.
#[derive(Debug, Clone, PartialEq)]
pub struct PassOutcome {
    /// How far it came.
    pub completion: Completion,
    /// The structured reply of a schema pass.
    pub reply: Option<serde_json::Value>,
    /// What it used.
    pub usage: Usage,
    /// The model that answered.
    pub model_answered: Option<ModelId>,
    /// Tool calls served.
    pub tool_calls: u32,
    /// Files of the request that this pass could not examine, with the reason; empty when it saw all.
    pub unexamined: Vec<(RepoPath, String)>,
}

/// Why a pass failed. The set is closed: one table in `pipeline` says what happens next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot run here; nothing was executed and nothing was spent.
    #[error("engine unavailable: {0}")]
    Unavailable(String),
    /// The credential was refused.
    #[error("authentication failed: {0}")]
    Auth(String),
    /// Too many requests for now.
    #[error("rate limited")]
    RateLimited {
        /// The server's word on when to come back.
        retry_after: Option<Duration>,
    },
    /// The account's allowance is used up.
    #[error("usage limit reached")]
    UsageLimited {
        /// When it resets, in seconds since the Unix epoch.
        resets_at: Option<u64>,
    },
    /// The provider has no capacity.
    #[error("provider overloaded")]
    Overloaded,
    /// A fault that may pass (connection, 5xx).
    #[error("transient failure: {0}")]
    Transient(String),
    /// The input does not fit the model's context.
    #[error("the input does not fit the model's context")]
    ContextOverflow,
    /// The model declined.
    #[error("the model refused: {0}")]
    Refused(String),
    /// The reply does not satisfy the schema.
    #[error("the reply does not satisfy the schema: {0}")]
    SchemaUnmet(String),
    /// No sign of life within the stall window.
    #[error("no sign of life for {0:?}")]
    Stalled(Duration),
    /// The deadline passed.
    #[error("deadline passed after {0:?}")]
    Timeout(Duration),
    /// The engine said something that cannot be understood.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Takes what a pass used, while it runs.
pub trait Meter: Send + Sync {
    /// Adds `usage` to the pass; called once a model call.
    fn add(&self, pass: &PassId, usage: Usage);
}

/// A coding agent, an API loop or the built-in checks.
pub trait ReviewEngine: Send + Sync {
    /// The name recorded on every pass.
    fn name(&self) -> EngineName;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Checks, without spending anything, that it can serve `models` here and now.
    fn preflight<'a>(&'a self, models: &'a [ModelId]) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Performs exactly one pass. Stops at the deadline and on cancellation by itself; the
    /// pipeline also drops the future at both, so nothing may outlive it.
    fn run(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> BoxFuture<'_, Result<PassOutcome, EngineError>>;
}

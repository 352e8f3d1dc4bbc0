//! The resolved, immutable configuration of a review. Every default stands here, once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::auth::AuthEntry;
use crate::model::{ModelId, RuleId, Severity};

/// Default of `chunk.maxChangedLines`.
pub(super) const MAX_CHANGED_LINES: u32 = 1_000;
/// Default of `chunk.maxFiles`.
pub(super) const MAX_FILES: u32 = 20;
/// Default of `breakGlass.marker`.
pub(super) const BREAK_GLASS_MARKER: &str = "/skip-review";
/// Default of `commentTag`.
pub(super) const COMMENT_TAG: &str = "expo-ai-code-reviewer";
/// Default of `review.label`.
pub(super) const REVIEW_LABEL: &str = "ai-review";
/// Default of `review.skipLabel`.
pub(super) const SKIP_LABEL: &str = "ai-review:skip";
/// Default of `verify.parallel`.
pub(super) const VERIFY_PARALLEL: u32 = 4;
/// Default of `runs.keep`.
pub(super) const RUNS_KEPT: u32 = 20;

/// The configuration of one review: the file, or a scope's file over the root's, with all defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewConfig {
    /// The model of agents that name none; there is no default model.
    pub model: Option<ModelId>,
    /// What is reported.
    pub policy: Policy,
    /// How the diff is cut.
    pub chunk: Chunk,
    /// What is hidden from models.
    pub noise: Noise,
    /// A maintainer's comment that starts with this stops a review.
    pub break_glass_marker: String,
    /// Names ecr's comment on a pull request.
    pub comment_tag: String,
    /// Which pull requests are reviewed.
    pub review: ReviewGate,
    /// Where model credentials come from: names, never values. Ordered as declared.
    pub auth: Vec<AuthEntry>,
    /// Which engine serves a provider, by provider id.
    pub engines: BTreeMap<String, EngineChoice>,
    /// Prices by model id, for models that ecr does not know.
    pub prices: BTreeMap<String, Price>,
    /// The second look at findings.
    pub verify: Verify,
    /// The least confinement that an engine must have.
    pub sandbox_require: SandboxLevel,
    /// Whether a developer's own engine login may be used for the developer's own work.
    pub login_allow: bool,
    /// The built-in checks.
    pub checks: Checks,
    /// Globs of files whose content no model provider ever gets.
    pub send_never: Vec<String>,
    /// How many runs the run log keeps.
    pub runs_kept: u32,
}

/// What is reported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// Report suggestions too.
    pub include_suggestions: bool,
    /// At most so many findings.
    pub max_findings: Option<u32>,
    /// Stop before a review costs more than this, in US dollars.
    pub max_cost_usd: Option<f64>,
}

/// How the diff is cut into passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Changed lines in one chunk; one larger file still makes one chunk.
    pub max_changed_lines: u32,
    /// Files in one chunk.
    pub max_files: u32,
    /// Passes at the same time; `None` lets the engines decide.
    pub concurrency: Option<u32>,
}

/// What is hidden from models besides the built-in rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noise {
    /// Globs of files.
    pub additional_ignores: Vec<String>,
    /// Texts that mark a generated file in its first lines; compared without regard to case.
    pub additional_markers: Vec<String>,
}

/// Which pull requests are reviewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewGate {
    /// All, or those with the label.
    pub trigger: Trigger,
    /// The label that asks for a review.
    pub label: String,
    /// The label that forbids one.
    pub skip_label: String,
    /// Review drafts too.
    pub drafts: bool,
}

/// The second look at findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// Which findings get it.
    pub scope: VerifyScope,
    /// How many at the same time.
    pub parallel: u32,
}

/// The built-in checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checks {
    /// Run them at all.
    pub enabled: bool,
    /// Other severities than the rules' own, by rule id. Which ids exist is for the caller to say.
    pub rules: BTreeMap<RuleId, RuleLevel>,
}

/// A model's price.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    /// US dollars per million input tokens.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// US dollars per million output tokens.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// US dollars per million tokens read from the provider's cache. Without it: the price of input.
    #[schemars(range(min = 0))]
    pub cache_read: Option<f64>,
    /// US dollars per million tokens written to the provider's cache. Without it: the price of input.
    #[schemars(range(min = 0))]
    pub cache_write: Option<f64>,
}

/// Which pull requests are reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Every pull request.
    #[default]
    All,
    /// Only pull requests with the label `review.label`.
    Label,
}

/// A way to reach models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// ecr's own loop over the provider's API.
    Api,
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// OpenCode.
    Opencode,
}

impl EngineChoice {
    /// The engine of a provider that the configuration does not mention.
    pub fn for_provider(provider: &str) -> Self {
        match provider {
            "anthropic" => Self::Claude,
            "openai" => Self::Codex,
            _ => Self::Opencode,
        }
    }

    /// Its name in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
        }
    }

    /// The engine named `word`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "api" => Some(Self::Api),
            "claude" => Some(Self::Claude),
            "codex" => Some(Self::Codex),
            "opencode" => Some(Self::Opencode),
            _ => None,
        }
    }
}

/// Which findings get a second look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerifyScope {
    /// Critical findings.
    Critical,
    /// Critical findings, and those whose evidence was not found in the file.
    #[default]
    Ungrounded,
    /// Every finding.
    All,
}

/// How well an engine must be confined for a review to run; each level includes the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxLevel {
    /// As well as the machine allows; what is missing is said in the output.
    #[default]
    None,
    /// No file but the engine's own runtime can be read.
    Files,
    /// Also no network but the one address of ecr's gateway.
    Full,
}

/// What a built-in rule's findings count as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RuleLevel {
    /// The rule does not run.
    Off,
    /// Worth knowing.
    Suggestion,
    /// A real problem that does not block.
    Warning,
    /// Must be fixed before merging.
    Critical,
}

impl RuleLevel {
    /// The severity, or `None` when the rule is off.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Off => None,
            Self::Suggestion => Some(Severity::Suggestion),
            Self::Warning => Some(Severity::Warning),
            Self::Critical => Some(Severity::Critical),
        }
    }
}

impl ReviewConfig {
    /// The engine that serves `provider`.
    pub fn engine_for(&self, provider: &str) -> EngineChoice {
        self.engines
            .get(provider)
            .copied()
            .unwrap_or_else(|| EngineChoice::for_provider(provider))
    }
}

impl Default for ReviewConfig {
    fn default() -> Self {
        Self {
            model: None,
            policy: Policy::default(),
            chunk: Chunk {
                max_changed_lines: MAX_CHANGED_LINES,
                max_files: MAX_FILES,
                concurrency: None,
            },
            noise: Noise::default(),
            break_glass_marker: BREAK_GLASS_MARKER.to_owned(),
            comment_tag: COMMENT_TAG.to_owned(),
            review: ReviewGate {
                trigger: Trigger::All,
                label: REVIEW_LABEL.to_owned(),
                skip_label: SKIP_LABEL.to_owned(),
                drafts: true,
            },
            auth: Vec::new(),
            engines: BTreeMap::new(),
            prices: BTreeMap::new(),
            verify: Verify {
                scope: VerifyScope::default(),
                parallel: VERIFY_PARALLEL,
            },
            sandbox_require: SandboxLevel::default(),
            login_allow: true,
            checks: Checks {
                enabled: true,
                rules: BTreeMap::new(),
            },
            send_never: Vec::new(),
            runs_kept: RUNS_KEPT,
        }
    }
}

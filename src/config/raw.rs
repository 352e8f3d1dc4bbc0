//! The files as they are written: mirror structs, and the source of the published schemas. The doc
//! comments are what an editor shows.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::settings::{
    BREAK_GLASS_MARKER, COMMENT_TAG, EngineChoice, MAX_CHANGED_LINES, MAX_FILES, Price,
    REVIEW_LABEL, RUNS_KEPT, RuleLevel, SKIP_LABEL, SandboxLevel, Trigger, VERIFY_PARALLEL,
    VerifyScope,
};

/// Configuration of ecr, the AI code reviewer (`.expo-code-review/config.jsonc`). JSON with comments
/// and trailing commas; every key is optional.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawConfig {
    /// Where an editor finds this schema; ecr does not read it.
    #[serde(rename = "$schema")]
    pub(super) _schema: Option<String>,
    /// The model of every agent that names none itself, as `provider/model`. Without a model only the
    /// built-in checks run. `--model`, then `REVIEWER_MODEL`, then an agent's front matter win over it.
    #[schemars(regex(pattern = MODEL), extend("x-expected" = "a model as `provider/name`, without spaces"))]
    pub(super) model: Option<String>,
    /// What is reported.
    pub(super) policy: Option<RawPolicy>,
    /// How the diff is cut into passes.
    pub(super) chunk: Option<RawChunk>,
    /// What models do not get to see because it is not worth reviewing. The built-in checks still run on it.
    pub(super) noise: Option<RawNoise>,
    /// How a maintainer stops the review of a pull request. Root configuration only.
    pub(super) break_glass: Option<RawBreakGlass>,
    /// Names ecr's comment on a pull request. When you change it, ecr no longer finds its earlier comments.
    /// Root configuration only.
    #[schemars(length(max = 100), regex(pattern = TAG), extend("default" = COMMENT_TAG, "x-expected" = "a text without `<`, `>` and control characters"))]
    pub(super) comment_tag: Option<String>,
    /// Which environment variables hold the model credentials: names, never values. Root configuration only.
    pub(super) auth: Option<RawAuth>,
    /// Which pull requests `ecr ci` reviews.
    pub(super) review: Option<RawReview>,
    /// Which engine serves a provider, by provider id. Without an entry: `anthropic` is served by `claude`,
    /// `openai` by `codex`, every other by `opencode`. Root configuration only.
    #[serde(default)] // with a schema of its own the generator does not see that it is optional
    #[schemars(schema_with = "engines_schema")]
    pub(super) engines: Option<BTreeMap<String, EngineChoice>>,
    /// Prices by model id (`provider/name`), for models whose price ecr does not know. Root configuration only.
    #[serde(default)] // with a schema of its own the generator does not see that it is optional
    #[schemars(schema_with = "prices_schema")]
    pub(super) prices: Option<BTreeMap<String, Price>>,
    /// The second look at findings.
    pub(super) verify: Option<RawVerify>,
    /// How well engines must be confined. Root configuration only.
    pub(super) sandbox: Option<RawSandbox>,
    /// Use of engine logins on this machine. Root configuration only.
    pub(super) login: Option<RawLogin>,
    /// The built-in checks, which need no model.
    pub(super) checks: Option<RawChecks>,
    /// What may leave the machine. Root configuration only.
    pub(super) send: Option<RawSend>,
    /// The log of past runs.
    pub(super) runs: Option<RawRuns>,
    /// Stacked pull requests. ecr does not have this feature yet: the key is accepted and ignored with a warning.
    #[schemars(extend("deprecated" = true))]
    pub(super) stack: Option<Map<String, Value>>,
    /// Replies to findings. ecr does not have this feature yet: the key is accepted and ignored with a warning.
    #[schemars(extend("deprecated" = true))]
    pub(super) feedback: Option<Map<String, Value>>,
    /// Inline comments. ecr does not have this feature yet: the key is accepted and ignored with a warning.
    #[schemars(extend("deprecated" = true))]
    pub(super) inline: Option<Map<String, Value>>,
    /// Platform research. ecr does not have this feature yet: the key is accepted and ignored with a warning.
    #[schemars(extend("deprecated" = true))]
    pub(super) research: Option<Map<String, Value>>,
    /// The JEV classifier. ecr does not have this feature yet: the key is accepted and ignored with a warning.
    #[schemars(extend("deprecated" = true))]
    pub(super) jev: Option<Map<String, Value>>,
}

const MODEL: &str = r"^[^\s\x00-\x1f\x7f]+$";
const TAG: &str = r"^[^<>\x00-\x1f\x7f]+$";
const ENV_NAME: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
const PROVIDER: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
const RULE_ID: &str = "^[a-z0-9][a-z0-9-]*$";

/// What is reported.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawPolicy {
    /// Report suggestions too, not only warnings and critical findings.
    #[schemars(extend("default" = false))]
    pub(super) include_suggestions: Option<bool>,
    /// Report at most so many findings, the gravest first. Without it: all of them.
    #[schemars(range(min = 1, max = 10_000))]
    pub(super) max_findings: Option<u32>,
    /// Stop before a review costs more than this many US dollars. Without it: no limit. Root configuration only.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) max_cost_usd: Option<f64>,
}

/// How the diff is cut into passes. A file is never cut.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawChunk {
    /// Changed lines in one chunk. A larger file is a chunk of its own.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = MAX_CHANGED_LINES))]
    pub(super) max_changed_lines: Option<u32>,
    /// Files in one chunk.
    #[schemars(range(min = 1, max = 10_000), extend("default" = MAX_FILES))]
    pub(super) max_files: Option<u32>,
    /// Passes at the same time. Without it: as many as suit the engines in use.
    #[schemars(range(min = 1, max = 256))]
    pub(super) concurrency: Option<u32>,
}

/// What models do not get to see, besides lock files, generated files and the like.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawNoise {
    /// Globs of further files, from the root of the repository.
    #[schemars(inner(length(min = 1)), extend("default" = []))]
    pub(super) additional_ignores: Option<Vec<String>>,
    /// Further texts that mark a generated file when they stand in its first five lines. Case does not matter.
    #[schemars(inner(length(min = 1)), extend("default" = []))]
    pub(super) additional_markers: Option<Vec<String>>,
}

/// How a maintainer stops a review.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawBreakGlass {
    /// A maintainer's comment with this text stops reviews of the pull request.
    #[schemars(regex(pattern = r"\S"), extend("default" = BREAK_GLASS_MARKER))]
    pub(super) marker: Option<String>,
}

/// Which pull requests are reviewed.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawReview {
    /// All pull requests, or those with the label.
    #[schemars(extend("default" = "all"))]
    pub(super) trigger: Option<Trigger>,
    /// The label that asks for a review when `trigger` is `label`.
    #[schemars(regex(pattern = r"\S"), extend("default" = REVIEW_LABEL))]
    pub(super) label: Option<String>,
    /// The label that forbids a review.
    #[schemars(regex(pattern = r"\S"), extend("default" = SKIP_LABEL))]
    pub(super) skip_label: Option<String>,
    /// Review draft pull requests too.
    #[schemars(extend("default" = true))]
    pub(super) drafts: Option<bool>,
}

/// The second look at findings, by a model that opens the source.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawVerify {
    /// Which findings get it.
    #[schemars(extend("default" = "ungrounded"))]
    pub(super) scope: Option<VerifyScope>,
    /// How many at the same time.
    #[schemars(range(min = 1, max = 64), extend("default" = VERIFY_PARALLEL))]
    pub(super) parallel: Option<u32>,
}

/// How well engines must be confined.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawSandbox {
    /// The least confinement with which a review runs; with less it is refused.
    #[schemars(extend("default" = "none"))]
    pub(super) require: Option<SandboxLevel>,
}

/// Use of engine logins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawLogin {
    /// Let a developer's own engine login serve the developer's own work. Never used in CI.
    #[schemars(extend("default" = true))]
    pub(super) allow: Option<bool>,
}

/// The built-in checks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawChecks {
    /// Run the built-in checks.
    #[schemars(extend("default" = true))]
    pub(super) enabled: Option<bool>,
    /// What a rule's findings count as, by rule id; `off` switches the rule off.
    #[serde(default)] // with a schema of its own the generator does not see that it is optional
    #[schemars(schema_with = "rules_schema")]
    pub(super) rules: Option<BTreeMap<String, RuleLevel>>,
}

/// What may leave the machine.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawSend {
    /// Globs of files whose content is never sent to a model provider, changed or not.
    #[schemars(inner(length(min = 1)), extend("default" = []))]
    pub(super) never: Option<Vec<String>>,
}

/// The log of past runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawRuns {
    /// How many runs are kept; 0 keeps none.
    #[schemars(range(min = 0, max = 100_000), extend("default" = RUNS_KEPT))]
    pub(super) keep: Option<u32>,
}

/// Which environment variables hold the model credentials: by provider, or the older form for one provider.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(untagged)]
pub(super) enum RawAuth {
    /// One entry a provider.
    Providers(RawAuthMap),
    /// The older form: one provider.
    One(RawAuthOne),
}

// By hand, because an untagged enum would lose which shape was meant.
impl<'de> Deserialize<'de> for RawAuth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value.get("providers").is_some() {
            RawAuthMap::deserialize(value).map(Self::Providers)
        } else {
            RawAuthOne::deserialize(value).map(Self::One)
        }
        .map_err(D::Error::custom)
    }
}

/// One entry a provider.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawAuthMap {
    /// By provider id, the part of a model id before the first `/`. In the order declared.
    #[schemars(schema_with = "providers_schema")]
    pub(super) providers: Map<String, Value>,
}

/// The older form: one provider.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawAuthOne {
    /// What kind of credential it is.
    #[schemars(extend("default" = "api-key"))]
    pub(super) mode: Option<AuthMode>,
    /// The provider id.
    #[schemars(regex(pattern = PROVIDER), extend("default" = "openai"))]
    pub(super) provider: Option<String>,
    /// The name of the environment variable that holds the credential.
    #[schemars(regex(pattern = ENV_NAME), extend("x-expected" = "the name of an environment variable (never its value)"))]
    pub(super) token_env: Option<String>,
}

/// Credentials of one provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawProvider {
    /// What kind of credential it is.
    #[schemars(extend("default" = "api-key"))]
    pub(super) mode: Option<AuthMode>,
    /// The name of the environment variable that holds the credential.
    #[schemars(regex(pattern = ENV_NAME), extend("x-expected" = "the name of an environment variable (never its value)"))]
    pub(super) token_env: Option<String>,
    /// The provider that this id is another name for, so that one provider can be used with two credentials.
    #[schemars(regex(pattern = PROVIDER))]
    pub(super) upstream: Option<String>,
    /// Where the provider's API is, when it is not at its usual address: `https://…`, or `http://` on this machine.
    #[schemars(regex(pattern = "^https?://[^\\s]+$"), extend("x-expected" = "an address as `https://host/path`"))]
    pub(super) base_url: Option<String>,
    /// The protocol that the address speaks.
    pub(super) protocol: Option<Protocol>,
}

/// What kind of credential it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMode {
    /// An API key.
    #[default]
    ApiKey,
    /// A subscription's token.
    Oauth,
    /// No credential: a model server on this machine (`baseUrl` on a loopback address).
    None,
}

/// The protocol of a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Anthropic Messages.
    AnthropicMessages,
    /// `OpenAI` Responses.
    OpenaiResponses,
    /// `OpenAI` Chat Completions, and the many servers that imitate it.
    OpenaiChat,
}

/// Routing of a monorepo (`.expo-code-review/routing.jsonc`): which part of the repository is reviewed
/// with which setup.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawRouting {
    /// Where an editor finds this schema; ecr does not read it.
    #[serde(rename = "$schema")]
    pub(super) _schema: Option<String>,
    /// One comment for the pull request, or one a scope.
    #[schemars(extend("default" = "single"))]
    pub(super) comment: Option<CommentMode>,
    /// How the time is shared out.
    pub(super) budget: Option<RawBudget>,
    /// What holds for every scope.
    pub(super) defaults: Option<RawDefaults>,
    /// The scopes; where two match a file, the later one has it.
    #[schemars(length(min = 1))]
    pub(super) scopes: Vec<RawScope>,
}

/// How many comments a pull request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommentMode {
    /// One comment with all scopes.
    #[default]
    Single,
    /// One comment a scope.
    PerScope,
}

/// How the time is shared out.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawBudget {
    /// Minutes for the passes of all scopes together.
    #[schemars(range(min = 1, max = 1_440), extend("default" = super::routing::TOTAL_PASSES_MINUTES))]
    pub(super) total_passes_minutes: Option<u32>,
    /// Minutes that every scope gets at least.
    #[schemars(range(min = 1, max = 1_440), extend("default" = super::routing::MIN_SCOPE_MINUTES))]
    pub(super) min_scope_minutes: Option<u32>,
}

/// What holds for every scope.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawDefaults {
    /// Replaces the root configuration's `auth` as a whole.
    pub(super) auth: Option<RawAuth>,
    /// Agents of the root setup that review every scope, whatever its own setup says.
    #[schemars(inner(length(min = 1)), extend("default" = []))]
    pub(super) enforce_agents: Option<Vec<String>>,
    /// Kept for older setups; the root configuration's `commentTag` wins.
    #[schemars(length(max = 100), regex(pattern = TAG), extend("default" = COMMENT_TAG, "x-expected" = "a text without `<`, `>` and control characters"))]
    pub(super) comment_tag: Option<String>,
}

/// A part of the repository with a setup of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RawScope {
    /// The scope's name.
    #[schemars(regex(pattern = RULE_ID), extend("x-expected" = "lower-case letters, digits and `-`"))]
    pub(super) name: String,
    /// Globs of the files in it, from the root of the repository.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub(super) paths: Vec<String>,
    /// The folder whose setup folder reviews it, from the root of the repository; `.` is the root setup.
    #[schemars(length(min = 1))]
    pub(super) config: String,
}

/// A map with checked keys. `propertyNames` carries what the messages say.
fn map_schema(
    pattern: &str,
    expected: &str,
    values: &schemars::Schema,
    example: &Value,
) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "propertyNames": { "type": "string", "pattern": pattern, "x-expected": expected },
        "additionalProperties": values,
        "examples": [example],
    })
}

fn engines_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let values = generator.subschema_for::<EngineChoice>();
    let example = serde_json::json!({ "openai": "api" });
    map_schema(PROVIDER, "a provider id", &values, &example)
}

fn prices_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let values = generator.subschema_for::<Price>();
    let example = serde_json::json!({ "acme/large": { "input": 2.5, "output": 10 } });
    map_schema(MODEL, "a model as `provider/name`", &values, &example)
}

fn providers_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let values = generator.subschema_for::<RawProvider>();
    let example = serde_json::json!({ "anthropic": { "tokenEnv": "ANTHROPIC_API_KEY" } });
    map_schema(PROVIDER, "a provider id", &values, &example)
}

fn rules_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let values = generator.subschema_for::<RuleLevel>();
    let example = serde_json::json!({ "merge-conflict-marker": "critical" });
    map_schema(
        RULE_ID,
        "a rule id: lower-case letters, digits and `-`",
        &values,
        &example,
    )
}

//! The machine output of `ecr doctor`, version 1. Fields may be added within a version. Credentials appear by name and
//! presence; no value is ever in it.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

/// The version of this format.
pub const DOCTOR_VERSION: u32 = 1;

/// What `ecr doctor --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoctorV1 {
    /// Version of this format.
    pub schema_version: u32,
    /// The version of ecr.
    pub ecr_version: String,
    /// A review as configured can run here; the exit code is 0, else 2.
    pub ok: bool,
    /// What stops a review, and what to do about it.
    pub problems: Vec<Problem>,
    /// What does not stop a review.
    pub warnings: Vec<Problem>,
    /// git and the repository.
    pub git: Git,
    /// The review set-up.
    pub setup: Setup,
    /// What is enforced on engine processes.
    pub sandbox: Sandbox,
    /// The self-test of the run's gateway.
    pub doors: Doors,
    /// Every engine that ecr knows.
    pub engines: Vec<Engine>,
    /// Every model in use.
    pub models: Vec<Model>,
    /// How the network is reached.
    pub network: Network,
}

/// Where something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// git or the repository.
    Git,
    /// The configuration, the reviewers or the rules.
    Setup,
    /// Containing engine processes.
    Sandbox,
    /// The run's gateway.
    Doors,
    /// An engine's program.
    Engine,
    /// A model: its address or its credential.
    Model,
    /// Proxies and TLS.
    Network,
}

impl Area {
    /// Its word in the output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Git => "git",
            Self::Setup => "setup",
            Self::Sandbox => "sandbox",
            Self::Doors => "doors",
            Self::Engine => "engine",
            Self::Model => "model",
            Self::Network => "network",
        }
    }
}

/// Something to know, with the next step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Where.
    pub area: Area,
    /// What.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// git and the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Git {
    /// The program; null when there is none that may be started.
    pub path: Option<String>,
    /// Its version, as it says it.
    pub version: Option<String>,
    /// The root of the work tree around the current folder.
    pub repository: Option<String>,
}

/// Where the set-up came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SetupFrom {
    /// The one that ecr brings along: there is no set-up folder.
    Embedded,
    /// A folder of the repository.
    Repository,
    /// A folder elsewhere.
    Elsewhere,
    /// It could not be read; `problems` says why.
    Broken,
}

/// The review set-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    /// Where it came from.
    pub from: SetupFrom,
    /// Its folder.
    pub folder: Option<String>,
    /// Its configuration file; null when it has none, so that every default holds.
    pub config: Option<String>,
    /// The reviewers.
    pub agents: Vec<String>,
    /// The built-in checks take part.
    pub checks: bool,
    /// `ECR_EXPECTED_TOKEN_ENV` is set and holds.
    pub locked: bool,
}

/// What is enforced on engine processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sandbox {
    /// The level that this machine reaches: `full`, `files` or `none`.
    pub level: String,
    /// The level that reviews of one's own work require here (`sandbox.require`).
    pub required: String,
    /// A process is started in this configuration, so the level matters.
    pub needed: bool,
    /// What is missing, and what would bring it.
    pub missing: Vec<String>,
    /// The kernel's Landlock ABI; 0 is none.
    pub landlock_abi: u32,
    /// seccomp filters can be installed.
    pub seccomp: bool,
    /// A child gets a network of its own.
    pub private_net: bool,
}

/// The self-test of the run's gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doors {
    /// A scripted model call over a loopback connection was answered and metered.
    pub model: bool,
    /// A tool call over a loopback connection was answered.
    pub tools: bool,
    /// A stranger without the pass's placeholder was turned away.
    pub strangers: bool,
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How an engine stands here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is part of ecr.
    BuiltIn,
    /// Its version is one of those that ecr was tested with.
    Tested,
    /// Its version was not tested with ecr, and it passed the self-test of the jar.
    Rehearsed,
    /// It is there and is not started.
    Refused,
    /// It is not installed.
    NotInstalled,
}

/// An engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Engine {
    /// Its name in the configuration: `api`, `claude`, `codex`, `opencode`.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// A model in use is served by it.
    pub needed: bool,
    /// How it stands here.
    pub standing: Standing,
    /// Its program.
    pub path: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The SHA-256 of its program, in hexadecimal.
    pub sha256: Option<String>,
    /// The versions that ecr was tested with: first and last.
    pub tested: Option<[String; 2]>,
    /// Files of a machine-wide policy that would not be in force in the jar.
    pub policy: Vec<String>,
    /// Why it is not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A credential by name. Its value is nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credential {
    /// What kind it is: `none`, `api-key` or `oauth`.
    pub mode: String,
    /// The variable that it is taken from, or would be.
    pub variable: Option<String>,
    /// That variable is set.
    pub present: bool,
}

/// A model in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// `provider/name`.
    pub id: String,
    /// The reviewers that use it.
    pub agents: Vec<String>,
    /// The engine that serves it.
    pub engine: String,
    /// The address that its calls go to.
    pub address: Option<String>,
    /// What is shown there.
    pub credential: Credential,
    /// Nothing stands in the way.
    pub ok: bool,
}

/// A proxy in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proxy {
    /// The variable that names it.
    pub variable: String,
    /// Its host and port; user and password are left out.
    pub host: String,
}

/// How the network is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Network {
    /// Proxies for model calls; loopback addresses are never reached through one.
    pub proxies: Vec<Proxy>,
    /// Hosts that are reached without one (`NO_PROXY`).
    pub bypass: Option<String>,
    /// CA certificates were found, so that `https` can work.
    pub tls: bool,
}

/// The published schema (draft 2020-12).
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<DoctorV1>()
        .to_value()
}

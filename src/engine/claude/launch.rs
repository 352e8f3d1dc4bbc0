//! How Claude Code is started: its arguments, its environment, its configuration.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::{Value, json};

use super::event::Reader;
use crate::engine::cli::{
    CliDialect, CliFacts, EventReader, Launch, LaunchFile, PassFacts, RehearsalFacts, Version,
};
use crate::gateway::{Credential, FinalStyle, Protocol};
use crate::port::EngineError;

/// The name under which the tool door is known to it.
pub(super) const SERVER: &str = "tree";
/// The tool by which it takes a structured answer.
pub(super) const ANSWER_TOOL: &str = "StructuredOutput";
/// The configuration of its one MCP server. The placeholder stands in it: a file is seen by nobody else.
const MCP_FILE: &str = "mcp.json";
/// The system prompt, which is too long for an argument.
const SYSTEM_FILE: &str = "system.txt";
/// How much longer than the model door it waits for a byte, so that the door decides.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest that it waits for an answer to begin.
const LONGEST: Duration = Duration::from_secs(3600);
/// How long a tool call may take.
const TOOL_TIME: Duration = Duration::from_secs(90);

/// Every flag that it is started with, in order. `--safe-mode` is not among them: it drops the MCP server without
/// a word.
pub const FLAGS: &[&str] = &[
    "--print",
    "--output-format",
    "--verbose",
    "--model",
    "--no-session-persistence",
    "--no-chrome",
    "--permission-mode",
    "--permission-prompts",
    "--restricted",
    "--tools",
    "--setting-sources",
    "--settings",
    "--strict-mcp-config",
    "--disable-slash-commands",
    "--system-prompt-file",
    "--allowedTools",
    "--mcp-config",
    "--json-schema",
];

/// The flags that its help names, as [`CliFacts::flags`] wants them.
const NAMED: [&str; 17] = [
    "--print",
    "--output-format",
    "--verbose",
    "--model",
    "--no-session-persistence",
    "--no-chrome",
    "--permission-mode",
    "--permission-prompts",
    "--restricted",
    "--tools",
    "--setting-sources",
    "--settings",
    "--strict-mcp-config",
    "--disable-slash-commands",
    "--allowedTools",
    "--mcp-config",
    "--json-schema",
];

/// Variables that are set to `1`. The reviewed tree is nowhere near the child; these are for what it would look
/// for, send or start without it.
const SWITCHES: &[&str] = &[
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_AUTOUPDATER",
    "DISABLE_TELEMETRY",
    "DISABLE_ERROR_REPORTING",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK",
    "CLAUDE_CODE_SKIP_MCP_DEBUG_LOG_FILES",
];

/// What is always the same for Claude Code.
pub const FACTS: CliFacts = CliFacts {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    install: "npm install -g @anthropic-ai/claude-code@2.1.332",
    packages: PACKAGES,
    tested: (Version(2, 1, 332), Version(2, 1, 332)),
    least: (
        Version(2, 1, 259),
        "older ones cannot be told to ask nobody for permission",
    ),
    help: &["--help"],
    flags: &NAMED,
    style: FinalStyle::Claude,
    spelling: spelled,
    also_offered: &[],
    also_offered_with_schema: &[ANSWER_TOOL],
    rehearsal: RehearsalFacts {
        protocol: Protocol::AnthropicMessages,
        model: "claude-opus-5-5",
        tools: &["Bash", "Read", "Write", "Edit", "WebFetch", "Task", "Skill"],
    },
    at_once: 4,
    structured_output: true,
    policy: &[
        "/etc/claude-code",
        "/Library/Application Support/ClaudeCode",
    ],
    plan: Some("claude"),
};

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
const PACKAGES: &[&str] = &[
    "@anthropic-ai/claude-code-linux-arm64/claude",
    "@anthropic-ai/claude-code-linux-arm64-musl/claude",
];
#[cfg(all(target_os = "linux", not(target_arch = "aarch64")))]
const PACKAGES: &[&str] = &[
    "@anthropic-ai/claude-code-linux-x64/claude",
    "@anthropic-ai/claude-code-linux-x64-musl/claude",
];
#[cfg(all(target_os = "macos", target_arch = "aarch64"))]
const PACKAGES: &[&str] = &["@anthropic-ai/claude-code-darwin-arm64/claude"];
#[cfg(all(
    not(target_os = "linux"),
    not(all(target_os = "macos", target_arch = "aarch64"))
))]
const PACKAGES: &[&str] = &["@anthropic-ai/claude-code-darwin-x64/claude"];

/// A tool of the tool door as its model knows it.
fn spelled(tool: &str) -> String {
    format!("mcp__{SERVER}__{tool}")
}

/// Claude Code as an engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claude;

impl CliDialect for Claude {
    fn facts(&self) -> &'static CliFacts {
        &FACTS
    }

    fn launch(&self, pass: &PassFacts<'_>) -> Result<Launch, EngineError> {
        if pass.upstream.protocol != Protocol::AnthropicMessages {
            let provider = pass.model.provider();
            return Err(EngineError::Unavailable(format!(
                "Claude Code speaks Anthropic's protocol only, and `{provider}` speaks another: \
                 set engines.{provider} to \"opencode\" or \"api\""
            )));
        }
        let mut files = vec![LaunchFile {
            path: SYSTEM_FILE.into(),
            bytes: pass.system.as_bytes().to_vec(),
        }];
        if !pass.tools.is_empty() {
            files.push(LaunchFile {
                path: MCP_FILE.into(),
                bytes: mcp(pass).to_string().into_bytes(),
            });
        }
        Ok(Launch {
            args: arguments(pass),
            env: environment(pass),
            stdin: prompt(pass.task).into_bytes(),
            files,
            ..Launch::default()
        })
    }

    fn reader(&self, pass: &PassFacts<'_>) -> Box<dyn EventReader> {
        let tools = pass.tools.iter().map(|tool| spelled(tool));
        let answer = pass.schema.map(|_| ANSWER_TOOL.to_owned());
        Box::new(Reader::new(
            tools.chain(answer).collect(),
            pass.schema.is_some(),
        ))
    }
}

fn arguments(pass: &PassFacts<'_>) -> Vec<OsString> {
    let file = |name: &str| pass.root.join(name).into_os_string();
    let mut args: Vec<OsString> = [
        "--print",
        "--output-format",
        "stream-json",
        "--verbose",
        "--model",
        pass.model.name(),
        "--no-session-persistence",
        "--no-chrome",
        "--permission-mode",
        "dontAsk",
        "--permission-prompts",
        "none",
        "--restricted",
        "--tools",
        "",
        "--setting-sources",
        "",
        "--settings",
        r#"{"disableAllHooks":true}"#,
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--system-prompt-file",
    ]
    .map(Into::into)
    .to_vec();
    args.push(file(SYSTEM_FILE));
    if !pass.tools.is_empty() {
        let names: Vec<String> = pass.tools.iter().map(|tool| spelled(tool)).collect();
        args.extend(["--allowedTools".into(), names.join(",").into()]);
        args.extend(["--mcp-config".into(), file(MCP_FILE)]);
    }
    if let Some(schema) = pass.schema {
        let mut schema = schema.clone();
        // It knows draft-07 only and refuses to start with the name of another; ours use nothing later.
        if let Some(object) = schema.as_object_mut() {
            object.remove("$schema");
        }
        args.extend(["--json-schema".into(), schema.to_string().into()]);
    }
    args
}

/// The task, never such that it is taken for a command of Claude Code's own (`/help`), and never empty.
fn prompt(task: &str) -> String {
    match task.chars().next() {
        Some(first) if first.is_alphanumeric() => task.to_owned(),
        _ => format!("The task:\n{task}"),
    }
}

fn mcp(pass: &PassFacts<'_>) -> Value {
    json!({"mcpServers": {SERVER: {
        "type": "http",
        "url": format!("http://{}/mcp", pass.doors),
        "headers": {"Authorization": format!("Bearer {}", pass.placeholder.expose())},
        "timeout": milliseconds(TOOL_TIME),
    }}})
}

fn environment(pass: &PassFacts<'_>) -> Vec<(OsString, OsString)> {
    // The kind of the placeholder is that of the credential: it decides which headers it sends besides.
    let key = match pass.upstream.credential {
        Credential::Oauth(_) => "CLAUDE_CODE_OAUTH_TOKEN",
        _ => "ANTHROPIC_API_KEY",
    };
    let stall = pass.limits.stall + PATIENCE;
    let values = [
        ("PATH", "/nonexistent".to_owned()),
        (key, pass.placeholder.expose().clone()),
        ("ANTHROPIC_BASE_URL", format!("http://{}", pass.doors)),
        // What is final the model door answers with a status that is not tried again. An answer that breaks off
        // it asks for once more.
        ("CLAUDE_CODE_MAX_RETRIES", "2".to_owned()),
        (
            "API_TIMEOUT_MS",
            milliseconds(pass.time.min(LONGEST)).to_string(),
        ),
        (
            "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS",
            milliseconds(stall).to_string(),
        ),
        (
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            pass.limits.max_output_per_call.to_string(),
        ),
        ("MCP_PROTOCOL_NEGOTIATION", "legacy".to_owned()),
    ];
    let values = values.map(|(name, value)| (name.into(), value.into()));
    let switches = SWITCHES.iter().map(|name| (name.into(), "1".into()));
    values.into_iter().chain(switches).collect()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::gateway::{PassLimits, Upstream};
    use crate::model::{ModelId, Secret};

    /// What its help does not name. One that is gone ends it before it asks anything.
    const HIDDEN: &[&str] = &["--system-prompt-file"];

    fn launch(credential: Credential, schema: Option<&Value>) -> Launch {
        let upstream = Upstream {
            provider: "anthropic".to_owned(),
            protocol: Protocol::AnthropicMessages,
            base_url: "https://api.anthropic.com".parse().unwrap(),
            credential,
        };
        let tools = ["read".to_owned(), "finish".to_owned()];
        let pass = PassFacts {
            model: &ModelId::new("anthropic/claude-opus-5-5").unwrap(),
            upstream: &upstream,
            system: "You review.",
            task: "/help @/etc/passwd",
            schema,
            tools: if schema.is_none() { &tools } else { &[] },
            doors: "127.0.0.1:4711".parse().unwrap(),
            placeholder: &Secret::new("ecr-pass-1".to_owned()),
            root: Path::new("/private"),
            limits: &PassLimits::default(),
            time: Duration::from_secs(600),
        };
        Claude.launch(&pass).unwrap()
    }

    fn key() -> Credential {
        Credential::ApiKey(Secret::new(["real", "key"].join("-")))
    }

    fn flags(launch: &Launch) -> BTreeSet<&str> {
        let args = launch.args.iter().map(|arg| arg.to_str().unwrap());
        args.filter(|arg| arg.starts_with("--")).collect()
    }

    #[test]
    fn the_list_of_flags_is_that_of_the_arguments() {
        let schema = json!({"type": "object"});
        let (tools, answer) = (launch(key(), None), launch(key(), Some(&schema)));
        let used: BTreeSet<&str> = flags(&tools).union(&flags(&answer)).copied().collect();
        assert_eq!(used, FLAGS.iter().copied().collect());
        let asked: BTreeSet<&str> = FACTS.flags.iter().chain(HIDDEN).copied().collect();
        assert_eq!(used, asked);
        assert!(!used.contains("--safe-mode"));
    }

    #[test]
    fn no_secret_and_no_strangers_word_is_an_argument() {
        let launch = launch(key(), None);
        let all = format!("{:?}", launch.args);
        for word in ["ecr-pass-1", "real-key", "passwd", "You review"] {
            assert!(!all.contains(word), "{all}");
        }
        assert_eq!(launch.stdin, b"The task:\n/help @/etc/passwd");
        assert!(!format!("{launch:?}").contains("real-key"));
        let args: Vec<&str> = launch.args.iter().map(|a| a.to_str().unwrap()).collect();
        let after = |flag: &str| args[args.iter().position(|a| *a == flag).unwrap() + 1];
        assert_eq!(after("--tools"), "");
        assert_eq!(after("--setting-sources"), "");
        assert_eq!(after("--model"), "claude-opus-5-5");
        assert_eq!(after("--allowedTools"), "mcp__tree__read,mcp__tree__finish");
        assert_eq!(after("--mcp-config"), "/private/mcp.json");
    }

    #[test]
    fn a_schema_pass_has_no_tools() {
        let schema =
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"});
        let launch = launch(key(), Some(&schema));
        assert!(!flags(&launch).contains("--mcp-config"));
        assert_eq!(launch.files.len(), 1);
        assert_eq!(launch.args.last().unwrap(), r#"{"type":"object"}"#);
    }

    #[test]
    fn the_placeholder_is_of_the_credentials_kind() {
        let names = |launch: &Launch| -> Vec<String> {
            let env = launch.env.iter();
            env.filter(|(_, value)| value == "ecr-pass-1")
                .map(|(name, _)| name.to_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(&launch(key(), None)), ["ANTHROPIC_API_KEY"]);
        let plan = Credential::Oauth(Secret::new("t".to_owned()));
        assert_eq!(names(&launch(plan, None)), ["CLAUDE_CODE_OAUTH_TOKEN"]);
    }

    #[test]
    fn only_anthropics_protocol() {
        let upstream = Upstream {
            provider: "acme".to_owned(),
            protocol: Protocol::OpenAiChat,
            base_url: "https://acme.test".parse().unwrap(),
            credential: key(),
        };
        let error = Claude
            .launch(&PassFacts {
                model: &ModelId::new("acme/big").unwrap(),
                upstream: &upstream,
                system: "",
                task: "",
                schema: None,
                tools: &[],
                doors: "127.0.0.1:4711".parse().unwrap(),
                placeholder: &Secret::new(String::new()),
                root: Path::new("/private"),
                limits: &PassLimits::default(),
                time: Duration::ZERO,
            })
            .unwrap_err();
        assert!(error.to_string().contains("engines.acme"), "{error}");
    }
}

//! How Codex is started: its arguments and its whole environment.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::catalog::catalog;
use super::event::Reader;
use crate::engine::api::strict;
use crate::engine::cli::{
    CliDialect, CliFacts, EventReader, Launch, LaunchFile, PassFacts, RehearsalFacts, Version,
};
use crate::gateway::{FinalStyle, Protocol};
use crate::port::EngineError;

/// The name of the tool door.
const SERVER: &str = "tree";
/// The variable with the placeholder for the model door.
const KEY: &str = "ECR_MODEL_DOOR";
/// The variable with the placeholder for the tool door.
const TOKEN: &str = "ECR_TOOL_DOOR";
const SYSTEM_FILE: &str = "system.txt";
const SCHEMA_FILE: &str = "schema.json";
const CATALOG_FILE: &str = "catalog.json";
/// Codex refuses a longer prompt, in characters.
const LONGEST_TASK: usize = 1_048_576;
/// How much longer than the model door it waits for a byte, so that the door decides.
const PATIENCE: Duration = Duration::from_secs(60);

/// Every flag that it is started with, each once.
pub const FLAGS: &[&str] = &[
    "--json",
    "--strict-config",
    "--ignore-user-config",
    "--ignore-rules",
    "--ephemeral",
    "--skip-git-repo-check",
    "--color",
    "--sandbox",
    "--cd",
    "--model",
    "--config",
    "--disable",
    "--output-schema",
];

/// Settings that are the same for every pass. With `--strict-config` one that Codex does not know ends it.
const SETTINGS: &[&str] = &[
    "model_provider=\"ecr\"",
    "model_providers.ecr.name=\"ecr\"",
    "model_providers.ecr.env_key=\"ECR_MODEL_DOOR\"",
    "model_providers.ecr.wire_api=\"responses\"",
    // The model door asks again by itself; an answer that breaks off is asked for again from here.
    "model_providers.ecr.request_max_retries=0",
    "model_providers.ecr.stream_max_retries=2",
    "approval_policy=\"never\"",
    "shell_environment_policy={inherit=\"none\",ignore_default_excludes=false,experimental_use_profile=false}",
    "allow_login_shell=false",
    "project_doc_max_bytes=0",
    "skills.include_instructions=false",
    "skills.bundled.enabled=false",
    "web_search=\"disabled\"",
    "agents.enabled=false",
    "tools.experimental_request_user_input={enabled=false}",
    "history.persistence=\"none\"",
    "analytics.enabled=false",
    "feedback.enabled=false",
    "check_for_update_on_startup=false",
    "include_permissions_instructions=false",
    "include_apps_instructions=false",
    "include_collaboration_mode_instructions=false",
    "include_environment_context=false",
];

/// Settings of a pass with tools. Without `required` it goes on without them.
const TOOL_SETTINGS: &[&str] = &[
    "mcp_servers.tree.bearer_token_env_var=\"ECR_TOOL_DOOR\"",
    "mcp_servers.tree.required=true",
    "mcp_servers.tree.startup_timeout_sec=20",
    "mcp_servers.tree.tool_timeout_sec=90",
];

/// Features that are switched off. One that Codex does not know ends it.
const DISABLED: &[&str] = &[
    "shell_tool",
    "unified_exec",
    "plugins",
    "apps",
    "goals",
    "multi_agent",
    "image_generation",
    "view_image",
    "tool_suggest",
    "skill_search",
    "hooks",
    "browser_use",
    "computer_use",
    "sleep_tool",
    "shell_snapshot",
    "unbounded_connection_retries",
    "memories",
    "remote_plugin",
    "skill_mcp_dependency_install",
    "in_app_browser",
    "workspace_dependencies",
];

/// What is always the same for Codex.
pub const FACTS: CliFacts = CliFacts {
    name: "codex",
    title: "Codex",
    program: "codex",
    install: "npm install -g @openai/codex@0.171.0",
    packages: PACKAGES,
    tested: (Version(0, 171, 0), Version(0, 171, 0)),
    least: (
        Version(0, 171, 0),
        "older ones were never seen to keep to this configuration",
    ),
    help: &["exec", "--help"],
    flags: FLAGS,
    style: FinalStyle::Codex,
    spelling: spelled,
    // It always has them beside an MCP server; the tool door refuses what they ask.
    also_offered: &[
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ],
    also_offered_with_schema: &[],
    rehearsal: RehearsalFacts {
        protocol: Protocol::OpenAiResponses,
        model: "gpt-5.5",
        tools: &[
            "exec_command",
            "shell",
            "local_shell",
            "apply_patch",
            "view_image",
            "web_search",
        ],
    },
    at_once: 4,
    // It passes the schema on; the answer is checked by us.
    structured_output: true,
    policy: &["/etc/codex"],
    plan: Some("codex"),
};

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
const PACKAGES: &[&str] =
    &["@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex"];
#[cfg(all(target_os = "linux", not(target_arch = "aarch64")))]
const PACKAGES: &[&str] = &["@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"];
#[cfg(all(target_os = "macos", target_arch = "aarch64"))]
const PACKAGES: &[&str] = &["@openai/codex-darwin-arm64/vendor/aarch64-apple-darwin/bin/codex"];
#[cfg(all(
    not(target_os = "linux"),
    not(all(target_os = "macos", target_arch = "aarch64"))
))]
const PACKAGES: &[&str] = &["@openai/codex-darwin-x64/vendor/x86_64-apple-darwin/bin/codex"];

/// A tool of the tool door as the model door reads it: a name in a namespace.
fn spelled(tool: &str) -> String {
    format!("mcp__{SERVER}__{tool}")
}

/// Codex as an engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codex;

impl CliDialect for Codex {
    fn facts(&self) -> &'static CliFacts {
        &FACTS
    }

    fn launch(&self, pass: &PassFacts<'_>) -> Result<Launch, EngineError> {
        if pass.upstream.protocol != Protocol::OpenAiResponses {
            let provider = pass.model.provider();
            return Err(EngineError::Unavailable(format!(
                "Codex speaks the protocol `openai-responses` only, and {provider} is set up with another one: \
                 set engines.{provider} to \"opencode\" or \"api\""
            )));
        }
        if pass.task.chars().count() > LONGEST_TASK {
            return Err(EngineError::ContextOverflow);
        }
        let model = pass.model.name();
        let mut files = vec![
            file(SYSTEM_FILE, pass.system.to_owned()),
            file(CATALOG_FILE, catalog(model).to_string()),
        ];
        files.extend(
            pass.schema
                .map(|schema| file(SCHEMA_FILE, strict(schema).to_string())),
        );
        Ok(Launch {
            args: arguments(pass),
            env: environment(pass),
            stdin: pass.task.as_bytes().to_vec(),
            files,
            read: Vec::new(),
            locked: &["home"],
            ..Launch::default()
        })
    }

    fn reader(&self, pass: &PassFacts<'_>) -> Box<dyn EventReader> {
        Box::new(Reader::new(pass.schema))
    }
}

fn file(name: &str, text: String) -> LaunchFile {
    LaunchFile {
        path: name.into(),
        bytes: text.into_bytes(),
    }
}

/// A text as a TOML string: TOML has all that JSON writes.
fn toml(text: &str) -> String {
    Value::from(text).to_string()
}

fn path(root: &Path, name: &str) -> String {
    root.join(name).to_string_lossy().into_owned()
}

/// Neither the task nor a secret is an argument: those are seen by everybody.
fn arguments(pass: &PassFacts<'_>) -> Vec<OsString> {
    let at = |name: &str| path(pass.root, name);
    let cwd = at("cwd");
    let idle = (pass.limits.stall + PATIENCE).as_millis();
    let mut settings: Vec<String> = SETTINGS.iter().map(ToString::to_string).collect();
    settings.extend([
        format!(
            "model_providers.ecr.base_url={}",
            toml(&format!("http://{}/v1", pass.doors))
        ),
        format!("model_providers.ecr.stream_idle_timeout_ms={idle}"),
        format!("model_instructions_file={}", toml(&at(SYSTEM_FILE))),
        format!("model_catalog_json={}", toml(&at(CATALOG_FILE))),
        format!("projects={{{}={{trust_level=\"untrusted\"}}}}", toml(&cwd)),
    ]);
    if !pass.tools.is_empty() {
        settings.push(format!(
            "mcp_servers.{SERVER}.url={}",
            toml(&format!("http://{}/mcp", pass.doors))
        ));
        settings.extend(TOOL_SETTINGS.iter().map(ToString::to_string));
    }
    let mut words: Vec<String> = [
        "exec",
        "--json",
        "--strict-config",
        "--ignore-user-config",
        "--ignore-rules",
        "--ephemeral",
        "--skip-git-repo-check",
        "--color",
        "never",
        "--sandbox",
        "read-only",
        "--cd",
        &cwd,
        "--model",
        pass.model.name(),
    ]
    .map(str::to_owned)
    .to_vec();
    for setting in settings {
        words.extend(["--config".to_owned(), setting]);
    }
    for feature in DISABLED {
        words.extend(["--disable".to_owned(), (*feature).to_owned()]);
    }
    if pass.schema.is_some() {
        words.extend(["--output-schema".to_owned(), at(SCHEMA_FILE)]);
    }
    words.push("-".to_owned());
    words.into_iter().map(OsString::from).collect()
}

/// Its variables besides those that name the private folders.
fn environment(pass: &PassFacts<'_>) -> Vec<(OsString, OsString)> {
    let placeholder = pass.placeholder.expose();
    [
        // It needs no other program, and starts none that it does not find.
        ("PATH", "/nonexistent"),
        ("GIT_DIR", "/nonexistent"),
        ("CODEX_HOME", &path(pass.root, "config")),
        ("NO_PROXY", "*"),
        (KEY, placeholder),
        (TOKEN, placeholder),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gateway::{Credential, PassLimits, Upstream};
    use crate::model::{ModelId, Secret};

    fn launched(
        schema: Option<&Value>,
        task: &str,
        protocol: Protocol,
    ) -> Result<Launch, EngineError> {
        let tools = match schema {
            None => vec!["read".to_owned()],
            Some(_) => Vec::new(),
        };
        Codex.launch(&PassFacts {
            model: &ModelId::new("openai/gpt-5.5").unwrap(),
            upstream: &Upstream {
                provider: "openai".to_owned(),
                protocol,
                base_url: "https://api.openai.com/v1".parse().unwrap(),
                credential: Credential::None,
            },
            system: "The system prompt.",
            task,
            schema,
            tools: &tools,
            doors: "127.0.0.1:7".parse().unwrap(),
            placeholder: &Secret::new("the-placeholder".to_owned()),
            root: Path::new("/run/o\"ne"),
            limits: &PassLimits::default(),
            time: Duration::from_secs(60),
        })
    }

    fn words(launch: &Launch) -> Vec<&str> {
        launch.args.iter().map(|w| w.to_str().unwrap()).collect()
    }

    #[test]
    fn the_flags_are_those_of_the_list() {
        let schema = json!({"type": "object", "properties": {}});
        let launch = launched(Some(&schema), "The task.", Protocol::OpenAiResponses).unwrap();
        let mut flags: Vec<_> = words(&launch);
        flags.retain(|word| word.starts_with("--"));
        flags.dedup();
        assert_eq!(flags, FLAGS, "its help is searched for exactly these");
        assert_eq!(words(&launch).last(), Some(&"-"), "the task comes by stdin");
        let all = words(&launch).join(" ");
        assert!(!all.contains("mcp_servers") && !all.contains("default_permissions"));
    }

    #[test]
    fn the_doors_are_all_it_is_told_of() {
        let launch = launched(None, "The task.", Protocol::OpenAiResponses).unwrap();
        let all = words(&launch).join(" ");
        for part in [
            "--sandbox read-only",
            "mcp_servers.tree.required=true",
            "mcp_servers.tree.url=\"http://127.0.0.1:7/mcp\"",
            "model_providers.ecr.base_url=\"http://127.0.0.1:7/v1\"",
            "projects={\"/run/o\\\"ne/cwd\"={trust_level=\"untrusted\"}}",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        for absent in [
            "the-placeholder",
            "The task.",
            "The system",
            "--output-schema",
        ] {
            assert!(!all.contains(absent), "{absent}");
        }
        assert_eq!(launch.stdin, b"The task.");
        let names: Vec<_> = launch
            .env
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            ["PATH", "GIT_DIR", "CODEX_HOME", "NO_PROXY", KEY, TOKEN]
        );
        for (setting, name) in [(SETTINGS, KEY), (TOOL_SETTINGS, TOKEN)] {
            assert!(setting.iter().any(|s| s.contains(name)), "{name}");
        }
    }

    #[test]
    fn the_schema_is_the_strict_one() {
        let schema = json!({"type": "object", "required": ["a"],
            "properties": {"a": {"type": "string", "minLength": 1}, "b": {"type": "integer"}}});
        let launch = launched(Some(&schema), "The task.", Protocol::OpenAiResponses).unwrap();
        let file = launch
            .files
            .iter()
            .find(|f| f.path == Path::new(SCHEMA_FILE))
            .unwrap();
        let given: Value = serde_json::from_slice(&file.bytes).unwrap();
        assert_eq!(
            given,
            json!({"type": "object", "required": ["a", "b"], "additionalProperties": false,
                "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}}})
        );
    }

    #[test]
    fn what_it_cannot_do_is_said_before_it_starts() {
        let error = launched(None, "x", Protocol::OpenAiChat).unwrap_err();
        assert!(error.to_string().contains("engines.openai"), "{error}");
        let long = "é".repeat(LONGEST_TASK);
        assert!(launched(None, &long, Protocol::OpenAiResponses).is_ok());
        let error = launched(None, &(long + "x"), Protocol::OpenAiResponses).unwrap_err();
        assert_eq!(error, EngineError::ContextOverflow);
    }
}

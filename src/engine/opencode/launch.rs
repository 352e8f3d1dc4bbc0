//! How `OpenCode` is started: its arguments and its whole environment.

use std::ffi::OsString;
use std::path::PathBuf;

use super::config::{config, spelled};
use super::event::Reader;
use crate::engine::cli::{
    CliDialect, CliFacts, EventReader, Launch, LaunchFile, PassFacts, RehearsalFacts, Version,
};
use crate::gateway::{FinalStyle, Protocol};
use crate::port::EngineError;

/// The name of our agent.
pub(super) const AGENT: &str = "reviewer";
/// The name of the provider that stands for the model door; a name of its own, so that nothing of the
/// built-in catalogue is mixed in.
pub(super) const PROVIDER: &str = "ecr";
/// The folder of its configuration, where it also starts: from any other one it would look for plugins in
/// every folder above.
const HOME: &str = "config/opencode";

/// Flags that it is started with.
const FLAGS: &[&str] = &["--format", "--model", "--agent", "--title"];

/// Variables that are set to `1`. The reviewed tree is nowhere near the child; these are for what a
/// later version may find without it.
const SWITCHES: &[&str] = &[
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_PURE",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_AUTOCOMPACT",
];

/// What is always the same for `OpenCode`.
pub const FACTS: CliFacts = CliFacts {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    install: "npm install -g opencode-ai@1.18.33",
    packages: PACKAGES,
    tested: (Version(1, 18, 33), Version(1, 18, 33)),
    least: (
        Version(1, 18, 0),
        "older ones were never seen to keep to these permissions",
    ),
    help: &["run", "--help"],
    flags: FLAGS,
    style: FinalStyle::OpenCode,
    spelling: spelled,
    also_offered: &[],
    also_offered_with_schema: &[],
    rehearsal: RehearsalFacts {
        protocol: Protocol::OpenAiChat,
        model: "org/rehearsal",
        tools: &["bash", "read", "write", "edit", "webfetch", "task"],
    },
    // Each takes a core to start, and half a gigabyte.
    at_once: 2,
    // Of its three kinds of provider one passes a schema on.
    structured_output: false,
    policy: &["/etc/opencode", "/Library/Application Support/opencode"],
    plan: None,
};

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
const PACKAGES: &[&str] = &[
    "opencode-linux-arm64/bin/opencode",
    "opencode-linux-arm64-musl/bin/opencode",
];
// The baseline one runs on every processor of the kind.
#[cfg(all(target_os = "linux", not(target_arch = "aarch64")))]
const PACKAGES: &[&str] = &[
    "opencode-linux-x64-baseline/bin/opencode",
    "opencode-linux-x64/bin/opencode",
    "opencode-linux-x64-baseline-musl/bin/opencode",
    "opencode-linux-x64-musl/bin/opencode",
];
#[cfg(all(target_os = "macos", target_arch = "aarch64"))]
const PACKAGES: &[&str] = &["opencode-darwin-arm64/bin/opencode"];
#[cfg(all(
    not(target_os = "linux"),
    not(all(target_os = "macos", target_arch = "aarch64"))
))]
const PACKAGES: &[&str] = &[
    "opencode-darwin-x64-baseline/bin/opencode",
    "opencode-darwin-x64/bin/opencode",
];

/// `OpenCode` as an engine.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenCode;

impl CliDialect for OpenCode {
    fn facts(&self) -> &'static CliFacts {
        &FACTS
    }

    fn launch(&self, pass: &PassFacts<'_>) -> Result<Launch, EngineError> {
        let file = PathBuf::from(HOME).join("opencode.json");
        Ok(Launch {
            args: arguments(pass.model.name()),
            env: environment(),
            stdin: pass.task.as_bytes().to_vec(),
            files: vec![LaunchFile {
                path: file,
                bytes: config(pass).into_bytes(),
            }],
            cwd: Some(HOME.into()),
            read: vec!["/dev/urandom".into()],
            // What it cannot write it installs nothing into.
            locked: &["config", "home"],
            exec: Vec::new(),
            proc_self: true,
        })
    }

    fn reader(&self, _: &PassFacts<'_>) -> Box<dyn EventReader> {
        Box::new(Reader::default())
    }
}

/// The arguments of a pass whose task comes over stdin. The title saves the request that would ask the
/// model for one; the task is no argument, for those are seen by everybody and get quotes.
fn arguments(model: &str) -> Vec<OsString> {
    let model = format!("{PROVIDER}/{model}");
    [
        "run",
        "--format",
        "json",
        "--model",
        model.as_str(),
        "--agent",
        AGENT,
        "--title",
        "review",
    ]
    .map(OsString::from)
    .to_vec()
}

/// Its variables besides those that name the private folders.
fn environment() -> Vec<(OsString, OsString)> {
    let switches = SWITCHES.iter().map(|switch| (switch.into(), "1".into()));
    // It needs no other program; with no PATH at all it takes a default one.
    switches
        .chain([("PATH".into(), "/nonexistent".into())])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_no_secret_and_no_task() {
        let arguments = arguments("org/big");
        assert_eq!(
            arguments.join(&OsString::from(" ")),
            "run --format json --model ecr/org/big --agent reviewer --title review"
        );
        let flags: Vec<_> = arguments
            .iter()
            .filter(|word| word.to_str().unwrap().starts_with("--"))
            .collect();
        assert_eq!(flags, FLAGS, "its help is searched for exactly these");
    }

    #[test]
    fn the_environment_is_a_list_of_its_own() {
        for (name, value) in environment() {
            let (name, value) = (name.to_str().unwrap(), value.to_str().unwrap());
            assert!(
                (name, value) == ("PATH", "/nonexistent")
                    || (name.starts_with("OPENCODE_") && value == "1"),
                "{name}={value}"
            );
            // Set, it would replace our tools by one that runs code.
            assert_ne!(name, "OPENCODE_EXPERIMENTAL_CODE_MODE");
        }
    }
}

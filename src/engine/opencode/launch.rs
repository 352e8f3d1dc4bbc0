//! How `OpenCode` is started: its arguments and its whole environment.

use std::ffi::OsString;
use std::path::Path;

/// The name of our agent.
pub const AGENT: &str = "reviewer";
/// The name of the provider that stands for the model door; a name of its own, so that nothing of the
/// built-in catalogue is mixed in.
pub(super) const PROVIDER: &str = "ecr";

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

/// The arguments of a pass whose task comes over stdin. The title saves the request that would ask the
/// model for one; the task is no argument, for those are seen by everybody and get quotes.
pub fn arguments(model: &str) -> Vec<OsString> {
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

/// The whole environment, for a child whose folders are in `root`. It starts in its configuration's
/// folder ([`home`]): from any other it would look for plugins in every folder above.
pub fn environment(root: &Path) -> Vec<(OsString, OsString)> {
    let folders = [
        ("HOME", "home"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
        ("TMPDIR", "tmp"),
    ];
    folders
        .iter()
        .map(|(variable, folder)| (OsString::from(variable), root.join(folder).into()))
        // It needs no other program; with no PATH at all it takes a default one.
        .chain([("PATH".into(), "/nonexistent".into())])
        .chain(SWITCHES.iter().map(|switch| (switch.into(), "1".into())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_no_secret_and_no_task() {
        assert_eq!(
            arguments("org/big").join(&OsString::from(" ")),
            "run --format json --model ecr/org/big --agent reviewer --title review"
        );
    }

    #[test]
    fn the_environment_is_a_list_of_its_own() {
        let environment = environment(Path::new("/private"));
        let get = |name: &str| {
            let found = environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_str().unwrap())
        };
        assert_eq!(get("HOME"), Some("/private/home"));
        assert_eq!(get("XDG_CONFIG_HOME"), Some("/private/config"));
        assert_eq!(get("PATH"), Some("/nonexistent"));
        assert_eq!(get("OPENCODE_PURE"), Some("1"));
        for (name, value) in &environment {
            let (name, value) = (name.to_str().unwrap(), value.to_str().unwrap());
            assert!(
                value.starts_with("/private/")
                    || value == "/nonexistent"
                    || (name.starts_with("OPENCODE_") && value == "1"),
                "{name}={value}"
            );
        }
        // Set, it would replace our tools by one that runs code.
        assert_eq!(get("OPENCODE_EXPERIMENTAL_CODE_MODE"), None);
    }
}

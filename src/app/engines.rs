//! Which engine serves which model: a pure function of the configuration, and the engines made of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{AppError, Environment};
use crate::config::{EngineChoice, LoadedConfig};
use crate::engine::Doors;
use crate::engine::api::{ApiEngine, ApiSettings};
use crate::engine::claude::Claude;
use crate::engine::cli::{
    CliDialect, CliEngine, CliSettings, Rehearsals, find_program, policy_files, policy_words,
};
use crate::engine::codex::Codex;
use crate::engine::opencode::OpenCode;
use crate::model::{ModelId, SandboxInfo};
use crate::port::ReviewEngine;
use crate::process::sandbox::{Level, probe};

/// How engine processes are started.
#[derive(Debug, Clone)]
pub(super) struct Confinement {
    /// Folders of the tree under review: nothing in them is started.
    pub(super) reviewed: Vec<PathBuf>,
    /// The least that the sandbox has to enforce.
    pub(super) require: Level,
}

/// The engine of a model: what the agent says, else what the configuration says of its provider, else the
/// provider's own tool. Nothing else is asked, and what cannot run is an error and no reason for another.
pub(super) fn choice(
    model: &ModelId,
    agent: Option<EngineChoice>,
    loaded: &LoadedConfig,
) -> EngineChoice {
    agent.unwrap_or_else(|| loaded.config.engine_for(model.provider()))
}

/// The tool that an engine starts; none for our own loop.
pub(super) fn dialect(choice: EngineChoice) -> Option<Arc<dyn CliDialect>> {
    match choice {
        EngineChoice::Api => None,
        EngineChoice::Claude => Some(Arc::new(Claude)),
        EngineChoice::Opencode => Some(Arc::new(OpenCode)),
        EngineChoice::Codex => Some(Arc::new(Codex)),
    }
}

/// Refuses an engine that cannot serve `model` here, before anything is read: its tool is not installed.
pub(super) fn check(
    model: &ModelId,
    choice: EngineChoice,
    environment: &Environment,
    reviewed: &[&Path],
) -> Result<(), AppError> {
    let provider = model.provider();
    let word = choice.word();
    let own = format!(
        "choose ecr's own engine in config.jsonc: \"engines\": {{ \"{provider}\": \"api\" }} (it needs an API key or a local server)"
    );
    let Some(dialect) = dialect(choice) else {
        return Ok(());
    };
    let facts = dialect.facts();
    if let Some(place) = policy_files(facts).first() {
        return Err(AppError::new(
            format!("{model}: {}", policy_words(facts, place)),
            own,
        ));
    }
    find_program(facts, &search(environment), reviewed)
        .map(drop)
        .map_err(|error| {
            AppError::new(
                format!(
                    "{model}: models of `{provider}` are served by {} (the engine `{word}`), which cannot be started: {error}",
                    facts.title
                ),
                format!("install it (`{}`), or {own}", facts.install),
            )
        })
}

/// The engine itself.
pub(super) fn engine(
    choice: EngineChoice,
    doors: &Arc<Doors>,
    environment: &Environment,
    confinement: &Confinement,
) -> Arc<dyn ReviewEngine> {
    let doors = Arc::clone(doors);
    match dialect(choice) {
        None => Arc::new(ApiEngine::new(doors, ApiSettings::default())),
        Some(dialect) => Arc::new(CliEngine::new(
            dialect,
            doors,
            cli_settings(environment, confinement),
        )),
    }
}

/// Where tools are looked for, and how well they have to be contained.
pub(super) fn cli_settings(environment: &Environment, confinement: &Confinement) -> CliSettings {
    CliSettings {
        search: search(environment),
        reviewed: confinement.reviewed.clone(),
        require: confinement.require,
        rehearsals: Rehearsals {
            folder: environment
                .state_folder()
                .map(|folder| folder.join("rehearsals")),
            ..Rehearsals::default()
        },
    }
}

/// What is enforced on the processes of these engines, for the output.
pub(super) fn sandbox(choices: impl IntoIterator<Item = EngineChoice>) -> SandboxInfo {
    let starts = |choice| dialect(choice).is_some();
    if !choices.into_iter().any(starts) {
        return SandboxInfo {
            level: "not_needed".to_owned(),
            missing: Vec::new(),
        };
    }
    let support = probe();
    SandboxInfo {
        level: support.level.to_string(),
        missing: support.missing.iter().map(ToString::to_string).collect(),
    }
}

fn search(environment: &Environment) -> OsString {
    environment.get("PATH").unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::config::ReviewConfig;

    fn model(text: &str) -> ModelId {
        ModelId::new(text).unwrap()
    }

    fn environment(path: &Path) -> Environment {
        Environment::new("/w".into(), [("PATH".into(), path.into())])
    }

    #[test]
    fn the_configuration_alone_decides() {
        let mut config = ReviewConfig::default();
        config.engines.insert("acme".to_owned(), EngineChoice::Api);
        config
            .engines
            .insert("openai".to_owned(), EngineChoice::Claude);
        for (id, expected) in [
            ("anthropic/claude-opus-5-5", EngineChoice::Claude),
            ("openai/gpt-5.5", EngineChoice::Claude),
            ("acme/big", EngineChoice::Api),
            ("google/gemini", EngineChoice::Opencode),
            (
                "openrouter/anthropic/claude-opus-5-5",
                EngineChoice::Opencode,
            ),
        ] {
            let engine = config.engine_for(model(id).provider());
            assert_eq!(engine, expected, "{id}");
            assert_eq!(EngineChoice::from_word(engine.word()), Some(engine));
        }
    }

    #[test]
    fn what_is_not_installed_is_an_error_with_both_ways_out() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path());
        let id = model("anthropic/claude-opus-5-5");
        let error = check(&id, EngineChoice::Claude, &environment, &[]).unwrap_err();
        let hint = error.hint.unwrap();
        assert!(error.message.contains("`claude` is not on PATH"));
        assert!(
            hint.contains("npm install -g @anthropic-ai/claude-code"),
            "{hint}"
        );
        assert!(
            hint.contains("\"engines\": { \"anthropic\": \"api\" }"),
            "{hint}"
        );
        assert!(check(&id, EngineChoice::Api, &environment, &[]).is_ok());

        let program = folder.path().join("claude");
        std::fs::write(&program, b"\x7fELF....").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(check(&id, EngineChoice::Claude, &environment, &[]).is_ok());
        // The same program, but the author of the change put it there.
        let error = check(&id, EngineChoice::Claude, &environment, &[folder.path()]).unwrap_err();
        assert!(error.message.contains("inside the tree under review"));
    }

    #[test]
    fn a_process_has_a_level_and_the_loop_needs_none() {
        assert_eq!(sandbox([EngineChoice::Api]).level, "not_needed");
        let level = probe().level.to_string();
        assert_eq!(
            sandbox([EngineChoice::Api, EngineChoice::Claude]).level,
            level
        );
    }
}

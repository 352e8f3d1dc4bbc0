//! Loads a whole setup: configuration, agents, coordinator, shared rules.

use super::agents::{Agent, Prompt, agent, coordinator, shared};
use super::diagnostic::{ConfigErrors, Diagnostic, Source};
use super::env::REVIEWER_MODEL;
use super::resolve::parse_config;
use super::roster;
use super::routing::{RoutingManifest, parse_routing};
use super::settings::ReviewConfig;
use super::setup::{SetupFiles, SetupLocation, SetupOrigin, find_setup_folder};
use crate::model::ModelId;
use crate::tree::{MemoryTree, Tree};

/// What overrides the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The value of `--model`.
    pub model: Option<String>,
    /// The value of `REVIEWER_MODEL`; blank counts as unset.
    pub reviewer_model: Option<String>,
}

/// A setup, ready for a review.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: ReviewConfig,
    /// The reviewers, sorted by file name; at least one.
    pub agents: Vec<Agent>,
    /// The rules that stand before every agent's prompt; may be empty.
    pub shared: String,
    /// The coordinator.
    pub coordinator: Prompt,
    /// What to say to a person; none of it stops a review.
    pub warnings: Vec<Diagnostic>,
    /// Where it came from.
    pub setup: SetupOrigin,
}

impl LoadedConfig {
    /// Every model in use, without duplicates, sorted; empty when none is named anywhere.
    pub fn models(&self) -> Vec<&ModelId> {
        let mut models: Vec<_> = self
            .agents
            .iter()
            .map(|agent| &agent.prompt)
            .chain([&self.coordinator])
            .filter_map(|prompt| prompt.model.as_ref())
            .collect();
        models.sort();
        models.dedup();
        models
    }
}

impl Overrides {
    /// The model that wins over all files, if any.
    fn winner(&self) -> Result<Option<ModelId>, Diagnostic> {
        let variable = self.reviewer_model.as_deref().map(str::trim);
        let (name, text) = match (&self.model, variable) {
            (Some(flag), _) => ("--model", flag.as_str()),
            (None, Some(text)) if !text.is_empty() => (REVIEWER_MODEL.name, text),
            _ => return Ok(None),
        };
        ModelId::new(text.trim())
            .map(Some)
            .map_err(|error| Diagnostic::bare(name, error.to_string()))
    }
}

/// Loads the setup of `tree` (or from `location`). All problems of all its files are given at once.
pub fn load(
    tree: &dyn Tree,
    location: &SetupLocation,
    overrides: &Overrides,
) -> Result<LoadedConfig, ConfigErrors> {
    let embedded: MemoryTree;
    let mut said = Vec::new();
    let (files, setup) = if let Some(found) = place(tree, location, &mut said)? {
        found
    } else {
        embedded = roster::tree();
        let files = SetupFiles::new(&embedded, None, "built-in setup");
        (files, SetupOrigin::Embedded)
    };
    if !files.exist()? {
        let problem = Diagnostic::bare(&files.shown_folder(), "there is no such setup folder");
        return Err(problem
            .with_help("name an existing folder, or leave the option out")
            .into());
    }

    let config = config_file(&files, &mut said);
    let coordinator = own_or_embedded(&files, "coordinator.md", &mut said)
        .and_then(|source| coordinator(&source, &mut said));
    let shared = own_or_embedded(&files, "shared.md", &mut said)
        .and_then(|source| shared(&source, &mut said));
    let agents = agents(&files, &mut said);
    let winner = overrides.winner().unwrap_or_else(|problem| {
        said.push(problem);
        None
    });

    let warnings = ConfigErrors::check(said)?;
    let (Some(config), Some(mut coordinator), Some(shared)) = (config, coordinator, shared) else {
        // Unreachable: what is missing was said. An error is the safe answer all the same.
        return Err(Diagnostic::bare(&files.shown_folder(), "the setup could not be read").into());
    };
    let mut agents = agents;
    for prompt in agents
        .iter_mut()
        .map(|agent| &mut agent.prompt)
        .chain([&mut coordinator])
    {
        prompt.model = winner
            .clone()
            .or_else(|| prompt.model.take())
            .or_else(|| config.model.clone());
    }
    Ok(LoadedConfig {
        config,
        agents,
        shared,
        coordinator,
        warnings,
        setup,
    })
}

/// Loads `routing.jsonc` of the same setup folder; `None` when there is none.
pub fn load_routing(
    tree: &dyn Tree,
    location: &SetupLocation,
) -> Result<Option<(RoutingManifest, Vec<Diagnostic>)>, ConfigErrors> {
    let Some((files, _)) = place(tree, location, &mut Vec::new())? else {
        return Ok(None);
    };
    match files.read("routing.jsonc")? {
        Some(source) => parse_routing(&source).map(Some),
        None => Ok(None),
    }
}

/// The files of the setup, or `None` when the embedded setup is to be used.
fn place<'a>(
    tree: &'a dyn Tree,
    location: &'a SetupLocation,
    said: &mut Vec<Diagnostic>,
) -> Result<Option<(SetupFiles<'a>, SetupOrigin)>, Diagnostic> {
    Ok(match location {
        SetupLocation::Discover => {
            let (folder, warnings) = find_setup_folder(tree, None)?;
            said.extend(warnings);
            folder.map(|folder| {
                (
                    SetupFiles::new(tree, Some(folder.clone()), ""),
                    SetupOrigin::InRepository(Some(folder)),
                )
            })
        }
        SetupLocation::InRepository(folder) => Some((
            SetupFiles::new(tree, folder.clone(), ""),
            SetupOrigin::InRepository(folder.clone()),
        )),
        SetupLocation::Outside { folder, files } => Some((
            SetupFiles::new(files, None, folder),
            SetupOrigin::Outside(folder.clone()),
        )),
    })
}

/// A file of the setup, or the embedded one: a setup folder holds only what differs.
fn own_or_embedded(
    files: &SetupFiles<'_>,
    name: &str,
    said: &mut Vec<Diagnostic>,
) -> Option<Source> {
    let embedded = roster::tree();
    let own = files.read(name).and_then(|own| match own {
        Some(source) => Ok(Some(source)),
        None => SetupFiles::new(&embedded, None, "built-in setup").read(name),
    });
    own.unwrap_or_else(|problem| {
        said.push(problem);
        None
    })
}

fn config_file(files: &SetupFiles<'_>, said: &mut Vec<Diagnostic>) -> Option<ReviewConfig> {
    let found = files.read("config.jsonc").and_then(|found| match found {
        Some(source) => Ok(Some(source)),
        None => files.read("config.json"),
    });
    let source = match found {
        Ok(Some(source)) => source,
        Ok(None) => return Some(ReviewConfig::default()),
        Err(problem) => {
            said.push(problem);
            return None;
        }
    };
    match parse_config(&source) {
        Ok((config, warnings)) => {
            said.extend(warnings);
            Some(config)
        }
        Err(errors) => {
            said.extend(errors.diagnostics().iter().cloned());
            None
        }
    }
}

fn agents(files: &SetupFiles<'_>, said: &mut Vec<Diagnostic>) -> Vec<Agent> {
    let embedded = roster::tree();
    let listed = files.markdown("agents").and_then(|own| {
        if own.is_empty() {
            return SetupFiles::new(&embedded, None, "built-in setup").markdown("agents");
        }
        Ok(own)
    });
    let listed = match listed {
        Ok(listed) => listed,
        Err(problem) => {
            said.push(problem);
            return Vec::new();
        }
    };
    listed
        .into_iter()
        .filter_map(|(name, source)| match source {
            Ok(source) => agent(&source, &name, said),
            Err(problem) => {
                said.push(problem);
                None
            }
        })
        .collect()
}

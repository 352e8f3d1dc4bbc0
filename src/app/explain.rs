//! `ecr explain`: what became of a finding of a saved run.

use std::path::{Path, PathBuf};

use super::review::Display;
use super::runs::RunStore;
use super::{AppError, Environment};
use crate::render::{self, ExplainError};
use crate::state::saved::decode;

/// Where the finding to explain is looked for.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// A saved run instead of the newest one.
    pub run: Option<PathBuf>,
    /// `--config-dir`: the set-up folder that keeps the runs.
    pub config_dir: Option<PathBuf>,
}

/// Explains the finding whose id begins with `id`, from a file or from the newest saved run.
pub async fn run(
    id: &str,
    place: &Place,
    display: &Display,
    environment: &Environment,
) -> Result<String, AppError> {
    let path = match &place.run {
        Some(path) => environment.cwd().join(path),
        None => latest(place.config_dir.as_deref(), environment).await?,
    };
    let text = std::fs::read_to_string(&path).map_err(|error| {
        AppError::new(
            format!("cannot read {}: {error}", path.display()),
            "name a saved run with --run FILE",
        )
    })?;
    let saved = decode(&text).map_err(|error| {
        AppError::new(
            format!("{}: {error}", path.display()),
            "name a saved run, or what `ecr review --format json` printed",
        )
    })?;
    let options = super::review::terminal_options(display, true, None);
    render::explain(&saved.output, id, &options).map_err(|error| match error {
        ExplainError::NotAnId(_) => {
            AppError::new(error.to_string(), "every finding of a report shows its id")
        }
        ExplainError::Ambiguous { .. } => AppError::new(error.to_string(), "give more digits"),
        // It names the next step itself.
        ExplainError::NotFound(_) => AppError::plain(error.to_string()),
    })
}

async fn latest(config_dir: Option<&Path>, environment: &Environment) -> Result<PathBuf, AppError> {
    let none = || {
        AppError::new(
            "there is no saved run of this repository",
            "run `ecr review` first, or name a file with --run FILE",
        )
    };
    let store = RunStore::here(config_dir, environment)
        .await?
        .ok_or_else(none)?;
    store
        .latest()
        .map_err(|error| AppError::plain(format!("cannot list the saved runs: {error}")))?
        .ok_or_else(none)
}

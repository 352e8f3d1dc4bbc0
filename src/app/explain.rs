//! `ecr explain`: what became of a finding of a saved run.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::review::Display;
use super::runs::RunStore;
use super::{AppError, Environment};
use crate::config::find_setup_folder;
use crate::git::{HostEnv, Repository};
use crate::render;
use crate::state::saved::decode;

/// Explains the finding whose id begins with `id`, from `run` or from the newest saved run.
pub async fn run(
    id: &str,
    run: Option<PathBuf>,
    display: &Display,
    environment: &Environment,
) -> Result<String, AppError> {
    let path = match run {
        Some(path) => environment.cwd().join(path),
        None => latest(environment).await?,
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
    let options = super::review::terminal_options(display, None);
    render::explain(&saved.output, id, &options)
        .map_err(|error| AppError::new(error.to_string(), "`ecr review -v` shows the ids"))
}

async fn latest(environment: &Environment) -> Result<PathBuf, AppError> {
    let host = environment.variables().collect::<HostEnv>();
    let repository = Repository::discover(&host, environment.cwd(), CancellationToken::new())
        .await
        .map_err(|error| AppError::new(error.to_string(), "name a saved run with --run FILE"))?;
    let none = || {
        AppError::new(
            "there is no saved run of this repository",
            "run `ecr review` first, or name a file with --run FILE",
        )
    };
    let root = repository.work_tree().ok_or_else(none)?;
    let tree = repository
        .work_tree_view()
        .await
        .map_err(|error| AppError::plain(error.to_string()))?;
    let (folder, _) =
        find_setup_folder(&tree, None).map_err(|problem| AppError::plain(problem.render(false)))?;
    let folder = folder.and_then(|folder| folder.as_str().map(|folder| root.join(folder)));
    let store = RunStore::of(root, folder.as_deref(), environment, 1).ok_or_else(none)?;
    store
        .latest()
        .map_err(|error| AppError::plain(format!("cannot list the saved runs: {error}")))?
        .ok_or_else(none)
}

//! The check over a checkout on disk.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::{Format, Options, Outcome, run};
use crate::app::{AppError, Environment};
use crate::config::env::ECR_CONFIG_DIR;
use crate::git::Repository;
use crate::model::RepoPath;

/// Checks the checkout around `root` (default: around the current folder).
pub async fn run_on_disk(
    root: Option<&Path>,
    format: Format,
    environment: &Environment,
) -> Result<Outcome, AppError> {
    let folder = root.map_or_else(
        || environment.cwd().to_path_buf(),
        |root| environment.cwd().join(root),
    );
    let failed = |error: &dyn std::fmt::Display| {
        AppError::new(
            format!("{}: {error}", folder.display()),
            "name a git checkout with --root DIR",
        )
    };
    let host = environment.variables().collect();
    let repository = Repository::discover(&host, &folder, CancellationToken::new())
        .await
        .map_err(|error| failed(&error))?;
    if repository.work_tree().is_none() {
        return Err(failed(&"a bare repository has no checkout to check"));
    }
    let tree = repository
        .work_tree_view()
        .await
        .map_err(|error| failed(&error))?;
    // An absolute folder is none of the checkout's; only its name inside counts here.
    let setup_folder = environment
        .text(ECR_CONFIG_DIR.name)
        .and_then(|name| RepoPath::new(name.trim_end_matches('/')).ok());
    let options = Options { setup_folder };
    tokio::task::spawn_blocking(move || run(&tree, &options, format))
        .await
        .map_err(|_| AppError::plain("the check was aborted"))?
        .map_err(|error| AppError::plain(error.to_string()))
}

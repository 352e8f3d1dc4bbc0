//! The configuration of the base commit, and the rules that hold before anything is reviewed.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::app::forge::Forge;
use crate::app::review::setup_choice;
use crate::app::{AppError, Environment, credentials};
use crate::config::env::{ECR_EXPECTED_TOKEN_ENV, REVIEWER_MODEL};
use crate::config::{self, LoadedConfig, Overrides, SetupChoice, SetupLocation, TokenLockError};
use crate::port::SourceError;
use crate::source::{PullRequestInput, PullRequestSource};
use crate::tree::Tree;

/// What the base commit says.
pub(super) struct Trusted {
    /// The configuration.
    pub(super) loaded: LoadedConfig,
    /// The base commit's files.
    pub(super) tree: Arc<dyn Tree>,
    /// What `REVIEWER_MODEL` says.
    pub(super) reviewer_model: Option<String>,
}

/// Loads the configuration from the base's tip. What cannot be read there is an error: nothing else takes its place.
pub(super) async fn load(
    input: &PullRequestInput,
    forge: &Forge,
    environment: &Environment,
    cancel: &CancellationToken,
) -> Result<Trusted, AppError> {
    let source = PullRequestSource::new(forge.host.clone(), input.clone(), cancel.clone());
    let tree = source.trusted_tree().await.map_err(|error| match error {
        SourceError::Invalid { message, hint } | SourceError::Failed { message, hint } => {
            AppError::new(message, hint)
        }
        SourceError::Nothing { reason, .. } => AppError::plain(reason),
    })?;
    let location = match setup_choice(None, environment)? {
        SetupChoice::Discover => SetupLocation::Discover,
        SetupChoice::InRepository(folder) => SetupLocation::InRepository(folder),
        SetupChoice::Absolute(_) => {
            return Err(AppError::new(
                "ECR_CONFIG_DIR: in CI the set-up comes from the base commit, not from a folder of the machine",
                "give a folder relative to the root of the repository",
            ));
        }
    };
    let reviewer_model = environment.text(REVIEWER_MODEL.name).map(str::to_owned);
    let overrides = Overrides {
        model: None,
        reviewer_model: reviewer_model.clone(),
    };
    let read = Arc::clone(&tree);
    let loaded = tokio::task::spawn_blocking(move || {
        config::load(read.as_ref(), &location, &overrides)
            .map_err(|errors| AppError::rendered(&errors.render(false)))
    })
    .await
    .map_err(|_| AppError::plain("reading the set-up was aborted"))??;
    Ok(Trusted {
        loaded,
        tree,
        reviewer_model,
    })
}

/// The credential lock: the names that the set-up declares are exactly those that the workflow expects.
pub(super) fn check_lock(
    loaded: &LoadedConfig,
    environment: &Environment,
) -> Result<(), TokenLockError> {
    let Some(expected) = environment.get(ECR_EXPECTED_TOKEN_ENV.name) else {
        return Ok(());
    };
    // What is not UTF-8 names nothing that a set-up could declare.
    let expected = expected.to_string_lossy();
    credentials::hold(&loaded.config.auth, &expected).map(drop)
}

//! The set-up of a review: configuration, own rules, the built-in engine's settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Input, Request, TrustedSide};
use crate::app::digest::PartDigest;
use crate::app::{AppError, Environment, credentials, models};
use crate::config::env::{ECR_CONFIG_DIR, REVIEWER_MODEL};
use crate::config::{
    self, LoadedConfig, Overrides, RuleLevel, SetupChoice, SetupLocation, SetupOrigin,
};
use crate::engine::builtin::structural::{RepositoryRules, RuleFileError};
use crate::engine::builtin::{BuiltinEngine, CheckSettings, ExtraRules};
use crate::git::{HostEnv, Repository};
use crate::model::{AgentId, RepoPath, Severity};
use crate::pipeline::PlannedAgent;
use crate::port::ReviewEngine;
use crate::source::{LocalSource, PullRequestSource};
use crate::tree::{MemoryTree, Tree};

/// A rule or set-up file larger than this is refused.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Everything that a review takes from the repository's set-up.
pub(in crate::app) struct Setup {
    pub(in crate::app) loaded: LoadedConfig,
    /// The model reviewers that take part; empty when no model is named.
    pub(super) reviewers: Vec<PlannedAgent>,
    /// Who works beside them.
    pub(super) roles: models::Roles,
    /// The work tree, where there is one.
    pub(in crate::app) root: Option<PathBuf>,
    /// The set-up folder on disk, where there is one in the repository.
    pub(in crate::app) folder: Option<PathBuf>,
    /// `ECR_EXPECTED_TOKEN_ENV` is set, and holds.
    pub(in crate::app) locked: bool,
    /// Folders that may hold a stranger's files: nothing in them is started.
    pub(super) reviewed: Vec<PathBuf>,
    /// For stderr.
    pub(in crate::app) warnings: Vec<String>,
    settings: CheckSettings,
    /// The repository's own rules, as read.
    rules: Vec<RuleFile>,
}

impl Setup {
    /// A digest of all of it but for warnings and places on this machine.
    fn digest(&self) -> String {
        let agents = self.agents();
        let mut digest = PartDigest::default();
        digest.add(format!("{:?}", (&self.loaded.config, &self.loaded.agents)));
        digest.add(format!("{agents:?}"));
        for (name, content) in &self.rules {
            digest.add(name);
            digest.add(content);
        }
        digest.hex()
    }

    /// Everybody who calls a model.
    pub(super) fn agents(&self) -> Vec<&PlannedAgent> {
        self.reviewers.iter().chain(self.roles.all()).collect()
    }

    /// What each reviewer looks for.
    pub(super) fn concerns(&self) -> Vec<(AgentId, String)> {
        let agents = self.loaded.agents.iter();
        agents
            .map(|agent| (agent.id.clone(), agent.description.clone()))
            .collect()
    }

    /// The built-in checks as configured.
    pub(super) fn builtin_engine(&self) -> Arc<dyn ReviewEngine> {
        Arc::new(BuiltinEngine::new(self.settings.clone()))
    }
}

/// What decides which set-up is read and how.
#[derive(Debug, Clone, Default)]
pub(in crate::app) struct Wanted {
    /// `--config-dir`.
    pub(in crate::app) config_dir: Option<PathBuf>,
    /// `--model`.
    pub(in crate::app) model: Option<String>,
    /// `--agents`; empty for all.
    pub(in crate::app) agents: Vec<String>,
}

/// Loads the set-up with its reviewers. For one's own work and for a patch it is the checkout's, on disk; for a pull request in CI
/// it is its base's.
pub(super) async fn load_setup(
    request: &Request,
    environment: &Environment,
    (local, pull): (Option<&LocalSource>, Option<&PullRequestSource>),
    cancel: &CancellationToken,
) -> Result<Setup, AppError> {
    let wanted = Wanted {
        config_dir: request.config_dir.clone(),
        model: request.model.clone(),
        agents: request.agents.clone(),
    };
    let trusted = match (&request.input, pull) {
        (Input::PullRequest(_, TrustedSide::Base), Some(pull)) => Some(pull),
        _ => None,
    };
    let mut setup = if let Some(pull) = trusted {
        let choice = setup_choice(wanted.config_dir.as_deref(), environment)?;
        if matches!(choice, SetupChoice::Absolute(_)) {
            return Err(AppError::new(
                "ECR_CONFIG_DIR: in CI the set-up comes from the base commit, not from a folder of the machine",
                "give a folder relative to the root of the repository",
            ));
        }
        let tree = pull.trusted_tree().await.map_err(super::source_error)?;
        let mut setup = read_tree(&wanted, environment, None, tree).await?;
        // What is checked out in CI may be the head.
        let workspace = environment.get("GITHUB_WORKSPACE").map(PathBuf::from);
        setup.reviewed.extend(workspace);
        setup
    } else {
        let checkout = checkout(environment, local, cancel).await?;
        read_setup(&wanted, environment, checkout).await?
    };
    let (place, folders) = (environment.clone(), setup.reviewed.clone());
    let agents = wanted.agents;
    let loaded = setup.loaded.clone();
    // Who names the reviewers has picked them.
    let route = request.route && agents.is_empty();
    let chosen = tokio::task::spawn_blocking(move || {
        let reviewed: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let reviewers = models::reviewers(&loaded, &agents, &place, &reviewed)?;
        let mut roles = models::roles(&loaded, &reviewers, &place, &reviewed)?;
        if !route {
            roles.router = None;
        }
        Ok::<_, AppError>((reviewers, roles))
    });
    (setup.reviewers, setup.roles) = chosen
        .await
        .map_err(|_| AppError::plain("reading the set-up was aborted"))??;
    Ok(setup)
}

/// Reads the set-up of a checkout, without its reviewers.
pub(in crate::app) async fn read_setup(
    wanted: &Wanted,
    environment: &Environment,
    checkout: Option<Checkout>,
) -> Result<Setup, AppError> {
    let root = checkout.as_ref().map(|(root, _)| root.clone());
    let tree = checkout.map_or_else(
        || Arc::new(MemoryTree::new()) as Arc<dyn Tree>,
        |(_, tree)| tree,
    );
    read_tree(wanted, environment, root, tree).await
}

async fn read_tree(
    wanted: &Wanted,
    environment: &Environment,
    root: Option<PathBuf>,
    tree: Arc<dyn Tree>,
) -> Result<Setup, AppError> {
    let choice = setup_choice(wanted.config_dir.as_deref(), environment)?;
    let overrides = Overrides {
        model: wanted.model.clone(),
        reviewer_model: utf8(environment, REVIEWER_MODEL.name)?.map(str::to_owned),
    };
    let agents = wanted.agents.clone();
    let built =
        tokio::task::spawn_blocking(move || build(&choice, tree.as_ref(), &overrides, &agents));
    let mut setup = built
        .await
        .map_err(|_| AppError::plain("reading the set-up was aborted"))??;
    setup.locked = credentials::lock(&setup.loaded.config.auth, environment)?.is_some();
    setup.folder = match (&setup.loaded.setup, &root) {
        (SetupOrigin::InRepository(Some(folder)), Some(root)) => {
            folder.as_str().map(|folder| root.join(folder))
        }
        _ => None,
    };
    setup.root = root;
    setup.reviewed = setup.root.iter().cloned().collect();
    Ok(setup)
}

/// A work tree's root, and its files as they are.
pub(in crate::app) type Checkout = (PathBuf, Arc<dyn Tree>);

/// A digest of all that decides how a change that is not one's own is reviewed, beside the change itself and the version of
/// ecr: the configuration, the prompts, the rules, the reviewers with their models. Checks the set-up on the way.
pub(in crate::app) async fn setup_digest(
    request: &Request,
    environment: &Environment,
) -> Result<String, AppError> {
    let never = CancellationToken::new();
    let setup = load_setup(request, environment, (None, None), &never).await?;
    Ok(setup.digest())
}

/// What `--config-dir` and `ECR_CONFIG_DIR` ask for.
pub(in crate::app) fn setup_choice(
    option: Option<&Path>,
    environment: &Environment,
) -> Result<SetupChoice, AppError> {
    let option = option
        .map(|folder| {
            folder.to_str().ok_or_else(|| {
                AppError::new(
                    format!("--config-dir {}: the path is not UTF-8", folder.display()),
                    "name a folder with a UTF-8 path",
                )
            })
        })
        .transpose()?;
    SetupChoice::new(option, utf8(environment, ECR_CONFIG_DIR.name)?)
        .map_err(|problem| AppError::rendered(&problem.render(false)))
}

/// A variable that must not be passed over because it cannot be read.
fn utf8<'a>(environment: &'a Environment, name: &str) -> Result<Option<&'a str>, AppError> {
    environment
        .get(name)
        .map(|value| {
            value.to_str().ok_or_else(|| {
                AppError::new(
                    format!("{name}: the value is not UTF-8"),
                    format!("set {name} to UTF-8 text, or unset it"),
                )
            })
        })
        .transpose()
}

/// The checkout around the current folder. A patch can be reviewed outside of any.
pub(in crate::app) async fn checkout(
    environment: &Environment,
    local: Option<&LocalSource>,
    cancel: &CancellationToken,
) -> Result<Option<Checkout>, AppError> {
    if let Some(local) = local {
        return local.checkout().await.map_err(super::source_error);
    }
    let host = environment.variables().collect::<HostEnv>();
    let Ok(repository) = Repository::discover(&host, environment.cwd(), cancel.clone()).await
    else {
        return Ok(None);
    };
    let Some(root) = repository.work_tree().map(Path::to_path_buf) else {
        return Ok(None);
    };
    let tree = repository
        .work_tree_view()
        .await
        .map_err(|error| AppError::plain(error.to_string()))?;
    Ok(Some((root, Arc::new(tree))))
}

fn build(
    choice: &SetupChoice,
    tree: &dyn Tree,
    overrides: &Overrides,
    agents: &[String],
) -> Result<Setup, AppError> {
    let location = match choice {
        SetupChoice::Discover => SetupLocation::Discover,
        SetupChoice::InRepository(folder) => SetupLocation::InRepository(folder.clone()),
        SetupChoice::Absolute(folder) => SetupLocation::Outside {
            folder: folder.display().to_string(),
            files: read_folder(folder)?,
        },
    };
    let loaded = config::load(tree, &location, overrides)
        .map_err(|errors| AppError::rendered(&errors.render(false)))?;
    let mut warnings: Vec<_> = loaded
        .warnings
        .iter()
        .map(|warning| warning.render(false).trim_end().to_owned())
        .collect();

    let rules = match (&loaded.setup, &location) {
        (SetupOrigin::Embedded, _) => Vec::new(),
        (_, SetupLocation::Outside { files, .. }) => rule_files(files, None)?,
        (SetupOrigin::InRepository(folder), _) => rule_files(tree, folder.as_ref())?,
        (SetupOrigin::Outside(_), _) => Vec::new(),
    };
    let files: Vec<_> = rules
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_ref()))
        .collect();
    let built_in: Vec<_> = crate::engine::builtin::rules()
        .map(|rule| rule.id)
        .collect();
    let own = RepositoryRules::compile(&files, &built_in).map_err(|errors| rule_errors(&errors))?;

    known_agents(agents, &loaded)?;
    let known: Vec<_> = built_in
        .iter()
        .copied()
        .chain(own.rules().iter().map(|rule| rule.id.as_str()))
        .collect();
    for id in loaded.config.checks.rules.keys() {
        if !known.contains(&id.as_str()) {
            let near = known
                .iter()
                .map(|known| (strsim::jaro_winkler(known, id.as_str()), known))
                .filter(|(score, _)| *score > 0.8)
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map(|(_, known)| format!("; did you mean `{known}`?"))
                .unwrap_or_default();
            warnings.push(format!(
                "warning: checks.rules: there is no rule `{id}`{near}"
            ));
        }
    }
    let settings = CheckSettings {
        enabled: loaded.config.checks.enabled,
        severities: loaded
            .config
            .checks
            .rules
            .iter()
            .map(|(id, level)| (id.as_str().to_owned(), severity(*level)))
            .collect(),
        repository: (!own.rules().is_empty()).then(|| Arc::new(own) as Arc<dyn ExtraRules>),
    };
    Ok(Setup {
        loaded,
        reviewers: Vec::new(),
        roles: models::Roles::default(),
        root: None,
        folder: None,
        locked: false,
        reviewed: Vec::new(),
        warnings,
        settings,
        rules,
    })
}

fn rule_errors(errors: &[RuleFileError]) -> AppError {
    let lines: Vec<_> = errors
        .iter()
        .map(|error| match error.position {
            Some((line, column)) => format!("{}:{line}:{column}: {}", error.file, error.problem),
            None => format!("{}: {}", error.file, error.problem),
        })
        .collect();
    let steps: BTreeSet<_> = errors
        .iter()
        .map(|error| error.next_step.as_str())
        .collect();
    let steps: Vec<_> = steps.into_iter().collect();
    AppError::new(lines.join("\n"), steps.join("; "))
}

fn severity(level: RuleLevel) -> Option<Severity> {
    match level {
        RuleLevel::Off => None,
        RuleLevel::Suggestion => Some(Severity::Suggestion),
        RuleLevel::Warning => Some(Severity::Warning),
        RuleLevel::Critical => Some(Severity::Critical),
    }
}

fn known_agents(asked: &[String], loaded: &LoadedConfig) -> Result<(), AppError> {
    let known: Vec<_> = loaded
        .agents
        .iter()
        .map(|agent| agent.id.as_str())
        .chain([super::CHECKS_AGENT])
        .collect();
    if let Some(id) = asked.iter().find(|id| !known.contains(&id.as_str())) {
        return Err(AppError::new(
            format!("--agents: there is no reviewer `{id}`"),
            format!("the reviewers are: {}", known.join(", ")),
        ));
    }
    let checks = asked.iter().any(|id| id == super::CHECKS_AGENT);
    if !asked.is_empty() && !checks && loaded.models().is_empty() {
        return Err(AppError::new(
            format!(
                "--agents {}: no model is named, so nobody would review",
                asked.join(",")
            ),
            format!(
                "name one with --model provider/model, or name `{}`, the built-in checks",
                super::CHECKS_AGENT
            ),
        ));
    }
    Ok(())
}

/// A rule file: its path and content.
type RuleFile = (String, Arc<[u8]>);

/// `rules/*.yml` and `rules/*.yaml` of the set-up folder, sorted by name.
fn rule_files(tree: &dyn Tree, folder: Option<&RepoPath>) -> Result<Vec<RuleFile>, AppError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        AppError::plain(format!("cannot read the set-up's rules: {error}"))
    };
    let mut path = folder
        .map(|folder| folder.as_bytes().to_vec())
        .unwrap_or_default();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(b"rules");
    let folder = RepoPath::new(&path).map_err(|error| unreadable(&error))?;
    let mut files = Vec::new();
    for entry in tree
        .list(Some(&folder))
        .map_err(|error| unreadable(&error))?
    {
        if !matches!(entry.path.extension(), Some(b"yml" | b"yaml")) {
            continue;
        }
        let content = tree
            .read(&entry.path, MAX_FILE_BYTES)
            .map_err(|error| unreadable(&error))?;
        if let Some(content) = content {
            files.push((entry.path.to_lossy(), content));
        }
    }
    Ok(files)
}

/// The files of a set-up folder outside the repository; links are not followed.
fn read_folder(folder: &Path) -> Result<MemoryTree, AppError> {
    let mut files = MemoryTree::new();
    let mut pending = vec![(folder.to_path_buf(), Vec::new())];
    while let Some((path, prefix)) = pending.pop() {
        let failed = |error: std::io::Error| {
            AppError::new(
                format!("cannot read the set-up folder {}: {error}", path.display()),
                "check --config-dir and ECR_CONFIG_DIR",
            )
        };
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let name = entry.file_name();
            let mut inside: Vec<u8> = prefix.clone();
            inside.extend_from_slice(name.as_encoded_bytes());
            if kind.is_dir() && name != ".runs" && name != ".git" {
                inside.push(b'/');
                pending.push((entry.path(), inside));
            } else if kind.is_file()
                && entry.metadata().map_err(failed)?.len() <= MAX_FILE_BYTES
                && let Ok(inside) = RepoPath::new(&inside)
            {
                files.insert(inside, std::fs::read(entry.path()).map_err(failed)?);
            }
        }
    }
    Ok(files)
}

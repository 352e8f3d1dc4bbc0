//! `ecr doctor`: would a review work here, now? Nothing leaves the machine, and no credential's value is shown.
//!
//! @ref LLP 0019#what-is-looked-at — what is looked at, and what decides the exit code

mod doors;
mod engines;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::credentials::{self, Keys};
use super::review::{Checkout, Display, Setup, Wanted, checkout, read_setup, terminal_options};
use super::{AppError, Environment};
use crate::config::{AuthMode, EngineChoice, LoadedConfig, SandboxLevel, SetupOrigin};
use crate::git::{HostEnv, Repository};
use crate::model::ModelId;
use crate::process::sandbox::{Level, probe};
use crate::render;
use crate::state::doctor::{
    Area, Credential, DOCTOR_VERSION, DoctorV1, Git, Model, Network, Problem, Proxy, Sandbox,
    Setup as SetupRow, SetupFrom,
};

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// `--config-dir`.
    pub config_dir: Option<PathBuf>,
    /// `--model`.
    pub model: Option<String>,
    /// JSON instead of text.
    pub json: bool,
}

/// What was found.
#[derive(Debug)]
pub struct Report {
    /// For stdout.
    pub product: String,
    /// A review as configured can run here.
    pub ok: bool,
}

/// What is found on the way.
#[derive(Default)]
struct Notes {
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Notes {
    fn problem(&mut self, area: Area, error: AppError) {
        self.problems.push(problem(area, error));
    }

    fn warning(&mut self, area: Area, error: AppError) {
        self.warnings.push(problem(area, error));
    }
}

fn problem(area: Area, error: AppError) -> Problem {
    Problem {
        area,
        message: error.message,
        next: error.hint,
    }
}

/// Looks at everything that a review needs.
pub async fn run(
    request: &Request,
    display: &Display,
    environment: &Environment,
) -> Result<Report, AppError> {
    let doctor = examine(request, environment).await;
    let product = if request.json {
        let text = serde_json::to_string_pretty(&doctor)
            .map_err(|error| AppError::plain(format!("cannot write the report: {error}")))?;
        text + "\n"
    } else {
        render::doctor(&doctor, &terminal_options(display, false, None))
    };
    Ok(Report {
        product,
        ok: doctor.ok,
    })
}

async fn examine(request: &Request, environment: &Environment) -> DoctorV1 {
    let mut notes = Notes::default();
    let (git, here) = git(environment, &mut notes).await;
    let wanted = Wanted {
        config_dir: request.config_dir.clone(),
        model: request.model.clone(),
        agents: Vec::new(),
    };
    let setup = read_setup(&wanted, environment, here).await;
    let setup = setup
        .map_err(|error| notes.problem(Area::Setup, error))
        .ok();
    let loaded = setup.as_ref().map(|setup| &setup.loaded);
    let served = loaded
        .map(|loaded| served(loaded, &mut notes))
        .unwrap_or_default();
    let reviewed: Vec<PathBuf> = setup
        .iter()
        .filter_map(|setup| setup.root.clone())
        .collect();

    let starts = served
        .values()
        .any(|served| served.engine != EngineChoice::Api);
    let sandbox = sandbox(loaded, starts, &mut notes);
    let doors = doors::test().await;
    if let Some(failed) = &doors.problem {
        let error = AppError::new(
            format!("the gateway of a run does not work here: {failed}"),
            "allow ecr ports on 127.0.0.1",
        );
        // The built-in checks need none.
        if served.is_empty() {
            notes.warning(Area::Doors, error);
        } else {
            notes.problem(Area::Doors, error);
        }
    }
    let in_use = |choice| served.values().any(|served| served.engine == choice);
    let level = required(loaded);
    let engines = engines::rows(environment, &reviewed, level, &in_use, &mut notes).await;
    let models = models(&served, loaded, environment, &mut notes);
    let network = network(environment, &models, &mut notes);
    let setup = setup_row(setup.as_ref(), &mut notes);
    DoctorV1 {
        schema_version: DOCTOR_VERSION,
        ecr_version: env!("CARGO_PKG_VERSION").to_owned(),
        ok: notes.problems.is_empty(),
        git,
        setup,
        sandbox,
        doors,
        engines,
        models,
        network,
        problems: notes.problems,
        warnings: notes.warnings,
    }
}

/// git, and the checkout around the current folder.
async fn git(environment: &Environment, notes: &mut Notes) -> (Git, Option<Checkout>) {
    let host = environment.variables().collect::<HostEnv>();
    let cancel = CancellationToken::new();
    let program = Repository::program(&host, environment.cwd(), cancel.clone()).await;
    let mut row = Git {
        path: None,
        version: None,
        repository: None,
    };
    match program {
        Ok((path, version)) => {
            row.path = Some(shown(&path));
            row.version = Some(version);
        }
        Err(error) => {
            let next = "install git 2.31 or newer, outside of the repository";
            notes.problem(Area::Git, AppError::new(error.to_string(), next));
            return (row, None);
        }
    }
    if let Err(error) = Repository::discover(&host, environment.cwd(), cancel.clone()).await {
        let next = "change into the work tree of a repository; a patch can be reviewed anywhere (`ecr review --diff FILE`)";
        notes.problem(Area::Git, AppError::new(error.to_string(), next));
        return (row, None);
    }
    let here = match checkout(environment, None, &cancel).await {
        Ok(here) => here,
        Err(error) => {
            notes.problem(Area::Git, error);
            None
        }
    };
    row.repository = here.as_ref().map(|(root, _)| shown(root));
    (row, here)
}

fn setup_row(setup: Option<&Setup>, notes: &mut Notes) -> SetupRow {
    let Some(setup) = setup else {
        return SetupRow {
            from: SetupFrom::Broken,
            folder: None,
            config: None,
            agents: Vec::new(),
            checks: false,
            locked: false,
        };
    };
    for warning in &setup.warnings {
        let text = warning.strip_prefix("warning: ").unwrap_or(warning);
        notes.warning(Area::Setup, AppError::plain(text.trim_end()));
    }
    let loaded = &setup.loaded;
    let (from, folder) = match &loaded.setup {
        SetupOrigin::Embedded => (SetupFrom::Embedded, None),
        SetupOrigin::InRepository(None) => (SetupFrom::Repository, setup.root.clone()),
        SetupOrigin::InRepository(Some(_)) => (SetupFrom::Repository, setup.folder.clone()),
        SetupOrigin::Outside(folder) => (SetupFrom::Elsewhere, Some(PathBuf::from(folder))),
    };
    let config = folder.as_ref().and_then(|folder| {
        let files = ["config.jsonc", "config.json"].map(|name| folder.join(name));
        files.into_iter().find(|file| file.is_file())
    });
    if !loaded.config.checks.enabled && loaded.models().is_empty() {
        notes.problem(
            Area::Setup,
            AppError::new(
                "nobody would review: the built-in checks are off and no model is named",
                "name a model with `model` in config.jsonc, or switch the checks on",
            ),
        );
    }
    SetupRow {
        from,
        folder: folder.as_deref().map(shown),
        config: config.as_deref().map(shown),
        agents: loaded.agents.iter().map(|a| a.id.to_string()).collect(),
        checks: loaded.config.checks.enabled,
        locked: setup.locked,
    }
}

/// A model in use.
struct Served {
    agents: Vec<String>,
    engine: EngineChoice,
}

/// Every model in use with its engine; agents may have the same model served by different ones.
fn served(loaded: &LoadedConfig, notes: &mut Notes) -> BTreeMap<(ModelId, &'static str), Served> {
    let mut served: BTreeMap<(ModelId, &'static str), Served> = BTreeMap::new();
    if loaded.models().is_empty() {
        notes.warning(
            Area::Model,
            AppError::new(
                "no model is named, so the built-in checks review alone",
                "name one with `model` in config.jsonc, REVIEWER_MODEL or --model",
            ),
        );
        return served;
    }
    for agent in &loaded.agents {
        if agent.prompt.model.is_none() {
            notes.problem(
                Area::Model,
                AppError::new(
                    format!("the reviewer `{}` has no model, others have one", agent.id),
                    "set `model` in config.jsonc, or in the front matter of every agent",
                ),
            );
        }
    }
    let agents = loaded.agents.iter();
    let agents = agents.map(|agent| (agent.id.as_str(), &agent.prompt));
    for (id, prompt) in agents.chain([("coordinator", &loaded.coordinator)]) {
        let Some(model) = &prompt.model else { continue };
        let engine = super::engines::choice(model, prompt.engine, loaded);
        let entry = served.entry((model.clone(), engine.word()));
        let row = entry.or_insert_with(|| Served {
            agents: Vec::new(),
            engine,
        });
        row.agents.push(id.to_owned());
    }
    served
}

fn models(
    served: &BTreeMap<(ModelId, &'static str), Served>,
    loaded: Option<&LoadedConfig>,
    environment: &Environment,
    notes: &mut Notes,
) -> Vec<Model> {
    let auth = loaded.map_or(&[][..], |loaded| &loaded.config.auth);
    // A lock that does not hold has made the set-up broken: there is nothing to look at then.
    let lock = credentials::lock(auth, environment).ok().flatten();
    let keys = Keys::new(environment, lock.as_ref());
    let rows = served.iter().map(|((model, word), served)| {
        let named = credentials::named(model, auth).ok();
        let plan = served.engine == EngineChoice::Claude;
        let found = credentials::upstream(model, auth, Some(keys), plan);
        let ok = match found {
            Ok(found) => {
                if let Some(words) = found.warning {
                    notes.warning(Area::Model, AppError::plain(words));
                }
                true
            }
            Err(error) => {
                let message = format!("{model}: {}", error.message);
                notes.problem(Area::Model, AppError { message, ..error });
                false
            }
        };
        let mode = named.as_ref().map_or(AuthMode::ApiKey, |named| named.mode);
        let present = named.as_ref().and_then(|named| named.present(keys));
        Model {
            id: model.to_string(),
            agents: served.agents.clone(),
            engine: (*word).to_owned(),
            address: named.as_ref().map(|named| named.address.to_string()),
            credential: Credential {
                mode: match mode {
                    AuthMode::None => "none",
                    AuthMode::ApiKey => "api-key",
                    AuthMode::Oauth => "oauth",
                }
                .to_owned(),
                variable: present
                    .or_else(|| named.as_ref()?.variables.first().map(String::as_str))
                    .map(str::to_owned),
                present: present.is_some(),
            },
            ok,
        }
    });
    rows.collect()
}

/// The level that reviews of one's own work require.
fn required(loaded: Option<&LoadedConfig>) -> Level {
    match loaded.map(|loaded| loaded.config.sandbox_require) {
        Some(SandboxLevel::Full) => Level::Full,
        Some(SandboxLevel::Files) => Level::Files,
        Some(SandboxLevel::None) | None => Level::None,
    }
}

fn sandbox(loaded: Option<&LoadedConfig>, needed: bool, notes: &mut Notes) -> Sandbox {
    let support = probe();
    let required = required(loaded);
    if needed && let Err(refusal) = support.require(required) {
        notes.problem(Area::Sandbox, AppError::plain(refusal.to_string()));
    } else if needed && support.level < Level::Full {
        notes.warning(
            Area::Sandbox,
            AppError::new(
                format!(
                    "engine processes are not fully contained here (level {}): other people's work is not reviewed with them",
                    support.level
                ),
                "see what is missing, or serve the models with ecr's own engine (`api`), which starts no process",
            ),
        );
    }
    Sandbox {
        level: support.level.to_string(),
        required: required.to_string(),
        needed,
        missing: support.missing.iter().map(ToString::to_string).collect(),
        landlock_abi: support.landlock_abi,
        seccomp: support.seccomp,
        private_net: support.private_net,
    }
}

fn network(environment: &Environment, models: &[Model], notes: &mut Notes) -> Network {
    let mut proxies = Vec::new();
    let mut bypass = None;
    for (variable, value) in super::network::proxy_variables(environment) {
        if variable.eq_ignore_ascii_case("NO_PROXY") {
            bypass = Some(value.to_owned());
            continue;
        }
        // A password in it stays here.
        let address = reqwest::Url::parse(value)
            .ok()
            .filter(reqwest::Url::has_host);
        let address = address.or_else(|| reqwest::Url::parse(&format!("http://{value}")).ok());
        let host = address.as_ref().map(credentials::host_of);
        proxies.push(Proxy {
            variable,
            host: host.unwrap_or_else(|| "?".to_owned()),
        });
    }
    let tls = match super::network::client(environment, true) {
        Ok(_) => true,
        Err(error) => {
            let https = |model: &Model| {
                model
                    .address
                    .as_deref()
                    .is_some_and(|a| a.starts_with("https"))
            };
            if models.iter().any(https) {
                notes.problem(Area::Network, error);
            } else {
                notes.warning(Area::Network, error);
            }
            false
        }
    };
    Network {
        proxies,
        bypass,
        tls,
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

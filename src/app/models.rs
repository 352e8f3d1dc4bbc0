//! Models of a run: who reviews with which model over which engine.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

use super::credentials::{Keys, upstream};
use super::engines::Confinement;
use super::tape::Tape;
use super::{AppError, Environment, credentials, engines, network};
use crate::config::{AuthMode, EngineChoice, LoadedConfig, Price};
use crate::detect;
use crate::diff::glob::Glob;
use crate::engine::{Doors, DoorsSettings};
use crate::gateway::tools::{Withheld, mcp_service};
use crate::gateway::{Credential, Gateway, GatewaySettings, PassLimits, Upstream};
use crate::ledger::{PriceTable, Prices, Rates, RunCaps};
use crate::model::{AgentId, Cost, EngineName, ModelId, SandboxInfo};
use crate::pipeline::{EngineSet, Plan, PlannedAgent, TaskWriter};
use crate::process::sandbox::Level;
use crate::prompt::{
    NO_TOOLS, ReviewTask, coordinator_system, cross_cutting, reviewer_system, router_system,
    verifier_system,
};

/// Model calls at the same time with a key, and with a plan.
const METERED: usize = 6;
const SUBSCRIPTION: usize = 3;

/// The reviewers that take part, each with its model and engine; empty when no model is named anywhere. No
/// engine is started from the `reviewed` folders.
pub(super) fn reviewers(
    loaded: &LoadedConfig,
    asked: &[String],
    environment: &Environment,
    reviewed: &[&Path],
) -> Result<Vec<PlannedAgent>, AppError> {
    if loaded.models().is_empty() {
        return Ok(Vec::new());
    }
    let mut out = Vec::new();
    for agent in &loaded.agents {
        if !asked.is_empty() && !asked.iter().any(|id| id == agent.id.as_str()) {
            continue;
        }
        let Some(model) = &agent.prompt.model else {
            return Err(AppError::new(
                format!("the reviewer `{}` has no model, others have one", agent.id),
                "set `model` in config.jsonc, or in the front matter of every agent",
            ));
        };
        let engine = engines::choice(model, agent.prompt.engine, loaded);
        engines::check(model, engine, environment, reviewed)?;
        out.push(PlannedAgent {
            id: agent.id.clone(),
            engine: EngineName::new(engine.word()),
            model: Some(model.clone()),
            system: reviewer_system(&loaded.shared, &agent.prompt.text).into(),
            always_run: agent.always_run,
        });
    }
    Ok(out)
}

/// Who works beside the reviewers of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Roles {
    /// Looks at the connections, when a change has several chunks.
    pub(super) cross_cutting: Option<PlannedAgent>,
    /// Merges and ranks what was found.
    pub(super) coordinator: Option<PlannedAgent>,
    /// Checks findings against the source.
    pub(super) verifier: Option<PlannedAgent>,
    /// Picks the reviewers that a change needs, where that is asked for.
    pub(super) router: Option<PlannedAgent>,
}

impl Roles {
    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &PlannedAgent> {
        let all = [
            &self.cross_cutting,
            &self.coordinator,
            &self.verifier,
            &self.router,
        ];
        all.into_iter().flatten()
    }
}

/// The roles beside `reviewers`; none where no model reviews. Who looks at connections and who verifies uses the first
/// reviewer's model; the coordinator has its own setting.
pub(super) fn roles(
    loaded: &LoadedConfig,
    reviewers: &[PlannedAgent],
    environment: &Environment,
    reviewed: &[&Path],
) -> Result<Roles, AppError> {
    let Some(first) = reviewers.first() else {
        return Ok(Roles::default());
    };
    let role = |id: &str, system: String| {
        let id = AgentId::new(id).map_err(|error| AppError::plain(error.to_string()))?;
        Ok::<_, AppError>(PlannedAgent {
            id,
            system: system.into(),
            always_run: true,
            ..first.clone()
        })
    };
    let prompt = &loaded.coordinator;
    let mut coordinator = role(
        "coordinator",
        coordinator_system(&loaded.shared, &prompt.text),
    )?;
    if let Some(model) = &prompt.model {
        let engine = engines::choice(model, prompt.engine, loaded);
        engines::check(model, engine, environment, reviewed)?;
        coordinator.model = Some(model.clone());
        coordinator.engine = EngineName::new(engine.word());
    }
    let cross_cutting = reviewer_system(&loaded.shared, cross_cutting());
    let router = PlannedAgent {
        id: role("router", String::new())?.id,
        system: router_system().into(),
        ..coordinator.clone()
    };
    Ok(Roles {
        router: Some(router),
        cross_cutting: Some(role("cross-cutting", cross_cutting)?),
        coordinator: Some(coordinator),
        verifier: Some(role("verifier", verifier_system().to_owned())?),
    })
}

/// A mark for the prompts of a run, drawn at random.
pub(super) fn mark() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Writes the tasks of a run, bounded with `mark`; `context` is what the reviewers are told besides, made harmless.
pub(super) fn tasks(plan: &Plan, mark: String, context: String) -> TaskWriter {
    let not_for_models = |(at, reason): (usize, &Option<String>)| {
        reason.clone().or_else(|| plan.hidden.get(&at).cloned())
    };
    let filtered: Vec<_> = plan
        .filtered
        .iter()
        .enumerate()
        .map(not_for_models)
        .collect();
    Arc::new(move |pass, diff| {
        let task = ReviewTask {
            diff,
            files: &pass.files,
            filtered: &filtered,
            mark: &mark,
            hide: detect::mask_patch,
            context: &context,
            answer: pass.schema.is_some().then_some(NO_TOOLS),
        };
        task.text().into()
    })
}

/// The globs of `send.never`.
pub(super) fn never_sent(loaded: &LoadedConfig) -> Result<Vec<Glob>, AppError> {
    let globs = loaded.config.send_never.iter().map(|glob| Glob::new(glob));
    globs.collect::<Result<_, _>>().map_err(|error| {
        AppError::new(
            format!("send.never: {error}"),
            "mend the glob in config.jsonc",
        )
    })
}

/// What a person should know of the engines of a run.
pub(super) struct Connected {
    /// What is enforced on their processes.
    pub(super) sandbox: SandboxInfo,
    /// One line each.
    pub(super) notes: Vec<String>,
}

impl Connected {
    fn new(
        choices: &BTreeSet<EngineChoice>,
        upstreams: &BTreeMap<String, Arc<Upstream>>,
        confinement: &Confinement,
    ) -> Self {
        let sandbox = engines::sandbox(choices.iter().copied());
        let mut notes = Vec::new();
        if confinement.require < Level::Full
            && !matches!(sandbox.level.as_str(), "full" | "not_needed")
        {
            notes.push(format!(
                "engine processes are not fully contained here (level {}): {}",
                sandbox.level,
                sandbox.missing.join("; ")
            ));
        }
        let plans = upstreams.values().filter(|upstream| {
            matches!(
                upstream.credential,
                Credential::Oauth(_) | Credential::ChatGpt { .. }
            )
        });
        notes.extend(plans.map(|upstream| {
            format!(
                "the models of `{}` are paid by a plan, through its own tool: experimental",
                upstream.provider
            )
        }));
        Self { sandbox, notes }
    }
}

/// What engines are made from.
pub(super) struct Wiring<'a> {
    pub(super) loaded: &'a LoadedConfig,
    pub(super) environment: &'a Environment,
    /// Model calls at the same time.
    pub(super) concurrency: usize,
    /// What the run may cost, in US dollars.
    pub(super) max_cost: Option<f64>,
    pub(super) confinement: Confinement,
    pub(super) tape: &'a Tape,
}

/// Model calls at the same time that suit the credentials in use: fewer where an allowance is shared with a person.
pub(super) fn concurrency(loaded: &LoadedConfig, agents: &[&PlannedAgent]) -> usize {
    let plan = |agent: &&PlannedAgent| {
        let provider = agent.model.as_ref().map(ModelId::provider);
        let entry = loaded
            .config
            .auth
            .iter()
            .find(|e| Some(e.provider.as_str()) == provider);
        entry.is_some_and(|entry| entry.mode == AuthMode::Oauth)
    };
    let suits = if agents.iter().any(plan) {
        SUBSCRIPTION
    } else {
        METERED
    };
    let set = loaded.config.chunk.concurrency;
    set.and_then(|set| usize::try_from(set).ok())
        .unwrap_or(suits)
}

/// Starts the run's gateway and adds the engines that the agents need. Nothing is sent yet.
pub(super) async fn connect(
    set: &mut EngineSet,
    agents: &[&PlannedAgent],
    wiring: &Wiring<'_>,
) -> Result<Connected, AppError> {
    let Wiring {
        loaded,
        environment,
        concurrency,
        max_cost,
        confinement,
        tape,
    } = wiring;
    let lock = credentials::lock(&loaded.config.auth, environment)?;
    let mut upstreams = BTreeMap::new();
    let mut choices = BTreeSet::new();
    let mut warnings = BTreeSet::new();
    for agent in agents {
        let Some(model) = &agent.model else { continue };
        let choice = EngineChoice::from_word(agent.engine.as_str());
        let plan = choice == Some(EngineChoice::Claude);
        if !upstreams.contains_key(model.provider()) || !plan {
            let keys = (!tape.is_replay()).then(|| Keys::new(environment, lock.as_ref()));
            let served = upstream(model, &loaded.config.auth, keys, plan)?;
            warnings.extend(served.warning);
            upstreams.insert(model.provider().to_owned(), Arc::new(served.upstream));
        }
        choices.extend(choice);
    }
    let mut connected = Connected::new(&choices, &upstreams, confinement);
    connected.notes.extend(warnings);
    if upstreams.is_empty() {
        return Ok(connected);
    }
    let secure = upstreams.values().any(|u| u.base_url.scheme() == "https");
    let transport = tape.transport(|| network::client(environment, secure))?;
    let gateway = Gateway::start(GatewaySettings {
        transport,
        tools: Some(mcp_service),
        caps: RunCaps {
            tokens: None,
            cost: max_cost.map(Cost::from_usd),
        },
        prices: price_table(loaded),
        concurrent_calls: *concurrency,
        clock: network::now,
    })
    .await
    .map_err(|error| {
        AppError::new(
            format!("cannot listen on 127.0.0.1: {error}"),
            "allow ecr a local port",
        )
    })?;
    let doors = Doors::new(DoorsSettings {
        gateway: Arc::new(gateway),
        upstreams,
        withheld: Arc::new(Withheld {
            never: never_sent(loaded)?,
            also: None,
        }),
        limits: PassLimits::default(),
    });
    let doors = Arc::new(doors);
    for choice in choices {
        set.insert(engines::engine(choice, &doors, environment, confinement));
    }
    Ok(connected)
}

/// The known prices, those of the configuration before them.
pub(super) fn price_table(loaded: &LoadedConfig) -> PriceTable {
    let own = loaded.config.prices.iter();
    PriceTable::new(
        own.map(|(model, price)| (model.clone(), prices(price)))
            .collect(),
    )
}

fn prices(price: &Price) -> Prices {
    Prices::flat(Rates {
        input: price.input,
        output: price.output,
        cache_read: price.cache_read.unwrap_or(price.input),
        cache_write: price.cache_write.unwrap_or(price.input),
    })
}

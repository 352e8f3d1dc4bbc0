//! Models of a run: who reviews with which model over which engine, and where the models are. The only
//! place where the value of a model credential is read.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;

use reqwest::Url;

use super::engines::Confinement;
use super::tape::Tape;
use super::{AppError, Environment, engines};
use crate::config::{
    AuthEntry, AuthMode, EngineChoice, LoadedConfig, Price, Protocol as ConfigProtocol, key_env,
};
use crate::detect;
use crate::diff::glob::Glob;
use crate::engine::{Doors, DoorsSettings};
use crate::gateway::tools::{Withheld, mcp_service};
use crate::gateway::{Credential, Gateway, GatewaySettings, PassLimits, Protocol, Upstream};
use crate::http::{HttpClient, HttpSettings, ProxySettings, Transport};
use crate::ledger::{PriceTable, Prices, Rates, RunCaps};
use crate::model::{AgentId, Cost, EngineName, ModelId, SandboxInfo, Secret};
use crate::pipeline::{EngineSet, Plan, PlannedAgent, TaskWriter};
use crate::process::sandbox::Level;
use crate::prompt::{
    NO_TOOLS, ReviewTask, coordinator_system, cross_cutting, reviewer_system, router_system,
    verifier_system,
};

/// Providers whose address is known: id, protocol, address. Others name theirs in the configuration.
const KNOWN: &[(&str, Protocol, &str)] = &[
    (
        "anthropic",
        Protocol::AnthropicMessages,
        "https://api.anthropic.com",
    ),
    (
        "openai",
        Protocol::OpenAiResponses,
        "https://api.openai.com/v1",
    ),
    (
        "openrouter",
        Protocol::OpenAiChat,
        "https://openrouter.ai/api/v1",
    ),
    (
        "google",
        Protocol::OpenAiChat,
        "https://generativelanguage.googleapis.com/v1beta/openai",
    ),
    ("ollama", Protocol::OpenAiChat, "http://127.0.0.1:11434/v1"),
];

/// Model calls at the same time with a key, and with a plan.
const METERED: usize = 6;
const SUBSCRIPTION: usize = 3;

/// What the tokens of a Claude plan begin with, wherever they are put.
const PLAN_TOKEN: &str = "sk-ant-oat";
/// Where Claude Code expects them.
const PLAN_VARIABLE: &str = "CLAUDE_CODE_OAUTH_TOKEN";

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
    let mut upstreams = BTreeMap::new();
    let mut choices = BTreeSet::new();
    for agent in agents {
        let Some(model) = &agent.model else { continue };
        let choice = EngineChoice::from_word(agent.engine.as_str());
        let plan = choice == Some(EngineChoice::Claude);
        if !upstreams.contains_key(model.provider()) || !plan {
            let key = (!tape.is_replay()).then_some(*environment);
            let upstream = upstream(model, &loaded.config.auth, key, plan)?;
            upstreams.insert(model.provider().to_owned(), Arc::new(upstream));
        }
        choices.extend(choice);
    }
    let connected = Connected::new(&choices, &upstreams, confinement);
    if upstreams.is_empty() {
        return Ok(connected);
    }
    let secure = upstreams.values().any(|u| u.base_url.scheme() == "https");
    let transport = tape.transport(|| client(environment, secure))?;
    let gateway = Gateway::start(GatewaySettings {
        transport,
        tools: Some(mcp_service),
        caps: RunCaps {
            tokens: None,
            cost: max_cost.map(Cost::from_usd),
        },
        prices: PriceTable::new(
            loaded
                .config
                .prices
                .iter()
                .map(|(model, price)| (model.clone(), prices(price)))
                .collect(),
        ),
        concurrent_calls: *concurrency,
        clock: now,
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

/// The client that the model calls go through.
fn client(environment: &Environment, secure: bool) -> Result<Arc<dyn Transport>, AppError> {
    let client = HttpClient::new(&HttpSettings {
        proxy: proxies(environment),
        ..HttpSettings::default()
    })
    .map_err(|error| AppError::new(error.to_string(), "check the proxy variables"))?;
    if let Some(problem) = client.tls_problem().filter(|_| secure) {
        return Err(AppError::new(
            format!("https does not work on this machine: {problem}"),
            "install the package ca-certificates, or set SSL_CERT_FILE",
        ));
    }
    Ok(Arc::new(client))
}

/// Seconds since the Unix epoch.
fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0)
}

fn prices(price: &Price) -> Prices {
    Prices::flat(Rates {
        input: price.input,
        output: price.output,
        cache_read: price.cache_read.unwrap_or(price.input),
        cache_write: price.cache_write.unwrap_or(price.input),
    })
}

fn proxies(environment: &Environment) -> ProxySettings {
    // The lower-case spelling is the older one and wins, as in curl.
    let text = |name: &str| {
        environment
            .text(&name.to_ascii_lowercase())
            .or_else(|| environment.text(name))
            .map(str::to_owned)
    };
    ProxySettings {
        http: text("HTTP_PROXY").map(Secret::new),
        https: text("HTTPS_PROXY").map(Secret::new),
        bypass: text("NO_PROXY"),
    }
}

/// Where the models of a provider are, with the credential that the environment holds; without an environment, which is
/// for replaying a tape, with none. The token of a plan is taken only where `plan` says that its own tool uses it.
fn upstream(
    model: &ModelId,
    auth: &[AuthEntry],
    environment: Option<&Environment>,
    plan: bool,
) -> Result<Upstream, AppError> {
    let provider = model.provider();
    if provider == model.as_str() {
        return Err(AppError::new(
            format!("the model `{model}` names no provider"),
            "write it as provider/model, for example anthropic/claude-sonnet-5",
        ));
    }
    let entry = auth.iter().find(|entry| entry.provider == provider);
    let real = entry
        .and_then(|entry| entry.upstream.as_deref())
        .unwrap_or(provider);
    let known = KNOWN.iter().find(|(id, ..)| *id == real);
    let protocol = match entry.and_then(|entry| entry.protocol) {
        Some(ConfigProtocol::AnthropicMessages) => Protocol::AnthropicMessages,
        Some(ConfigProtocol::OpenaiResponses) => Protocol::OpenAiResponses,
        Some(ConfigProtocol::OpenaiChat) => Protocol::OpenAiChat,
        None => known.map_or(Protocol::OpenAiChat, |(_, protocol, _)| *protocol),
    };
    let address = entry
        .and_then(|entry| entry.base_url.as_deref())
        .or_else(|| known.map(|(.., address)| *address))
        .ok_or_else(|| {
            AppError::new(
                format!("ecr does not know where the models of `{provider}` are"),
                format!("set auth.providers.{provider}.baseUrl in config.jsonc"),
            )
        })?;
    let base_url = Url::parse(address).map_err(|error| {
        AppError::new(
            format!("auth.providers.{provider}.baseUrl: {error}"),
            "write it as https://host/path",
        )
    })?;
    let default_is_local = entry.is_none() && base_url.scheme() == "http";
    let credential = match (entry.map(|entry| entry.mode), environment) {
        (None, _) if default_is_local => Credential::None,
        (Some(AuthMode::Oauth), Some(environment)) if plan && real == "anthropic" => {
            let named = entry.and_then(|entry| entry.token_env.as_deref());
            plan_credential(provider, named.unwrap_or(PLAN_VARIABLE), environment)?
        }
        (Some(AuthMode::Oauth), Some(_)) => return Err(plan_token(provider)),
        (Some(AuthMode::None), _) | (_, None) => Credential::None,
        (Some(AuthMode::ApiKey) | None, Some(environment)) => {
            let named = entry.and_then(|entry| entry.token_env.as_deref());
            credential(provider, named.or_else(|| key_env(real)), environment)?
        }
    };
    Ok(Upstream {
        provider: provider.to_owned(),
        protocol,
        base_url,
        credential,
    })
}

/// The credential in a variable. Its value is in no message.
fn credential(
    provider: &str,
    variable: Option<&str>,
    environment: &Environment,
) -> Result<Credential, AppError> {
    let Some(name) = variable else {
        return Err(AppError::new(
            format!("no variable is named that holds the API key of `{provider}`"),
            format!("set auth.providers.{provider}.tokenEnv in config.jsonc"),
        ));
    };
    let Some(value) = environment.text(name).map(str::trim) else {
        return Err(AppError::new(
            format!("the API key of `{provider}` is missing: {name} is not set"),
            format!(
                "export {name}, or name another variable in auth.providers.{provider}.tokenEnv"
            ),
        ));
    };
    if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AppError::new(
            format!("{name} holds characters that no API key has"),
            "copy the key again, without spaces and line ends",
        ));
    }
    if value.starts_with(PLAN_TOKEN) || name == PLAN_VARIABLE {
        return Err(plan_token(provider));
    }
    let value = Secret::new(value.to_owned());
    Ok(if name == "ANTHROPIC_AUTH_TOKEN" {
        Credential::Bearer(value)
    } else {
        Credential::ApiKey(value)
    })
}

/// The token of a Claude plan, which is used as it is and never refreshed.
fn plan_credential(
    provider: &str,
    name: &str,
    environment: &Environment,
) -> Result<Credential, AppError> {
    let hint = "run `claude setup-token` and export what it prints, or set an API key";
    let value = environment.text(name).map(str::trim).ok_or_else(|| {
        AppError::new(
            format!("the token of `{provider}`'s plan is missing: {name} is not set"),
            hint,
        )
    })?;
    if !value.starts_with(PLAN_TOKEN) || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AppError::new(
            format!("{name} holds no token of a Claude plan: those begin with `{PLAN_TOKEN}`"),
            hint,
        ));
    }
    Ok(Credential::Oauth(Secret::new(value.to_owned())))
}

fn plan_token(provider: &str) -> AppError {
    AppError::new(
        format!(
            "the credential of `{provider}` is the token of a plan, which belongs to the provider's own tool: the engine `api` does not send it"
        ),
        format!(
            "set auth.providers.{provider} to mode \"api-key\" with the variable of an API key"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        Environment::new(PathBuf::from("/w"), variables)
    }

    fn entry(provider: &str) -> AuthEntry {
        AuthEntry {
            provider: provider.to_owned(),
            mode: AuthMode::ApiKey,
            token_env: None,
            upstream: None,
            base_url: None,
            protocol: None,
        }
    }

    fn model(text: &str) -> ModelId {
        ModelId::new(text).unwrap()
    }

    #[test]
    fn known_providers_need_their_usual_variable_only() {
        let env = environment(&[("ANTHROPIC_API_KEY", " k1 "), ("OPENAI_API_KEY", "k2")]);
        let got = upstream(&model("anthropic/x"), &[], Some(&env), false).unwrap();
        assert_eq!(got.protocol, Protocol::AnthropicMessages);
        assert_eq!(got.credential, Credential::ApiKey(Secret::new("k1".into())));
        let got = upstream(&model("openai/x"), &[], Some(&env), false).unwrap();
        assert_eq!(got.protocol, Protocol::OpenAiResponses);
        let got = upstream(&model("ollama/x"), &[], Some(&env), false).unwrap();
        assert_eq!(got.credential, Credential::None);
        let error = upstream(&model("openrouter/x"), &[], Some(&env), false).unwrap_err();
        assert!(error.message.contains("OPENROUTER_API_KEY"), "{error}");
        assert!(error.hint.unwrap().contains("auth.providers.openrouter"));
        assert!(upstream(&model("bare"), &[], Some(&env), false).is_err());
        assert!(upstream(&model("acme/x"), &[], Some(&env), false).is_err());
    }

    #[test]
    fn an_entry_says_where_and_with_what() {
        let env = environment(&[("MY_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")]);
        let mut acme = entry("acme");
        acme.token_env = Some("MY_KEY".to_owned());
        acme.base_url = Some("https://models.acme.test/v2".to_owned());
        acme.protocol = Some(ConfigProtocol::AnthropicMessages);
        let got = upstream(&model("acme/x"), &[acme], Some(&env), false).unwrap();
        assert_eq!(got.base_url.as_str(), "https://models.acme.test/v2");
        assert_eq!(got.protocol, Protocol::AnthropicMessages);
        let mut bearer = entry("anthropic");
        bearer.token_env = Some("ANTHROPIC_AUTH_TOKEN".to_owned());
        let got = upstream(&model("anthropic/x"), &[bearer], Some(&env), false).unwrap();
        assert_eq!(got.credential, Credential::Bearer(Secret::new("t".into())));
        let mut alias = entry("team");
        alias.upstream = Some("openai".to_owned());
        alias.token_env = Some("MY_KEY".to_owned());
        let got = upstream(&model("team/x"), &[alias], Some(&env), false).unwrap();
        assert_eq!(got.base_url.host_str(), Some("api.openai.com"));
        let mut local = entry("lab");
        local.mode = AuthMode::None;
        local.base_url = Some("http://127.0.0.1:8080".to_owned());
        let got = upstream(&model("lab/x"), &[local], Some(&env), false).unwrap();
        assert_eq!(
            (got.credential, got.protocol),
            (Credential::None, Protocol::OpenAiChat)
        );
    }

    #[test]
    fn plan_tokens_and_broken_values_are_refused_without_being_shown() {
        let canary = ["canary", "7f3a"].concat();
        let mut plan = entry("anthropic");
        plan.mode = AuthMode::Oauth;
        plan.token_env = Some("T".to_owned());
        let token = format!("{PLAN_TOKEN}01-{canary}");
        for (auth, value) in [
            (vec![plan], canary.clone()),
            (vec![], token),
            (vec![], format!("{canary}\n{canary}")),
        ] {
            let env = environment(&[("ANTHROPIC_API_KEY", &value), ("T", &value)]);
            let error = upstream(&model("anthropic/x"), &auth, Some(&env), false).unwrap_err();
            let words = format!("{error} {:?}", error.hint);
            assert!(!words.contains(&canary), "{words}");
        }
    }
}

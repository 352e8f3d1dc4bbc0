//! Where the models of a provider are and what is shown there. The only place where the value of a model credential
//! is read.
//!
//! @ref LLP 0003#credentials-are-names — the lock, and what is judged of a value

use reqwest::Url;

use super::{AppError, Environment};
use crate::config::env::ECR_EXPECTED_TOKEN_ENV;
use crate::config::{
    AuthEntry, AuthMode, Protocol as ConfigProtocol, TokenLock, TokenLockError, key_env,
};
use crate::gateway::{Credential, Protocol, Upstream};
use crate::model::{ModelId, Secret};

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

/// What the tokens of a Claude plan begin with, wherever they are put.
const PLAN_TOKEN: &str = "sk-ant-oat";
/// Where Claude Code expects them.
const PLAN_VARIABLE: &str = "CLAUDE_CODE_OAUTH_TOKEN";

/// What API keys and tokens of Anthropic begin with.
const ANTHROPIC: &str = "sk-ant-";
/// Where a bearer token for a gateway in front of Anthropic's models is expected.
const BEARER_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";
/// A token of a plan is longer than this; a shorter one was cut while copying.
const SHORTEST_TOKEN: usize = 40;

/// What credentials of others begin with: a value like this is never a model's.
const FOREIGN: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sntrys_",
    "sntryu_",
    "npm_",
    "pypi-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "-----BEGIN",
];

/// Where credentials are taken from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys<'a> {
    environment: &'a Environment,
    lock: Option<&'a TokenLock>,
}

impl<'a> Keys<'a> {
    /// Those of the environment, as far as `lock` lets them go.
    pub(super) fn new(environment: &'a Environment, lock: Option<&'a TokenLock>) -> Self {
        Self { environment, lock }
    }
}

/// Where a model is and with which credential, both by name.
#[derive(Debug, Clone)]
pub(super) struct Named {
    /// What it speaks.
    protocol: Protocol,
    /// Its address.
    pub(super) address: Url,
    /// The kind of credential.
    pub(super) mode: AuthMode,
    /// The provider whose rules hold for the credential.
    real: String,
    /// The address is the provider's own.
    own_address: bool,
    /// The variables that may hold the credential, the best first.
    pub(super) variables: Vec<String>,
}

/// Where a model is, with its credential, and what is odd about that.
#[derive(Debug)]
pub(super) struct Served {
    /// For the gateway.
    pub(super) upstream: Upstream,
    /// One line for a person.
    pub(super) warning: Option<String>,
}

/// The lock of `ECR_EXPECTED_TOKEN_ENV`, when it is set. It has to name exactly the variables that `auth` declares,
/// and where it names hosts, those that they go to.
pub(super) fn lock(
    auth: &[AuthEntry],
    environment: &Environment,
) -> Result<Option<TokenLock>, AppError> {
    let variable = ECR_EXPECTED_TOKEN_ENV.name;
    let Some(text) = environment.get(variable) else {
        return Ok(None);
    };
    let refused = |words: String| {
        AppError::new(
            format!("{variable}: {words}"),
            format!("change `auth` in config.jsonc or {variable}, whichever is wrong"),
        )
    };
    let text = text.to_str();
    let text = text.ok_or_else(|| refused("the value is not UTF-8".to_owned()))?;
    hold(auth, text)
        .map(Some)
        .map_err(|error| refused(error.to_string()))
}

/// The lock that `text` is, when the set-up fits it.
pub(super) fn hold(auth: &[AuthEntry], text: &str) -> Result<TokenLock, TokenLockError> {
    let lock: TokenLock = text.parse()?;
    let declared = auth.iter().filter_map(|entry| {
        let host = destination(&entry.provider, Some(entry)).ok();
        let host = host.map(|(_, address, _)| host_of(&address));
        Some((entry.token_env.as_deref()?, host))
    });
    lock.check(declared)?;
    Ok(lock)
}

/// The host of an address, with its port where that is not the usual one.
pub(super) fn host_of(address: &Url) -> String {
    let host = address.host_str().unwrap_or_default();
    match address.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// What a provider speaks, its address, and whether that is the provider's own.
fn destination(
    provider: &str,
    entry: Option<&AuthEntry>,
) -> Result<(Protocol, Url, bool), AppError> {
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
    let named = entry.and_then(|entry| entry.base_url.as_deref());
    let address = named
        .or_else(|| known.map(|(.., address)| *address))
        .ok_or_else(|| {
            AppError::new(
                format!("ecr does not know where the models of `{provider}` are"),
                format!("set auth.providers.{provider}.baseUrl in config.jsonc"),
            )
        })?;
    let address = Url::parse(address).map_err(|error| {
        AppError::new(
            format!("auth.providers.{provider}.baseUrl: {error}"),
            "write it as https://host/path",
        )
    })?;
    Ok((protocol, address, named.is_none()))
}

/// Where a model is and with which credential. Nothing of the environment is looked at.
pub(super) fn named(model: &ModelId, auth: &[AuthEntry]) -> Result<Named, AppError> {
    let provider = model.provider();
    if provider == model.as_str() {
        return Err(AppError::new(
            format!("the model `{model}` names no provider"),
            "write it as provider/model, for example anthropic/claude-sonnet-5",
        ));
    }
    let entry = auth.iter().find(|entry| entry.provider == provider);
    let (protocol, address, own_address) = destination(provider, entry)?;
    let real = entry
        .and_then(|entry| entry.upstream.as_deref())
        .unwrap_or(provider);
    let mode = match entry {
        // A model server of this machine, at its usual address.
        None if address.scheme() == "http" => AuthMode::None,
        None => AuthMode::ApiKey,
        Some(entry) => entry.mode,
    };
    let declared = entry.and_then(|entry| entry.token_env.as_deref());
    // Another name for a provider stands for another credential of it.
    let is_alias = entry.is_some_and(|entry| entry.upstream.is_some());
    let usual = match mode {
        AuthMode::ApiKey if !is_alias => key_env(real),
        AuthMode::Oauth if declared.is_none() && real == "anthropic" => Some(PLAN_VARIABLE),
        AuthMode::ApiKey | AuthMode::Oauth | AuthMode::None => None,
    };
    let mut variables: Vec<String> = declared
        .into_iter()
        .chain(usual)
        .map(str::to_owned)
        .collect();
    variables.dedup();
    if mode == AuthMode::None {
        variables.clear();
    }
    Ok(Named {
        protocol,
        address,
        mode,
        real: real.to_owned(),
        own_address,
        variables,
    })
}

impl Named {
    /// The variable that holds the credential: the first that is set and that the lock lets go there.
    pub(super) fn present(&self, keys: Keys<'_>) -> Option<&str> {
        let host = host_of(&self.address);
        let goes = |name: &&String| {
            keys.environment.get(name).is_some()
                && keys.lock.is_none_or(|lock| lock.permits(name, &host))
        };
        self.variables.iter().find(goes).map(String::as_str)
    }
}

/// Where the models of a provider are, with the credential that the environment holds; without `keys`, which is for
/// replaying a tape, with none. The token of a plan is taken only where `plan` says that its own tool uses it.
pub(super) fn upstream(
    model: &ModelId,
    auth: &[AuthEntry],
    keys: Option<Keys<'_>>,
    plan: bool,
) -> Result<Served, AppError> {
    let named = named(model, auth)?;
    let provider = model.provider();
    let (credential, warning) = match keys {
        Some(keys) if named.mode != AuthMode::None => credential(provider, &named, keys, plan)?,
        _ => (Credential::None, None),
    };
    Ok(Served {
        upstream: Upstream {
            provider: provider.to_owned(),
            protocol: named.protocol,
            base_url: named.address,
            credential,
        },
        warning,
    })
}

/// The credential, and what is odd about it. Its value is in no message.
fn credential(
    provider: &str,
    named: &Named,
    keys: Keys<'_>,
    plan: bool,
) -> Result<(Credential, Option<String>), AppError> {
    // The tools of other providers' plans are not connected yet.
    let plan = plan && named.real == "anthropic";
    if named.mode == AuthMode::Oauth && !plan {
        return Err(plan_token(provider));
    }
    let Some(first) = named.variables.first() else {
        return Err(AppError::new(
            format!("no variable is named that holds the API key of `{provider}`"),
            format!("set auth.providers.{provider}.tokenEnv in config.jsonc"),
        ));
    };
    let value = |name| Some((name, keys.environment.text(name)?));
    let Some((name, value)) = named.present(keys).and_then(value) else {
        return Err(missing(provider, first, named.mode));
    };
    // A key pasted with its line end is still that key; a token of a plan is taken as it is.
    let value = match named.mode {
        AuthMode::Oauth => value,
        AuthMode::ApiKey | AuthMode::None => value.trim(),
    };
    let warning = match shape(named, name, value) {
        Shape::Fine => None,
        Shape::Odd(words) => Some(format!("{name} ({provider}): {words}")),
        Shape::Wrong(words) => {
            return Err(AppError::new(
                format!("{name} is not sent to `{provider}`: {words}"),
                "copy the credential again, or name the right variable in `auth` of config.jsonc",
            ));
        }
    };
    let is_plan = value.starts_with(PLAN_TOKEN) || name == PLAN_VARIABLE;
    if is_plan && !plan {
        return Err(plan_token(provider));
    }
    let secret = Secret::new(value.to_owned());
    let credential = if is_plan || named.mode == AuthMode::Oauth {
        Credential::Oauth(secret)
    } else if name == BEARER_VARIABLE {
        Credential::Bearer(secret)
    } else {
        Credential::ApiKey(secret)
    };
    Ok((credential, warning))
}

/// What can be told of a value by its looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Fine,
    Odd(&'static str),
    Wrong(&'static str),
}

fn shape(named: &Named, variable: &str, value: &str) -> Shape {
    if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Shape::Wrong("it holds characters that no credential has, a space or a line end");
    }
    if FOREIGN.iter().any(|prefix| value.starts_with(prefix)) {
        return Shape::Wrong("by its looks it is a credential of another service");
    }
    let anthropics = value.starts_with(ANTHROPIC);
    let is_anthropic = named.real == "anthropic";
    if named.mode == AuthMode::Oauth || (is_anthropic && value.starts_with(PLAN_TOKEN)) {
        return match value {
            _ if value.len() < SHORTEST_TOKEN => {
                Shape::Wrong("it is too short for the token of a plan: it may have been cut")
            }
            _ if is_anthropic && value.starts_with("sk-ant-api") => {
                Shape::Wrong("it is an API key, and mode `oauth` wants the token of a plan")
            }
            _ if is_anthropic && !value.starts_with("sk-ant-oat") => {
                Shape::Odd("it does not look like the token of a Claude plan")
            }
            _ => Shape::Fine,
        };
    }
    match named.real.as_str() {
        "anthropic" if named.own_address && !anthropics && variable != BEARER_VARIABLE => {
            Shape::Odd("it does not look like an API key of Anthropic")
        }
        "openai" | "google" if named.own_address && anthropics => {
            Shape::Wrong("it is a credential of Anthropic")
        }
        _ => Shape::Fine,
    }
}

fn missing(provider: &str, name: &str, mode: AuthMode) -> AppError {
    if mode == AuthMode::Oauth {
        return AppError::new(
            format!("the token of `{provider}`'s plan is missing: {name} is not set"),
            "run `claude setup-token` and export what it prints, or set an API key",
        );
    }
    AppError::new(
        format!("the API key of `{provider}` is missing: {name} is not set"),
        format!("export {name}, or name another variable in auth.providers.{provider}.tokenEnv"),
    )
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
        let got = upstream(
            &model("anthropic/x"),
            &[],
            Some(Keys::new(&env, None)),
            false,
        )
        .unwrap()
        .upstream;
        assert_eq!(got.protocol, Protocol::AnthropicMessages);
        assert_eq!(got.credential, Credential::ApiKey(Secret::new("k1".into())));
        let got = upstream(&model("openai/x"), &[], Some(Keys::new(&env, None)), false)
            .unwrap()
            .upstream;
        assert_eq!(got.protocol, Protocol::OpenAiResponses);
        let got = upstream(&model("ollama/x"), &[], Some(Keys::new(&env, None)), false)
            .unwrap()
            .upstream;
        assert_eq!(got.credential, Credential::None);
        let error = upstream(
            &model("openrouter/x"),
            &[],
            Some(Keys::new(&env, None)),
            false,
        )
        .unwrap_err();
        assert!(error.message.contains("OPENROUTER_API_KEY"), "{error}");
        assert!(error.hint.unwrap().contains("auth.providers.openrouter"));
        assert!(upstream(&model("bare"), &[], Some(Keys::new(&env, None)), false).is_err());
        assert!(upstream(&model("acme/x"), &[], Some(Keys::new(&env, None)), false).is_err());
    }

    #[test]
    fn an_entry_says_where_and_with_what() {
        let env = environment(&[("MY_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")]);
        let mut acme = entry("acme");
        acme.token_env = Some("MY_KEY".to_owned());
        acme.base_url = Some("https://models.acme.test/v2".to_owned());
        acme.protocol = Some(ConfigProtocol::AnthropicMessages);
        let got = upstream(
            &model("acme/x"),
            &[acme],
            Some(Keys::new(&env, None)),
            false,
        )
        .unwrap()
        .upstream;
        assert_eq!(got.base_url.as_str(), "https://models.acme.test/v2");
        assert_eq!(got.protocol, Protocol::AnthropicMessages);
        let mut bearer = entry("anthropic");
        bearer.token_env = Some("ANTHROPIC_AUTH_TOKEN".to_owned());
        let got = upstream(
            &model("anthropic/x"),
            &[bearer],
            Some(Keys::new(&env, None)),
            false,
        )
        .unwrap()
        .upstream;
        assert_eq!(got.credential, Credential::Bearer(Secret::new("t".into())));
        let mut alias = entry("team");
        alias.upstream = Some("openai".to_owned());
        alias.token_env = Some("MY_KEY".to_owned());
        let got = upstream(
            &model("team/x"),
            &[alias],
            Some(Keys::new(&env, None)),
            false,
        )
        .unwrap()
        .upstream;
        assert_eq!(got.base_url.host_str(), Some("api.openai.com"));
        let mut local = entry("lab");
        local.mode = AuthMode::None;
        local.base_url = Some("http://127.0.0.1:8080".to_owned());
        let got = upstream(
            &model("lab/x"),
            &[local],
            Some(Keys::new(&env, None)),
            false,
        )
        .unwrap()
        .upstream;
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
            let error = upstream(
                &model("anthropic/x"),
                &auth,
                Some(Keys::new(&env, None)),
                false,
            )
            .unwrap_err();
            let words = format!("{error} {:?}", error.hint);
            assert!(!words.contains(&canary), "{words}");
        }
    }

    /// Values that look like credentials are put together here.
    fn assembled(text: &str) -> String {
        [
            ("{api03}", ["sk-ant", "-api03-"]),
            ("{oat01}", ["sk-ant", "-oat01-"]),
            ("{oat99}", ["sk-ant", "-oat99-"]),
            ("{new}", ["sk-ant", "-somethingnew-"]),
            ("{github}", ["ghp", "_abc"]),
            ("{sentry}", ["sntrys", "_dead"]),
        ]
        .iter()
        .fold(text.to_owned(), |text, (mark, parts)| {
            text.replace(mark, &parts.concat())
        })
    }

    fn declared(value: &serde_json::Value) -> AuthEntry {
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let mode = if value["mode"] == "oauth" {
            AuthMode::Oauth
        } else {
            AuthMode::ApiKey
        };
        AuthEntry {
            mode,
            token_env: text("tokenEnv"),
            upstream: text("upstream"),
            ..entry(value["provider"].as_str().unwrap())
        }
    }

    /// What becomes of an entry: refused, or accepted with or without a warning, or without a credential.
    fn judged(entry: AuthEntry, env: &Environment) -> &'static str {
        if entry.problem().is_some() {
            return "refused";
        }
        // A provider that ecr does not know: with an address, which is not what the vectors are about.
        let mut entry = entry;
        let real = entry.upstream.as_deref().unwrap_or(&entry.provider);
        if !KNOWN.iter().any(|(id, ..)| *id == real) {
            entry.base_url = Some("https://models.acme.test".to_owned());
        }
        let id = model(&format!("{}/m", entry.provider));
        let auth = [entry];
        let keys = Keys::new(env, None);
        let named = named(&id, &auth).unwrap();
        if named.present(keys).is_none() {
            return "unset";
        }
        let value = named.present(keys).and_then(|name| env.text(name)).unwrap();
        match shape(&named, named.present(keys).unwrap(), value) {
            Shape::Fine => "fine",
            Shape::Odd(_) => "odd",
            Shape::Wrong(_) => "refused",
        }
    }

    #[test]
    fn the_vectors_of_auth_hold() {
        let file = assembled(include_str!("../../tests/fixtures/auth/vectors.jsonl"));
        let mut seen = 0;
        for line in file.lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let (input, expected) = (&vector["input"], &vector["expected"]);
            seen += 1;
            if vector["area"] == "auth.lock" {
                let lock: TokenLock = input["expected"].as_str().unwrap().parse().unwrap();
                let names = input["declared"].as_array().unwrap().iter();
                let names = names.map(|name| (name.as_str().unwrap(), None));
                assert!(lock.check(names).is_err(), "{line}");
                continue;
            }
            let env = if let Some(token) = input.get("token") {
                environment(&[("T", token.as_str().unwrap())])
            } else {
                let env = input["env"].as_object().unwrap().iter();
                let env: Vec<_> = env
                    .map(|(k, v)| (k.as_str(), v.as_str().unwrap()))
                    .collect();
                environment(&env)
            };
            let ok = expected["ok"].as_bool().unwrap();
            if let Some(entries) = input["config"].get("entries") {
                // One with its token, and another name for a provider without.
                assert_eq!(entries.as_array().unwrap().len(), 2);
                let mut codex = entry("openai");
                (codex.mode, codex.token_env) = (AuthMode::Oauth, Some("CODEX_TOKEN".to_owned()));
                let mut alias = entry("openai-api");
                alias.upstream = Some("openai".to_owned());
                alias.token_env = Some("OPENAI_API_KEY".to_owned());
                assert_eq!(judged(codex, &env), "fine");
                assert_eq!((judged(alias, &env), ok), ("unset", false));
                continue;
            }
            let entry = if let Some(provider) = input["provider"].as_str() {
                AuthEntry {
                    mode: AuthMode::Oauth,
                    token_env: Some("T".to_owned()),
                    ..entry(provider)
                }
            } else {
                declared(input.get("entry").unwrap_or(&input["config"]))
            };
            // Without a value a tool's own login may serve there; ecr uses none, and refuses the run.
            let may_be_unset = ["anthropic", "acme"].contains(&entry.provider.as_str());
            let judged = judged(entry, &env);
            let accepted = matches!(judged, "fine" | "odd") || judged == "unset" && may_be_unset;
            assert_eq!(accepted, ok, "{judged}: {line}");
            if let Some(warning) = expected["warning"].as_bool() {
                assert_eq!(judged == "odd", warning, "{line}");
            }
        }
        assert_eq!(seen, 35);
    }

    #[test]
    fn the_lock_is_asked_again_where_a_value_would_leave() {
        let mut acme = entry("acme");
        acme.token_env = Some("MY_KEY".to_owned());
        acme.base_url = Some("https://models.acme.test/v2".to_owned());
        let with =
            |expected: &str| environment(&[("MY_KEY", "k"), ("ECR_EXPECTED_TOKEN_ENV", expected)]);
        let env = with("MY_KEY@models.acme.test");
        let held = lock(std::slice::from_ref(&acme), &env).unwrap().unwrap();
        let auth = [acme.clone()];
        let keys = Keys::new(&env, Some(&held));
        assert!(upstream(&model("acme/x"), &auth, Some(keys), false).is_ok());
        for other in [
            "MY_KEY@acme.test",
            "MY_KEY@models.acme.test:8443",
            "OTHER",
            "MY_KEY,B",
        ] {
            let error = lock(&auth, &with(other)).unwrap_err();
            assert!(error.message.contains("ECR_EXPECTED_TOKEN_ENV"), "{error}");
        }
        // Whoever changed the address after the check: the value does not go there.
        let mut moved = acme;
        moved.base_url = Some("https://evil.test".to_owned());
        let error = upstream(&model("acme/x"), &[moved], Some(keys), false).unwrap_err();
        assert!(error.message.contains("is missing"), "{error}");
        // A usual variable that the lock does not name is not taken in its place.
        let mut openai = entry("openai");
        openai.token_env = Some("K".to_owned());
        let env = environment(&[("OPENAI_API_KEY", "k"), ("ECR_EXPECTED_TOKEN_ENV", "K")]);
        let held = lock(std::slice::from_ref(&openai), &env).unwrap().unwrap();
        let auth = [openai];
        let id = model("openai/x");
        assert!(upstream(&id, &auth, Some(Keys::new(&env, Some(&held))), false).is_err());
        assert!(upstream(&id, &auth, Some(Keys::new(&env, None)), false).is_ok());
    }
}

//! Where credentials come from: names of environment variables, never their values.
//!
//! @ref LLP 0003#credentials-are-names — values never enter this module

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::Deserialize;

use super::raw::{AuthMode, Protocol, RawAuth, RawProvider};

/// Credentials of one provider, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthEntry {
    /// The provider id, as in a model id before the first `/`.
    pub provider: String,
    /// What kind of credential it is.
    pub mode: AuthMode,
    /// The environment variable that holds it.
    pub token_env: Option<String>,
    /// The provider that `provider` is another name for.
    pub upstream: Option<String>,
    /// Where the API is, when not at its usual address: `https`, or `http` on a loopback address.
    pub base_url: Option<String>,
    /// The protocol that the address speaks.
    pub protocol: Option<Protocol>,
}

/// What is wrong with an entry, as far as names tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthProblem {
    /// The key within the entry.
    pub field: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: &'static str,
}

/// The credentials that a setup has to name, and where they may go: `NAME`, or `NAME@host` with the port where that is
/// not the usual one, separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLock {
    /// The hosts of each name; empty for any.
    expected: BTreeMap<String, BTreeSet<String>>,
}

/// Why a setup does not fit its lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenLockError {
    /// The lock itself cannot be read.
    #[error("`{0}` is neither NAME nor NAME@host")]
    Item(String),
    /// The names that the setup declares are not the expected ones.
    #[error("the setup names {declared:?} as credentials, but exactly {expected:?} are expected")]
    Names {
        /// The names declared, sorted.
        declared: Vec<String>,
        /// The names expected, sorted.
        expected: Vec<String>,
    },
    /// A credential would go somewhere else.
    #[error("the setup sends `{name}` to {declared:?}, but exactly {expected:?} are expected")]
    Hosts {
        /// The credential.
        name: String,
        /// The hosts that it would go to, sorted.
        declared: Vec<String>,
        /// The hosts expected, sorted.
        expected: Vec<String>,
    },
}

/// Variables that never hold a model credential; naming one would send it to a model provider.
const FORBIDDEN: &[&str] = &[
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "CARGO_REGISTRY_TOKEN",
    "DOCKER_PASSWORD",
    "GCP_SERVICE_ACCOUNT_KEY",
    "GH_ENTERPRISE_TOKEN",
    "GH_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "NODE_AUTH_TOKEN",
    "NPM_TOKEN",
    "PYPI_TOKEN",
    "SSH_PRIVATE_KEY",
    "TYPESAFE_API_KEY",
];

/// Variables that belong to one provider: the provider's key first.
const OWNED: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "anthropic"),
    ("ANTHROPIC_AUTH_TOKEN", "anthropic"),
    ("CLAUDE_CODE_OAUTH_TOKEN", "anthropic"),
    ("GOOGLE_GENERATIVE_AI_API_KEY", "google"),
    ("OPENAI_API_KEY", "openai"),
    ("OPENROUTER_API_KEY", "openrouter"),
];

/// The variable in which a provider's own tools expect its API key.
pub fn key_env(provider: &str) -> Option<&'static str> {
    OWNED
        .iter()
        .find(|(_, owner)| *owner == provider)
        .map(|(name, _)| *name)
}

/// True for a variable that may never be named as a model credential. Case does not matter, as on Windows.
pub fn is_forbidden(name: &str) -> bool {
    FORBIDDEN.iter().any(|f| f.eq_ignore_ascii_case(name))
}

impl FromStr for TokenLock {
    type Err = TokenLockError;

    fn from_str(text: &str) -> Result<Self, TokenLockError> {
        let mut lock = Self::default();
        for item in text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
        {
            let bad = || TokenLockError::Item(item.to_owned());
            let (name, host) = match item.split_once('@') {
                Some((name, host)) => (name, Some(host)),
                None => (item, None),
            };
            let is_word = |text: &str| {
                !text.is_empty()
                    && !text.contains(|c: char| c.is_whitespace() || c == '/' || c == '@')
            };
            if !is_word(name) || !host.is_none_or(is_word) {
                return Err(bad());
            }
            let hosts = lock.expected.entry(name.to_owned()).or_default();
            hosts.extend(host.map(str::to_ascii_lowercase));
        }
        Ok(lock)
    }
}

impl TokenLock {
    /// Compares what a setup declares, each name with the host that it goes to, in any order.
    pub fn check<'a>(
        &self,
        declared: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> Result<(), TokenLockError> {
        let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (name, host) in declared {
            let name = name.trim();
            if !name.is_empty() {
                let hosts = found.entry(name).or_default();
                // One without a destination goes to none that could be expected.
                hosts.insert(host.unwrap_or_default().to_ascii_lowercase());
            }
        }
        if !found
            .keys()
            .copied()
            .eq(self.expected.keys().map(String::as_str))
        {
            return Err(TokenLockError::Names {
                declared: found.keys().map(|name| (*name).to_owned()).collect(),
                expected: self.expected.keys().cloned().collect(),
            });
        }
        for (name, hosts) in &self.expected {
            let declared = &found[name.as_str()];
            if !hosts.is_empty() && hosts != declared {
                return Err(TokenLockError::Hosts {
                    name: name.clone(),
                    declared: declared.iter().cloned().collect(),
                    expected: hosts.iter().cloned().collect(),
                });
            }
        }
        Ok(())
    }

    /// Whether the value of `name` may be sent to `host`: asked once more where that is about to happen.
    pub fn permits(&self, name: &str, host: &str) -> bool {
        self.expected
            .get(name)
            .is_some_and(|hosts| hosts.is_empty() || hosts.contains(&host.to_ascii_lowercase()))
    }
}

impl AuthEntry {
    /// The first thing that is wrong, as far as it can be told without any value.
    pub fn problem(&self) -> Option<AuthProblem> {
        let problem = |field, message, help| {
            Some(AuthProblem {
                field,
                message,
                help,
            })
        };
        if let Some(name) = &self.token_env {
            if is_forbidden(name) {
                return problem(
                    "tokenEnv",
                    format!(
                        "`{name}` never holds a model credential, so it is not sent to a model provider"
                    ),
                    "put the model credential into a variable of its own",
                );
            }
            if let Some((_, owner)) = OWNED.iter().find(|(n, _)| n.eq_ignore_ascii_case(name))
                && self.provider != *owner
                && self.upstream.as_deref() != Some(owner)
            {
                return problem(
                    "tokenEnv",
                    format!(
                        "`{name}` is a credential of `{owner}`, and this entry is for `{}`",
                        self.provider
                    ),
                    "name the provider's own variable, or say `upstream` when this id is another name for that provider",
                );
            }
        }
        if let Some(fault) = self.base_url.as_deref().and_then(base_url_fault) {
            return problem(
                "baseUrl",
                fault.to_owned(),
                "write it as `https://host/path`; `http://` only for 127.0.0.1, [::1] or localhost",
            );
        }
        match self.mode {
            AuthMode::None if self.token_env.is_some() => problem(
                "tokenEnv",
                "mode `none` sends no credential".to_owned(),
                "leave `tokenEnv` out, or choose another mode",
            ),
            AuthMode::None if !self.base_url.as_deref().is_some_and(is_loopback) => problem(
                "mode",
                "mode `none` is only for a model server on this machine".to_owned(),
                "set `baseUrl` to a loopback address, or choose another mode",
            ),
            // Claude Code can be logged in on the machine; for all others a token needs a name.
            AuthMode::Oauth if self.token_env.is_none() && self.provider != "anthropic" => problem(
                "mode",
                "mode `oauth` needs `tokenEnv`".to_owned(),
                "name the environment variable that holds the token",
            ),
            AuthMode::ApiKey if self.token_env.is_none() && self.upstream.is_some() => problem(
                "upstream",
                "another name for a provider needs `tokenEnv`".to_owned(),
                "name the environment variable that holds this credential",
            ),
            _ => None,
        }
    }
}

/// The entries of either shape, each with the path of its object below `auth`.
pub(super) fn normalise(raw: RawAuth) -> Result<Vec<(Vec<String>, AuthEntry)>, serde_json::Error> {
    match raw {
        RawAuth::One(one) => Ok(vec![(
            Vec::new(),
            AuthEntry {
                provider: one.provider.unwrap_or_else(|| "openai".to_owned()),
                mode: one.mode.unwrap_or_default(),
                token_env: one.token_env,
                upstream: None,
                base_url: None,
                protocol: None,
            },
        )]),
        RawAuth::Providers(map) => map
            .providers
            .into_iter()
            .map(|(provider, value)| {
                let raw = RawProvider::deserialize(value)?;
                let path = vec!["providers".to_owned(), provider.clone()];
                let entry = AuthEntry {
                    provider,
                    mode: raw.mode.unwrap_or_default(),
                    token_env: raw.token_env,
                    upstream: raw.upstream,
                    base_url: raw.base_url,
                    protocol: raw.protocol,
                };
                Ok((path, entry))
            })
            .collect(),
    }
}

/// Scheme, host without port and brackets, of an address without user, query and fragment.
fn host(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    if rest.contains(['?', '#', '\\'])
        || rest.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return None;
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(v6) => {
            let (host, port) = v6.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, port)
        }
        None => match authority.find(':') {
            Some(at) => authority.split_at(at),
            None => (authority, ""),
        },
    };
    let port_fits = match port.strip_prefix(':') {
        Some(digits) => digits.parse::<u16>().is_ok_and(|port| port > 0),
        None => port.is_empty(),
    };
    (!host.is_empty() && port_fits).then_some((scheme, host))
}

fn is_loopback(url: &str) -> bool {
    host(url).is_some_and(|(_, host)| {
        host.eq_ignore_ascii_case("localhost")
            || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
            || host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
    })
}

fn base_url_fault(url: &str) -> Option<&'static str> {
    match host(url) {
        None => Some("not an address of a host, or it has a user, a query or a fragment"),
        Some(("https", _)) => None,
        Some(("http", _)) if is_loopback(url) => None,
        Some(("http", _)) => {
            Some("without TLS the credential and the code would travel in the clear")
        }
        Some(_) => Some("only `https` and `http` are spoken"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(provider: &str, mode: AuthMode, token_env: Option<&str>) -> AuthEntry {
        AuthEntry {
            provider: provider.to_owned(),
            mode,
            token_env: token_env.map(str::to_owned),
            upstream: None,
            base_url: None,
            protocol: None,
        }
    }

    fn refused_at(entry: &AuthEntry) -> Option<&'static str> {
        entry.problem().map(|problem| problem.field)
    }

    #[test]
    fn names_are_guarded() {
        use AuthMode::{ApiKey, Oauth};
        let token = Some("tokenEnv");
        for (provider, mode, name, refused) in [
            ("openai", ApiKey, Some("GITHUB_TOKEN"), token),
            ("openai", ApiKey, Some("github_token"), token),
            ("openai", ApiKey, Some("TYPESAFE_API_KEY"), token),
            ("openai", Oauth, Some("CLAUDE_CODE_OAUTH_TOKEN"), token),
            ("openai", ApiKey, Some("ANTHROPIC_AUTH_TOKEN"), token),
            ("anthropic", ApiKey, Some("OPENAI_API_KEY"), token),
            ("anthropic", Oauth, Some("T"), None),
            ("anthropic", ApiKey, None, None),
            ("anthropic", Oauth, None, None),
            ("anthropic", ApiKey, Some("CLAUDE_CODE_OAUTH_TOKEN"), None),
            ("openai", Oauth, None, Some("mode")),
            ("openai", ApiKey, Some("K"), None),
            ("openai", ApiKey, None, None),
            ("acme", ApiKey, None, None),
        ] {
            let entry = entry(provider, mode, name);
            assert_eq!(refused_at(&entry), refused, "{entry:?}");
        }
    }

    #[test]
    fn an_alias_may_use_its_upstreams_key() {
        let mut alias = entry("openai-api", AuthMode::ApiKey, Some("OPENAI_API_KEY"));
        assert_eq!(refused_at(&alias), Some("tokenEnv"));
        alias.upstream = Some("openai".into());
        assert_eq!(refused_at(&alias), None);
        alias.token_env = None;
        assert_eq!(refused_at(&alias), Some("upstream"));
    }

    #[test]
    fn base_urls() {
        for (url, fits) in [
            ("https://api.acme.dev/v1", true),
            ("https://api.acme.dev:8443", true),
            ("http://127.0.0.1:11434", true),
            ("http://[::1]:8080/v1", true),
            ("http://LOCALHOST:1", true),
            ("http://api.acme.dev", false),
            ("http://127.0.0.1.evil.dev", false),
            ("http://127.0.0.1@evil.dev", false),
            ("http://localhost\\@evil.dev", false),
            ("https://user:pw@acme.dev", false),
            ("https://acme.dev/?key=1", false),
            ("https://", false),
            ("https://acme.dev:0", false),
            ("https://acme.dev:99999", false),
            ("ftp://acme.dev", false),
            ("https://[::1", false),
        ] {
            let mut with_url = entry("acme", AuthMode::ApiKey, None);
            with_url.base_url = Some(url.to_owned());
            assert_eq!(refused_at(&with_url), (!fits).then_some("baseUrl"), "{url}");
        }
    }

    #[test]
    fn mode_none_is_for_this_machine() {
        let mut local = entry("ollama", AuthMode::None, None);
        assert_eq!(refused_at(&local), Some("mode"));
        local.base_url = Some("https://acme.dev".into());
        assert_eq!(refused_at(&local), Some("mode"));
        local.base_url = Some("http://localhost:11434/v1".into());
        assert_eq!(refused_at(&local), None);
        local.token_env = Some("K".into());
        assert_eq!(refused_at(&local), Some("tokenEnv"));
    }

    fn lock(declared: &[(&str, &str)], expected: &str) -> Result<(), TokenLockError> {
        let lock: TokenLock = expected.parse()?;
        lock.check(
            declared
                .iter()
                .map(|(name, host)| (*name, Some((*host).to_owned()))),
        )
    }

    #[test]
    fn the_lock_wants_exactly_the_expected_names() {
        assert!(lock(&[("A", "")], "A,B").is_err());
        assert!(lock(&[("A", ""), ("B", "")], "A").is_err());
        assert!(lock(&[], "A").is_err());
        assert!(lock(&[("B", ""), ("A", ""), ("B", ""), (" ", "")], " A, B ,A,").is_ok());
        assert_eq!(
            lock(&[("A", "")], "B").unwrap_err().to_string(),
            "the setup names [\"A\"] as credentials, but exactly [\"B\"] are expected"
        );
        for bad in ["@h", "A@", "A@h@i", "A@https://h", "A B"] {
            assert!(
                matches!(lock(&[], bad), Err(TokenLockError::Item(_))),
                "{bad}"
            );
        }
    }

    #[test]
    fn the_lock_covers_where_they_go() {
        let acme = [("A", "api.acme.dev"), ("B", "localhost:8080")];
        assert_eq!(lock(&acme, "A@API.acme.dev,B"), Ok(()));
        assert_eq!(lock(&acme, "A@api.acme.dev,B@localhost:8080"), Ok(()));
        let error = lock(&acme, "A@api.acme.com,B").unwrap_err().to_string();
        assert!(
            error.contains("`A`") && error.contains("api.acme.dev"),
            "{error}"
        );
        // The same name for a second provider at another host.
        let twice = [("A", "api.acme.dev"), ("A", "evil.dev")];
        assert!(lock(&twice, "A@api.acme.dev").is_err());
        assert_eq!(lock(&twice, "A@api.acme.dev,A@evil.dev"), Ok(()));
        assert_eq!(lock(&twice, "A"), Ok(()));

        let lock: TokenLock = "A@api.acme.dev,B".parse().unwrap();
        assert!(lock.permits("A", "api.acme.dev") && !lock.permits("A", "evil.dev"));
        assert!(lock.permits("B", "anywhere") && !lock.permits("C", "api.acme.dev"));
    }

    #[test]
    fn provider_keys() {
        assert_eq!(key_env("anthropic"), Some("ANTHROPIC_API_KEY"));
        assert_eq!(key_env("acme"), None);
    }
}

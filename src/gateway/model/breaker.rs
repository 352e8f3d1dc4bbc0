//! A credential whose allowance is used up is not tried again in the same run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::gateway::seam::{Credential, Upstream};

/// One breaker for each credential of the run.
#[derive(Debug, Default)]
pub(crate) struct Breakers {
    /// By the digest of provider, address and credential: when the allowance resets.
    open: Mutex<HashMap<[u8; 32], Option<u64>>>,
}

impl Breakers {
    /// The allowance behind `upstream` is used up until `resets_at` (seconds since the epoch).
    pub(super) fn trip(&self, upstream: &Upstream, resets_at: Option<u64>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(key(upstream), resets_at);
    }

    /// `Some(resets_at)` while the allowance is used up.
    pub(super) fn tripped(&self, upstream: &Upstream, now: u64) -> Option<Option<u64>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(upstream);
        let resets_at = *open.get(&key)?;
        if resets_at.is_some_and(|at| at <= now) {
            open.remove(&key);
            return None;
        }
        Some(resets_at)
    }
}

fn key(upstream: &Upstream) -> [u8; 32] {
    let (kind, secret, account) = match &upstream.credential {
        Credential::None => ("none", "", ""),
        Credential::ApiKey(key) => ("key", key.expose().as_str(), ""),
        Credential::Bearer(token) => ("bearer", token.expose().as_str(), ""),
        Credential::Oauth(token) => ("oauth", token.expose().as_str(), ""),
        Credential::ChatGpt { token, account } => {
            ("chatgpt", token.expose().as_str(), account.as_str())
        }
    };
    let mut digest = Sha256::new();
    let parts = [
        upstream.provider.as_str(),
        upstream.base_url.as_str(),
        kind,
        secret,
        account,
    ];
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::seam::Protocol;
    use crate::model::Secret;

    fn upstream(key: &str) -> Upstream {
        Upstream {
            provider: "p".to_owned(),
            protocol: Protocol::OpenAiChat,
            base_url: reqwest::Url::parse("https://x.test").unwrap(),
            credential: Credential::ApiKey(Secret::new(key.to_owned())),
        }
    }

    #[test]
    fn one_credential_does_not_stop_another() {
        let breakers = Breakers::default();
        breakers.trip(&upstream("a"), Some(100));
        assert_eq!(breakers.tripped(&upstream("a"), 99), Some(Some(100)));
        assert_eq!(breakers.tripped(&upstream("b"), 99), None);
        assert_eq!(breakers.tripped(&upstream("a"), 100), None, "it has reset");
        breakers.trip(&upstream("a"), None);
        assert_eq!(breakers.tripped(&upstream("a"), u64::MAX), Some(None));
    }
}

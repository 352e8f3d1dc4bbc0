//! A credential whose allowance is used up is not tried again in the same run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use crate::gateway::seam::{Credential, Upstream};
use crate::model::Secret;
use crate::port::EngineError;

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

    /// Fails while the allowance is used up.
    pub(super) fn check(&self, upstream: &Upstream, now: u64) -> Result<(), EngineError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(upstream);
        match open.get(&key) {
            None => Ok(()),
            Some(Some(at)) if *at <= now => {
                open.remove(&key);
                Ok(())
            }
            Some(&resets_at) => Err(EngineError::UsageLimited { resets_at }),
        }
    }
}

fn key(upstream: &Upstream) -> [u8; 32] {
    let (kind, account) = match &upstream.credential {
        Credential::None => ("none", ""),
        Credential::ApiKey(_) => ("key", ""),
        Credential::Bearer(_) => ("bearer", ""),
        Credential::Oauth(_) => ("oauth", ""),
        Credential::ChatGpt { account, .. } => ("chatgpt", account.as_str()),
    };
    let secret = upstream.credential.secret().map(Secret::expose);
    let mut digest = Sha256::new();
    let parts = [
        upstream.provider.as_str(),
        upstream.base_url.as_str(),
        kind,
        secret.map_or("", String::as_str),
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
        let used_up = |resets_at| Err(EngineError::UsageLimited { resets_at });
        breakers.trip(&upstream("a"), Some(100));
        assert_eq!(breakers.check(&upstream("a"), 99), used_up(Some(100)));
        assert_eq!(breakers.check(&upstream("b"), 99), Ok(()));
        assert_eq!(breakers.check(&upstream("a"), 100), Ok(()), "it has reset");
        breakers.trip(&upstream("a"), None);
        assert_eq!(breakers.check(&upstream("a"), u64::MAX), used_up(None));
    }
}

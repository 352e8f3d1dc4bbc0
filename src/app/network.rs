//! The one HTTP client of a command, as the environment wants it.

use std::sync::Arc;

use super::{AppError, Environment};
use crate::http::{HttpClient, HttpSettings, ProxySettings, Transport};
use crate::model::Secret;

/// The client. With `secure`, a machine on which https cannot work is an error here and not at the first request.
pub(super) fn client(
    environment: &Environment,
    secure: bool,
) -> Result<Arc<dyn Transport>, AppError> {
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
pub(super) fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0)
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

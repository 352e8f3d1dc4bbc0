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

/// The proxy variables that are in use, with their values. The lower-case spelling is the older one and wins, as in
/// curl.
pub(super) fn proxy_variables(environment: &Environment) -> Vec<(String, &str)> {
    let spelled = |name: &str| {
        let names = [name.to_ascii_lowercase(), name.to_owned()];
        let mut set = names.into_iter().filter_map(|name| {
            let value = environment.text(&name)?;
            Some((name, value))
        });
        set.next()
    };
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
    names.into_iter().filter_map(spelled).collect()
}

fn proxies(environment: &Environment) -> ProxySettings {
    let set = proxy_variables(environment);
    let text = |name: &str| {
        let mut named = set
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| (*value).to_owned())
    };
    ProxySettings {
        http: text("HTTP_PROXY").map(Secret::new),
        https: text("HTTPS_PROXY").map(Secret::new),
        bypass: text("NO_PROXY"),
    }
}

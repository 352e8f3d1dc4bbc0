//! The client over reqwest, rustls and ring.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::Once;
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};

use super::transport::{Outgoing, Transport, TransportAnswer, TransportError};
use crate::model::Secret;

/// Proxies as the environment names them. The environment is read by the caller, never here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    /// For `http://` (`HTTP_PROXY`).
    pub http: Option<Secret<String>>,
    /// For `https://` (`HTTPS_PROXY`).
    pub https: Option<Secret<String>>,
    /// Hosts that are reached without a proxy (`NO_PROXY`). Loopback addresses always are.
    pub bypass: Option<String>,
}

/// How the client is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpSettings {
    /// Proxies.
    pub proxy: ProxySettings,
    /// How long a connection, the TLS handshake included, may take.
    pub connect_timeout: Duration,
    /// How long an unused connection is kept.
    pub idle_timeout: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            proxy: ProxySettings::default(),
            connect_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(60),
        }
    }
}

/// Why no client could be built.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// A proxy setting is no address.
    #[error("{variable} is not a proxy address")]
    Proxy {
        /// The setting, spelled as its environment variable.
        variable: &'static str,
    },
    /// The client cannot be built, for a reason other than missing CA certificates.
    #[error("no HTTP client: {0}")]
    Build(String),
}

/// The client. Cloning shares its connections.
#[derive(Clone)]
pub struct HttpClient {
    client: Client,
    /// Why `https` cannot work on this machine; `None` when it can.
    no_tls: Option<String>,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // reqwest's own text shows proxies, which may hold passwords.
        f.debug_struct("HttpClient")
            .field("no_tls", &self.no_tls)
            .finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Builds the client. A machine without CA certificates gets one that serves `http` only and
    /// says so when `https` is asked for.
    pub fn new(settings: &HttpSettings) -> Result<Self, HttpError> {
        install_ring();
        let first = match builder(settings)?.build() {
            Ok(client) => {
                return Ok(Self {
                    client,
                    no_tls: None,
                });
            }
            Err(error) => chain(&error),
        };
        // With an empty set of roots the client builds, and trusts nobody.
        let client = builder(settings)?
            .tls_certs_only([])
            .build()
            .map_err(|_| HttpError::Build(first.clone()))?;
        Ok(Self {
            client,
            no_tls: Some(format!(
                "no CA certificates on this machine ({first}): install the package `ca-certificates` or set SSL_CERT_FILE"
            )),
        })
    }

    /// Why `https` cannot work on this machine; `None` when it can.
    pub fn tls_problem(&self) -> Option<&str> {
        self.no_tls.as_deref()
    }
}

impl Transport for HttpClient {
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>> {
        Box::pin(async move {
            if request.url.scheme() == "https"
                && let Some(problem) = &self.no_tls
            {
                return Err(TransportError::Unusable(problem.clone()));
            }
            let answer = self
                .client
                .request(request.method, request.url)
                .headers(request.headers)
                .body(request.body)
                .send()
                .await
                .map_err(|error| transport_error(&error))?;
            Ok(TransportAnswer {
                status: answer.status(),
                headers: answer.headers().clone(),
                body: answer
                    .bytes_stream()
                    .map_err(|error| TransportError::Lost(chain(&error)))
                    .boxed(),
            })
        })
    }
}

/// rustls refuses to choose between providers; ring is chosen once for the process.
fn install_ring() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // It fails only when the process has a provider already, which then serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

fn builder(settings: &HttpSettings) -> Result<ClientBuilder, HttpError> {
    let bypass = {
        let extra = settings.proxy.bypass.as_deref().unwrap_or_default();
        NoProxy::from_string(&format!("localhost,127.0.0.0/8,::1,{extra}"))
    };
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(settings.idle_timeout);
    let named = [
        ("HTTP_PROXY", settings.proxy.http.as_ref()),
        ("HTTPS_PROXY", settings.proxy.https.as_ref()),
    ];
    for (variable, address) in named {
        let Some(address) = address.map(|a| a.expose().trim()).filter(|a| !a.is_empty()) else {
            continue;
        };
        let proxy = if variable == "HTTP_PROXY" {
            Proxy::http(address)
        } else {
            Proxy::https(address)
        };
        // The address may hold a password: the error names the setting only.
        let proxy = proxy.map_err(|_| HttpError::Proxy { variable })?;
        builder = builder.proxy(proxy.no_proxy(bypass.clone()));
    }
    Ok(builder)
}

fn transport_error(error: &reqwest::Error) -> TransportError {
    if error.is_builder() || error.is_request() && error.url().is_some_and(|u| !u.has_host()) {
        TransportError::Unusable(chain(error))
    } else if error.is_connect() {
        TransportError::Connect(chain(error))
    } else {
        TransportError::Lost(chain(error))
    }
}

/// The causes in one line, without the address: a query or a user part may be confidential.
fn chain(error: &reqwest::Error) -> String {
    let mut parts = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !parts.iter().any(|seen: &String| seen.contains(&text)) {
            parts.push(text);
        }
        cause = inner.source();
    }
    if parts.is_empty() {
        return if error.is_timeout() {
            "timed out".to_owned()
        } else if error.is_builder() {
            "the request cannot be built".to_owned()
        } else {
            "no further reason given".to_owned()
        };
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_proxy_is_named_but_not_shown() {
        let settings = HttpSettings {
            proxy: ProxySettings {
                https: Some(Secret::new("http://user:pass word@[".to_owned())),
                ..ProxySettings::default()
            },
            ..HttpSettings::default()
        };
        let error = HttpClient::new(&settings).unwrap_err().to_string();
        assert_eq!(error, "HTTPS_PROXY is not a proxy address");
    }

    #[test]
    fn debug_shows_no_proxy() {
        let settings = HttpSettings {
            proxy: ProxySettings {
                http: Some(Secret::new("http://u:hunter2@proxy.test:3128".to_owned())),
                ..ProxySettings::default()
            },
            ..HttpSettings::default()
        };
        assert!(!format!("{settings:?}").contains("hunter2"));
        let client = HttpClient::new(&settings).unwrap();
        assert!(!format!("{client:?}").contains("hunter2"));
    }
}

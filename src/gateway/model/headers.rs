//! Which headers pass the door, and the credential that takes the placeholder's place.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::gateway::seam::{Credential, Protocol, Upstream};

/// Headers that never go upstream: credentials, what belongs to one connection, what would say
/// where the request comes from.
const OURS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "chatgpt-account-id",
    "host",
    "content-length",
    "expect",
    "accept-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "referer",
    "origin",
];

/// Headers of an answer that go down; everything else stays here.
const DOWN: &[&str] = &["content-type", "request-id", "x-request-id"];

/// The beta that a Claude plan's token needs.
const OAUTH_BETA: &str = "oauth-2025-04-20";

/// The headers of the upstream request: the client's own, without ours, with the credential.
/// A header that holds `placeholder` anywhere in its value is dropped.
/// The error is a credential that cannot be a header value.
pub(super) fn upward(
    client: &HeaderMap,
    upstream: &Upstream,
    placeholder: &str,
) -> Result<HeaderMap, String> {
    let named: Vec<String> = client
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let mut out = HeaderMap::with_capacity(client.len() + 2);
    for (name, value) in client {
        let text = name.as_str();
        let leaks = memchr::memmem::find(value.as_bytes(), placeholder.as_bytes()).is_some();
        if OURS.contains(&text) || named.iter().any(|n| n == text) || leaks {
            continue;
        }
        out.append(name.clone(), value.clone());
    }
    out.entry(header::CONTENT_TYPE)
        .or_insert(HeaderValue::from_static("application/json"));
    // What comes back is read here, so it must not be compressed.
    out.insert(
        header::ACCEPT_ENCODING,
        HeaderValue::from_static("identity"),
    );
    if upstream.protocol == Protocol::AnthropicMessages {
        out.entry(HeaderName::from_static("anthropic-version"))
            .or_insert(HeaderValue::from_static("2023-06-01"));
    }
    let bearer = |token: &str| secret(&format!("Bearer {token}"));
    match &upstream.credential {
        Credential::None => {}
        Credential::ApiKey(key) if upstream.protocol == Protocol::AnthropicMessages => {
            out.insert(HeaderName::from_static("x-api-key"), secret(key.expose())?);
        }
        Credential::ApiKey(key) | Credential::Bearer(key) => {
            out.insert(header::AUTHORIZATION, bearer(key.expose())?);
        }
        Credential::Oauth(token) => {
            out.insert(header::AUTHORIZATION, bearer(token.expose())?);
            let name = HeaderName::from_static("anthropic-beta");
            let present = out
                .get_all(&name)
                .iter()
                .any(|v| v.to_str().is_ok_and(|v| v.contains(OAUTH_BETA)));
            if !present {
                out.append(name, HeaderValue::from_static(OAUTH_BETA));
            }
        }
        Credential::ChatGpt { token, account } => {
            out.insert(header::AUTHORIZATION, bearer(token.expose())?);
            out.insert(
                HeaderName::from_static("chatgpt-account-id"),
                secret(account)?,
            );
        }
    }
    Ok(out)
}

fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| "the credential holds characters that no header may hold".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// The headers of an answer that go down to the client.
pub(super) fn downward(upstream: &HeaderMap) -> HeaderMap {
    let mut out = HeaderMap::new();
    for name in DOWN {
        if let Some(value) = upstream.get(*name) {
            out.insert(HeaderName::from_static(name), value.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Secret;

    fn upstream(protocol: Protocol, credential: Credential) -> Upstream {
        Upstream {
            provider: "p".to_owned(),
            protocol,
            base_url: reqwest::Url::parse("https://x.test").unwrap(),
            credential,
        }
    }

    fn client(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v)))
            .collect()
    }

    #[test]
    fn ours_stay_and_the_protocols_pass() {
        let from = client(&[
            ("authorization", "Bearer placeholder"),
            ("x-api-key", "placeholder"),
            ("cookie", "a=b"),
            ("connection", "keep-alive, X-Private"),
            ("x-private", "1"),
            ("x-odd", "the placeholder again"),
            ("accept-encoding", "gzip"),
            ("anthropic-beta", "a,b"),
            ("anthropic-version", "2023-06-02"),
            ("user-agent", "claude-cli/2"),
            ("session-id", "s"),
        ]);
        let key = Credential::ApiKey(Secret::new("key".to_owned()));
        let up = upward(
            &from,
            &upstream(Protocol::AnthropicMessages, key),
            "placeholder",
        )
        .unwrap();
        let mut seen: Vec<_> = up
            .iter()
            .map(|(n, v)| (n.as_str(), v.to_str().unwrap()))
            .collect();
        seen.sort_unstable();
        assert_eq!(
            seen,
            [
                ("accept-encoding", "identity"),
                ("anthropic-beta", "a,b"),
                ("anthropic-version", "2023-06-02"),
                ("content-type", "application/json"),
                ("session-id", "s"),
                ("user-agent", "claude-cli/2"),
                ("x-api-key", "key"),
            ]
        );
        assert!(up["x-api-key"].is_sensitive());
    }

    #[test]
    fn every_credential_has_its_headers() {
        let text = |name: &str, up: &HeaderMap| {
            up.get_all(name)
                .iter()
                .map(|v| v.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let own = || Secret::new("t".to_owned());
        let none = HeaderMap::new();
        let up = |protocol, credential| {
            upward(&none, &upstream(protocol, credential), "placeholder").unwrap()
        };
        let openai = up(Protocol::OpenAiResponses, Credential::ApiKey(own()));
        assert_eq!(text("authorization", &openai), ["Bearer t"]);
        let bearer = up(Protocol::AnthropicMessages, Credential::Bearer(own()));
        assert_eq!(text("authorization", &bearer), ["Bearer t"]);
        assert!(bearer.get("x-api-key").is_none());
        let oauth = up(Protocol::AnthropicMessages, Credential::Oauth(own()));
        assert_eq!(text("anthropic-beta", &oauth), [OAUTH_BETA]);
        let chatgpt = up(
            Protocol::OpenAiResponses,
            Credential::ChatGpt {
                token: own(),
                account: "acc".to_owned(),
            },
        );
        assert_eq!(text("chatgpt-account-id", &chatgpt), ["acc"]);
        let local = up(Protocol::OpenAiChat, Credential::None);
        assert!(local.get("authorization").is_none());
        let broken = upstream(
            Protocol::OpenAiChat,
            Credential::Bearer(Secret::new("a\nb".to_owned())),
        );
        assert!(upward(&none, &broken, "placeholder").is_err());
    }

    #[test]
    fn little_comes_down() {
        let down = downward(&client(&[
            ("content-type", "text/event-stream"),
            ("set-cookie", "a=b"),
            ("anthropic-organization-id", "org"),
            ("x-echo", "Bearer key"),
            ("request-id", "r"),
            ("transfer-encoding", "chunked"),
        ]));
        assert_eq!(down.len(), 2);
    }
}

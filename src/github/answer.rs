//! Answers: their status, their body, and GitHub's own words in them.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use super::GitHubError;
use crate::model::printable;

/// The longest message taken over from GitHub, in characters.
const MESSAGE: usize = 300;

/// An answer that arrived completely.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

#[derive(serde::Deserialize)]
struct Fault {
    message: Option<String>,
    /// Objects for most endpoints, texts for some.
    #[serde(default)]
    errors: Vec<serde_json::Value>,
}

impl Answer {
    /// GitHub's words about what is wrong, in one bounded line.
    pub(super) fn message(&self) -> String {
        let Ok(fault) = serde_json::from_slice::<Fault>(&self.body) else {
            let page = self.body.trim_ascii_start().first() == Some(&b'<');
            return if page {
                "an HTML page instead of JSON".to_owned()
            } else {
                "no reason given".to_owned()
            };
        };
        let mut parts: Vec<String> = fault.message.into_iter().collect();
        for error in fault.errors.iter().take(3) {
            let text = match error {
                serde_json::Value::String(text) => Some(text.clone()),
                error => error
                    .get("message")
                    .or_else(|| error.get("code"))
                    .and_then(serde_json::Value::as_str)
                    .map(str::to_owned),
            };
            parts.extend(text);
        }
        let text = parts.join(": ");
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = printable(&line).into_owned();
        match line.char_indices().nth(MESSAGE) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None if line.is_empty() => "no reason given".to_owned(),
            None => line,
        }
    }

    /// The permissions that GitHub names as enough.
    pub(super) fn permission(&self) -> Option<String> {
        let named = self.headers.get("x-accepted-github-permissions")?;
        let named = named.to_str().ok()?.trim();
        (!named.is_empty() && named.len() <= 200).then(|| printable(named).into_owned())
    }

    /// The body as `T`.
    pub(super) fn json<T: DeserializeOwned>(&self, action: &str) -> Result<T, GitHubError> {
        serde_json::from_slice(&self.body).map_err(|error| GitHubError::Unreadable {
            action: action.to_owned(),
            // serde's text names fields and positions, but may quote a value.
            message: format!(
                "{:?} error at line {} column {}",
                error.classify(),
                error.line(),
                error.column()
            ),
        })
    }

    /// The address of the next page, when there is one.
    pub(super) fn next_page(&self) -> Option<String> {
        let links = self.headers.get("link")?.to_str().ok()?;
        links.split(',').find_map(|link| {
            let (address, parameters) = link.trim().split_once('>')?;
            let next = parameters
                .split(';')
                .any(|p| matches!(p.trim(), "rel=\"next\"" | "rel=next"));
            next.then(|| address.trim_start_matches('<').to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(headers: &[(&'static str, &str)], body: &str) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        Answer {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            headers: map,
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    #[test]
    fn words_are_one_bounded_printable_line() {
        for (body, expected) in [
            (
                r#"{"message":"Validation Failed","errors":[{"code":"custom","message":"Body is too long"}]}"#,
                "Validation Failed: Body is too long",
            ),
            (
                r#"{"message":"Unprocessable Entity","errors":["a\nb"]}"#,
                "Unprocessable Entity: a b",
            ),
            (
                "<!DOCTYPE html><html>Unicorn!",
                "an HTML page instead of JSON",
            ),
            ("", "no reason given"),
            ("{\"message\":\"\\u001b[31mred\"}", "\\u{1b}[31mred"),
        ] {
            assert_eq!(answer(&[], body).message(), expected);
        }
        let long = format!("{{\"message\":\"{}\"}}", "x".repeat(5_000));
        assert_eq!(answer(&[], &long).message().chars().count(), 301);
    }

    #[test]
    fn the_next_page_is_the_one_named_next() {
        let links = "<https://h/r/1?page=1>; rel=\"prev\", <https://h/r/1?a=1&page=3>; rel=\"next\", <https://h/r/1?page=9>; rel=\"last\"";
        assert_eq!(
            answer(&[("link", links)], "").next_page().as_deref(),
            Some("https://h/r/1?a=1&page=3")
        );
        assert!(
            answer(&[("link", "<x>; rel=\"last\"")], "")
                .next_page()
                .is_none()
        );
        assert!(answer(&[], "").next_page().is_none());
    }

    #[test]
    fn a_missing_field_is_named_without_its_neighbours() {
        #[derive(Debug, serde::Deserialize)]
        struct One {
            #[allow(dead_code)]
            id: u64,
        }
        let error = answer(&[], r#"{"id":"hunter2"}"#)
            .json::<One>("read it")
            .unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

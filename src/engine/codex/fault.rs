//! What an error that Codex reports means. The doors are asked first; this is for what they did not see. Its
//! events hold a message only: a JSON body or a status line in it decides, words last, other digits never.

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::engine::cli::shown;
use crate::gateway::provider_error;
use crate::port::EngineError;

/// How the message begins of an answer that was cut.
pub(super) const CUT: &str = "Incomplete response returned, reason: max_output_tokens";
/// The code of an error that the model door has made.
const DOOR_CODE: &str = "ecr_final";

/// The classes of messages, by words in them; the first that fits counts.
const WORDS: &[(Class, &[&str])] = &[
    (
        Class::Usage,
        &[
            "usage limit",
            "quota",
            "upgrade to plus",
            "credit balance",
            "billing",
        ],
    ),
    (Class::Rate, &["rate limit", "too many requests"]),
    (
        Class::Overloaded,
        &["at capacity", "overloaded", "high demand"],
    ),
    (
        Class::Overflow,
        &[
            "context window",
            "context length",
            "exceeds the maximum length",
            "prompt is too long",
        ],
    ),
    (
        Class::Refused,
        &["content_filter", "invalid prompt", "flagged"],
    ),
    (
        Class::Auth,
        &[
            "api key",
            "unauthorized",
            "authentication",
            "access token",
            "missing environment variable",
            "sign in again",
        ],
    ),
    (
        Class::Unavailable,
        &[
            "does not exist or you do not have access",
            "model_not_found",
            "model not found",
        ],
    ),
    (
        Class::Transient,
        &[
            "stream disconnected",
            "connection",
            "network",
            "sending request",
            "timed out",
            "timeout",
            "stream closed",
        ],
    ),
];

#[derive(Debug, Clone, Copy)]
enum Class {
    Usage,
    Rate,
    Overloaded,
    Overflow,
    Refused,
    Auth,
    Unavailable,
    Transient,
}

/// Whether the model door made this message.
pub(super) fn is_of_door(message: &str) -> bool {
    body(message).is_some_and(|body| body["error"]["code"] == DOOR_CODE)
}

/// What the message of a failed turn means. `now` is in seconds since the Unix epoch.
pub(super) fn classify(message: &str, now: u64) -> EngineError {
    if is_of_door(message) {
        return EngineError::Protocol("the model door ended the pass".to_owned());
    }
    // It passes the body of a status 400 on as it is, and of no other.
    if body(message).is_some() {
        let status = Some(StatusCode::BAD_REQUEST);
        return provider_error(status, &HeaderMap::new(), message.as_bytes(), now);
    }
    if let Some((status, rest)) = status(message) {
        let text = serde_json::json!({"error": {"message": rest}}).to_string();
        return provider_error(Some(status), &HeaderMap::new(), text.as_bytes(), now);
    }
    by_words(message).unwrap_or_else(|| EngineError::Protocol(format!("Codex: {}", shown(message))))
}

/// What stderr says of a Codex that ended before its turn began. None: nothing that is known.
pub(super) fn of_start(stderr: &str) -> Option<EngineError> {
    let line = stderr.lines().find(|line| line.starts_with("Error:"))?;
    if line.contains("required MCP servers failed") {
        return Some(EngineError::Protocol(format!(
            "Codex did not reach the tool door: {}",
            shown(line)
        )));
    }
    let said = line.to_ascii_lowercase();
    said.contains("exceeds the maximum length")
        .then_some(EngineError::ContextOverflow)
}

fn body(message: &str) -> Option<Value> {
    let value = serde_json::from_str::<Value>(message).ok()?;
    value["error"].is_object().then_some(value)
}

/// The status that Codex names in its own words, and what the provider said.
fn status(message: &str) -> Option<(StatusCode, &str)> {
    let rest = message
        .strip_prefix("unexpected status ")
        .or_else(|| message.strip_prefix("exceeded retry limit, last status: "))?;
    let (code, rest) = rest.split_once(' ')?;
    let code = StatusCode::from_bytes(code.as_bytes()).ok()?;
    Some((code, rest))
}

fn by_words(message: &str) -> Option<EngineError> {
    let said = message.to_ascii_lowercase();
    let (class, _) = WORDS
        .iter()
        .find(|(_, words)| words.iter().any(|word| said.contains(word)))?;
    Some(match class {
        Class::Usage => EngineError::UsageLimited { resets_at: None },
        Class::Rate => EngineError::RateLimited { retry_after: None },
        Class::Overloaded => EngineError::Overloaded,
        Class::Overflow => EngineError::ContextOverflow,
        Class::Refused => EngineError::Refused(shown(message)),
        // The message may quote a part of the key.
        Class::Auth => EngineError::Auth("the provider refused the credential".to_owned()),
        Class::Unavailable => EngineError::Unavailable(format!("Codex: {}", shown(message))),
        Class::Transient => EngineError::Transient(shown(message)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;
    /// The last messages of a real Codex 0.171.0, by what its provider did, with their classes.
    const CAPTURES: &str = include_str!("../../../tests/fixtures/codex/errors.json");

    fn class(error: &EngineError) -> &'static str {
        match error {
            EngineError::Unavailable(_) => "unavailable",
            EngineError::Auth(_) => "auth",
            EngineError::RateLimited { .. } => "rate",
            EngineError::UsageLimited { .. } => "usage",
            EngineError::Overloaded => "overloaded",
            EngineError::Transient(_) => "transient",
            EngineError::ContextOverflow => "overflow",
            EngineError::Refused(_) => "refused",
            EngineError::Protocol(_) => "protocol",
            EngineError::SchemaUnmet(_)
            | EngineError::Cancelled
            | EngineError::Stalled(_)
            | EngineError::Timeout(_) => "other",
        }
    }

    #[test]
    fn every_captured_error_has_its_class() {
        let captures: Vec<(String, String, String)> = serde_json::from_str(CAPTURES).unwrap();
        assert!(captures.len() > 30);
        let wrong: Vec<_> = captures
            .iter()
            .filter_map(|(name, message, expected)| {
                let got = classify(message, NOW);
                (class(&got) != expected).then(|| format!("{name}: {got:?}, not {expected}"))
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn other_wordings_have_the_same_class() {
        for (message, expected) in [
            ("You have reached your weekly usage limit.", "usage"),
            ("rate limit exceeded: please slow down (id 401)", "rate"),
            ("unexpected status 401 Authorization Required: no", "auth"),
            (
                "unexpected status 529 <unknown status code>: busy, url: http://127.0.0.1:4",
                "overloaded",
            ),
            (
                "unexpected status 504 Gateway Timeout: <html>429</html>",
                "transient",
            ),
            (
                "stream disconnected before completion: 401 bytes were read",
                "transient",
            ),
            ("All models are overloaded at the moment", "overloaded"),
            ("Your input exceeds the context window by 529", "overflow"),
            ("error 429 at line 401, column 529", "protocol"),
            ("", "protocol"),
            (
                "{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"pay\"}}",
                "usage",
            ),
            (
                "{\"error\":{\"code\":\"ecr_final\",\"message\":\"quota\"}}",
                "protocol",
            ),
        ] {
            assert_eq!(class(&classify(message, NOW)), expected, "{message}");
        }
    }

    #[test]
    fn keys_are_never_quoted_and_controls_never_shown() {
        let key = ["sk", "abc123"].join("-");
        for message in [
            format!("unexpected status 401 Unauthorized: Incorrect API key provided: {key}"),
            format!("Incorrect API key provided: {key}"),
        ] {
            let words = classify(&message, NOW).to_string();
            assert!(!words.contains(&key), "{words}");
        }
        let words = classify("odd\u{1b}[31m\nthing\u{202e}", NOW).to_string();
        assert!(!words.contains(['\u{1b}', '\n', '\u{202e}']), "{words}");
    }

    #[test]
    fn a_tool_door_that_is_not_reached_is_told_apart() {
        let stderr =
            "warming up\nError: thread/start: required MCP servers failed to initialize: tree: x\n";
        assert_eq!(class(&of_start(stderr).unwrap()), "protocol");
        let stderr = "Error: turn/start: Input exceeds the maximum length of 9 characters\n";
        assert_eq!(class(&of_start(stderr).unwrap()), "overflow");
        assert_eq!(of_start("Error loading config.toml: x\n"), None);
    }
}

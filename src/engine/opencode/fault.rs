//! What an error that `OpenCode` reports means. The doors are asked first; this is for what they did not
//! see. Names and statuses decide, words last, digits in a text never.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;

use crate::engine::cli::shown;
use crate::gateway::provider_error;
use crate::port::EngineError;

/// The code of an error that the model door has made.
const DOOR_CODE: &str = "ecr_final";
/// How its text begins.
const DOOR_WORDS: &str = "ecr: ";

/// What the `error` of an event means. `now` is in seconds since the Unix epoch.
pub(super) fn classify(error: &Value, now: u64) -> EngineError {
    let data = &error["data"];
    let message = data["message"].as_str().unwrap_or_default();
    match error["name"].as_str().unwrap_or_default() {
        "ProviderAuthError" => EngineError::Auth("OpenCode has no credential".to_owned()),
        "ContextOverflowError" => EngineError::ContextOverflow,
        "ContentFilterError" => EngineError::Refused(shown(message)),
        "StructuredOutputError" => EngineError::SchemaUnmet(shown(message)),
        "MessageAbortedError" => EngineError::Cancelled,
        "ProviderModelNotFoundError" | "ProviderInitError" => {
            EngineError::Unavailable(format!("OpenCode: {}", shown(message)))
        }
        "APIError" => of_call(data, message, now),
        _ => of_text(message, now),
    }
}

/// Whether the model door made this error.
pub(super) fn is_of_door(error: &Value) -> bool {
    let body = error["data"]["responseBody"].as_str();
    body.is_some_and(is_of_door_body)
}

fn is_of_door_body(body: &str) -> bool {
    serde_json::from_str::<Value>(body).is_ok_and(|body| {
        let error = &body["error"];
        // Anthropic's form has no code.
        error["code"] == DOOR_CODE
            || error["message"]
                .as_str()
                .is_some_and(|m| m.starts_with(DOOR_WORDS))
    })
}

/// A model call that failed.
fn of_call(data: &Value, message: &str, now: u64) -> EngineError {
    let body = data["responseBody"].as_str().unwrap_or_default();
    let status = data["statusCode"]
        .as_u64()
        .and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok());
    if let Some(status) = status {
        if is_of_door_body(body) {
            return EngineError::Protocol("the model door ended the pass".to_owned());
        }
        return provider_error(Some(status), &headers(data), body.as_bytes(), now);
    }
    match data["metadata"]["code"].as_str() {
        Some("ProviderHeaderTimeoutError" | "ProviderResponseStreamError") => {
            EngineError::Transient("the model door was silent for too long".to_owned())
        }
        _ if data["isRetryable"] == Value::Bool(true) => EngineError::Transient(shown(message)),
        _ => of_text(message, now),
    }
}

/// An error that is a text only; some are a provider's error object as JSON.
fn of_text(message: &str, now: u64) -> EngineError {
    if serde_json::from_str::<Value>(message).is_ok_and(|value| value.is_object()) {
        return provider_error(None, &HeaderMap::new(), message.as_bytes(), now);
    }
    let said = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| said.contains(words));
    if says(&["usage limit", "quota", "credit balance", "billing"]) {
        EngineError::UsageLimited { resets_at: None }
    } else if says(&["rate limit", "too many requests"]) {
        EngineError::RateLimited { retry_after: None }
    } else if says(&["overloaded", "no capacity", "at capacity"]) {
        EngineError::Overloaded
    } else if says(&[
        "context length",
        "context window",
        "context size",
        "prompt is too long",
    ]) {
        EngineError::ContextOverflow
    } else if says(&["api key", "unauthorized", "authentication"]) {
        // The message may quote a part of the key.
        EngineError::Auth("the provider refused the credential".to_owned())
    } else if says(&[
        "cannot connect",
        "unable to connect",
        "socket",
        "connection",
        "network",
        "timed out",
    ]) {
        EngineError::Transient(shown(message))
    } else {
        EngineError::Protocol(format!("OpenCode: {}", shown(message)))
    }
}

fn headers(data: &Value) -> HeaderMap {
    let named = data["responseHeaders"].as_object().into_iter().flatten();
    named
        .filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value.as_str()?).ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;

    /// The errors that a real `OpenCode` 1.18.33 reported, by what its provider did.
    const CAPTURES: &str = include_str!("../../../tests/fixtures/opencode/errors.json");

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
            EngineError::SchemaUnmet(_) => "schema",
            EngineError::Protocol(_) => "protocol",
            EngineError::Cancelled => "cancelled",
            EngineError::Stalled(_) | EngineError::Timeout(_) => "time",
        }
    }

    #[test]
    fn every_captured_error_has_its_class() {
        let captures: Value = serde_json::from_str(CAPTURES).unwrap();
        let expected = [
            ("402", "usage"),
            ("404model", "unavailable"),
            ("400", "protocol"),
            ("403", "auth"),
            ("401", "auth"),
            ("badjson", "protocol"),
            ("ctx", "overflow"),
            ("413", "overflow"),
            ("429_usage", "usage"),
            ("429_ra2", "rate"),
            ("sse_err_rl", "rate"),
            ("sse_err", "overloaded"),
            ("cut", "transient"),
            ("refused", "transient"),
            ("dns", "transient"),
            ("500", "transient"),
            ("503", "transient"),
            ("429_nohdr", "rate"),
            ("529", "overloaded"),
            ("429_quota", "usage"),
            ("html502", "transient"),
            ("hang_header", "transient"),
            ("stall", "transient"),
            ("overflow_no_compaction", "overflow"),
            ("filter", "refused"),
            ("door_400", "protocol"),
        ];
        let captures = captures.as_object().unwrap();
        assert_eq!(captures.len(), expected.len(), "every capture is expected");
        for (name, expected) in expected {
            let error = &captures[name];
            assert!(error.is_object(), "{name}");
            assert_eq!(class(&classify(error, NOW)), expected, "{name}: {error}");
        }
    }

    #[test]
    fn the_servers_delay_is_kept() {
        let captures: Value = serde_json::from_str(CAPTURES).unwrap();
        assert_eq!(
            classify(&captures["429_ra2"], NOW),
            EngineError::RateLimited {
                retry_after: Some(Duration::from_secs(2))
            }
        );
    }

    #[test]
    fn other_wordings_of_the_same() {
        let api = |status: u64, body: &Value| {
            json!({"name": "APIError", "data": {"message": "whatever was said", "statusCode": status,
                "isRetryable": false, "responseBody": body.to_string()}})
        };
        let text = |text: &str| json!({"name": "UnknownError", "data": {"message": text}});
        for (error, expected) in [
            (
                api(401, &json!({"detail": "token expired, 429 left"})),
                "auth",
            ),
            (api(429, &json!({"error": "slow down please"})), "rate"),
            (
                api(
                    429,
                    &json!({"error": {"type": "insufficient_quota", "message": "pay"}}),
                ),
                "usage",
            ),
            (
                api(
                    400,
                    &json!({"error": {"code": "context_length_exceeded", "message": "x"}}),
                ),
                "overflow",
            ),
            (
                api(
                    529,
                    &json!({"error": {"type": "overloaded_error", "message": "500"}}),
                ),
                "overloaded",
            ),
            (api(504, &json!("gateway")), "transient"),
            (api(422, &json!({"error": {"message": "401"}})), "protocol"),
            (
                text("{\"message\":\"busy\",\"type\":\"overloaded_error\"}"),
                "overloaded",
            ),
            (text("Too many requests, please wait a little"), "rate"),
            (
                text("Your plan's usage limit is reached until noon"),
                "usage",
            ),
            (
                text("This prompt exceeds the context window of the model"),
                "overflow",
            ),
            (text("The socket was closed by the other side"), "transient"),
            (
                text(
                    "The user has specified a rule which prevents you from using this specific tool call",
                ),
                "protocol",
            ),
            (text("error 429 at line 401, column 529"), "protocol"),
            (
                json!({"name": "ProviderAuthError", "data": {"providerID": "x", "message": "API key is missing"}}),
                "auth",
            ),
            (
                json!({"name": "StructuredOutputError", "data": {"message": "no", "retries": 0}}),
                "schema",
            ),
            (
                json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}}),
                "cancelled",
            ),
            (json!({"name": "BrandNewError", "data": {}}), "protocol"),
            (json!("only a text"), "protocol"),
            (Value::Null, "protocol"),
        ] {
            assert_eq!(class(&classify(&error, NOW)), expected, "{error}");
        }
    }

    #[test]
    fn keys_are_never_quoted_and_controls_never_shown() {
        let key = ["sk", "abc123"].join("-");
        for name in ["APIError", "UnknownError", "ProviderAuthError"] {
            let error = json!({"name": name, "data": {"message": format!("Incorrect API key: {key}"),
                "statusCode": 401, "responseBody": format!("{{\"error\":\"Incorrect API key: {key}\"}}")}});
            let EngineError::Auth(words) = classify(&error, NOW) else {
                panic!("{error}");
            };
            assert!(!words.contains(&key), "{words}");
        }
        let error =
            json!({"name": "UnknownError", "data": {"message": "odd\u{1b}[31m\nthing\u{202e}"}});
        let words = classify(&error, NOW).to_string();
        assert!(!words.contains(['\u{1b}', '\n', '\u{202e}']), "{words}");
    }
}

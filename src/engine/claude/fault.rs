//! What a failed turn of Claude Code means. The doors are asked first; this is for what they did not see.
//! Fields decide, in the order in which they can be trusted; words last, digits in a text never.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::engine::cli::{Said, shown};
use crate::gateway::provider_error;
use crate::port::EngineError;

/// What a `result` event that is no success says. `resets_at` is what a `rate_limit_event` said before, in
/// seconds since the Unix epoch; `text` is what the model had said.
pub(super) fn failed(result: &Value, resets_at: Option<u64>, text: &str) -> Said {
    let field = |name: &str| result[name].as_str().unwrap_or_default();
    let words = match result["result"].as_str() {
        Some(words) => shown(words),
        None => shown(result["errors"][0].as_str().unwrap_or_default()),
    };
    match field("subtype") {
        "error_max_structured_output_retries" => {
            return Said::Failed(EngineError::SchemaUnmet(words));
        }
        "error_max_turns" => return Said::Cut(text.to_owned(), "the limit of its turns"),
        "error_max_budget_usd" => return Said::Cut(text.to_owned(), "the limit of its cost"),
        "error_during_execution" => return Said::Failed(EngineError::Protocol(words)),
        _ => {}
    }
    match field("api_error") {
        "usage_limit_reached" => return Said::Failed(EngineError::UsageLimited { resets_at }),
        "org_disabled_credential" => return Said::Failed(EngineError::Auth(words)),
        "connection_failed" | "stream_idle_timeout" => {
            return Said::Failed(EngineError::Transient(words));
        }
        "max_output_tokens" => return Said::Cut(text.to_owned(), "the output limit"),
        _ => {}
    }
    if matches!(
        field("terminal_reason"),
        "prompt_too_long" | "blocking_limit"
    ) {
        return Said::Failed(EngineError::ContextOverflow);
    }
    if field("stop_reason") == "refusal" {
        return Said::Failed(EngineError::Refused(words));
    }
    Said::Failed(of_status(result, resets_at, words))
}

fn of_status(result: &Value, resets_at: Option<u64>, words: String) -> EngineError {
    let status = result["api_error_status"]
        .as_u64()
        .and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok());
    let says = |start: &str| words.starts_with(start);
    if let Some(status) = status {
        // Older versions name no type, and a plan's limit is known by its words only.
        if status == StatusCode::TOO_MANY_REQUESTS && says("You've hit your") {
            return EngineError::UsageLimited { resets_at };
        }
        let kind = result["api_error_type"].as_str().unwrap_or_default();
        // It says of a limited rate that it is "not your usage limit".
        let words = words.replace("not your usage limit", "");
        let body = json!({"type": "error", "error": {"type": kind, "message": words}});
        return provider_error(
            Some(status),
            &HeaderMap::new(),
            body.to_string().as_bytes(),
            0,
        );
    }
    if says("Not logged in") {
        EngineError::Auth(words)
    } else if says("Request timed out") || says("API Error: Unable to connect") {
        EngineError::Transient(words)
    } else {
        EngineError::Protocol(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(result: &Value) -> EngineError {
        match failed(result, Some(1_900_000_000), "") {
            Said::Failed(error) => error,
            other => panic!("{result}: {other:?}"),
        }
    }

    #[test]
    fn fields_decide_before_words() {
        let result = json!({"subtype": "success", "is_error": true, "api_error_status": 529,
            "api_error_type": "overloaded_error", "result": "API Error: 401 Invalid API key"});
        assert_eq!(error(&result), EngineError::Overloaded);
        let result = json!({"subtype": "error_max_structured_output_retries", "api_error_status": 401,
            "errors": ["Failed to provide valid structured output"]});
        assert!(matches!(error(&result), EngineError::SchemaUnmet(_)));
        let result = json!({"api_error": "usage_limit_reached", "api_error_status": 429, "result": "anything"});
        assert_eq!(
            error(&result),
            EngineError::UsageLimited {
                resets_at: Some(1_900_000_000)
            }
        );
    }

    #[test]
    fn what_is_unknown_is_a_protocol_error_and_never_a_success() {
        for result in [
            json!({}),
            json!({"subtype": "success", "is_error": true, "result": "API Error: 503 times"}),
            json!({"subtype": 3, "api_error_status": "429", "result": {}}),
            json!({"subtype": "error_during_execution", "errors": []}),
            json!({"subtype": "error_of_tomorrow", "api_error_status": 99999}),
        ] {
            assert!(
                matches!(error(&result), EngineError::Protocol(_)),
                "{result}"
            );
        }
    }
}

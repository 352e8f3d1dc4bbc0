//! Errors that a provider puts into an answer that began well.

use serde_json::Value;

use super::wire::text;
use crate::port::EngineError;

/// The class of an error object: its type and code decide, never its wording.
pub(super) fn of_error(error: &Value) -> EngineError {
    let kind = text(error, "/type");
    let code = text(error, "/code");
    let is = |word: &str| kind == word || code == word;
    let message = text(error, "/message");
    let message: String = message.chars().take(300).collect();
    if is("overloaded_error") || is("server_is_overloaded") || is("slow_down") {
        EngineError::Overloaded
    } else if is("insufficient_quota") || is("usage_limit_reached") || is("billing_error") {
        EngineError::UsageLimited { resets_at: None }
    } else if is("rate_limit_error") || is("rate_limit_exceeded") || is("too_many_requests") {
        EngineError::RateLimited { retry_after: None }
    } else if is("authentication_error") || is("permission_error") || is("invalid_api_key") {
        EngineError::Auth(message)
    } else if is("context_length_exceeded") || is("request_too_large") {
        EngineError::ContextOverflow
    } else if is("content_filter") || is("content_policy_violation") || is("invalid_prompt") {
        EngineError::Refused(message)
    } else if is("invalid_request_error") || is("not_found_error") {
        EngineError::Protocol(message)
    } else {
        EngineError::Transient(message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn type_and_code_decide() {
        for (error, expected) in [
            (
                json!({"type": "overloaded_error", "message": "429"}),
                EngineError::Overloaded,
            ),
            (
                json!({"type": "requests", "code": "rate_limit_exceeded"}),
                EngineError::RateLimited { retry_after: None },
            ),
            (
                json!({"code": "context_length_exceeded"}),
                EngineError::ContextOverflow,
            ),
            (
                json!({"code": 500, "message": "m"}),
                EngineError::Transient("m".into()),
            ),
            (json!("text"), EngineError::Transient(String::new())),
        ] {
            assert_eq!(of_error(&error), expected, "{error}");
        }
    }
}

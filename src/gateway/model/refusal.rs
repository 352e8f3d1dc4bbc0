//! How a final error is worded for the client at hand, so that it does not try again.

use bytes::Bytes;
use http::StatusCode;

use crate::gateway::seam::{DoorError, FinalStyle, Protocol};
use crate::port::EngineError;

/// Status and JSON body. The text says the class only: a provider's message may quote a part of
/// the credential, and the client has no use for it.
pub(super) fn render(
    error: &DoorError,
    style: FinalStyle,
    protocol: Protocol,
) -> (StatusCode, Bytes) {
    let text = match error {
        DoorError::Cap(cap) => format!("ecr: this run ends here, used up: {cap}"),
        DoorError::Failed { error, .. } => format!("ecr: {}", class(error)),
    };
    let status = match style {
        FinalStyle::Claude => StatusCode::FORBIDDEN,
        FinalStyle::Codex | FinalStyle::OpenCode | FinalStyle::Api => StatusCode::BAD_REQUEST,
    };
    let kind = match style {
        FinalStyle::Claude => "permission_error",
        FinalStyle::Codex | FinalStyle::OpenCode | FinalStyle::Api => "invalid_request_error",
    };
    let body = match protocol {
        Protocol::AnthropicMessages => serde_json::json!({
            "type": "error",
            "error": {"type": kind, "message": text},
        }),
        Protocol::OpenAiResponses | Protocol::OpenAiChat => serde_json::json!({
            "error": {"message": text, "type": kind, "param": null, "code": "ecr_final"},
        }),
    };
    (status, Bytes::from(body.to_string()))
}

fn class(error: &EngineError) -> &'static str {
    match error {
        EngineError::Unavailable(_) => "the model is not available",
        EngineError::Auth(_) => "the provider refused the credential",
        EngineError::RateLimited { .. } => "the provider limits the rate",
        EngineError::UsageLimited { .. } => "the account's allowance is used up",
        EngineError::Overloaded => "the provider has no capacity",
        EngineError::Transient(_) => "the provider cannot be reached or failed",
        EngineError::ContextOverflow => "the input does not fit",
        EngineError::Refused(_) => "the provider declined",
        EngineError::SchemaUnmet(_) | EngineError::Protocol(_) => "the request was not served",
        EngineError::Stalled(_) => "the provider gave no sign of life",
        EngineError::Timeout(_) => "the time is up",
        EngineError::Cancelled => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Cap;

    #[test]
    fn each_client_gets_what_it_takes_as_final() {
        let secret = DoorError::Failed {
            error: EngineError::Protocol("sk-quoted".to_owned()),
            status: None,
            body: Bytes::from_static(b"sk-quoted"),
        };
        for (style, status) in [
            (FinalStyle::Claude, 403),
            (FinalStyle::Codex, 400),
            (FinalStyle::OpenCode, 400),
        ] {
            for protocol in [
                Protocol::AnthropicMessages,
                Protocol::OpenAiResponses,
                Protocol::OpenAiChat,
            ] {
                for error in [&secret, &DoorError::Cap(Cap::Turns)] {
                    let (got, body) = render(error, style, protocol);
                    assert_eq!(got, status);
                    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
                    let text = body["error"]["message"].as_str().unwrap();
                    assert!(text.starts_with("ecr: ") && !text.contains("sk-"), "{text}");
                }
            }
        }
    }
}

//! What a provider's failure means. Status and structured fields decide; words of a message only
//! where nothing else is there, and never a bare digit.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

use super::meter::WireError;
use super::retry::Again;
use crate::http::TransportError;
use crate::port::EngineError;

/// A failure and whether the call may be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The class.
    pub(super) error: EngineError,
    /// Whether it may pass.
    pub(super) again: Again,
    /// The provider said that it has no capacity, whatever the class became.
    pub(super) overloaded: bool,
}

/// A reset that is further away than this is a used-up allowance, not a rate limit.
const FAR: Duration = Duration::from_secs(15 * 60);

fn verdict(error: EngineError, again: Again) -> Verdict {
    let overloaded = error == EngineError::Overloaded;
    Verdict {
        error,
        again,
        overloaded,
    }
}

/// What a transport failure before the answer began means.
pub(super) fn of_transport(error: &TransportError) -> Verdict {
    match error {
        TransportError::Unusable(text) => {
            verdict(EngineError::Unavailable(text.clone()), Again::No)
        }
        TransportError::Connect(_) | TransportError::Lost(_) => {
            verdict(EngineError::Transient(error.to_string()), Again::Soon(None))
        }
    }
}

/// What an answer with a status other than success means. `now` is in seconds since the epoch.
pub(super) fn of_status(status: StatusCode, headers: &HeaderMap, body: &[u8], now: u64) -> Verdict {
    let error = read_error(body);
    let after = retry_after(headers, now);
    let mut verdict = if status.is_redirection() {
        verdict(
            EngineError::Protocol(format!(
                "the provider redirects ({}), which is never followed: check baseUrl",
                status.as_u16()
            )),
            Again::No,
        )
    } else {
        of_fields(Some(status), &error, headers, after, now)
    };
    let told_not_to = headers
        .get("x-should-retry")
        .is_some_and(|value| value == "false");
    if told_not_to {
        verdict.again = Again::No;
    }
    verdict
}

/// What a provider's error means that a client has passed on: its status, when that is known, its headers
/// and its body. `now` is in seconds since the Unix epoch.
pub fn provider_error(
    status: Option<StatusCode>,
    headers: &HeaderMap,
    body: &[u8],
    now: u64,
) -> EngineError {
    match status {
        Some(status) => of_status(status, headers, body, now).error,
        None => of_wire(&read_error(body), now).error,
    }
}

/// What an error inside of an answer means.
pub(super) fn of_wire(error: &WireError, now: u64) -> Verdict {
    of_fields(None, error, &HeaderMap::new(), None, now)
}

fn of_fields(
    status: Option<StatusCode>,
    error: &WireError,
    headers: &HeaderMap,
    after: Option<Duration>,
    now: u64,
) -> Verdict {
    let code = status.map_or(0, |s| s.as_u16());
    let names = [error.code.as_str(), error.kind.as_str()];
    let named = |known: &[&str]| names.iter().any(|name| known.contains(name));
    let said = error.message.to_ascii_lowercase();
    let says = |known: &[&str]| known.iter().any(|words| said.contains(words));
    let resets = error
        .resets_at
        .or_else(|| header_number(headers, "anthropic-ratelimit-unified-reset"))
        .or_else(|| after.map(|after| now.saturating_add(after.as_secs())))
        .filter(|at| *at > now);

    let allowance_gone = named(&[
        "usage_limit_reached",
        "usage_limit_exceeded",
        "usage_not_included",
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
        "FreeUsageLimitError",
        "GoUsageLimitError",
    ]) || headers
        .get("anthropic-ratelimit-unified-status")
        .is_some_and(|value| value == "rejected")
        || code == 402
        || matches!(code, 400 | 403 | 429)
            && says(&[
                "credit balance is too low",
                "usage limit",
                "exceeded your current quota",
            ]);
    if allowance_gone {
        return verdict(EngineError::UsageLimited { resets_at: resets }, Again::No);
    }
    if named(&["context_length_exceeded", "request_too_large"])
        || code == 413
        || matches!(code, 0 | 400 | 422)
            && says(&[
                "prompt is too long",
                "maximum context length",
                "context window",
                "context size",
                "input is too long",
            ])
    {
        return verdict(EngineError::ContextOverflow, Again::No);
    }
    if named(&[
        "content_policy_violation",
        "content_filter",
        "invalid_prompt",
        "cyber_policy",
        "refusal",
    ]) {
        return verdict(EngineError::Refused(words(error)), Again::No);
    }
    if matches!(code, 401 | 403)
        || named(&[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
            "org_disabled_credential",
        ])
        || code == 400 && says(&["organization has been disabled"])
    {
        // The message is left out: providers like to quote a part of the key.
        let text = match code {
            0 => "the provider refused the credential".to_owned(),
            code => format!("the provider refused the credential ({code})"),
        };
        return verdict(EngineError::Auth(text), Again::No);
    }
    if code == 429 || named(&["rate_limit_error", "rate_limit_exceeded", "slow_down"]) {
        if after.is_some_and(|after| after > FAR) {
            return verdict(EngineError::UsageLimited { resets_at: resets }, Again::No);
        }
        let after = after.or_else(|| stated_delay(&said));
        return verdict(
            EngineError::RateLimited { retry_after: after },
            Again::Later(after),
        );
    }
    if code == 529 || named(&["overloaded_error", "overloaded", "server_is_overloaded"]) {
        return verdict(EngineError::Overloaded, Again::Soon(after));
    }
    if code == 404 || named(&["not_found_error", "model_not_found"]) {
        return verdict(
            EngineError::Unavailable(format!(
                "the provider does not know the model or the address{}",
                trailing(error)
            )),
            Again::No,
        );
    }
    if code == 0 || matches!(code, 408 | 409) || code >= 500 {
        let text = match code {
            0 => format!("the provider reported an error{}", trailing(error)),
            code => format!("the provider answered {code}{}", trailing(error)),
        };
        return verdict(EngineError::Transient(text), Again::Soon(after));
    }
    verdict(
        EngineError::Protocol(format!(
            "the provider refused the request ({code}){}",
            trailing(error)
        )),
        Again::No,
    )
}

/// The error object of a body, in any of the three protocols' shapes, or local servers' plain text.
fn read_error(body: &[u8]) -> WireError {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else {
        return WireError::default();
    };
    let error = value.get("error").unwrap_or(&value);
    let text = |name: &str| match error.get(name) {
        Some(serde_json::Value::String(text)) => text.chars().take(300).collect(),
        Some(serde_json::Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let mut message = text("message");
    if message.is_empty() {
        let plain = error.as_str().or_else(|| {
            ["detail", "message"]
                .iter()
                .find_map(|name| value.get(name).and_then(serde_json::Value::as_str))
        });
        message = plain.unwrap_or_default().chars().take(300).collect();
    }
    WireError {
        kind: text("type"),
        code: text("code"),
        message,
        resets_at: error.get("resets_at").and_then(serde_json::Value::as_u64),
    }
}

/// The provider's own words, cut short and cleaned for one line.
fn words(error: &WireError) -> String {
    let name = if error.code.is_empty() {
        &error.kind
    } else {
        &error.code
    };
    let text = match (name.is_empty(), error.message.is_empty()) {
        (_, true) => name.clone(),
        (true, false) => error.message.clone(),
        (false, false) => format!("{name}: {}", error.message),
    };
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect()
}

fn trailing(error: &WireError) -> String {
    match words(error) {
        text if text.is_empty() => text,
        text => format!(": {text}"),
    }
}

fn header_number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// The server's word on when to come back: milliseconds, seconds or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: u64) -> Option<Duration> {
    if let Some(millis) = header_number(headers, "retry-after-ms") {
        return Some(Duration::from_millis(millis));
    }
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    let at = u64::try_from(date.timestamp().as_second()).ok()?;
    Some(Duration::from_secs(at.saturating_sub(now)))
}

/// `try again in 1.5s` of `OpenAI`'s in-stream rate limits.
fn stated_delay(message: &str) -> Option<Duration> {
    let rest = message.split("try again in ").nth(1)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = rest[..end].parse().ok()?;
    let unit = &rest[end..];
    let seconds = if unit.starts_with("ms") {
        number / 1000.0
    } else if unit.starts_with('s') {
        number
    } else if unit.starts_with('m') {
        number * 60.0
    } else {
        return None;
    };
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    /// Status, headers, body, and what they mean.
    type Case = (
        u16,
        &'static [(&'static str, &'static str)],
        String,
        EngineError,
    );

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(n, v)| (http::HeaderName::from_static(n), v.parse().unwrap()))
            .collect()
    }

    fn classify(status: u16, pairs: &[(&'static str, &str)], body: &str) -> Verdict {
        of_status(
            StatusCode::from_u16(status).unwrap(),
            &headers(pairs),
            body.as_bytes(),
            NOW,
        )
    }

    fn openai(code: &str, kind: &str, message: &str) -> String {
        serde_json::json!({"error": {"code": code, "type": kind, "message": message}}).to_string()
    }

    fn anthropic(kind: &str, message: &str) -> String {
        serde_json::json!({"type": "error", "error": {"type": kind, "message": message}})
            .to_string()
    }

    #[test]
    fn final_failures() {
        let limited = |resets_at| EngineError::UsageLimited { resets_at };
        let cases: Vec<Case> = vec![
            (402, &[], String::new(), limited(None)),
            (
                400,
                &[],
                anthropic("invalid_request_error", "Your credit balance is too low to access"),
                limited(None),
            ),
            (429, &[], openai("insufficient_quota", "insufficient_quota", ""), limited(None)),
            (
                429,
                &[],
                serde_json::json!({"error": {"type": "usage_limit_reached", "resets_at": NOW + 60}})
                    .to_string(),
                limited(Some(NOW + 60)),
            ),
            (429, &[], openai("", "usage_not_included", ""), limited(None)),
            (
                429,
                &[
                    ("anthropic-ratelimit-unified-status", "rejected"),
                    ("anthropic-ratelimit-unified-reset", "1800007200"),
                ],
                anthropic("rate_limit_error", "x"),
                limited(Some(1_800_007_200)),
            ),
            (429, &[("retry-after", "3600")], String::new(), limited(Some(NOW + 3600))),
            (413, &[], anthropic("request_too_large", ""), EngineError::ContextOverflow),
            (
                400,
                &[],
                anthropic("invalid_request_error", "prompt is too long: 250000 tokens > 200000"),
                EngineError::ContextOverflow,
            ),
            (
                400,
                &[],
                openai("context_length_exceeded", "invalid_request_error", ""),
                EngineError::ContextOverflow,
            ),
            (
                400,
                &[],
                "{\"error\":\"the request exceeds the available context size\"}".to_owned(),
                EngineError::ContextOverflow,
            ),
            (
                400,
                &[],
                openai("invalid_prompt", "", "no"),
                EngineError::Refused("invalid_prompt: no".to_owned()),
            ),
        ];
        for (status, pairs, body, expected) in cases {
            let verdict = classify(status, pairs, &body);
            assert_eq!(verdict.error, expected, "{status} {body}");
            assert_eq!(verdict.again, Again::No, "{status} {body}");
        }
    }

    #[test]
    fn auth_never_quotes_the_provider() {
        for (status, body) in [
            (
                401,
                openai("invalid_api_key", "", "Incorrect API key: sk-abc***xyz"),
            ),
            (403, anthropic("permission_error", "token revoked: sk-abc")),
            (
                400,
                anthropic(
                    "invalid_request_error",
                    "This organization has been disabled. sk-abc",
                ),
            ),
        ] {
            let verdict = classify(status, &[], &body);
            let EngineError::Auth(text) = &verdict.error else {
                panic!("{status}: {verdict:?}");
            };
            assert!(!text.contains("sk-"), "{text}");
            assert_eq!(verdict.again, Again::No);
        }
    }

    #[test]
    fn what_may_pass() {
        let limited = |secs: Option<u64>| {
            let after = secs.map(Duration::from_secs);
            (
                EngineError::RateLimited { retry_after: after },
                Again::Later(after),
            )
        };
        let date = "Fri, 15 Jan 2027 08:00:30 GMT";
        for (status, pairs, body, expected) in [
            (429, vec![], String::new(), limited(None)),
            (
                429,
                vec![("retry-after", "7")],
                String::new(),
                limited(Some(7)),
            ),
            (
                429,
                vec![("retry-after", date)],
                String::new(),
                limited(Some(30)),
            ),
            (
                429,
                vec![("retry-after-ms", "2000")],
                String::new(),
                limited(Some(2)),
            ),
            (
                429,
                vec![],
                openai("rate_limit_exceeded", "", "Please try again in 3s."),
                limited(Some(3)),
            ),
            (
                503,
                vec![],
                openai("slow_down", "", "Slow down"),
                limited(None),
            ),
            (
                529,
                vec![],
                anthropic("overloaded_error", "Overloaded"),
                (EngineError::Overloaded, Again::Soon(None)),
            ),
            (
                503,
                vec![],
                openai("server_is_overloaded", "", ""),
                (EngineError::Overloaded, Again::Soon(None)),
            ),
        ] {
            let verdict = classify(status, &pairs, &body);
            assert_eq!((verdict.error, verdict.again), expected, "{status} {body}");
        }
        for status in [408, 500, 502, 503, 504, 520] {
            let verdict = classify(status, &[], "<html>bad gateway</html>");
            assert!(
                matches!(verdict.error, EngineError::Transient(_)),
                "{status}"
            );
            assert_eq!(verdict.again, Again::Soon(None));
        }
        let told = classify(529, &[("x-should-retry", "false")], "");
        assert_eq!(
            (told.error, told.again),
            (EngineError::Overloaded, Again::No)
        );
    }

    #[test]
    fn requests_that_are_wrong() {
        for (status, part) in [
            (400, "refused the request (400)"),
            (422, "(422)"),
            (302, "redirects (302)"),
        ] {
            let verdict = classify(status, &[("location", "https://evil.test/?k=v")], "");
            let EngineError::Protocol(text) = &verdict.error else {
                panic!("{status}: {verdict:?}");
            };
            assert!(text.contains(part) && !text.contains("evil"), "{text}");
            assert_eq!(verdict.again, Again::No);
        }
        assert!(matches!(
            classify(404, &[], &anthropic("not_found_error", "model: x")).error,
            EngineError::Unavailable(_)
        ));
    }

    #[test]
    fn errors_inside_a_stream() {
        let wire = |code: &str, kind: &str, message: &str| {
            of_wire(
                &WireError {
                    code: code.to_owned(),
                    kind: kind.to_owned(),
                    message: message.to_owned(),
                    resets_at: None,
                },
                NOW,
            )
        };
        assert_eq!(
            wire("", "overloaded_error", "Overloaded").error,
            EngineError::Overloaded
        );
        assert_eq!(
            wire("rate_limit_exceeded", "", "Please try again in 1.5s.").error,
            EngineError::RateLimited {
                retry_after: Some(Duration::from_millis(1500))
            }
        );
        assert_eq!(
            wire("context_length_exceeded", "", "").error,
            EngineError::ContextOverflow
        );
        assert!(matches!(
            wire("", "", "odd").error,
            EngineError::Transient(_)
        ));
        assert!(matches!(
            wire("", "authentication_error", "").error,
            EngineError::Auth(_)
        ));
    }

    #[test]
    fn digits_in_a_message_decide_nothing() {
        let verdict = classify(500, &[], &openai("", "", "429 401 529 rate"));
        assert!(matches!(verdict.error, EngineError::Transient(_)));
    }

    #[test]
    fn transport_failures() {
        let connect = of_transport(&TransportError::Connect("refused".to_owned()));
        assert_eq!(connect.again, Again::Soon(None));
        let unusable = of_transport(&TransportError::Unusable("no roots".to_owned()));
        assert_eq!(
            unusable.error,
            EngineError::Unavailable("no roots".to_owned())
        );
        assert_eq!(unusable.again, Again::No);
    }
}

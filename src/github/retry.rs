//! What is repeated, and when: one table, decided by the method, the status, the headers and GitHub's words.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

/// How patient the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryLimits {
    /// How often one request is sent at most.
    pub attempts: u32,
    /// How long one request may wait in total, over all its attempts.
    pub patience: Duration,
    /// The first pause after a fault; it doubles each time.
    pub pause: Duration,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            attempts: 4,
            patience: Duration::from_secs(180),
            pause: Duration::from_secs(1),
        }
    }
}

/// What came of one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome<'a> {
    /// An answer, whatever its status.
    Answer {
        status: StatusCode,
        headers: &'a HeaderMap,
        /// GitHub's words, lower case.
        words: &'a str,
    },
    /// No answer.
    Lost {
        /// The request may have been carried out.
        sent: bool,
        transient: bool,
    },
}

/// One attempt of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    /// Carrying it out twice is the same as once.
    pub(super) repeatable: bool,
    /// Which one it was, from 1.
    pub(super) number: u32,
    /// Seconds since the Unix epoch.
    pub(super) now: u64,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Take the outcome as it is.
    Stop,
    /// Send it again after this pause.
    Again(Duration),
    /// As `Again`, because of a limit: the request was not carried out.
    Limited(Duration),
}

/// Decides; patience is for the caller to keep.
pub(super) fn next(attempt: Attempt, outcome: Outcome<'_>, limits: &RetryLimits) -> Next {
    let pause = limits.pause * 2u32.saturating_pow(attempt.number.saturating_sub(1).min(10));
    match outcome {
        Outcome::Lost {
            sent: false,
            transient: true,
        } => Next::Again(pause),
        Outcome::Lost {
            transient: true, ..
        } if attempt.repeatable => Next::Again(pause),
        Outcome::Lost { .. } => Next::Stop,
        Outcome::Answer {
            status,
            headers,
            words,
        } => match status.as_u16() {
            403 | 429 => limit(attempt, status, headers, words).map_or(Next::Stop, Next::Limited),
            500.. if attempt.repeatable => Next::Again(pause),
            _ => Next::Stop,
        },
    }
}

/// How long a limit holds; `None` when this is a plain refusal. A limited request was not carried out, so even a
/// creating one may be sent again.
fn limit(
    attempt: Attempt,
    status: StatusCode,
    headers: &HeaderMap,
    words: &str,
) -> Option<Duration> {
    let number =
        |name: &str| -> Option<u64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let spent = number("x-ratelimit-remaining") == Some(0);
    let secondary = words.contains("secondary rate limit") || words.contains("abuse detection");
    let primary = words.contains("api rate limit exceeded");
    if status != StatusCode::TOO_MANY_REQUESTS && !secondary && !primary {
        return None;
    }
    if let Some(seconds) = number("retry-after") {
        return Some(Duration::from_secs(seconds));
    }
    if spent && let Some(reset) = number("x-ratelimit-reset") {
        // The clocks may differ by a moment.
        return Some(Duration::from_secs(reset.saturating_sub(attempt.now) + 1));
    }
    Some(Duration::from_secs(60) * 2u32.saturating_pow(attempt.number.saturating_sub(1).min(6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(repeatable: bool, status: u16, headers: &[(&str, &str)], words: &str) -> Next {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        let attempt = Attempt {
            repeatable,
            number: 1,
            now: 1_000,
        };
        let outcome = Outcome::Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &map,
            words,
        };
        next(attempt, outcome, &RetryLimits::default())
    }

    #[test]
    fn faults_of_the_server_are_repeated_only_where_that_is_harmless() {
        let second = Duration::from_secs(1);
        for status in [500, 502, 503, 504] {
            assert_eq!(decide(true, status, &[], ""), Next::Again(second));
            assert_eq!(decide(false, status, &[], ""), Next::Stop);
        }
        for status in [200, 304, 400, 401, 404, 409, 410, 422] {
            assert_eq!(decide(true, status, &[], ""), Next::Stop, "{status}");
        }
    }

    #[test]
    fn a_refusal_is_not_a_limit() {
        let words = "resource not accessible by integration";
        assert_eq!(decide(true, 403, &[], words), Next::Stop);
        // `remaining: 0` alone is the last request that was allowed, and it was refused for a reason of its own.
        let spent = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1030"),
        ];
        assert_eq!(decide(true, 403, &spent, words), Next::Stop);
    }

    #[test]
    fn limits_are_waited_for_as_the_headers_say() {
        let limited = |seconds| Next::Limited(Duration::from_secs(seconds));
        let secondary = "you have exceeded a secondary rate limit";
        let primary = "api rate limit exceeded for installation";
        let spent = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1030"),
        ];
        for status in [403, 429] {
            // Even what creates something: a limited request was not carried out.
            for repeatable in [true, false] {
                let retry_after = [("retry-after", "7")];
                assert_eq!(
                    decide(repeatable, status, &retry_after, secondary),
                    limited(7)
                );
                assert_eq!(decide(repeatable, status, &[], secondary), limited(60));
                assert_eq!(decide(repeatable, status, &spent, primary), limited(31));
            }
        }
        assert_eq!(decide(true, 429, &[], ""), limited(60));
    }

    #[test]
    fn a_lost_connection() {
        let lost = |repeatable, sent, transient| {
            let attempt = Attempt {
                repeatable,
                number: 3,
                now: 0,
            };
            next(
                attempt,
                Outcome::Lost { sent, transient },
                &RetryLimits::default(),
            )
        };
        let four = Next::Again(Duration::from_secs(4));
        assert_eq!(lost(true, true, true), four);
        assert_eq!(lost(false, false, true), four);
        assert_eq!(lost(false, true, true), Next::Stop);
        assert_eq!(lost(true, false, false), Next::Stop);
    }
}

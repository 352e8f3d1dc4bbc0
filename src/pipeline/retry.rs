//! What happens after each kind of failure: one table.
//!
//! @ref LLP 0004#retry-table — what happens after each error

use std::time::Duration;

use crate::port::EngineError;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A server that asks for a longer pause than this is not waited for.
pub const RATE_LIMIT_CEILING: Duration = secs(300);

/// What to do about a failed pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Try again after the delays, one a retry, then give up.
    Retry(&'static [Duration]),
    /// Try again after the server's word or else the delays, then give up.
    RetryWhenTold(&'static [Duration]),
    /// Do less at a time: the ladder gives smaller passes.
    Split,
    /// The same again would fail the same way.
    GiveUp,
    /// So would every other pass on this engine and provider: they are not started.
    TripBreaker,
}

/// One row: the name under which its retries are counted, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Kinds with one name share one count of retries.
    pub class: &'static str,
    /// What to do.
    pub remedy: Remedy,
}

/// The row for an error.
pub fn rule(error: &EngineError) -> Rule {
    const TRANSIENT: &[Duration] = &[secs(2), secs(8)];
    const RATE_LIMIT: &[Duration] = &[secs(15), secs(45), secs(90)];
    const ONCE: &[Duration] = &[Duration::ZERO];
    let (class, remedy) = match error {
        EngineError::Transient(_) | EngineError::Overloaded => {
            ("transient", Remedy::Retry(TRANSIENT))
        }
        EngineError::RateLimited { .. } => ("rate limit", Remedy::RetryWhenTold(RATE_LIMIT)),
        EngineError::Stalled(_) => ("stall", Remedy::Retry(ONCE)),
        EngineError::SchemaUnmet(_) => ("schema", Remedy::Retry(ONCE)),
        EngineError::Timeout(_) => ("timeout", Remedy::Split),
        EngineError::ContextOverflow => ("context", Remedy::Split),
        EngineError::Refused(_) => ("refusal", Remedy::GiveUp),
        EngineError::Protocol(_) => ("protocol", Remedy::GiveUp),
        EngineError::Cancelled => ("cancelled", Remedy::GiveUp),
        EngineError::Unavailable(_) => ("unavailable", Remedy::TripBreaker),
        EngineError::Auth(_) => ("auth", Remedy::TripBreaker),
        EngineError::UsageLimited { .. } => ("usage limit", Remedy::TripBreaker),
    };
    Rule { class, remedy }
}

/// How long to wait before retry number `done + 1` after `error`; `None` when it is over.
pub(super) fn delay(error: &EngineError, done: usize) -> Option<Duration> {
    match rule(error).remedy {
        Remedy::Retry(delays) => delays.get(done).copied(),
        Remedy::RetryWhenTold(delays) => {
            let planned = delays.get(done).copied()?;
            match error {
                EngineError::RateLimited {
                    retry_after: Some(told),
                } => (*told <= RATE_LIMIT_CEILING).then_some(*told),
                _ => Some(planned),
            }
        }
        Remedy::Split | Remedy::GiveUp | Remedy::TripBreaker => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_table() {
        let all = |error: EngineError| -> Vec<u64> {
            (0..10)
                .map_while(|n| delay(&error, n))
                .map(|d| d.as_secs())
                .collect()
        };
        let limited = |after: Option<u64>| EngineError::RateLimited {
            retry_after: after.map(secs),
        };
        assert_eq!(all(EngineError::Transient(String::new())), [2, 8]);
        assert_eq!(all(EngineError::Overloaded), [2, 8]);
        assert_eq!(all(limited(None)), [15, 45, 90]);
        assert_eq!(all(limited(Some(7))), [7, 7, 7]);
        assert_eq!(all(limited(Some(301))), [0; 0]);
        assert_eq!(all(EngineError::Stalled(secs(1))), [0]);
        assert_eq!(all(EngineError::SchemaUnmet(String::new())), [0]);
        assert_eq!(all(EngineError::Auth(String::new())), [0; 0]);
        assert_eq!(all(EngineError::Timeout(secs(1))), [0; 0]);
    }
}

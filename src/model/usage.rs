//! Tokens and money.

/// Money in micro-dollars (US$ 0.000001).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cost(pub u64);

impl Cost {
    /// The amount in US dollars.
    pub fn usd(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The amount that is not more than `usd` US dollars; nothing for a negative one.
    #[allow(clippy::cast_sign_loss)] // a cast from a float saturates, which is what is meant
    pub fn from_usd(usd: f64) -> Self {
        Self((usd * 1e6).floor() as u64)
    }
}

/// Token counts of one or several model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// Fresh input tokens.
    pub input: u64,
    /// Output tokens, reasoning included where the provider counts it so.
    pub output: u64,
    /// Input tokens served from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// Reasoning tokens, where the provider reports them.
    pub reasoning: u64,
}

/// How far the numbers of a [`Usage`] can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageConfidence {
    /// Nothing was measured; there are no numbers.
    Unavailable,
    /// At least one number is an estimate.
    Estimated,
    /// Every number was reported by the provider, or no model was called.
    Exact,
}

/// What a pass used. Unavailable usage cannot carry a number, by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Usage {
    /// No measurement.
    #[default]
    Unavailable,
    /// Numbers, part of which are estimates.
    Estimated(TokenCounts, Option<Cost>),
    /// Numbers reported by the provider (all zero when no model was called).
    Exact(TokenCounts, Option<Cost>),
}

impl Usage {
    /// Usage of a pass that calls no model.
    pub const NONE: Self = Self::Exact(
        TokenCounts {
            input: 0,
            output: 0,
            cache_read: 0,
            cache_write: 0,
            reasoning: 0,
        },
        Some(Cost(0)),
    );

    /// How far the numbers can be trusted.
    pub fn confidence(&self) -> UsageConfidence {
        match self {
            Self::Unavailable => UsageConfidence::Unavailable,
            Self::Estimated(..) => UsageConfidence::Estimated,
            Self::Exact(..) => UsageConfidence::Exact,
        }
    }

    /// The token counts, when there are any.
    pub fn tokens(&self) -> Option<TokenCounts> {
        match self {
            Self::Unavailable => None,
            Self::Estimated(tokens, _) | Self::Exact(tokens, _) => Some(*tokens),
        }
    }

    /// The money, when it is known.
    pub fn cost(&self) -> Option<Cost> {
        match self {
            Self::Unavailable => None,
            Self::Estimated(_, cost) | Self::Exact(_, cost) => *cost,
        }
    }

    /// The sum of two usages; the weaker confidence wins, but numbers that are known stay counted:
    /// exact + unavailable is estimated.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (Some(a), Some(b)) = (self.tokens(), other.tokens()) else {
            return match (self, other) {
                (Self::Unavailable, Self::Unavailable) => Self::Unavailable,
                (Self::Unavailable, known) | (known, Self::Unavailable) => {
                    Self::Estimated(known.tokens().unwrap_or_default(), known.cost())
                }
                (known, _) => known,
            };
        };
        let tokens = TokenCounts {
            input: a.input.saturating_add(b.input),
            output: a.output.saturating_add(b.output),
            cache_read: a.cache_read.saturating_add(b.cache_read),
            cache_write: a.cache_write.saturating_add(b.cache_write),
            reasoning: a.reasoning.saturating_add(b.reasoning),
        };
        let cost = match (self.cost(), other.cost()) {
            (Some(a), Some(b)) => Some(Cost(a.0.saturating_add(b.0))),
            _ => None,
        };
        match (self, other) {
            (Self::Exact(..), Self::Exact(..)) => Self::Exact(tokens, cost),
            _ => Self::Estimated(tokens, cost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_the_weaker_confidence() {
        let one = TokenCounts {
            input: 1,
            ..TokenCounts::default()
        };
        let exact = Usage::Exact(one, Some(Cost(2)));
        assert_eq!(exact.plus(exact).tokens().unwrap().input, 2);
        assert_eq!(exact.plus(exact).cost(), Some(Cost(4)));
        assert_eq!(
            exact.plus(Usage::Unavailable).confidence(),
            UsageConfidence::Estimated
        );
        assert_eq!(
            Usage::Unavailable.plus(Usage::Unavailable),
            Usage::Unavailable
        );
        assert_eq!(exact.plus(Usage::Exact(one, None)).cost(), None);
        assert_eq!(Cost::from_usd(2.5), Cost(2_500_000));
        assert_eq!(Cost::from_usd(-1.0), Cost(0));
    }
}

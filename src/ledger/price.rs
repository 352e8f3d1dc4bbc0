//! What a model call costs.

use std::collections::BTreeMap;

use crate::model::{Cost, ModelId, TokenCounts};

/// The day the built-in prices were looked up.
pub const AS_OF: &str = "2026-11-30";

/// Anthropic's one-hour cache writes cost twice the input; nobody else sells them.
const LONG_LIVED: f64 = 2.0;

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Fresh input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from the provider's cache.
    pub cache_read: f64,
    /// Input written to the provider's cache (the shortest lifetime).
    pub cache_write: f64,
}

impl Rates {
    fn of(&self, tokens: TokenCounts, long_lived_writes: u64) -> f64 {
        let long_lived = long_lived_writes.min(tokens.cache_write);
        tokens.input as f64 * self.input
            + tokens.output as f64 * self.output
            + tokens.cache_read as f64 * self.cache_read
            + (tokens.cache_write - long_lived) as f64 * self.cache_write
            + long_lived as f64 * (LONG_LIVED * self.input).max(self.cache_write)
    }
}

/// The price of one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// The usual rates.
    pub rates: Rates,
    /// From this many input tokens on, cached ones included, other rates hold for the whole call.
    pub long: Option<(u64, Rates)>,
}

impl Prices {
    /// One set of rates for every call.
    pub fn flat(rates: Rates) -> Self {
        Self { rates, long: None }
    }

    /// The price of one call; `long_lived_writes` is the part of `cache_write` kept for an hour.
    /// Rounded up to a micro-dollar, so that sums never fall short.
    pub fn cost(&self, tokens: TokenCounts, long_lived_writes: u64) -> Cost {
        let prompt = tokens
            .input
            .saturating_add(tokens.cache_read)
            .saturating_add(tokens.cache_write);
        let rates = match &self.long {
            Some((above, rates)) if prompt > *above => rates,
            _ => &self.rates,
        };
        // Dollars per million tokens are micro-dollars per token.
        micro_dollars(rates.of(tokens, long_lived_writes))
    }

    /// The most that a call with this much input and output can cost, whatever is cached.
    /// `long_lived_writes`: the call may write to the cache for an hour.
    pub fn ceiling(&self, input: u64, output: u64, long_lived_writes: bool) -> Cost {
        let dearest = |rates: &Rates| {
            let factor = if long_lived_writes { LONG_LIVED } else { 1.0 };
            let input_rate = (rates.input * factor)
                .max(rates.cache_read)
                .max(rates.cache_write);
            micro_dollars(input as f64 * input_rate + output as f64 * rates.output)
        };
        match &self.long {
            Some((above, long)) if input > *above => dearest(long).max(dearest(&self.rates)),
            _ => dearest(&self.rates),
        }
    }
}

fn micro_dollars(amount: f64) -> Cost {
    if amount.is_finite() && amount > 0.0 {
        // Tolerance: 0.3 × 10 must not round up to 4 because of a binary fraction.
        // `as` saturates.
        #[allow(clippy::cast_sign_loss)] // positive, checked above
        Cost((amount - 1e-6).ceil().max(0.0) as u64)
    } else {
        Cost(0)
    }
}

const fn rates(input: f64, output: f64, cache_read: f64, cache_write: f64) -> Rates {
    Rates {
        input,
        output,
        cache_read,
        cache_write,
    }
}

const fn flat(rates: Rates) -> Prices {
    Prices { rates, long: None }
}

const fn tiered(rates: Rates, above: u64, long: Rates) -> Prices {
    Prices {
        rates,
        long: Some((above, long)),
    }
}

/// Public list prices as of [`AS_OF`], standard tier. A model that is not here is counted in tokens only.
#[rustfmt::skip]
const BUILT_IN: &[(&str, Prices)] = &[
    ("claude-fable-5-1",  flat(rates(10.0, 50.0, 0.25, 12.5))),
    ("claude-opus-5-5",   flat(rates(4.0, 20.0, 0.20, 5.0))),
    ("claude-opus-5",     flat(rates(5.0, 25.0, 0.50, 6.25))),
    ("claude-opus-4-8",   flat(rates(5.0, 25.0, 0.50, 6.25))),
    ("claude-opus-4-7",   flat(rates(5.0, 25.0, 0.50, 6.25))),
    ("claude-opus-4-6",   flat(rates(5.0, 25.0, 0.50, 6.25))),
    ("claude-opus-4-5",   flat(rates(5.0, 25.0, 0.50, 6.25))),
    ("claude-opus-4-1",   flat(rates(15.0, 75.0, 1.50, 18.75))),
    ("claude-sonnet-5-5", flat(rates(2.0, 10.0, 0.10, 2.5))),
    ("claude-sonnet-5",   flat(rates(2.0, 10.0, 0.20, 2.5))),
    ("claude-sonnet-4-6", flat(rates(3.0, 15.0, 0.30, 3.75))),
    ("claude-sonnet-4-5", flat(rates(3.0, 15.0, 0.30, 3.75))),
    ("claude-haiku-5-5",  tiered(rates(0.1, 0.5, 0.01, 0.125), 100_000, rates(0.5, 2.5, 0.05, 0.625))),
    ("claude-haiku-4-5",  flat(rates(1.0, 5.0, 0.10, 1.25))),
    ("gpt-6.1-sol",       tiered(rates(2.0, 10.0, 0.10, 2.5), 272_000, rates(4.0, 15.0, 0.20, 5.0))),
    ("gpt-6.1-terra",     tiered(rates(1.0, 5.0, 0.05, 1.25), 272_000, rates(2.0, 7.5, 0.10, 2.5))),
    ("gpt-6-sol",         tiered(rates(2.0, 10.0, 0.20, 2.5), 272_000, rates(4.0, 15.0, 0.40, 5.0))),
    ("gpt-6-luna",        tiered(rates(0.1, 0.5, 0.01, 0.125), 272_000, rates(0.2, 0.75, 0.02, 0.25))),
    ("gpt-6-astra",       tiered(rates(10.0, 50.0, 1.0, 12.5), 272_000, rates(20.0, 75.0, 2.0, 25.0))),
    ("gpt-5.6-terra",     tiered(rates(2.0, 12.0, 0.20, 2.0), 272_000, rates(4.0, 18.0, 0.40, 4.0))),
    ("gpt-5.6-luna",      tiered(rates(0.2, 1.2, 0.02, 0.2), 272_000, rates(0.4, 1.8, 0.04, 0.4))),
    ("gpt-5.4",           flat(rates(2.5, 15.0, 0.25, 2.5))),
    ("gpt-5.4-mini",      flat(rates(0.75, 4.5, 0.075, 0.75))),
    ("gpt-5.1",           flat(rates(1.25, 10.0, 0.125, 1.25))),
    ("gpt-5",             flat(rates(1.25, 10.0, 0.125, 1.25))),
    ("gpt-5-mini",        flat(rates(0.25, 2.0, 0.025, 0.25))),
    ("gpt-4.1",           flat(rates(2.0, 8.0, 0.50, 2.0))),
    ("gpt-4.1-mini",      flat(rates(0.4, 1.6, 0.10, 0.4))),
];

/// The built-in prices and those of the configuration, which win.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PriceTable {
    own: BTreeMap<String, Prices>,
}

impl PriceTable {
    /// A table with prices of one's own, keyed by `provider/name` or by the bare name.
    pub fn new(own: BTreeMap<String, Prices>) -> Self {
        Self { own }
    }

    /// The price of `model`; `None` when it is not known: such a model is counted in tokens only.
    ///
    /// The configuration is asked for the full id and then for the bare name. The built-in table
    /// knows bare names and holds for a provider's own service only, so a gateway or a local server
    /// that reuses a name has no built-in price.
    pub fn of(&self, model: &ModelId) -> Option<Prices> {
        let own = [model.as_str(), model.name()]
            .into_iter()
            .find_map(|key| self.own.get(key));
        if let Some(prices) = own {
            return Some(*prices);
        }
        let name = undated(model.name());
        let at_home = match model.provider() {
            "anthropic" => name.starts_with("claude-"),
            "openai" => name.starts_with("gpt-"),
            _ => false,
        };
        if !at_home {
            return None;
        }
        BUILT_IN
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, prices)| *prices)
    }
}

/// `claude-sonnet-4-5-20250929` is `claude-sonnet-4-5`, `gpt-5-2025-08-07` is `gpt-5`, and
/// `claude-opus-4-8[1m]` is `claude-opus-4-8`.
fn undated(name: &str) -> &str {
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    if let Some((base, date)) = name.rsplit_once('-')
        && digits(date, 8)
    {
        return base;
    }
    let mut parts = name.rsplitn(4, '-');
    if let (Some(day), Some(month), Some(year), Some(base)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
        && digits(day, 2)
        && digits(month, 2)
        && digits(year, 4)
    {
        return base;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ModelId {
        ModelId::new(text).unwrap()
    }

    #[test]
    fn list_prices_agree_with_what_claude_code_reports() {
        // Claude Code 2.1.332 itself computes US$ 0.0008 for 100 + 20 tokens of claude-opus-5-5,
        // 0.0004 for claude-sonnet-5-5 and 0.001 for claude-opus-4-8[1m].
        let tokens = TokenCounts {
            input: 100,
            output: 20,
            ..TokenCounts::default()
        };
        let table = PriceTable::default();
        for (model, micro) in [
            ("anthropic/claude-opus-5-5", 800),
            ("anthropic/claude-sonnet-5-5", 400),
            ("anthropic/claude-opus-4-8[1m]", 1000),
        ] {
            assert_eq!(
                table.of(&id(model)).unwrap().cost(tokens, 0),
                Cost(micro),
                "{model}"
            );
        }
    }

    #[test]
    fn unknown_models_have_no_price() {
        let table = PriceTable::default();
        for model in [
            "ollama/llama3",
            "anthropic/claude-next",
            "gateway/gpt-5",
            "x",
        ] {
            assert_eq!(table.of(&id(model)), None, "{model}");
        }
        assert!(table.of(&id("openai/gpt-5-2025-08-07")).is_some());
        assert!(
            table
                .of(&id("anthropic/claude-sonnet-4-5-20250929"))
                .is_some()
        );
    }

    #[test]
    fn the_configuration_wins() {
        let own = Prices::flat(rates(1.0, 2.0, 1.0, 1.0));
        let table = PriceTable::new(BTreeMap::from([
            ("openai/gpt-5".to_owned(), own),
            ("local".to_owned(), own),
        ]));
        assert_eq!(table.of(&id("openai/gpt-5")), Some(own));
        assert_eq!(table.of(&id("vllm/local")), Some(own));
    }

    #[test]
    fn long_prompts_and_long_lived_writes_cost_more() {
        let haiku = PriceTable::default()
            .of(&id("anthropic/claude-haiku-5-5"))
            .unwrap();
        let call = |input| TokenCounts {
            input,
            output: 1000,
            ..TokenCounts::default()
        };
        assert_eq!(haiku.cost(call(100_000), 0), Cost(10_500));
        assert_eq!(haiku.cost(call(100_001), 0), Cost(52_501));
        let writes = TokenCounts {
            cache_write: 1_000_000,
            ..TokenCounts::default()
        };
        let sonnet = PriceTable::default()
            .of(&id("anthropic/claude-sonnet-5-5"))
            .unwrap();
        assert_eq!(sonnet.cost(writes, 0), Cost(2_500_000));
        assert_eq!(sonnet.cost(writes, 1_000_000), Cost(4_000_000));
    }

    #[test]
    fn no_call_costs_more_than_its_ceiling() {
        for (name, prices) in BUILT_IN {
            for (input, output) in [(0, 0), (1, 1), (99_999, 10), (300_000, 16_000)] {
                for split in [0, input / 3, input] {
                    let tokens = TokenCounts {
                        input: input - split,
                        output,
                        cache_read: split / 2,
                        cache_write: split - split / 2,
                        ..TokenCounts::default()
                    };
                    for (writes, long) in [(0, false), (tokens.cache_write, true)] {
                        assert!(
                            prices.cost(tokens, writes) <= prices.ceiling(input, output, long),
                            "{name}"
                        );
                    }
                }
            }
        }
    }
}

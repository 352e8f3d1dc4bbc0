//! Reservations and caps, for one pass and for the run.
//!
//! A call is reserved before it is made, with the most it can take; what it took replaces the
//! reservation when it ends. So the calls in flight count in full, and a call that does not fit is
//! refused before anything is spent.
//!
//! @ref LLP 0010#money-is-reserved — a cap is a cap

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::model::{Cost, PassId};

/// A bound that a pass or a run can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cap {
    /// Model calls of the pass.
    Turns,
    /// Tool calls of the pass.
    ToolCalls,
    /// Input tokens of the pass.
    InputTokens,
    /// Output tokens of the pass.
    OutputTokens,
    /// Money of the pass.
    Cost,
    /// The pass's time.
    Time,
    /// Model calls of the pass at the same time.
    Concurrency,
    /// Tokens of the run.
    RunTokens,
    /// Money of the run.
    RunCost,
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Turns => "model calls of the pass",
            Self::ToolCalls => "tool calls of the pass",
            Self::InputTokens => "input tokens of the pass",
            Self::OutputTokens => "output tokens of the pass",
            Self::Cost => "money of the pass",
            Self::Time => "time of the pass",
            Self::Concurrency => "simultaneous model calls of the pass",
            Self::RunTokens => "tokens of the run",
            Self::RunCost => "money of the run",
        })
    }
}

/// Tokens that `bytes` of prompt or answer take at most, for all practical text: code comes to
/// 3 to 4 bytes a token, prose to more.
pub fn estimated_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(3)
}

/// The caps of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCaps {
    /// Input (cached included) and output tokens together.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Cost>,
}

/// The caps of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassCaps {
    /// Model calls.
    pub turns: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Input tokens, cached ones included.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Money.
    pub cost: Option<Cost>,
    /// Time since the pass was opened.
    pub time: Duration,
    /// Model calls at the same time.
    pub concurrent: u32,
}

/// The most that a call can take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Money; `None` when the model has no known price, and money is then not capped.
    pub cost: Option<Cost>,
}

/// What a call took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Input tokens, cached ones included.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Money, when the price is known.
    pub cost: Option<Cost>,
}

/// Room that is held for a call. It has to be given back by [`Books::settle`] or [`Books::release`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a reservation that is never given back holds its room for the whole run"]
pub struct Reservation {
    pass: PassId,
    held: Estimate,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    input: u64,
    output: u64,
    cost: u64,
}

impl Sums {
    fn add(&mut self, estimate: Estimate) {
        self.input = self.input.saturating_add(estimate.input);
        self.output = self.output.saturating_add(estimate.output);
        self.cost = self
            .cost
            .saturating_add(estimate.cost.unwrap_or_default().0);
    }

    fn sub(&mut self, estimate: Estimate) {
        self.input = self.input.saturating_sub(estimate.input);
        self.output = self.output.saturating_sub(estimate.output);
        self.cost = self
            .cost
            .saturating_sub(estimate.cost.unwrap_or_default().0);
    }

    fn tokens(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

#[derive(Debug)]
struct PassBook {
    caps: PassCaps,
    turns: u32,
    tool_calls: u32,
    in_flight: u32,
    /// Spent and held together.
    sums: Sums,
    /// The largest single call so far: what the next ones are expected to take at least.
    largest: Estimate,
}

/// The books of a run.
#[derive(Debug, Default)]
pub struct Books {
    caps: RunCaps,
    sums: Sums,
    passes: BTreeMap<PassId, PassBook>,
    unpriced: u32,
}

impl Books {
    /// Empty books.
    pub fn new(caps: RunCaps) -> Self {
        Self {
            caps,
            ..Self::default()
        }
    }

    /// Opens a pass. A pass that is opened again starts anew; what it spent stays in the run's sums.
    pub fn open(&mut self, pass: PassId, caps: PassCaps) {
        self.passes.insert(
            pass,
            PassBook {
                caps,
                turns: 0,
                tool_calls: 0,
                in_flight: 0,
                sums: Sums::default(),
                largest: Estimate::default(),
            },
        );
    }

    /// Closes a pass; what it spent stays in the run's sums. Its open reservations may still be settled.
    pub fn close(&mut self, pass: &PassId) {
        self.passes.remove(pass);
    }

    /// Holds room for a call, or says which cap it does not fit under. `elapsed` is the time since
    /// the pass was opened. A pass that is not open has no time left.
    pub fn reserve(
        &mut self,
        pass: &PassId,
        estimate: Estimate,
        elapsed: Duration,
    ) -> Result<Reservation, Cap> {
        let book = self.passes.get_mut(pass).ok_or(Cap::Time)?;
        let caps = &book.caps;
        let over = |held: u64, more: u64, cap: u64| held.saturating_add(more) > cap;
        let money = |held: u64, cap: Option<Cost>| matches!((estimate.cost, cap), (Some(more), Some(cap)) if over(held, more.0, cap.0));
        let refused = if elapsed >= caps.time {
            Some(Cap::Time)
        } else if book.in_flight >= caps.concurrent {
            Some(Cap::Concurrency)
        } else if book.turns >= caps.turns {
            Some(Cap::Turns)
        } else if over(book.sums.input, estimate.input, caps.input_tokens) {
            Some(Cap::InputTokens)
        } else if over(book.sums.output, estimate.output, caps.output_tokens) {
            Some(Cap::OutputTokens)
        } else if money(book.sums.cost, caps.cost) {
            Some(Cap::Cost)
        } else if self.caps.tokens.is_some_and(|cap| {
            over(
                self.sums.tokens(),
                estimate.input.saturating_add(estimate.output),
                cap,
            )
        }) {
            Some(Cap::RunTokens)
        } else if money(self.sums.cost, self.caps.cost) {
            Some(Cap::RunCost)
        } else {
            None
        };
        if let Some(cap) = refused {
            return Err(cap);
        }
        book.turns += 1;
        book.in_flight += 1;
        book.sums.add(estimate);
        self.sums.add(estimate);
        if estimate.cost.is_none() {
            self.unpriced = self.unpriced.saturating_add(1);
        }
        Ok(Reservation {
            pass: pass.clone(),
            held: estimate,
        })
    }

    /// Replaces a reservation by what the call took. That may be more than was held: it counts all
    /// the same, and the next call finds less room.
    pub fn settle(&mut self, reservation: Reservation, spent: Spent) {
        let Reservation { pass, held } = reservation;
        let taken = Estimate {
            input: spent.input,
            output: spent.output,
            cost: spent.cost,
        };
        self.sums.sub(held);
        self.sums.add(taken);
        if let Some(book) = self.passes.get_mut(&pass) {
            book.in_flight = book.in_flight.saturating_sub(1);
            book.sums.sub(held);
            book.sums.add(taken);
            let largest = &mut book.largest;
            largest.input = largest.input.max(taken.input);
            largest.output = largest.output.max(taken.output);
            largest.cost = largest.cost.max(taken.cost);
        }
    }

    /// Gives a reservation back whole: the provider was not reached or did not serve the call.
    pub fn release(&mut self, reservation: Reservation) {
        let Reservation { pass, held } = reservation;
        self.sums.sub(held);
        if held.cost.is_none() {
            self.unpriced = self.unpriced.saturating_sub(1);
        }
        if let Some(book) = self.passes.get_mut(&pass) {
            book.in_flight = book.in_flight.saturating_sub(1);
            book.turns = book.turns.saturating_sub(1);
            book.sums.sub(held);
        }
    }

    /// Notes how many tool calls the pass has made in all.
    pub fn note_tool_calls(&mut self, pass: &PassId, calls: u32) {
        if let Some(book) = self.passes.get_mut(pass) {
            book.tool_calls = book.tool_calls.max(calls);
        }
    }

    /// The cap that the pass is about to meet: after the calls in flight there is room for two more
    /// turns at most, judged by the largest call so far. Time is not judged here.
    pub fn near(&self, pass: &PassId) -> Option<Cap> {
        const TURNS: u64 = 2;
        let book = self.passes.get(pass)?;
        let caps = &book.caps;
        let close = |held: u64, one: u64, cap: u64| {
            one > 0 && held.saturating_add(one.saturating_mul(TURNS)) > cap
        };
        let one_cost = book.largest.cost.unwrap_or_default().0;
        let one_tokens = book.largest.input.saturating_add(book.largest.output);
        if u64::from(book.turns) + TURNS >= u64::from(caps.turns) {
            Some(Cap::Turns)
        } else if book.tool_calls >= caps.tool_calls {
            Some(Cap::ToolCalls)
        } else if close(book.sums.input, book.largest.input, caps.input_tokens) {
            Some(Cap::InputTokens)
        } else if close(book.sums.output, book.largest.output, caps.output_tokens) {
            Some(Cap::OutputTokens)
        } else if caps
            .cost
            .is_some_and(|cap| close(book.sums.cost, one_cost, cap.0))
        {
            Some(Cap::Cost)
        } else if self
            .caps
            .tokens
            .is_some_and(|cap| close(self.sums.tokens(), one_tokens, cap))
        {
            Some(Cap::RunTokens)
        } else if self
            .caps
            .cost
            .is_some_and(|cap| close(self.sums.cost, one_cost, cap.0))
        {
            Some(Cap::RunCost)
        } else {
            None
        }
    }

    /// Tokens of the run, spent and held.
    pub fn tokens(&self) -> u64 {
        self.sums.tokens()
    }

    /// Money of the run, spent and held, of the calls whose price is known.
    pub fn cost(&self) -> Cost {
        Cost(self.sums.cost)
    }

    /// Calls of the run whose price is not known, so that no money cap held for them.
    pub fn unpriced_calls(&self) -> u32 {
        self.unpriced
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPS: PassCaps = PassCaps {
        turns: 8,
        tool_calls: 5,
        input_tokens: 1000,
        output_tokens: 400,
        cost: Some(Cost(5000)),
        time: Duration::from_secs(100),
        concurrent: 3,
    };

    fn estimate(input: u64, output: u64, cost: u64) -> Estimate {
        Estimate {
            input,
            output,
            cost: Some(Cost(cost)),
        }
    }

    fn spent(of: Estimate) -> Spent {
        Spent {
            input: of.input,
            output: of.output,
            cost: of.cost,
        }
    }

    fn one_pass(caps: PassCaps) -> (Books, PassId) {
        let pass = PassId::new("p");
        let mut books = Books::new(RunCaps::default());
        books.open(pass.clone(), caps);
        (books, pass)
    }

    #[test]
    fn every_cap_refuses_with_its_name() {
        let now = Duration::ZERO;
        let small = estimate(1, 1, 1);
        let cases = [
            (estimate(1001, 1, 1), Cap::InputTokens),
            (estimate(1, 401, 1), Cap::OutputTokens),
            (estimate(1, 1, 5001), Cap::Cost),
        ];
        for (call, cap) in cases {
            let (mut books, pass) = one_pass(CAPS);
            assert_eq!(books.reserve(&pass, call, now).unwrap_err(), cap);
        }
        let (mut books, pass) = one_pass(CAPS);
        assert_eq!(
            books.reserve(&pass, small, CAPS.time).unwrap_err(),
            Cap::Time
        );
        assert_eq!(
            books
                .reserve(&PassId::new("other"), small, now)
                .unwrap_err(),
            Cap::Time
        );
        let held: Vec<_> = (0..3)
            .map(|_| books.reserve(&pass, small, now).unwrap())
            .collect();
        assert_eq!(
            books.reserve(&pass, small, now).unwrap_err(),
            Cap::Concurrency
        );
        for reservation in held {
            books.settle(reservation, spent(small));
        }
        for _ in 3..8 {
            let reservation = books.reserve(&pass, small, now).unwrap();
            books.settle(reservation, spent(small));
        }
        assert_eq!(books.reserve(&pass, small, now).unwrap_err(), Cap::Turns);
        assert_eq!((books.tokens(), books.cost()), (16, Cost(8)));
    }

    #[test]
    fn the_run_caps_all_passes_together() {
        let mut books = Books::new(RunCaps {
            tokens: Some(300),
            cost: Some(Cost(1000)),
        });
        let (a, b) = (PassId::new("a"), PassId::new("b"));
        books.open(a.clone(), CAPS);
        books.open(b.clone(), CAPS);
        let first = books
            .reserve(&a, estimate(100, 100, 600), Duration::ZERO)
            .unwrap();
        let refused = |books: &mut Books, call| books.reserve(&b, call, Duration::ZERO);
        assert_eq!(
            refused(&mut books, estimate(101, 0, 1)).unwrap_err(),
            Cap::RunTokens
        );
        assert_eq!(
            refused(&mut books, estimate(1, 1, 401)).unwrap_err(),
            Cap::RunCost
        );
        books.close(&a);
        books.settle(first, spent(estimate(100, 0, 600)));
        assert_eq!(
            books.tokens(),
            100,
            "a closed pass still settles into the run"
        );
    }

    #[test]
    fn without_a_price_only_tokens_are_capped() {
        let (mut books, pass) = one_pass(PassCaps {
            cost: Some(Cost(0)),
            ..CAPS
        });
        let call = Estimate {
            input: 10,
            output: 10,
            cost: None,
        };
        let reservation = books.reserve(&pass, call, Duration::ZERO).unwrap();
        assert_eq!(books.unpriced_calls(), 1);
        books.release(reservation);
        assert_eq!((books.unpriced_calls(), books.tokens()), (0, 0));
    }

    #[test]
    fn nearness_leaves_two_turns() {
        let (mut books, pass) = one_pass(CAPS);
        let call = estimate(10, 10, 10);
        for turn in 0..8 {
            let expected = (turn >= 6).then_some(Cap::Turns);
            assert_eq!(books.near(&pass), expected, "after {turn} turns");
            let reservation = books.reserve(&pass, call, Duration::ZERO).unwrap();
            books.settle(reservation, spent(call));
        }
        let (mut books, pass) = one_pass(CAPS);
        let big = estimate(400, 10, 10);
        let reservation = books.reserve(&pass, big, Duration::ZERO).unwrap();
        assert_eq!(books.near(&pass), None, "nothing is known of the calls yet");
        books.settle(reservation, spent(big));
        assert_eq!(books.near(&pass), Some(Cap::InputTokens));
        let (mut books, pass) = one_pass(CAPS);
        books.note_tool_calls(&pass, 5);
        assert_eq!(books.near(&pass), Some(Cap::ToolCalls));
    }

    /// One step of a random run.
    #[derive(Debug, Clone)]
    enum Step {
        Reserve {
            pass: u8,
            call: (u64, u64, u64),
        },
        /// Ends the n-th open call, having taken this many percent of what was held.
        End {
            open: usize,
            percent: Option<u64>,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u8..3, (0u64..500, 0u64..200, 0u64..2500))
                .prop_map(|(pass, call)| Step::Reserve { pass, call }),
            (any::<usize>(), proptest::option::of(0u64..=100))
                .prop_map(|(open, percent)| Step::End { open, percent }),
        ]
    }

    proptest! {
        /// Whatever the order of calls and ends: neither a pass nor the run is ever beyond a cap,
        /// and when every call has ended the sums are exactly what was spent.
        #[test]
        fn never_beyond_a_cap(steps in proptest::collection::vec(step(), 0..120)) {
            let run = RunCaps { tokens: Some(2500), cost: Some(Cost(9000)) };
            let mut books = Books::new(run);
            let passes: Vec<_> = (0..3).map(|n| PassId::new(format!("p{n}"))).collect();
            for pass in &passes {
                books.open(pass.clone(), CAPS);
            }
            let mut open: Vec<(Reservation, Estimate)> = Vec::new();
            let mut total = Sums::default();
            for step in steps {
                match step {
                    Step::Reserve { pass, call: (input, output, cost) } => {
                        let call = estimate(input, output, cost);
                        if let Ok(held) = books.reserve(&passes[usize::from(pass)], call, Duration::ZERO) {
                            open.push((held, call));
                        }
                    }
                    Step::End { open: place, percent } if !open.is_empty() => {
                        let (held, call) = open.swap_remove(place % open.len());
                        match percent {
                            None => books.release(held),
                            Some(percent) => {
                                let part = |n: u64| n * percent / 100;
                                let took = estimate(part(call.input), part(call.output), part(call.cost.unwrap().0));
                                total.add(took);
                                books.settle(held, spent(took));
                            }
                        }
                    }
                    Step::End { .. } => {}
                }
                prop_assert!(books.tokens() <= 2500 && books.cost() <= Cost(9000));
                for book in books.passes.values() {
                    prop_assert!(book.turns <= CAPS.turns && book.in_flight <= CAPS.concurrent);
                    prop_assert!(book.sums.input <= CAPS.input_tokens);
                    prop_assert!(book.sums.output <= CAPS.output_tokens);
                    prop_assert!(book.sums.cost <= 5000);
                }
            }
            for (held, call) in open {
                total.add(call);
                books.settle(held, spent(call));
            }
            prop_assert_eq!(books.tokens(), total.tokens());
            prop_assert_eq!(books.cost(), Cost(total.cost));
        }
    }
}

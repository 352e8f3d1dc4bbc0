//! Intervals by resampling the cases.

use super::report::{Counts, Interval};

/// Samples drawn; enough for two digits.
const SAMPLES: usize = 2_000;

/// The 95 % intervals of precision, recall and F1: cases are drawn with replacement, since findings of one change are
/// not independent. The same seed gives the same intervals. `None` where fewer than two cases were scored.
pub(super) fn intervals(cases: &[Counts], seed: u64) -> Option<[Option<Interval>; 3]> {
    if cases.len() < 2 {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut drawn: [Vec<f64>; 3] = std::array::from_fn(|_| Vec::with_capacity(SAMPLES));
    for _ in 0..SAMPLES {
        let mut sum = Counts::default();
        for _ in 0..cases.len() {
            sum += cases[random.usize(..cases.len())];
        }
        let rates = [sum.precision(), sum.recall(), sum.f1()];
        for (values, rate) in drawn.iter_mut().zip(rates) {
            // A sample in which nothing could be measured says nothing.
            values.extend(rate);
        }
    }
    Some(drawn.map(|mut values| {
        values.sort_by(f64::total_cmp);
        // In thousandths, so that the positions are exact.
        let at = |share: usize| {
            values
                .get(values.len().saturating_sub(1) * share / 1_000)
                .copied()
        };
        Some(Interval {
            low: at(25)?,
            high: at(975)?,
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(hits: u64, false_alarms: u64, missed: u64) -> Counts {
        Counts {
            hits,
            false_alarms,
            missed,
        }
    }

    #[test]
    fn intervals_hold_the_estimate_narrow_with_more_cases_and_repeat() {
        let few: Vec<_> = (0..10).map(|i| counts(1, i % 2, i % 3)).collect();
        let many: Vec<_> = (0..1_000).map(|i| counts(1, i % 2, i % 3)).collect();
        let width = |cases: &[Counts]| {
            let total = cases.iter().fold(Counts::default(), |sum, c| sum + *c);
            let [precision, recall, f1] = intervals(cases, 7).unwrap().map(Option::unwrap);
            for (interval, rate) in [
                (precision, total.precision()),
                (recall, total.recall()),
                (f1, total.f1()),
            ] {
                let rate = rate.unwrap();
                assert!(
                    interval.low <= rate && rate <= interval.high,
                    "{interval:?} {rate}"
                );
            }
            f1.high - f1.low
        };
        assert!(width(&many) < width(&few) / 4.0);
        assert_eq!(intervals(&few, 7), intervals(&few, 7));
        assert_ne!(intervals(&many, 7), intervals(&many, 8));
        assert_eq!(intervals(&few[..1], 7), None);
        // Nothing found and nothing known: no rate, no interval, no NaN.
        assert_eq!(intervals(&[counts(0, 0, 0); 3], 7), Some([None; 3]));
    }
}

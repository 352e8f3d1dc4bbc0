//! Which calls the door repeats by itself, and when. Only calls that have not begun to answer.
//!
//! @ref LLP 0010#what-the-door-repeats — why here, and why never after the first byte

use std::time::Duration;

/// Whether a failure may pass by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It is final.
    No,
    /// It may pass in seconds (connection, 5xx, no capacity).
    Soon(Option<Duration>),
    /// The provider wants fewer requests for now; with its own word on how long.
    Later(Option<Duration>),
}

const SOON: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(8)];
const LATER: [Duration; 3] = [
    Duration::from_secs(15),
    Duration::from_secs(45),
    Duration::from_secs(90),
];
/// A server that says to wait longer than this is not waited for.
const CEILING: Duration = Duration::from_secs(120);

/// The repetitions of one call.
#[derive(Debug, Default)]
pub(super) struct Retries {
    soon: usize,
    later: usize,
}

impl Retries {
    /// How long to wait before the call is repeated; `None` when it is not. The server's word takes
    /// the place of the table's, but not the number of tries. A wait that the pass cannot afford
    /// (`left`) is not begun.
    pub(super) fn next(&mut self, again: Again, left: Duration) -> Option<Duration> {
        let (wait, word) = match again {
            Again::No => return None,
            Again::Soon(word) => {
                self.soon += 1;
                (SOON.get(self.soon - 1)?, word)
            }
            Again::Later(word) => {
                self.later += 1;
                (LATER.get(self.later - 1)?, word)
            }
        };
        let wait = word.unwrap_or(*wait);
        (wait <= CEILING && wait < left).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn waits(again: Again, left: Duration) -> Vec<u64> {
        let mut retries = Retries::default();
        std::iter::from_fn(|| retries.next(again, left))
            .map(|wait| wait.as_secs())
            .collect()
    }

    #[test]
    fn the_table() {
        assert!(waits(Again::No, HOUR).is_empty());
        assert_eq!(waits(Again::Soon(None), HOUR), [2, 8]);
        assert_eq!(waits(Again::Later(None), HOUR), [15, 45, 90]);
    }

    #[test]
    fn the_servers_word_and_its_ceiling() {
        let word = |secs| Some(Duration::from_secs(secs));
        assert_eq!(waits(Again::Later(word(1)), HOUR), [1, 1, 1]);
        assert_eq!(waits(Again::Later(word(120)), HOUR), [120, 120, 120]);
        assert!(waits(Again::Later(word(121)), HOUR).is_empty());
        assert_eq!(waits(Again::Soon(word(0)), HOUR), [0, 0]);
    }

    #[test]
    fn a_wait_beyond_the_deadline_is_not_begun() {
        assert_eq!(
            waits(Again::Later(None), Duration::from_secs(45)),
            [15],
            "45 s do not fit into 45 s"
        );
        assert!(waits(Again::Soon(None), Duration::ZERO).is_empty());
    }

    #[test]
    fn kinds_are_counted_apart() {
        let mut retries = Retries::default();
        let mut next = |again| retries.next(again, HOUR).map(|wait| wait.as_secs());
        assert_eq!(next(Again::Soon(None)), Some(2));
        assert_eq!(next(Again::Later(None)), Some(15));
        assert_eq!(next(Again::Soon(None)), Some(8));
        assert_eq!(next(Again::Soon(None)), None);
        assert_eq!(next(Again::Later(None)), Some(45));
    }
}

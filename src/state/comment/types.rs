//! The state as a value.

use super::{Dismissals, StoredReview};

/// A person's word that this pull request is not to be reviewed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BreakGlass {
    /// The comment that set or lifted it; the later one counts.
    pub comment: u64,
    /// When, seconds since 1970.
    pub at: i64,
    /// False once it was lifted.
    pub active: bool,
    /// Who.
    pub by: String,
}

/// What a comment carries for the next run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CommentState {
    /// The last review, as far as it fits.
    pub review: Option<StoredReview>,
    /// Which findings maintainers dismissed.
    pub dismissals: Dismissals,
    /// The greatest comment id whose commands are in here; 0 for none.
    pub applied: u64,
    /// When the newest comment seen then was written, seconds since 1970.
    pub seen_at: i64,
    /// The last word on not reviewing.
    pub break_glass: Option<BreakGlass>,
    /// The state line of a newer ecr, to be kept as it is.
    pub newer: Option<String>,
}

impl CommentState {
    /// What two comments of ours know together. The order does not matter, and nothing that either knows of dismissals is lost.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        // The smaller mark makes the next replay read more than it has to, which changes nothing.
        let (applied, seen_at) = (self.applied, self.seen_at).min((other.applied, other.seen_at));
        let rank = |review: &Option<StoredReview>| {
            review
                .as_ref()
                .map(|r| (r.at, r.head.clone(), r.findings.len()))
        };
        let review = if rank(&other.review) > rank(&self.review) {
            other.review
        } else {
            self.review
        };
        Self {
            review,
            dismissals: self.dismissals.merge(other.dismissals),
            applied,
            seen_at,
            break_glass: self.break_glass.max(other.break_glass),
            newer: self.newer.max(other.newer),
        }
    }

    /// True while a person's word stands that this is not to be reviewed. Deleting the comment that said so lifts it as well:
    /// `listed` says whether a comment is still there.
    pub fn is_skipped(&self, listed: impl Fn(u64) -> bool) -> bool {
        self.break_glass
            .as_ref()
            .is_some_and(|glass| glass.active && listed(glass.comment))
    }

    /// True when a run of the same change may reuse the stored review: it is complete and had the same inputs.
    pub fn reusable(&self, inputs: &str) -> bool {
        self.review.as_ref().is_some_and(|review| {
            review.complete && !review.cut && review.inputs.as_deref() == Some(inputs)
        })
    }
}

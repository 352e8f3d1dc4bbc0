//! The comment within GitHub's limit.

use super::Page;
use super::body::body;
use super::shrink::{FULL, LADDER, shrink};
use crate::state::comment::{CommentState, encode};

/// The longest comment, bytes: below GitHub's 65,536 however it counts.
pub const MAX_COMMENT: usize = 60_000;
/// From this step on the record lacks what a later run would need to show the review again.
const LOSSY: usize = 3;

/// A comment to post.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    /// The whole text, at most [`MAX_COMMENT`] bytes.
    pub body: String,
    /// The state as it is in there.
    pub state: CommentState,
    /// True when there was no room for everything.
    pub shortened: bool,
}

/// The comment with its state.
pub fn comment(page: &Page<'_>) -> Comment {
    let mut last = None;
    for (step, budget) in LADDER.iter().enumerate() {
        let state = shrink(page.state, budget, step >= LOSSY);
        let visible = body(page, &state, budget);
        // The state takes at least a little: no need to fold it to see that this is too much.
        if visible.len() >= MAX_COMMENT && step + 1 < LADDER.len() {
            continue;
        }
        let text = format!("{}\n{visible}", encode(page.tag, &state));
        let fits = text.len() <= MAX_COMMENT;
        last = Some(Comment {
            body: text,
            state,
            shortened: step > 0,
        });
        if fits {
            break;
        }
    }
    last.unwrap_or_else(|| Comment {
        body: page.tag.marker(),
        state: CommentState::default(),
        shortened: true,
    })
}

/// The same text for the summary of a workflow step, which has room for more and carries no state.
pub fn step_summary(page: &Page<'_>) -> String {
    /// GitHub refuses more than 1 MiB.
    const MAX_SUMMARY: usize = 1_000_000;
    let mut text = String::new();
    for budget in std::iter::once(&FULL).chain(LADDER) {
        text = body(page, &shrink(page.state, budget, false), budget);
        if text.len() <= MAX_SUMMARY {
            break;
        }
    }
    text
}

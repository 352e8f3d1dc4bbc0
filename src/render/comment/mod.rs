//! The one comment on a pull request, and what else GitHub shows of a review: pure functions to text.
//!
//! A comment is made from the state that it carries and from nothing else, so that a dismissal can be shown
//! later without the review at hand.
//!
//! @ref LLP 0015#the-comment — layout, links, size

mod body;
mod delta;
mod derive;
mod fit;
mod links;
mod shrink;
mod store;
mod subject;

pub use body::Page;
pub use delta::Before;
pub use fit::{Comment, MAX_COMMENT, comment, step_summary};
pub use links::PrFacts;
pub use store::{Origin, store};
pub use subject::{NotReviewed, Subject};

//! `ecr stats`: what past runs found, cost and took, from the run log.

mod html;
mod summary;
mod terminal;

pub use html::html;
pub(super) use summary::Bucket;
pub use summary::Stats;
pub use terminal::terminal;

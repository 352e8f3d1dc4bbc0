//! The engine of our own: a loop between a provider's API and the tool door, in this process.
//! It needs nothing installed, and it is only used where the configuration chooses it.
//!
//! @ref LLP 0010#the-engine-of-our-own — chosen, never silent

mod anthropic;
mod chat;
mod engine;
mod fault;
mod responses;
mod schema;
mod stream;
mod wire;

pub use engine::{ApiEngine, ApiSettings};
pub(in crate::engine) use engine::{Ended, Why, pass_outcome};
pub use schema::strict;
pub use wire::Effort;

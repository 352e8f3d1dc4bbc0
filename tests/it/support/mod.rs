//! What several integration tests need.

pub(crate) mod fake_engine;
pub(crate) mod repo;

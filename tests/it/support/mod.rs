//! What several integration tests need.

pub(crate) mod alone;
pub(crate) mod fake_engine;
pub(crate) mod github;
pub(crate) mod model_server;
pub(crate) mod repo;
pub(crate) mod skip;

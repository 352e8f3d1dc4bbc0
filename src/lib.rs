//! ecr: a single-binary AI code reviewer.
//!
//! A diff comes in from a `source`, is filtered and cut into chunks by `diff`, reviewed by engines
//! behind `port`'s seams under the `pipeline`'s budgets, and leaves through `render` and `reporter`.
//! Layers point downwards only (`tests/it/architecture.rs` proves it); the map is `llp/0000-ecr.explainer.md`.

pub mod model;

pub mod diff;
pub mod port;
pub mod tree;

pub mod engine;
pub mod gateway;

//! ecr: a single-binary AI code reviewer.
//!
//! A diff comes in from a `source`, is filtered and cut into chunks by `diff`, reviewed by engines
//! behind `port`'s seams under the `pipeline`'s budgets, and leaves through `render` and `reporter`.
//! Layers point downwards only (`tests/it/architecture.rs` proves it); the map is `llp/0000-ecr.explainer.md`.

pub mod app;
pub mod cli;
pub mod config;
pub mod detect;
pub mod diff;
pub mod engine;
pub mod eval;
pub mod finding;
pub mod gateway;
pub mod git;
pub mod github;
pub mod http;
pub mod ledger;
pub mod model;
pub mod pipeline;
pub mod port;
pub mod process;
pub mod prompt;
pub mod render;
pub mod reply;
pub mod reporter;
pub mod source;
pub mod state;
pub mod tree;

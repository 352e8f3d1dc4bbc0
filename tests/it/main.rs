//! The one integration test binary (linking is the slow part of a test run).
#![allow(missing_docs)]
// tests have names instead
// Clippy's "in tests" switches know `#[test]` functions only, not the helpers beside them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod api;
mod architecture;
mod attacks;
mod checks;
mod cli;
mod config;
mod conformance;
mod diff;
mod docs;
mod eval;
mod git;
mod github;
mod jail;
mod model_door;
mod pipeline;
mod real_cli;
mod refs;
mod rehearsal;
mod render;
mod source;
mod structural;
mod support;
mod tool_door;

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

mod config;
mod diff;
mod render;
#![allow(missing_docs)] // tests have names instead
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // clippy.toml covers `#[test]` functions, not their helpers

mod architecture;
mod diff;
mod docs;
mod refs;
mod conformance;
mod diff;
mod pipeline;
mod support;

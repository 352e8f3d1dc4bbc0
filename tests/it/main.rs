//! The one integration test binary (linking is the slow part of a test run).
#![allow(missing_docs)] // tests have names instead
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // clippy.toml covers `#[test]` functions, not their helpers

mod diff;
mod git;
mod source;
mod support;

//! The diff module against real git.
#![allow(clippy::expect_used, clippy::panic)] // helpers of tests, outside #[test] functions

mod attributes;
mod fixtures;
mod mutated;
mod naive;
mod random;

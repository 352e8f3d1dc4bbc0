//! The built-in engine and its text rules, through the engine's own door.
#![allow(clippy::expect_used)] // a test that cannot be set up has failed

mod engine;
mod files;
mod harness;
mod masking;
mod rules;
mod samples;
mod secrets;
mod workflow;

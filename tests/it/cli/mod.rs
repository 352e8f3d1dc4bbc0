//! The binary, from the outside: arguments and files in, streams and exit codes out.
#![allow(clippy::expect_used)] // a test that cannot be set up has failed

mod commands;
mod config;
mod doctor;
mod exit_codes;
mod formats;
mod harness;
mod hooks;
mod init;
mod patches;
mod receipt;
mod runs;
mod secrets;
mod selectors;
mod signals;
mod stats;
mod streams;

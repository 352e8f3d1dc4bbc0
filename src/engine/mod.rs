//! Engines: one folder each, behind `port::ReviewEngine`.

pub mod builtin;

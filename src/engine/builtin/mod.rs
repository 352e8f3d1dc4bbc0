//! The built-in engine: deterministic, precise, offline checks.

mod rule;

pub use rule::{CheckedFile, Hit, Rule};

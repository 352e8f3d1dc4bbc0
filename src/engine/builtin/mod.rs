//! The built-in engine: deterministic, precise, offline checks.

mod rule;
pub mod structural;

pub use rule::{CheckedFile, Hit, Rule};

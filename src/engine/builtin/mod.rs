//! The built-in engine: deterministic, precise, offline checks.

mod checks;
mod content;
mod engine;
mod examine;
mod registry;
mod rule;
pub mod structural;

pub use content::Content;
pub use engine::BuiltinEngine;
pub use registry::{CheckSettings, ExtraRules, RuleText, rules};
pub use rule::{CheckedFile, Hit, Rule};

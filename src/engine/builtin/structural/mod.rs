//! Rules that need syntax. Placeholder table until the structural rules are merged over it.

use super::{CheckedFile, Hit, Rule};
use crate::model::{Category, Severity};

/// Every structural rule.
pub const RULES: &[Rule] = &[Rule {
    id: "tls-verification-off",
    severity: Severity::Warning,
    category: Category::Security,
    title: "Certificate verification is switched off",
    consequence: "Anyone on the path can answer in the server's place and read or replace what is sent.",
    remedy: "Remove the switch; for a private authority, trust its certificate instead.",
}];

/// Why a file was not parsed although its added lines called for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unparsed {
    /// It is larger than the limit.
    #[error("larger than 1 MiB")]
    TooLarge,
}

/// Runs them on a file.
pub fn check(_file: &CheckedFile<'_>, _sink: &mut dyn FnMut(Hit)) -> Result<(), Unparsed> {
    Ok(())
}

//! Dangers in GitHub workflows: untrusted text in scripts, untrusted code with privileges.

mod expression;
mod jobs;
mod rules;
mod yaml;

pub(super) use rules::{RULES, check};

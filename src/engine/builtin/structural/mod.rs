//! Rules that need syntax: changed files are parsed with tree-sitter, so that text in a comment or a
//! string never counts as code. A repository adds rules of its own in ast-grep's YAML.

mod bash;
mod bindings;
mod check;
mod dialect;
mod go;
mod interpolation;
mod java;
mod javascript;
mod language;
mod nodes;
mod python;
mod repository;

mod rules;
mod rust;
mod scan;
mod sql;
mod syntax;
mod triggers;

pub use check::check;
pub use repository::{RepositoryRule, RepositoryRules, RuleFileError};

pub use rules::RULES;
pub use syntax::Unparsed;

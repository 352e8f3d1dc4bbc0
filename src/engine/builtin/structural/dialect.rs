//! The languages of repository rules, as ast-grep wants to see them.

use std::borrow::Cow;
use std::path::Path;

use ast_grep_core::matcher::{Pattern, PatternBuilder, PatternError};
use ast_grep_core::meta_var::MetaVariable;
use ast_grep_core::tree_sitter::TSLanguage;
use ast_grep_language::{Language as AstGrepLanguage, LanguageExt};
use serde::de::{Deserialize, Deserializer, Error};

use super::language::Language;

/// A linked-in language. ast-grep's own list holds languages whose grammars are not linked in and panics on their use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect(pub(super) Language);

impl Dialect {
    /// By ast-grep's names and aliases, in any case.
    fn named(name: &str) -> Option<Self> {
        Some(Self(match name.to_ascii_lowercase().as_str() {
            "bash" => Language::Bash,
            "go" | "golang" => Language::Go,
            "java" => Language::Java,
            "javascript" | "js" | "jsx" => Language::JavaScript,
            "python" | "py" => Language::Python,
            "rust" | "rs" => Language::Rust,
            "tsx" => Language::Tsx,
            "typescript" | "ts" => Language::TypeScript,
            "yaml" | "yml" => Language::Yaml,
            _ => return None,
        }))
    }
}

impl<'de> Deserialize<'de> for Dialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            D::Error::custom(format!(
                "language {name:?} is not linked in; use one of Bash, Go, Java, JavaScript, Python, Rust, Tsx, TypeScript, Yaml"
            ))
        })
    }
}

impl AstGrepLanguage for Dialect {
    fn pre_process_pattern<'q>(&self, query: &'q str) -> Cow<'q, str> {
        self.0.dialect().pre_process_pattern(query)
    }
    fn meta_var_char(&self) -> char {
        self.0.dialect().meta_var_char()
    }
    fn expando_char(&self) -> char {
        self.0.dialect().expando_char()
    }
    fn extract_meta_var(&self, source: &str) -> Option<MetaVariable> {
        self.0.dialect().extract_meta_var(source)
    }
    fn from_path<P: AsRef<Path>>(_: P) -> Option<Self> {
        None // paths are bytes here: `Language::of` decides
    }
    fn kind_to_id(&self, kind: &str) -> u16 {
        self.0.dialect().kind_to_id(kind)
    }
    fn field_to_id(&self, field: &str) -> Option<u16> {
        self.0.dialect().field_to_id(field)
    }
    fn build_pattern(&self, builder: &PatternBuilder) -> Result<Pattern, PatternError> {
        self.0.dialect().build_pattern(builder)
    }
}

impl LanguageExt for Dialect {
    fn get_ts_language(&self) -> TSLanguage {
        self.0.grammar()
    }
}

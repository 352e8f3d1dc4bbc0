//! Which language a file is written in.

use ast_grep_language::{LanguageExt, SupportLang};

use super::super::CheckedFile;

/// The languages whose grammars are linked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Language {
    Bash,
    Go,
    Java,
    JavaScript,
    Python,
    Rust,
    Tsx,
    TypeScript,
    Yaml,
}

impl Language {
    /// By the path's extension; a file without one by its `#!` line.
    pub(super) fn of(file: &CheckedFile<'_>) -> Option<Self> {
        match file.path.extension() {
            Some(extension) => Self::from_extension(extension),
            None => Self::from_shebang(file.content.get()?),
        }
    }

    fn from_extension(extension: &[u8]) -> Option<Self> {
        Some(match extension {
            b"sh" | b"bash" => Self::Bash,
            b"go" => Self::Go,
            b"java" => Self::Java,
            b"js" | b"cjs" | b"mjs" | b"jsx" => Self::JavaScript,
            b"py" | b"pyi" => Self::Python,
            b"rs" => Self::Rust,
            b"tsx" => Self::Tsx,
            b"ts" | b"cts" | b"mts" => Self::TypeScript,
            b"yaml" | b"yml" => Self::Yaml,
            _ => return None,
        })
    }

    fn from_shebang(content: &[u8]) -> Option<Self> {
        let line = content.strip_prefix(b"#!")?;
        let line = &line[..line.len().min(200)];
        let line = line.split(|b| *b == b'\n').next()?;
        // `/usr/bin/env -S python3 -u`: the first word that is neither `env` nor an option.
        let program = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .map(|word| word.rsplit(|b| *b == b'/').next().unwrap_or(word))
            .find(|word| *word != b"env" && !word.starts_with(b"-"))?;
        match program {
            b"sh" | b"bash" | b"dash" | b"ksh" => Some(Self::Bash),
            b"node" => Some(Self::JavaScript),
            _ if program.starts_with(b"python") => Some(Self::Python),
            _ => None,
        }
    }

    /// The grammar and pattern dialect that ast-grep uses for it.
    pub(super) fn dialect(self) -> SupportLang {
        match self {
            Self::Bash => SupportLang::Bash,
            Self::Go => SupportLang::Go,
            Self::Java => SupportLang::Java,
            Self::JavaScript => SupportLang::JavaScript,
            Self::Python => SupportLang::Python,
            Self::Rust => SupportLang::Rust,
            Self::Tsx => SupportLang::Tsx,
            Self::TypeScript => SupportLang::TypeScript,
            Self::Yaml => SupportLang::Yaml,
        }
    }

    pub(super) fn grammar(self) -> tree_sitter::Language {
        self.dialect().get_ts_language()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shebang_names_the_interpreter() {
        for (line, expected) in [
            ("#!/bin/sh\n", Some(Language::Bash)),
            ("#!/usr/bin/env bash\n", Some(Language::Bash)),
            ("#!/usr/bin/env -S python3 -u\n", Some(Language::Python)),
            ("#!/usr/bin/python3.12", Some(Language::Python)),
            ("#!/usr/bin/env node\n", Some(Language::JavaScript)),
            ("#!/usr/bin/perl\n", None),
            ("#!", None),
            ("# bash\n", None),
        ] {
            assert_eq!(
                Language::from_shebang(line.as_bytes()),
                expected,
                "{line:?}"
            );
        }
    }
}

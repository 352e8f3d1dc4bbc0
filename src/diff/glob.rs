//! The glob dialect of the configuration.
//!
//! `*` is any run without `/`, `**` any run at all; every other byte is itself (`?`, `[`, `{` and `\` too).
//! A pattern covers the whole path and letter case counts. There is no negation. The dialect is that of
//! an existing tool whose users move over, with one difference: there `**` stopped at a newline, so
//! that a path with one escaped an ignore or a route; here it does not.

use std::fmt::Write as _;

use regex::bytes::{Regex, RegexBuilder};

/// Longest pattern in bytes.
const LONGEST: usize = 4096;

/// Why a pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// Over 4096 bytes.
    #[error("a glob pattern of {len} bytes is too long")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// It needs more memory than a pattern may have.
    #[error("the glob pattern {pattern:?} is too complex")]
    TooComplex {
        /// The pattern.
        pattern: String,
    },
}

/// A compiled pattern. Matching takes time linear in the path.
#[derive(Debug, Clone)]
pub struct Glob {
    pattern: String,
    matcher: Regex,
}

impl Glob {
    /// The dialect of ignores: the pattern as it stands, so `**/x` needs a folder.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        Self::compile(pattern, &[pattern])
    }

    /// The dialect of routing: also the pattern with every `**/` taken out, if something remains, so
    /// that `**/*.rs` matches files at the root.
    pub fn routing(pattern: &str) -> Result<Self, GlobError> {
        let collapsed = pattern.replace("**/", "");
        if collapsed.is_empty() || collapsed == pattern {
            return Self::new(pattern);
        }
        Self::compile(pattern, &[pattern, &collapsed])
    }

    fn compile(pattern: &str, variants: &[&str]) -> Result<Self, GlobError> {
        if pattern.len() > LONGEST {
            return Err(GlobError::TooLong { len: pattern.len() });
        }
        let variants: Vec<_> = variants.iter().map(|v| translate(v.as_bytes())).collect();
        let matcher = whole_match(&variants.join("|")).ok_or_else(|| GlobError::TooComplex {
            pattern: pattern.to_owned(),
        })?;
        Ok(Self {
            pattern: pattern.to_owned(),
            matcher,
        })
    }

    /// True when the whole path matches.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.matcher.is_match(path)
    }

    /// The pattern as written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

fn translate(pattern: &[u8]) -> String {
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern;
    while let Some((&b, after)) = rest.split_first() {
        rest = after;
        match b {
            b'*' if rest.first() == Some(&b'*') => {
                rest = &rest[1..];
                out.push_str(".*");
            }
            b'*' => out.push_str("[^/]*"),
            b => push_literal(&mut out, b),
        }
    }
    out
}

/// Adds a byte that stands for itself.
pub(super) fn push_literal(regex: &mut String, b: u8) {
    if b.is_ascii_alphanumeric() || b == b'/' {
        regex.push(char::from(b));
    } else {
        // Writing to a String cannot fail.
        let _ = write!(regex, "\\x{b:02X}");
    }
}

/// A bytes regex that has to cover the whole text; `None` when it gets too big.
pub(super) fn whole_match(regex: &str) -> Option<Regex> {
    RegexBuilder::new(&format!(r"\A(?:{regex})\z"))
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(1 << 20)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Glob::new(pattern).unwrap().matches(path.as_bytes())
    }

    #[test]
    fn known_answers() {
        for (pattern, path, expected) in [
            ("packages/*/build/**", "packages/x/build/y.js", true),
            ("packages/*/build/**", "packages/x/src/y.js", false),
            ("a/*.ts", "a/b.ts", true),
            ("a/*.ts", "a/b/c.ts", false),
            ("a.ts", "a.ts", true),
            ("a.ts", "axts", false),
            ("a?b.ts", "a?b.ts", true),
            ("a?b.ts", "axb.ts", false),
            ("**/*", "README.md", false),
            ("**/*", "src/a.ts", true),
            ("dist/**", "dist/", true),
            ("dist/**", "dist", false),
            ("*.ts", "src/a.ts", false),
            ("**", "a/b/c", true),
            ("a/**/c", "a/c", false),
            ("a/**/c", "a/b/c", true),
            ("[ab].ts", "a.ts", false),
            ("[ab].ts", "[ab].ts", true),
            ("{a,b}", "{a,b}", true),
            (r"a\*b", r"a\xb", true),
            ("A.ts", "a.ts", false),
            ("", "", true),
            ("", "a", false),
            ("***", "a/b", true),
            ("$(.+)^|", "$(.+)^|", true),
            ("é*", "éx", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn newlines_and_odd_bytes_do_not_escape() {
        assert!(matches("secret/**", "secret/a\nb"));
        assert!(matches("*", "a\nb"));
        assert!(!matches("a", "a\n"));
        let glob = Glob::new("x/**").unwrap();
        assert!(glob.matches(b"x/\xff\xfe"));
    }

    #[test]
    fn routing_also_matches_without_folders() {
        let routing =
            |pattern: &str, path: &str| Glob::routing(pattern).unwrap().matches(path.as_bytes());
        assert!(routing("**/*", "README.md"));
        assert!(routing("src/**/x", "src/x") && routing("src/**/x", "src/a/x"));
        assert!(routing("a/**/b/**/c", "a/b/c") && !routing("a/**/b/**/c", "a/b/q/c"));
        assert!(routing("**/", "x/") && !routing("**/", ""));
        assert!(!routing("src/*", "src/a/b"));
    }

    #[test]
    fn hostile_patterns_stay_linear() {
        let glob = Glob::new(&"*a".repeat(60)).unwrap();
        assert!(
            !glob.matches(
                &[b'a'; 4000][..]
                    .iter()
                    .copied()
                    .chain([b'b'])
                    .collect::<Vec<_>>()
            )
        );
        assert!(matches!(
            Glob::new(&"*".repeat(5000)),
            Err(GlobError::TooLong { len: 5000 })
        ));
        assert_eq!(Glob::new("a*").unwrap().pattern(), "a*");
    }
}

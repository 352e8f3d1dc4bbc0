//! The inline directive `expo-code-review-ignore: reason`.
//!
//! @ref LLP 0006#suppression — what a comment may silence

use super::grounding::Grounder;
use crate::model::{Category, DropStage, DroppedFinding, Finding, RepoPath, Severity, Side};

const DIRECTIVE: &str = "expo-code-review-ignore";
const MAX_REASON: usize = 200;
/// A line longer than this is no place for a directive; it keeps the scan cheap.
const MAX_LINE: usize = 4_096;

/// How a language writes comments.
struct Syntax {
    openers: &'static [&'static str],
    quotes: &'static [u8],
}

const SLASH: Syntax = Syntax {
    openers: &["//", "/*"],
    quotes: b"\"'`",
};
const RUST: Syntax = Syntax {
    openers: &["//", "/*"],
    quotes: b"\"", // a single quote is also a lifetime
};
const HASH: Syntax = Syntax {
    openers: &["#"],
    quotes: b"\"'",
};
const SLASH_AND_HASH: Syntax = Syntax {
    openers: &["//", "/*", "#"],
    quotes: b"\"'",
};
const DASH: Syntax = Syntax {
    openers: &["--", "/*"],
    quotes: b"\"'",
};
const MARKUP: Syntax = Syntax {
    openers: &["<!--"],
    quotes: b"",
};
const MIXED: Syntax = Syntax {
    openers: &["<!--", "//", "/*"],
    quotes: b"\"'`",
};
const INI: Syntax = Syntax {
    openers: &["#", ";"],
    quotes: b"\"",
};

fn syntax(path: &RepoPath) -> Option<&'static Syntax> {
    let name = path.file_name();
    let extension = path.extension().unwrap_or(name).to_ascii_lowercase();
    Some(match &extension[..] {
        b"js" | b"jsx" | b"mjs" | b"cjs" | b"ts" | b"tsx" | b"mts" | b"cts" | b"java" | b"kt"
        | b"kts" | b"go" | b"c" | b"h" | b"cc" | b"cpp" | b"cxx" | b"hpp" | b"hh" | b"cs"
        | b"swift" | b"scala" | b"dart" | b"m" | b"mm" | b"groovy" | b"gradle" | b"css"
        | b"scss" | b"less" | b"proto" | b"sol" | b"zig" | b"jsonc" | b"json5" => &SLASH,
        b"rs" => &RUST,
        b"py" | b"pyi" | b"rb" | b"sh" | b"bash" | b"zsh" | b"fish" | b"yml" | b"yaml"
        | b"toml" | b"pl" | b"pm" | b"r" | b"ex" | b"exs" | b"jl" | b"nix" | b"cmake" | b"ps1"
        | b"graphql" | b"mk" | b"dockerfile" | b"makefile" | b"rakefile" | b"gemfile"
        | b".gitignore" | b"conf" => &HASH,
        b"php" | b"tf" | b"hcl" => &SLASH_AND_HASH,
        b"sql" | b"lua" | b"hs" | b"elm" => &DASH,
        b"html" | b"htm" | b"xml" | b"svg" | b"md" | b"markdown" => &MARKUP,
        b"vue" | b"svelte" | b"astro" => &MIXED,
        b"ini" | b"cfg" | b"properties" | b".env" => &INI,
        _ => return None,
    })
}

/// Where a comment begins in `line`: the first opener outside quotes.
fn comment_start(line: &str, syntax: &Syntax) -> Option<usize> {
    let bytes = line.as_bytes();
    let mut quote = None;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match quote {
            Some(open) => {
                if byte == b'\\' {
                    at += 1;
                } else if byte == open {
                    quote = None;
                }
            }
            None if syntax.quotes.contains(&byte) => quote = Some(byte),
            None => {
                for opener in syntax.openers {
                    let before = at.checked_sub(1).map(|i| bytes[i]);
                    // `a#b` is no comment in a shell or in YAML, and `https://…` is none anywhere.
                    let apart = match *opener {
                        "#" | ";" => before.is_none_or(|b| b.is_ascii_whitespace()),
                        "//" => before != Some(b':'),
                        _ => true,
                    };
                    if apart && bytes[at..].starts_with(opener.as_bytes()) {
                        return Some(at);
                    }
                }
            }
        }
        at += 1;
    }
    None
}

/// The reason of an ignore directive in a comment of `line`, and whether the line is nothing but
/// that comment. A directive without a reason, in a string or in a file without known comments is none.
pub fn directive(line: &[u8], path: &RepoPath) -> Option<(String, bool)> {
    if line.len() > MAX_LINE || memchr::memmem::find(line, DIRECTIVE.as_bytes()).is_none() {
        return None;
    }
    let line = String::from_utf8_lossy(line);
    let start = comment_start(&line, syntax(path)?)?;
    let comment = &line[start..];
    let after = &comment[comment.find(DIRECTIVE)? + DIRECTIVE.len()..];
    let reason = after.trim_start().strip_prefix(':')?.trim();
    let reason = reason
        .trim_end_matches(['}', ' '])
        .trim_end_matches("*/")
        .trim_end_matches("-->");
    let reason: String = reason
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_REASON)
        .collect();
    let reason = reason.trim();
    let alone = line[..start].trim_matches([' ', '\t', '{']).is_empty();
    (!reason.is_empty()).then(|| (reason.to_owned(), alone))
}

/// Drops findings that an ignore directive in the code covers.
pub struct Suppressor<'a> {
    source: &'a Grounder,
}

impl<'a> Suppressor<'a> {
    /// Reads the code through `source`.
    pub fn new(source: &'a Grounder) -> Self {
        Self { source }
    }

    /// What stays and what is suppressed. Critical findings, secrets and security findings always stay.
    pub fn apply(&self, findings: Vec<Finding>) -> (Vec<Finding>, Vec<DroppedFinding>) {
        let mut kept = Vec::with_capacity(findings.len());
        let mut dropped = Vec::new();
        for finding in findings {
            match self.reason(&finding) {
                None => kept.push(finding),
                Some(reason) => dropped.push(DroppedFinding {
                    finding,
                    stage: DropStage::Suppression,
                    reason: format!("ignored in the code: {reason}"),
                }),
            }
        }
        (kept, dropped)
    }

    fn reason(&self, finding: &Finding) -> Option<String> {
        let grave = finding.severity == Severity::Critical
            || matches!(finding.category, Category::Secrets | Category::Security);
        if grave || finding.location.side == Side::Old {
            return None;
        }
        let path = &finding.location.file;
        let line = finding.location.line?;
        let read = |number| {
            self.source
                .new_line(path, number, |text| directive(text, path))
        };
        if let Some((reason, _)) = read(line).flatten() {
            return Some(reason);
        }
        match read(line.checked_sub(1)?).flatten() {
            // A comment after code belongs to that code, not to the next line.
            Some((reason, true)) => Some(reason),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::lines::tests::diff_of;
    use crate::finding::policy::tests::finding;
    use std::sync::Arc;

    const LINES: &str = "+const a = 1;\n+const b = evil(); // expo-code-review-ignore: known\n+// expo-code-review-ignore: above\n+const c = alsoEvil();\n+const d = plain();\n";

    fn outcome(severity: Severity, category: Category, line: u32) -> Option<String> {
        let grounder = Grounder::new(Arc::new(diff_of("a.ts", &[(0, 1, LINES)])), None);
        let (kept, dropped) =
            Suppressor::new(&grounder).apply(vec![finding(severity, category, line)]);
        assert_eq!(kept.len() + dropped.len(), 1);
        dropped.into_iter().next().map(|d| d.reason)
    }

    #[test]
    fn vectors() {
        use Category::{Quality, Secrets, Security};
        use Severity::{Critical, Warning};
        let above = Some("ignored in the code: above".to_owned());
        assert_eq!(outcome(Warning, Quality, 4), above);
        assert_eq!(
            outcome(Warning, Quality, 2),
            Some("ignored in the code: known".to_owned())
        );
        assert_eq!(outcome(Critical, Quality, 2), None);
        assert_eq!(outcome(Warning, Secrets, 2), None);
        // Unlike the relative: never for security.
        assert_eq!(outcome(Warning, Security, 2), None);
        assert_eq!(outcome(Warning, Quality, 5), None);
        let mut whole_file = finding(Warning, Quality, 2);
        whole_file.location.line = None;
        let grounder = Grounder::new(Arc::new(diff_of("a.ts", &[(0, 1, LINES)])), None);
        assert_eq!(
            Suppressor::new(&grounder).apply(vec![whole_file]).0.len(),
            1
        );
    }

    #[test]
    fn only_real_comments_with_a_reason() {
        for (path, line, expected) in [
            (
                "a.ts",
                "x // expo-code-review-ignore: fine",
                Some(("fine", false)),
            ),
            (
                "a.ts",
                "/* expo-code-review-ignore: fine */",
                Some(("fine", true)),
            ),
            (
                "a.tsx",
                "{/* expo-code-review-ignore: fine */}",
                Some(("fine", true)),
            ),
            ("a.ts", "x // expo-code-review-ignore", None),
            ("a.ts", "x // expo-code-review-ignore:  ", None),
            ("a.ts", "const s = '// expo-code-review-ignore: no';", None),
            (
                "a.ts",
                r#"const s = "\" // expo-code-review-ignore: no";"#,
                None,
            ),
            ("a.ts", "expo-code-review-ignore: no", None),
            (
                "a.ts",
                "open('https://x') // expo-code-review-ignore: ok",
                Some(("ok", false)),
            ),
            ("a.ts", "https://expo-code-review-ignore: no", None),
            (
                "a.rs",
                "fn f<'a>() {} // expo-code-review-ignore: ok",
                Some(("ok", false)),
            ),
            (
                "a.yml",
                "run: x # expo-code-review-ignore: ok",
                Some(("ok", false)),
            ),
            ("a.yml", "run: x#expo-code-review-ignore: no", None),
            ("a.yml", "run: x // expo-code-review-ignore: no", None),
            (
                "Dockerfile",
                "# expo-code-review-ignore: ok",
                Some(("ok", true)),
            ),
            (
                "a.html",
                "<!-- expo-code-review-ignore: ok -->",
                Some(("ok", true)),
            ),
            (
                "a.sql",
                "select 1 -- expo-code-review-ignore: ok",
                Some(("ok", false)),
            ),
            ("a.bin", "// expo-code-review-ignore: no", None),
        ] {
            let got = directive(line.as_bytes(), &RepoPath::new(path).unwrap());
            let expected = expected.map(|(reason, alone)| (reason.to_owned(), alone));
            assert_eq!(got, expected, "{path}: {line}");
        }
    }
}

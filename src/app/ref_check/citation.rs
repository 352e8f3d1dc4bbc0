//! The grammar of citations: `@ref`, `@ref-ignore`, targets, and what looks like a path in prose.

/// One annotation of a comment line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Annotation<'a> {
    /// `@ref <target> [relation] — gloss`; relation and gloss are for people.
    Ref(&'a str),
    /// `@ref-ignore token …`: the tokens are no citations.
    Ignore(Vec<&'a str>),
}

/// The annotations of one line of comment text.
pub(super) fn annotations(line: &str) -> Vec<Annotation<'_>> {
    let mut found = Vec::new();
    for (at, mark) in line.match_indices("@ref") {
        if line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &line[at + mark.len()..];
        if let Some(tokens) = rest.strip_prefix("-ignore") {
            let tokens = tokens.split("-->").next().unwrap_or(tokens);
            let tokens = tokens.split([' ', '\t', ',']).filter(|t| !t.is_empty());
            found.push(Annotation::Ignore(tokens.collect()));
        } else if rest.is_empty() || rest.starts_with(char::is_whitespace) {
            found.push(Annotation::Ref(target_text(rest.trim_start())));
        }
    }
    found
}

fn target_text(rest: &str) -> &str {
    if let Some(quoted) = rest.strip_prefix('`')
        && let Some((target, _)) = quoted.split_once('`')
    {
        return target;
    }
    // `LLP 0001#x` is the one target with a space in it.
    let skip = if rest.starts_with("LLP ") { 4 } else { 0 };
    let end = rest[skip..]
        .find(char::is_whitespace)
        .map_or(rest.len(), |at| at + skip);
    rest[..end]
        .trim_end_matches("-->")
        .trim_end_matches("*/")
        .trim_end_matches(['"', '\'', ',', ';'])
}

/// What a target names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target<'a> {
    /// `<path>`: an example.
    Placeholder,
    /// `LLP 0001` with or without an anchor.
    Llp(&'a str),
    /// A well-formed web address; nothing is fetched.
    Url,
    /// `glob:<pattern>`.
    Glob(&'a str),
    /// A path from the repository root, normalised, without a trailing `/`.
    Path {
        /// The path; empty for the root.
        path: String,
        /// A trailing `/` asks for a folder.
        folder: bool,
        /// What follows `#`: a symbol, or a heading of a Markdown file.
        fragment: Option<&'a str>,
    },
    /// `path:12` or `path#L12`.
    LineNumber,
    /// Nothing that can be looked up, and why.
    Malformed(&'static str),
}

impl<'a> Target<'a> {
    pub(super) fn parse(text: &'a str) -> Self {
        if text.is_empty() {
            return Self::Malformed("names no target");
        }
        if text.contains('<') && text.contains('>') {
            return Self::Placeholder;
        }
        if let Some(llp) = text.strip_prefix("LLP ") {
            return Self::Llp(llp);
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            return match (scheme, host) {
                ("http" | "https", host) if !host.is_empty() => Self::Url,
                _ => Self::Malformed("is no web address"),
            };
        }
        if let Some(pattern) = text.strip_prefix("glob:") {
            return match pattern {
                "" => Self::Malformed("has an empty pattern"),
                p if p.starts_with(['/', '~']) || p.split('/').any(|part| part == "..") => {
                    Self::Malformed("escapes the repository")
                }
                p => Self::Glob(p),
            };
        }
        let (path, fragment) = match text.split_once('#') {
            Some((path, fragment)) => (path, Some(fragment)),
            None => (text, None),
        };
        if without_line_number(path).is_some() || fragment.is_some_and(is_line_anchor) {
            return Self::LineNumber;
        }
        if path.starts_with(['/', '~', '\\']) || path.as_bytes().get(1) == Some(&b':') {
            return Self::Malformed("is no path from the repository root");
        }
        if fragment == Some("") {
            return Self::Malformed("names nothing after `#`");
        }
        match normalised(path) {
            Some(normal) => Self::Path {
                path: normal,
                folder: path.ends_with('/'),
                fragment,
            },
            None => Self::Malformed("escapes the repository"),
        }
    }
}

/// `path` without `.`, `..` and empty components; `None` when it leaves the root.
pub(super) fn normalised(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// `a.rs` for `a.rs:12`, `a.rs:12-20` and `a.rs:12:5`; `None` for anything else.
pub(super) fn without_line_number(token: &str) -> Option<&str> {
    let (path, numbers) = token.split_once(':')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (!path.is_empty() && numbers.split(['-', ':', '–']).all(is_number)).then_some(path)
}

fn is_line_anchor(fragment: &str) -> bool {
    fragment.strip_prefix('L').is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'L' | b'C'))
    })
}

/// File-name endings that make a bare token look like a path.
#[rustfmt::skip]
const EXTENSIONS: &[&str] = &[
    "rs", "ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "vue", "svelte", "py", "pyi", "go", "java", "kt", "kts",
    "swift", "m", "mm", "h", "hpp", "c", "cc", "cpp", "cs", "rb", "php", "scala", "dart", "ex", "exs", "sh", "bash", "sql",
    "graphql", "proto", "tf", "gradle", "json", "jsonc", "yaml", "yml", "toml", "xml", "md", "mdx", "html", "css", "scss",
    "snap", "txt",
];

/// True when a code span of the prose reads as a path of the repository.
pub(super) fn is_citation(token: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>'\"=;|&$!^\\`".contains(c);
    if token.len() > 300 || token.contains(odd) || token.contains("://") || token.ends_with(')') {
        return false;
    }
    if token.starts_with(['/', '~', '-', '@']) || token.starts_with("../") {
        return false;
    }
    if !token.contains(char::is_alphanumeric) {
        return false;
    }
    let has_folder = token.contains('/');
    if token.contains(',') {
        return has_folder && braces(token).is_some();
    }
    let name = token.rsplit('/').next().unwrap_or(token);
    if name.is_empty()
        || (has_folder && name.contains('*'))
        || (has_folder && braces(token).is_some())
    {
        return true;
    }
    match name.rsplit_once('.') {
        Some((stem, extension)) => !stem.is_empty() && EXTENSIONS.contains(&extension),
        None => false,
    }
}

/// What stands before, in and after the first `{…}` of a token.
fn braces(token: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = token.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    Some((before, inside, after))
}

/// The tokens that a token with one brace list stands for, else itself.
pub(super) fn alternatives(token: &str) -> Vec<String> {
    match braces(token) {
        None => vec![token.to_owned()],
        Some((before, inside, after)) => inside
            .split(',')
            .map(|part| format!("{before}{}{after}", part.trim()))
            .collect(),
    }
}

/// What exists under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exists {
    File,
    Folder,
    No,
}

/// The target that an `@ref` for this token of the prose should have. `scope` is the folder that the review
/// setup is about, empty for the root.
pub(super) fn suggestion(token: &str, scope: &str, exists: impl Fn(&str) -> Exists) -> String {
    let token = &alternatives(token)[0];
    let path = token.split('#').next().unwrap_or(token);
    if let Some(tail) = path.strip_prefix(".../") {
        return format!("glob:**/{tail}");
    }
    if path.contains('*') {
        let anywhere = if path.contains('/') { "" } else { "**/" };
        return format!("glob:{anywhere}{path}");
    }
    let bare = path.trim_end_matches('/');
    let below = format!("{scope}/{bare}");
    for candidate in [bare, below.trim_start_matches('/')] {
        match exists(candidate) {
            Exists::File => return candidate.to_owned(),
            Exists::Folder => return format!("{candidate}/"),
            Exists::No => {}
        }
    }
    if path.contains('/') {
        return path.to_owned();
    }
    format!("glob:**/{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refs_lose_relation_gloss_and_comment_marks() {
        for (line, target) in [
            (" @ref lib/a.rs — rule ", "lib/a.rs"),
            (" @ref lib/b.rs#go [implements] ", "lib/b.rs#go"),
            ("// @ref lib/c.rs -- why", "lib/c.rs"),
            ("@ref LLP 0001#x – why", "LLP 0001#x"),
            ("@ref LLP 0001", "LLP 0001"),
            ("<!-- @ref a.rs-->", "a.rs"),
            ("\"note\": \"see @ref a.rs\",", "a.rs"),
            ("@ref `my docs/a b.md`", "my docs/a b.md"),
            ("@ref", ""),
        ] {
            assert_eq!(annotations(line), [Annotation::Ref(target)], "{line}");
        }
        assert_eq!(annotations("mail@ref x, @reference y, @refs z"), []);
        assert_eq!(
            annotations("@ref a @ref b"),
            [Annotation::Ref("a"), Annotation::Ref("b")]
        );
    }

    #[test]
    fn ignores_take_spaces_and_commas() {
        let expected = [Annotation::Ignore(vec!["pool.get()", "state.rs"])];
        assert_eq!(
            annotations("<!-- @ref-ignore pool.get() state.rs -->"),
            expected
        );
        assert_eq!(annotations("@ref-ignore pool.get(), state.rs"), expected);
    }

    #[test]
    fn targets() {
        let path = |path: &str, folder, fragment| Target::Path {
            path: path.to_owned(),
            folder,
            fragment,
        };
        for (text, expected) in [
            ("src/a.rs", path("src/a.rs", false, None)),
            ("./src//x/../a/", path("src/a", true, None)),
            ("src/a.rs#f", path("src/a.rs", false, Some("f"))),
            ("glob:src/**", Target::Glob("src/**")),
            ("<path>#<symbol>", Target::Placeholder),
            ("https://example.com/a#b", Target::Url),
            ("https:///a", Target::Malformed("is no web address")),
            ("javascript://x", Target::Malformed("is no web address")),
            ("LLP 0001#a", Target::Llp("0001#a")),
            ("src/a.rs:42", Target::LineNumber),
            ("src/a.rs:42-51", Target::LineNumber),
            ("src/a.rs#L42-L51", Target::LineNumber),
            ("../out/s.ts", Target::Malformed("escapes the repository")),
            ("a/../../s.ts", Target::Malformed("escapes the repository")),
            ("glob:../**", Target::Malformed("escapes the repository")),
            (
                "/etc/passwd",
                Target::Malformed("is no path from the repository root"),
            ),
            (
                "~/x",
                Target::Malformed("is no path from the repository root"),
            ),
            (
                "C:/x",
                Target::Malformed("is no path from the repository root"),
            ),
            ("a.rs#", Target::Malformed("names nothing after `#`")),
            ("", Target::Malformed("names no target")),
        ] {
            assert_eq!(Target::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_reads_as_a_path() {
        for token in [
            "srv/web/src/util/session.rs",
            "session.rs",
            ".github/workflows/**",
            "*Policy.rs",
            "server/www/src/utils/session.ts",
            "session.ts",
            "*PrivacyPolicy.ts",
            "infra/cert/",
            ".../config/Counter.kt",
            "general/{module,production}",
            "app/(tabs)/[id].tsx",
        ] {
            assert!(is_citation(token), "{token}");
        }
        for token in [
            "ecr ci",
            "label:<agent>",
            "knex.raw()",
            "**",
            "/",
            "critical",
            "",
            ".ts",
            "anthropic/claude-opus-5",
            "https://example.com/a.html",
            "--format",
            "~/.config/x.toml",
            "{a, b}",
        ] {
            assert!(!is_citation(token), "{token}");
        }
    }

    #[test]
    fn suggestions() {
        let exists = |path: &str| match path {
            "README.md" => Exists::File,
            "billing/finops" | "infra/cert" => Exists::Folder,
            _ => Exists::No,
        };
        for (token, expected) in [
            (".../config/Counter.kt", "glob:**/config/Counter.kt"),
            ("session.ts", "glob:**/session.ts"),
            ("*PrivacyPolicy.ts", "glob:**/*PrivacyPolicy.ts"),
            (".github/workflows/**", "glob:.github/workflows/**"),
            ("README.md", "README.md"),
            ("finops", "billing/finops/"),
            ("infra/cert/", "infra/cert/"),
            ("general/{module,production}", "general/module"),
            ("src/gone.ts", "src/gone.ts"),
        ] {
            assert_eq!(suggestion(token, "billing", exists), expected, "{token}");
        }
    }

    #[test]
    fn brace_lists_stand_for_several() {
        assert_eq!(alternatives("a/{b, c}.rs"), ["a/b.rs", "a/c.rs"]);
        assert_eq!(alternatives("a"), ["a"]);
    }
}

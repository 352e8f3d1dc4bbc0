//! Citations of the review setup: `@ref` annotations, and paths in the prose that none of them covers.

use super::citation::{
    Annotation, Exists, Target, alternatives, annotations, is_citation, suggestion,
    without_line_number,
};
use super::index::{Broken, Index, is_markdown, line_number};
use super::llp::Documents;
use super::markdown::Page;
use super::report::{Problem, ProblemKind};
use crate::diff::glob::Glob;
use crate::model::RepoPath;
use crate::tree::TreeError;

/// The names of a setup folder, below the folder that it is about.
pub(super) const NAMES: &[&str] = &[".expo-agents/code-review", ".expo-code-review"];

/// The setup folders of a tree, in order, and `extra` where it is given.
pub(super) fn folders(index: &Index<'_>, extra: Option<&RepoPath>) -> Vec<String> {
    let mut found: Vec<String> = extra
        .and_then(RepoPath::as_str)
        .map(str::to_owned)
        .into_iter()
        .collect();
    for entry in index.entries() {
        if let Some(folder) = entry.path.as_str().and_then(folder_of)
            && !found.iter().any(|known| known == folder)
        {
            found.push(folder.to_owned());
        }
    }
    found
}

/// The outermost setup folder that a file lies in; other hidden folders and installed packages hold none.
fn folder_of(path: &str) -> Option<&str> {
    let mut start = 0;
    loop {
        let rest = &path[start..];
        for name in NAMES {
            if rest
                .strip_prefix(name)
                .is_some_and(|after| after.starts_with('/'))
            {
                return Some(&path[..start + name.len()]);
            }
        }
        let part = &rest[..rest.find('/')?];
        if part.starts_with('.') || part == "node_modules" {
            return None;
        }
        start += part.len() + 1;
    }
}

/// The folder that a setup folder is about; empty for the root.
fn scope_of(folder: &str) -> &str {
    NAMES
        .iter()
        .find_map(|name| folder.strip_suffix(name))
        .unwrap_or_default()
        .trim_end_matches('/')
}

/// Checks the files of one setup folder; gives the number of `@ref`s.
pub(super) fn check(
    index: &Index<'_>,
    documents: &Documents,
    folder: &str,
    problems: &mut Vec<Problem>,
) -> Result<usize, TreeError> {
    let mut count = 0;
    for entry in index.entries() {
        let Some(name) = entry
            .path
            .as_str()
            .filter(|_| entry.path.is_under(folder.as_bytes()))
        else {
            continue;
        };
        let below = &name[folder.len()..];
        let is_text = matches!(
            entry.path.extension(),
            Some(b"md" | b"markdown" | b"json" | b"jsonc" | b"txt")
        );
        // Hidden entries are runs and caches.
        if !is_text || below.contains("/.") {
            continue;
        }
        let Some(text) = index.text(&entry.path)? else {
            continue;
        };
        let file = File::read(name, &text);
        count += file.refs.len();
        let mut report = |line, target: &str, broken: Broken| {
            problems.push(Problem {
                file: entry.path.clone(),
                line,
                kind: broken.kind,
                problem: broken.problem,
                target: Some(target.to_owned()),
                suggestion: broken.suggestion,
            });
        };
        for (line, target) in &file.refs {
            if let Err(broken) = index.resolve(target, documents) {
                report(*line, target, broken);
            }
        }
        for (line, token) in &file.prose {
            if let Some(broken) = file.prose_problem(index, token, scope_of(folder)) {
                report(*line, token, broken);
            }
        }
    }
    Ok(count)
}

/// A target that paths of the prose can be covered by.
enum Cited {
    Path(String),
    Glob(Glob),
}

/// What one file of a setup cites.
#[derive(Default)]
struct File {
    refs: Vec<(u32, String)>,
    cited: Vec<Cited>,
    ignored: Vec<String>,
    /// Code spans of the prose.
    prose: Vec<(u32, String)>,
}

impl File {
    fn read(name: &str, text: &str) -> Self {
        let mut file = Self::default();
        if is_markdown(name) {
            let page = Page::parse(text);
            for (line, comment) in &page.comments {
                file.take(*line, comment);
            }
            file.prose = page.code_spans;
        } else {
            for (line, text) in (1..).zip(text.lines()) {
                file.take(line, text);
            }
        }
        file
    }

    fn take(&mut self, line: u32, text: &str) {
        for annotation in annotations(text) {
            match annotation {
                Annotation::Ref(target) => {
                    self.refs.push((line, target.to_owned()));
                    self.cited.extend(match Target::parse(target) {
                        Target::Path { path, .. } => Some(Cited::Path(path)),
                        Target::Glob(pattern) => Glob::new(pattern).ok().map(Cited::Glob),
                        _ => None,
                    });
                }
                Annotation::Ignore(tokens) => {
                    self.ignored.extend(tokens.into_iter().map(str::to_owned));
                }
            }
        }
    }

    fn prose_problem(&self, index: &Index<'_>, token: &str, scope: &str) -> Option<Broken> {
        let token = token.trim();
        if self.ignored.iter().any(|ignored| ignored == token) {
            return None;
        }
        if without_line_number(token).is_some_and(is_citation) {
            return Some(line_number(token));
        }
        let path = token.split('#').next().unwrap_or(token);
        if !is_citation(path) && !names_something(index, path, scope) {
            return None;
        }
        if alternatives(path)
            .iter()
            .all(|path| self.covers(path, scope))
        {
            return None;
        }
        Some(Broken {
            kind: ProblemKind::UnannotatedCitation,
            problem: format!("`{token}` is cited in prose, where no check reaches it"),
            suggestion: Some(suggestion(path, scope, |path| index.exists(path))),
        })
    }

    /// True when some `@ref` of this file speaks of `path`.
    fn covers(&self, path: &str, scope: &str) -> bool {
        let bare = path.trim_start_matches("./").trim_end_matches('/');
        let tail = bare
            .strip_prefix(".../")
            .or((!bare.contains(['/', '*'])).then_some(bare));
        let names = [bare.to_owned(), format!("{scope}/{bare}")];
        let covers = |cited: &Cited| match cited {
            Cited::Path(path) => {
                names.contains(path)
                    || tail.is_some_and(|tail| {
                        path.strip_suffix(tail)
                            .is_some_and(|folder| folder.ends_with('/'))
                    })
            }
            Cited::Glob(glob) => {
                let anywhere = tail.or(Some(bare).filter(|b| !b.contains('/')));
                bare == glob.pattern()
                    || anywhere.is_some_and(|tail| glob.pattern().strip_prefix("**/") == Some(tail))
                    || names.iter().any(|name| {
                        glob.matches(name.as_bytes()) || glob.matches(format!("{name}/").as_bytes())
                    })
            }
        };
        self.cited.iter().any(covers)
    }
}

/// True when a token without the looks of a path is the name of something, from the root or from the scope.
fn names_something(index: &Index<'_>, token: &str, scope: &str) -> bool {
    let bare = token.trim_end_matches('/');
    let plausible = bare.contains(char::is_alphanumeric) && !bare.contains(char::is_whitespace);
    plausible
        && [bare, format!("{scope}/{bare}").trim_start_matches('/')]
            .iter()
            .any(|path| index.exists(path) != Exists::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_folders_are_found_by_name_and_never_nested() {
        for (path, folder) in [
            (".expo-code-review/config.jsonc", Some(".expo-code-review")),
            (
                "apps/api/.expo-agents/code-review/agents/a.md",
                Some("apps/api/.expo-agents/code-review"),
            ),
            (
                ".expo-code-review/x/.expo-code-review/a.md",
                Some(".expo-code-review"),
            ),
            (".expo-agents/other/a.md", None),
            ("code-review/a.md", None),
            ("node_modules/p/.expo-code-review/a.md", None),
            (".cache/.expo-code-review/a.md", None),
            (".expo-code-review", None),
        ] {
            assert_eq!(folder_of(path), folder, "{path}");
        }
        assert_eq!(scope_of("apps/api/.expo-agents/code-review"), "apps/api");
        assert_eq!(scope_of(".expo-code-review"), "");
    }

    #[test]
    fn a_reference_covers_what_it_speaks_of() {
        for (target, path) in [
            ("src/util.ts#f", "src/util.ts"),
            ("src/util.ts", "util.ts"),
            ("src/util.ts", ".../util.ts"),
            ("infra/cert/", "infra/cert/"),
            ("glob:infra/cert/**", "infra/cert/"),
            ("glob:infra/**", "infra/cert/a.tf"),
            ("glob:**/*Policy.ts", "*Policy.ts"),
            ("glob:**/session.ts", "session.ts"),
            ("glob:.github/workflows/**", ".github/workflows/**"),
            ("billing/finops/", "finops"),
        ] {
            let file = File::read("x.txt", &format!("@ref {target}"));
            assert!(file.covers(path, "billing"), "{target} {path}");
            assert!(!file.covers("other/thing.ts", "billing"), "{target}");
        }
    }
}

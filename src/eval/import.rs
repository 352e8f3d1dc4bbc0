//! Cases from public sets of labelled review comments.
//!
//! @ref LLP 0017#public-sets — which formats, and what they lack

use std::collections::BTreeMap;

use serde::Deserialize;

use super::case::{Case, Label, LabelSide, Repository};
use crate::model::printable;
use crate::state::output::{Category, Severity};

/// A public set whose files can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicSet {
    /// AACR-Bench: comments that experts confirmed (`positive_samples.json`) or rejected (`negative_samples.json`), with
    /// commits and places.
    AacrBench,
    /// The golden comments of Martian's benchmark: texts and severities, without commits and places.
    Martian,
}

/// A case made from a public set.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedCase {
    /// A name that is fit for a folder: lower-case letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// What is known.
    pub case: Case,
}

/// Why a file is not of the set.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ImportError {
    /// The file.
    pub file: String,
    /// What is wrong, with its place.
    pub problem: String,
}

impl PublicSet {
    /// Reads the files of a set (names and contents) into cases, sorted by name. Of AACR-Bench, a file whose name contains
    /// `negative` holds what experts have rejected.
    pub fn import(self, files: &[(String, String)]) -> Result<Vec<ImportedCase>, ImportError> {
        let mut cases = BTreeMap::new();
        for (file, text) in files {
            match self {
                Self::AacrBench => {
                    let rejected = file
                        .rsplit(['/', '\\'])
                        .next()
                        .unwrap_or(file)
                        .contains("negative");
                    for request in read::<AacrRequest>(file, text)? {
                        take_aacr(request, rejected, &mut cases);
                    }
                }
                Self::Martian => {
                    for request in read::<MartianRequest>(file, text)? {
                        take_martian(request, &mut cases);
                    }
                }
            }
        }
        Ok(cases
            .into_iter()
            .map(|(name, case)| ImportedCase { name, case })
            .collect())
    }
}

fn read<'a, T: Deserialize<'a>>(file: &str, text: &'a str) -> Result<Vec<T>, ImportError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| ImportError {
        file: printable(file).into_owned(),
        problem: printable(&format!("{}: {}", error.path(), error.inner())).into_owned(),
    })
}

#[derive(Deserialize)]
struct AacrRequest {
    #[serde(rename = "githubPrUrl")]
    url: String,
    source_commit: String,
    target_commit: String,
    project_main_language: Option<String>,
    category: Option<String>,
    comments: Vec<AacrComment>,
}

#[derive(Deserialize)]
struct AacrComment {
    note: String,
    path: String,
    side: AacrSide,
    from_line: Option<u32>,
    to_line: Option<u32>,
    category: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum AacrSide {
    Left,
    Right,
}

#[derive(Deserialize)]
struct MartianRequest {
    pr_title: String,
    url: String,
    #[serde(default)]
    original_url: Option<String>,
    comments: Vec<MartianComment>,
}

#[derive(Deserialize)]
struct MartianComment {
    comment: String,
    severity: String,
}

fn take_aacr(request: AacrRequest, rejected: bool, cases: &mut BTreeMap<String, Case>) {
    let (owner, name, _) = parts(&request.url);
    let case = cases
        .entry(folder_name(&request.url))
        .or_insert_with(|| Case {
            title: request.category,
            language: request.project_main_language,
            origin: Some(request.url.clone()),
            repository: Some(Repository {
                name: format!("{owner}/{name}"),
                base: request.target_commit,
                head: request.source_commit,
            }),
            ..Case::default()
        });
    let labels = if rejected {
        &mut case.non_findings
    } else {
        &mut case.findings
    };
    for comment in request.comments {
        if comment.note.trim().is_empty() || comment.path.is_empty() {
            continue;
        }
        // Some ranges are written backwards.
        let (from, to) = match (
            comment.from_line.filter(|n| *n > 0),
            comment.to_line.filter(|n| *n > 0),
        ) {
            (Some(from), Some(to)) => (Some(from.min(to)), Some(from.max(to))),
            (one, other) => (one.or(other), None),
        };
        labels.push(Label {
            path: Some(comment.path),
            line: from,
            end_line: to.filter(|to| Some(*to) != from),
            side: Some(match comment.side {
                AacrSide::Left => LabelSide::Old,
                AacrSide::Right => LabelSide::New,
            }),
            text: comment.note.trim().to_owned(),
            severity: None,
            category: comment.category.map(|word| category(&word)),
        });
    }
    if case.findings.is_empty() && case.non_findings.is_empty() {
        cases.remove(&folder_name(&request.url));
    }
}

fn category(word: &str) -> Category {
    match word {
        "Security Vulnerability" => Category::Security,
        "Code Defect" => Category::Correctness,
        _ => Category::Quality,
    }
}

fn take_martian(request: MartianRequest, cases: &mut BTreeMap<String, Case>) {
    let labels = request
        .comments
        .into_iter()
        .filter(|comment| !comment.comment.trim().is_empty());
    let findings: Vec<Label> = labels
        .map(|comment| Label {
            path: None,
            line: None,
            end_line: None,
            side: None,
            text: comment.comment.trim().to_owned(),
            severity: match comment.severity.as_str() {
                "Critical" => Some(Severity::Critical),
                "High" | "Medium" => Some(Severity::Warning),
                "Low" => Some(Severity::Suggestion),
                _ => None,
            },
            category: None,
        })
        .collect();
    let case = Case {
        title: Some(request.pr_title),
        origin: Some(request.original_url.unwrap_or_else(|| request.url.clone())),
        clean: findings.is_empty(),
        findings,
        ..Case::default()
    };
    cases.insert(folder_name(&request.url), case);
}

/// Owner, name and number of a pull request's address.
fn parts(url: &str) -> (&str, &str, &str) {
    let mut parts = url.trim_end_matches('/').rsplit('/');
    let number = parts.next().unwrap_or_default();
    let _pull = parts.next();
    let name = parts.next().unwrap_or_default();
    (parts.next().unwrap_or_default(), name, number)
}

fn folder_name(url: &str) -> String {
    let (owner, name, number) = parts(url);
    let folder: String = format!("{owner}-{name}-{number}")
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' | '-' | '_' => c,
            'A'..='Z' => c.to_ascii_lowercase(),
            '.' => '.',
            _ => '-',
        })
        .take(120)
        .collect();
    let trimmed = folder.trim_matches(['.', '-']);
    if trimmed.is_empty() {
        "case".to_owned()
    } else {
        trimmed.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;
    use crate::eval::{Lines, parse_case};

    /// Made up, in the shape of the set's files.
    const POSITIVE: &str = r#"[{"change_line_count": 12, "project_main_language": "C++", "source_commit": "1111111111111111111111111111111111111111",
        "target_commit": "2222222222222222222222222222222222222222", "githubPrUrl": "https://github.com/Some/Shop.js/pull/7", "category": "Bug Fix",
        "comments": [
          {"is_ai_comment": true, "note": "The total is read before it is set.\n", "path": "src/Cart.cpp", "side": "right", "source_model": "m",
           "from_line": 12, "to_line": 10, "category": "Code Defect", "context": "Diff Level"},
          {"is_ai_comment": false, "note": "The old check was right.", "path": "src/Cart.cpp", "side": "left", "source_model": "",
           "from_line": 3, "to_line": 3, "category": "Security Vulnerability", "context": "File Level"}]}]"#;
    const NEGATIVE: &str = r#"[{"project_main_language": "C++", "source_commit": "1111111111111111111111111111111111111111",
        "target_commit": "2222222222222222222222222222222222222222", "githubPrUrl": "https://github.com/Some/Shop.js/pull/7", "category": "Bug Fix",
        "comments": [{"note": "Rename this.", "path": "src/Cart.cpp", "side": "right", "from_line": 1, "to_line": 2, "category": "Performance"}]}]"#;
    const GOLDEN: &str = r#"[{"pr_title": "Limit devices", "url": "https://github.com/graph/graph/pull/79265",
        "comments": [{"comment": "Two requests can pass the check at once.", "severity": "High"}]},
        {"pr_title": "Docs", "url": "https://github.com/graph/graph/pull/2", "original_url": "https://x.test/c/1", "comments": []}]"#;

    fn files(texts: &[(&str, &str)]) -> Vec<(String, String)> {
        texts
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    }

    /// What is imported has to be a case that the loader takes.
    fn loads(case: &ImportedCase) {
        let text = serde_json::to_string(&case.case).unwrap();
        let read = parse_case(&Source::new("case.jsonc", &text), &|_, _| Lines::Unknown).unwrap();
        assert_eq!(read, case.case);
    }

    #[test]
    fn aacr_bench_joins_confirmed_and_rejected_comments() {
        let cases = PublicSet::AacrBench
            .import(&files(&[
                ("x/positive_samples.json", POSITIVE),
                ("x/negative_samples.json", NEGATIVE),
            ]))
            .unwrap();
        assert_eq!(cases.len(), 1);
        let ImportedCase { name, case } = &cases[0];
        assert_eq!(name, "some-shop.js-7");
        let repository = case.repository.as_ref().unwrap();
        assert_eq!(
            (repository.name.as_str(), &repository.head[..4]),
            ("Some/Shop.js", "1111")
        );
        assert_eq!((case.findings.len(), case.non_findings.len()), (2, 1));
        let first = &case.findings[0];
        assert_eq!(
            (first.line, first.end_line, first.side),
            (Some(10), Some(12), Some(LabelSide::New))
        );
        assert_eq!(
            (case.findings[1].end_line, case.findings[1].side),
            (None, Some(LabelSide::Old))
        );
        assert_eq!(case.findings[1].category, Some(Category::Security));
        loads(&cases[0]);
    }

    #[test]
    fn martian_has_texts_and_severities_only() {
        let cases = PublicSet::Martian
            .import(&files(&[("g.json", GOLDEN)]))
            .unwrap();
        assert_eq!(cases.len(), 2);
        assert!(
            cases[0].case.clean && cases[0].case.origin.as_deref() == Some("https://x.test/c/1")
        );
        assert_eq!(cases[1].case.findings[0].severity, Some(Severity::Warning));
        cases.iter().for_each(loads);
    }

    #[test]
    fn other_files_are_refused_with_their_place() {
        for (set, text) in [
            (PublicSet::AacrBench, GOLDEN),
            (PublicSet::Martian, POSITIVE),
        ] {
            let error = set
                .import(&files(&[("f.json", text)]))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("f.json: [0]") && error.contains("line"),
                "{error}"
            );
        }
        assert!(
            PublicSet::Martian
                .import(&files(&[("f.json", "{")]))
                .is_err()
        );
    }

    #[test]
    fn names_are_fit_for_folders() {
        for (url, expected) in [
            ("https://github.com/a/b/pull/1/", "a-b-1"),
            ("../../../etc", "etc"),
            ("", "case"),
            ("https://github.com/../../pull/..", "case"),
        ] {
            let name = folder_name(url);
            assert!(!name.starts_with('.') && !name.contains('/'), "{name}");
            if expected != "etc" {
                assert_eq!(name, expected, "{url}");
            }
        }
    }
}

//! What was found, as text and as JSON.

use std::fmt;

use serde::Serialize;

use crate::model::RepoPath;

/// What kind of problem it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// A citation whose target does not exist.
    BrokenRef,
    /// A citation by line number, which rots silently.
    LineNumberRef,
    /// A path in the prose of the review setup that no `@ref` covers.
    UnannotatedCitation,
    /// The routing of the review setup names something that is not there.
    Structural,
    /// An LLP document that is not in the format.
    Document,
}

impl ProblemKind {
    /// The word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BrokenRef => "broken-ref",
            Self::LineNumberRef => "line-number-ref",
            Self::UnannotatedCitation => "unannotated-citation",
            Self::Structural => "structural",
            Self::Document => "document",
        }
    }
}

impl fmt::Display for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One problem. Every text may hold what a stranger wrote; [`Outcome`] escapes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file that cites.
    pub file: RepoPath,
    /// The citing line, 1-based.
    pub line: u32,
    /// What kind of problem it is.
    pub kind: ProblemKind,
    /// What is wrong, one line.
    pub problem: String,
    /// What was cited, as written.
    pub target: Option<String>,
    /// What was probably meant, or what to cite instead.
    pub suggestion: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Everything found, by file and line.
    pub problems: Vec<Problem>,
    /// LLP documents read.
    pub documents: usize,
    /// `@ref LLP`s found in source comments.
    pub code_refs: usize,
    /// Review-setup folders read.
    pub setup_folders: usize,
    /// `@ref`s found in them.
    pub setup_refs: usize,
}

impl Report {
    /// True when nothing was found.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }
}

/// How to print a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A line a problem, then one line that sums up.
    Text,
    /// `{ok, problems: [{file, line, kind, problem, target?, suggestion?}]}`.
    Json,
}

/// A report ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The report itself.
    pub report: Report,
    /// What to print on stdout, with a final newline.
    pub text: String,
    /// 0 when nothing was found, else 1.
    pub exit_code: u8,
}

impl Outcome {
    pub(super) fn new(report: Report, format: Format) -> Self {
        let text = match format {
            Format::Text => as_text(&report),
            Format::Json => as_json(&report),
        };
        let exit_code = u8::from(!report.is_ok());
        Self {
            report,
            text,
            exit_code,
        }
    }
}

fn as_text(report: &Report) -> String {
    let mut text = String::new();
    for p in &report.problems {
        let advice = match (&p.suggestion, p.kind) {
            (None, _) => String::new(),
            (Some(s), ProblemKind::UnannotatedCitation) => format!("; add `@ref {s} — why`"),
            (Some(s), _) => format!("; did you mean `{s}`?"),
        };
        let line = format!(
            "{}:{}: {}: {}{advice}",
            p.file.to_lossy(),
            p.line,
            p.kind,
            p.problem
        );
        text.push_str(&one_line(&line));
        text.push('\n');
    }
    let verdict = match report.problems.len() {
        0 => "every citation resolves".to_owned(),
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    };
    text.push_str(&verdict);
    let counts = format!(
        " ({} LLP documents, {} references in code, {} setup folders with {} references)\n",
        report.documents, report.code_refs, report.setup_folders, report.setup_refs
    );
    text.push_str(&counts);
    text
}

#[derive(Serialize)]
struct WireReport<'a> {
    ok: bool,
    problems: Vec<WireProblem<'a>>,
}

#[derive(Serialize)]
struct WireProblem<'a> {
    file: String,
    line: u32,
    kind: &'static str,
    problem: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<&'a str>,
}

fn as_json(report: &Report) -> String {
    let wire = WireReport {
        ok: report.is_ok(),
        problems: report
            .problems
            .iter()
            .map(|p| WireProblem {
                file: p.file.to_wire().0,
                line: p.line,
                kind: p.kind.as_str(),
                problem: &p.problem,
                target: p.target.as_deref(),
                suggestion: p.suggestion.as_deref(),
            })
            .collect(),
    };
    // A struct of strings and numbers always serialises.
    let mut text = serde_json::to_string_pretty(&wire).unwrap_or_default();
    text.push('\n');
    text
}

/// Escapes what could move the cursor, hide text or reorder it.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if c.is_control() || hidden {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            problems: vec![Problem {
                file: RepoPath::new("a\u{1b}[2J\u{202e}.md").unwrap(),
                line: 3,
                kind: ProblemKind::BrokenRef,
                problem: "no such path `x`".to_owned(),
                target: Some("x".to_owned()),
                suggestion: Some("src/x".to_owned()),
            }],
            ..Report::default()
        }
    }

    #[test]
    fn text_names_place_kind_and_suggestion_and_is_harmless() {
        let outcome = Outcome::new(report(), Format::Text);
        let first = outcome.text.lines().next().unwrap();
        assert_eq!(
            first,
            "a\\u{1b}[2J\\u{202e}.md:3: broken-ref: no such path `x`; did you mean `src/x`?"
        );
        assert_eq!(outcome.exit_code, 1);
        let fine = Outcome::new(Report::default(), Format::Text);
        assert!(fine.text.starts_with("every citation resolves ("));
        assert_eq!(fine.exit_code, 0);
    }

    #[test]
    fn json_has_the_documented_shape() {
        let outcome = Outcome::new(report(), Format::Json);
        let value: serde_json::Value = serde_json::from_str(&outcome.text).unwrap();
        assert_eq!(value["ok"], false);
        assert_eq!(value["problems"][0]["line"], 3);
        assert_eq!(value["problems"][0]["kind"], "broken-ref");
        assert_eq!(value["problems"][0]["target"], "x");
        let fine = Outcome::new(Report::default(), Format::Json);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&fine.text).unwrap(),
            serde_json::json!({"ok": true, "problems": []})
        );
    }
}

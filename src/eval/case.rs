//! A case: what is known of a change, in `case.jsonc`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{ConfigErrors, Source, read_strict, schema::generate};
use crate::model::RepoPath;
use crate::state::output::{Category, Severity};

/// Which version of a file a label's lines count in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LabelSide {
    /// Before the change.
    Old,
    /// After the change.
    New,
}

/// Something that is known of the change: a defect, or what is wrongly taken for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Label {
    /// The file, from the root of the tree. Without it, findings are matched by their text alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub path: Option<String>,
    /// First line, 1-based; without it, the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub line: Option<u32>,
    /// Last line, 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub end_line: Option<u32>,
    /// Which version of the file the lines count in; without it, either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<LabelSide>,
    /// What is wrong and what it does, in the words of whoever labelled it.
    #[schemars(length(min = 1))]
    pub text: String,
    /// How much it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// What kind of problem it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
}

/// Two commits of a repository that is not part of the case: a clone below the folder of `ecr eval --repos`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Repository {
    /// The clone's folder below `--repos`, such as `owner/name`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The commit or branch that the change is against.
    #[schemars(length(min = 1))]
    pub base: String,
    /// The commit or branch under review.
    #[schemars(length(min = 1))]
    pub head: String,
}

/// `case.jsonc`, beside which lies the change: the folders `base` and `head`; or `base` and `change.patch`; or
/// `change.patch` alone, without a tree; or nothing, when `repository` says where it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// What the change is, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The main language of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Where the case comes from: an address, or a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Where the change is, when it does not lie beside this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<Repository>,
    /// There is nothing to find: every finding is a false alarm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clean: bool,
    /// What a review should find.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Label>,
    /// What somebody reported and what is known not to hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_findings: Vec<Label>,
}

/// What is known of a file that a label names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// The number of its lines.
    Are(u32),
    /// There is no such file.
    NoFile,
    /// It cannot be looked at here.
    Unknown,
}

/// The published schema of `case.jsonc`.
pub fn schema() -> Value {
    generate::<Case>()
}

/// Reads `case.jsonc`. `lines` tells what is known of a file on a side, to catch labels that point nowhere.
pub fn parse(
    source: &Source,
    lines: &dyn Fn(LabelSide, &RepoPath) -> Lines,
) -> Result<Case, ConfigErrors> {
    read_strict(source, &schema(), |case: &Case, report| {
        if case.clean && !case.findings.is_empty() {
            report(
                &["clean"],
                "a clean case has no `findings`: drop one of the two",
            );
        }
        if !case.clean && case.findings.is_empty() && case.non_findings.is_empty() {
            report(
                &[],
                "nothing is known of the change: give `findings`, `nonFindings` or `clean`",
            );
        }
        for (key, labels) in [
            ("findings", &case.findings),
            ("nonFindings", &case.non_findings),
        ] {
            for (at, label) in labels.iter().enumerate() {
                let at = at.to_string();
                check(label, lines, &mut |name, message| {
                    report(&[key, &at, name], message);
                });
            }
        }
    })
}

fn check(
    label: &Label,
    lines: &dyn Fn(LabelSide, &RepoPath) -> Lines,
    report: &mut dyn FnMut(&str, &str),
) {
    if label.text.trim().is_empty() {
        report("text", "the text is blank: say what is wrong");
    }
    let Some(path) = &label.path else {
        if label.line.is_some() || label.end_line.is_some() || label.side.is_some() {
            report("line", "a place needs its file: give `path`");
        }
        return;
    };
    let path = match RepoPath::new(path) {
        Ok(path) => path,
        Err(error) => return report("path", &format!("no path in a tree: {error}")),
    };
    if let Some(end) = label.end_line {
        match label.line {
            None => report("endLine", "a last line needs a first one: give `line`"),
            Some(line) if end < line => {
                report(
                    "endLine",
                    &format!("the last line is before the first, {line}"),
                );
            }
            Some(_) => {}
        }
    }
    let sides: &[LabelSide] = match label.side {
        Some(LabelSide::Old) => &[LabelSide::Old],
        Some(LabelSide::New) => &[LabelSide::New],
        None => &[LabelSide::New, LabelSide::Old],
    };
    let known: Vec<Lines> = sides.iter().map(|side| lines(*side, &path)).collect();
    let last = label.end_line.or(label.line).unwrap_or(0);
    let longest = known.iter().filter_map(|known| match known {
        Lines::Are(count) => Some(*count),
        _ => None,
    });
    match longest.max() {
        _ if known.contains(&Lines::Unknown) => {}
        None => report("path", "there is no such file on that side of the change"),
        Some(count) if last > count => {
            report("line", &format!("the file has {count} lines on that side"));
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Case, String> {
        let lines = |side, path: &RepoPath| match (path.as_str(), side) {
            (Some("a.rs"), LabelSide::New) => Lines::Are(3),
            (Some("far.rs"), _) => Lines::Unknown,
            _ => Lines::NoFile,
        };
        parse(&Source::new("one/case.jsonc", text), &lines).map_err(|errors| {
            let all = errors.diagnostics().iter();
            let all = all.map(|d| format!("{} {:?} {}", d.place(), d.key, d.message));
            all.collect::<Vec<_>>().join("\n")
        })
    }

    #[test]
    fn cases_are_read_and_written_back() {
        let text = r#"{
            // a comment
            "title": "x",
            "findings": [{"path": "a.rs", "line": 2, "endLine": 3, "side": "new", "text": "t", "severity": "critical"}],
            "nonFindings": [{"path": "far.rs", "line": 99, "text": "t"}, {"text": "no place"}],
        }"#;
        let case = read(text).unwrap();
        assert_eq!(case.findings[0].end_line, Some(3));
        let again = read(&serde_json::to_string(&case).unwrap()).unwrap();
        assert_eq!(again, case);
        assert!(read("{\"clean\": true}").unwrap().clean);
    }

    #[test]
    fn errors_name_file_line_and_key() {
        for (text, expected) in [
            ("{}", "one/case.jsonc:1:1"),
            (
                "{\n\"clean\": true, \"findings\": [{\"text\": \"t\"}]}",
                ":2:10 Some(\"clean\")",
            ),
            (
                "{\"findings\": [\n{\"text\": \" \"}]}",
                ":2:10 Some(\"findings.0.text\")",
            ),
            (
                "{\"findings\": [{\"text\": \"t\",\n \"line\": 2}]}",
                ":2:10 Some(\"findings.0.line\")",
            ),
            (
                "{\"findings\": [{\"text\": \"t\",\n \"path\": \"../x\"}]}",
                "findings.0.path",
            ),
            (
                "{\"findings\": [{\"text\": \"t\", \"path\": \"b.rs\"}]}",
                "no such file",
            ),
            (
                "{\"findings\": [{\"text\": \"t\", \"path\": \"a.rs\", \"side\": \"old\"}]}",
                "no such file",
            ),
            (
                "{\"findings\": [{\"text\": \"t\", \"path\": \"a.rs\", \"line\": 4}]}",
                "has 3 lines",
            ),
            (
                "{\"findings\": [{\"text\": \"t\", \"path\": \"a.rs\", \"line\": 2, \"endLine\": 1}]}",
                "before the first",
            ),
            (
                "{\"findings\": [{\"text\": \"t\", \"path\": \"a.rs\", \"line\": 0}]}",
                "findings[0].line",
            ),
            ("{\"finding\": []}", "finding"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }

    #[test]
    fn the_schema_accepts_what_the_loader_accepts() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        assert!(validator.is_valid(&serde_json::json!({"clean": true})));
        assert!(
            !validator.is_valid(&serde_json::json!({"findings": [{"text": "t", "side": "left"}]}))
        );
        assert!(!validator.is_valid(&serde_json::json!({"nonsense": 1})));
    }
}

//! SARIF 2.1.0.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::prepared::{CharColumns, Prepared};
use super::words;
use crate::model::{AgentId, Decision, Finding, FindingStatus, Review, Severity, Side};
use crate::state::output::Tool as ToolInfo;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool<'a>,
    column_kind: &'static str,
    invocations: [Invocation; 1],
    results: Vec<SarifResult<'a>>,
    properties: RunProperties,
}

#[derive(Serialize)]
struct Tool<'a> {
    driver: Driver<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver<'a> {
    name: &'a str,
    version: &'a str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    short_description: Text,
    properties: RuleProperties,
}

#[derive(Serialize)]
struct RuleProperties {
    tags: [&'static str; 1],
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notification {
    level: &'static str,
    message: Text,
    descriptor: Descriptor,
}

#[derive(Serialize)]
struct Descriptor {
    id: String,
}

#[derive(Serialize)]
struct RunProperties {
    decision: &'static str,
    complete: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Text,
    locations: [Location; 1],
    partial_fingerprints: Fingerprints<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
    properties: ResultProperties<'a>,
}

#[derive(Serialize)]
struct Fingerprints<'a> {
    #[serde(rename = "ecr/v2")]
    id: &'a str,
}

#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultProperties<'a> {
    severity: &'static str,
    category: &'static str,
    status: &'static str,
    side: &'static str,
    in_diff: bool,
    verification: &'static str,
    agents: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<u32>,
}

/// Renders the findings, and the dismissed ones as suppressed results.
pub(super) fn render(prepared: &Prepared, tool: &ToolInfo) -> String {
    let review = &prepared.review;
    let mut rules = Rules::default();
    let mut results = Vec::with_capacity(review.findings.len() + review.dismissed.len());
    for (finding, columns) in review.findings.iter().zip(&prepared.columns) {
        results.push(result(&mut rules, finding, *columns, Vec::new()));
    }
    for dismissed in &review.dismissed {
        let suppression = Suppression {
            kind: "external",
            status: "accepted",
            justification: dismissed.reason.clone(),
        };
        results.push(result(
            &mut rules,
            &dismissed.finding,
            None,
            vec![suppression],
        ));
    }
    super::json::pretty(&Log {
        schema: "https://json.schemastore.org/sarif-2.1.0.json",
        version: "2.1.0",
        runs: [Run {
            tool: Tool {
                driver: Driver {
                    name: &tool.name,
                    version: &tool.version,
                    rules: rules.list,
                },
            },
            column_kind: "unicodeCodePoints",
            invocations: [invocation(review)],
            results,
            properties: RunProperties {
                decision: review.decision.as_str(),
                complete: review.complete,
            },
        }],
    })
}

/// A run with gaps is not a successful execution, so that nobody reads few results as few problems.
fn invocation(review: &Review) -> Invocation {
    let mut notifications = Vec::new();
    let mut notify = |level, id: &str, text: String| {
        notifications.push(Notification {
            level,
            message: Text { text },
            descriptor: Descriptor {
                id: format!("ecr/{id}"),
            },
        });
    };
    if !review.complete {
        notify("error", "incomplete", words::incomplete(review));
    }
    for note in &review.notes {
        let level = if note.kind.is_gap() {
            "warning"
        } else {
            "note"
        };
        notify(level, note.kind.as_str(), note.text.clone());
    }
    Invocation {
        execution_successful: review.complete && review.decision != Decision::CouldNotComplete,
        tool_execution_notifications: notifications,
    }
}

/// The table of the rules that have results, in order of appearance.
#[derive(Default)]
struct Rules {
    list: Vec<Rule>,
    index: BTreeMap<String, usize>,
}

impl Rules {
    fn of(&mut self, finding: &Finding) -> (String, usize) {
        let id = words::rule_id(finding);
        let index = *self.index.entry(id.clone()).or_insert_with(|| {
            let text = match &finding.rule {
                Some(rule) => format!("The built-in or repository check {rule}."),
                None => format!("A reviewer's claim about {}.", finding.category),
            };
            self.list.push(Rule {
                id: id.clone(),
                short_description: Text { text },
                properties: RuleProperties {
                    tags: [finding.category.as_str()],
                },
            });
            self.list.len() - 1
        });
        (id, index)
    }
}

fn result<'a>(
    rules: &mut Rules,
    finding: &'a Finding,
    columns: Option<CharColumns>,
    suppressions: Vec<Suppression>,
) -> SarifResult<'a> {
    let (rule_id, rule_index) = rules.of(finding);
    SarifResult {
        rule_id,
        rule_index,
        level: match (finding.status, finding.severity) {
            (FindingStatus::Disputed, _) | (_, Severity::Suggestion) => "note",
            (_, Severity::Critical) => "error",
            (_, Severity::Warning) => "warning",
        },
        message: Text {
            // `[text](target)` in a plain message is a link to SARIF viewers.
            text: words::message(finding).replace("](", "] ("),
        },
        locations: [Location {
            physical_location: PhysicalLocation {
                artifact_location: ArtifactLocation {
                    uri: uri_path(finding.location.file.as_bytes()),
                },
                region: region(finding, columns),
            },
        }],
        partial_fingerprints: Fingerprints {
            id: finding.id.as_str(),
        },
        suppressions,
        properties: ResultProperties {
            severity: finding.severity.as_str(),
            category: finding.category.as_str(),
            status: finding.status.as_str(),
            side: finding.location.side.as_str(),
            in_diff: finding.in_diff,
            verification: finding.verification.status.as_str(),
            agents: finding.agents.iter().map(AgentId::as_str).collect(),
        },
    }
}

/// None for the whole file, and for the old side: viewers open the new version.
fn region(finding: &Finding, columns: Option<CharColumns>) -> Option<Region> {
    let line = finding.location.line.filter(|line| *line > 0)?;
    if finding.location.side == Side::Old {
        return None;
    }
    let end_line = finding.location.end_line.filter(|end| *end > line);
    let columns = columns.filter(|_| end_line.is_none());
    Some(Region {
        start_line: line,
        end_line,
        start_column: columns.map(|c| c.start),
        end_column: columns.map(|c| c.end),
    })
}

/// A path as the path of a URI: everything but unreserved characters and `/` percent-encoded.
pub(super) fn uri_path(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for &b in path {
        if b.is_ascii_alphanumeric() || b"-._~/".contains(&b) {
            out.push(char::from(b));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_hold_no_character_with_a_meaning() {
        assert_eq!(uri_path(b"a b/c:d#e?f%\xff"), "a%20b/c%3Ad%23e%3Ff%25%FF");
    }
}

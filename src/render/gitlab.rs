//! GitLab's code quality report.

use std::collections::BTreeMap;

use serde::Serialize;

use super::words;
use crate::model::{Finding, FindingStatus, Review, Severity};

#[derive(Serialize)]
struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    severity: &'static str,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Serialize)]
struct Lines {
    begin: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<u32>,
}

/// Renders the findings; a run with gaps gets one entry that says so, since the format has no other place.
pub(super) fn render(review: &Review) -> String {
    let mut seen = BTreeMap::new();
    let mut issues: Vec<Issue> = Vec::with_capacity(review.findings.len() + 1);
    if !review.complete {
        let path = words::gap_path(review).map_or_else(|| ".".to_owned(), |path| path.to_wire().0);
        issues.push(Issue {
            description: words::incomplete(review),
            check_name: "ecr/incomplete".to_owned(),
            fingerprint: "ecr-incomplete".to_owned(),
            severity: "major",
            location: Location {
                path,
                lines: Lines {
                    begin: 1,
                    end: None,
                },
            },
        });
    }
    for finding in &review.findings {
        issues.push(Issue {
            description: words::message(finding),
            check_name: words::rule_id(finding),
            fingerprint: unique(&mut seen, finding.id.as_str()),
            severity: severity(finding),
            location: Location {
                path: finding.location.file.to_wire().0,
                lines: lines(finding),
            },
        });
    }
    super::json::pretty(&issues)
}

fn lines(finding: &Finding) -> Lines {
    let begin = finding.location.line.unwrap_or(1).max(1);
    Lines {
        begin,
        end: finding.location.end_line.filter(|end| *end > begin),
    }
}

fn severity(finding: &Finding) -> &'static str {
    match (finding.status, finding.severity) {
        (FindingStatus::Disputed, _) => "minor",
        (_, Severity::Critical) => "critical",
        (_, Severity::Warning) => "major",
        (_, Severity::Suggestion) => "info",
    }
}

/// GitLab shows one entry a fingerprint only, so a second one with the same id gets a number.
fn unique(seen: &mut BTreeMap<String, u32>, id: &str) -> String {
    let times = seen.entry(id.to_owned()).or_default();
    *times += 1;
    match *times {
        1 => id.to_owned(),
        n => format!("{id}-{n}"),
    }
}

//! The reviewdog diagnostic format, `rdjson`.

use serde::Serialize;

use super::words;
use crate::model::{Finding, FindingStatus, Review, Severity, Side};
use crate::state::output::Tool;

#[derive(Serialize)]
struct DiagnosticResult<'a> {
    source: Source<'a>,
    severity: &'static str,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Serialize)]
struct Source<'a> {
    name: &'a str,
}

#[derive(Serialize)]
struct Diagnostic {
    message: String,
    location: Location,
    severity: &'static str,
    code: Code,
}

#[derive(Serialize)]
struct Code {
    value: String,
}

#[derive(Serialize)]
struct Location {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
}

#[derive(Serialize)]
struct Range {
    start: Position,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Position>,
}

/// Columns are 1-based UTF-8 bytes, the end exclusive.
#[derive(Serialize)]
struct Position {
    line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

/// Renders the findings; a run with gaps gets one more diagnostic that says so.
pub(super) fn render(review: &Review, tool: &Tool) -> String {
    let mut diagnostics = Vec::with_capacity(review.findings.len() + 1);
    if !review.complete {
        let path = words::gap_path(review).map_or_else(|| ".".to_owned(), |path| path.to_wire().0);
        diagnostics.push(Diagnostic {
            message: words::incomplete(review),
            location: Location { path, range: None },
            severity: "WARNING",
            code: Code {
                value: "ecr/incomplete".to_owned(),
            },
        });
    }
    for finding in &review.findings {
        diagnostics.push(Diagnostic {
            message: words::message(finding),
            location: Location {
                path: finding.location.file.to_wire().0,
                range: range(finding),
            },
            severity: severity(finding),
            code: Code {
                value: words::rule_id(finding),
            },
        });
    }
    let worst = ["ERROR", "WARNING", "INFO"]
        .into_iter()
        .find(|level| diagnostics.iter().any(|d| d.severity == *level))
        .unwrap_or("INFO");
    super::json::pretty(&DiagnosticResult {
        source: Source { name: &tool.name },
        severity: worst,
        diagnostics,
    })
}

/// None for the old side: the format counts in the new version only.
fn range(finding: &Finding) -> Option<Range> {
    let location = &finding.location;
    let line = location.line.filter(|line| *line > 0)?;
    if location.side == Side::Old {
        return None;
    }
    let position = |line, column| Position { line, column };
    if let Some(end) = location.end_line.filter(|end| *end > line) {
        return Some(Range {
            start: position(line, None),
            end: Some(position(end, None)),
        });
    }
    Some(match location.columns {
        Some((start, end)) if end >= start => Range {
            start: position(line, Some(u64::from(start) + 1)),
            end: Some(position(line, Some(u64::from(end) + 1))),
        },
        _ => Range {
            start: position(line, None),
            end: None,
        },
    })
}

fn severity(finding: &Finding) -> &'static str {
    match (finding.status, finding.severity) {
        (FindingStatus::Disputed, _) | (_, Severity::Suggestion) => "INFO",
        (_, Severity::Critical) => "ERROR",
        (_, Severity::Warning) => "WARNING",
    }
}

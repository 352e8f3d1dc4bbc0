//! GitHub Actions workflow commands: one annotation a line.

use std::fmt::Write as _; // writing to a String cannot fail

use super::prepared::Prepared;

use super::words;
use crate::model::printable;
use crate::model::{Finding, FindingStatus, Severity, Side};

/// Renders the summary first (a run keeps the first few annotations only), then the findings.
pub(super) fn render(prepared: &Prepared) -> String {
    let review = &prepared.review;
    let level = if review.complete { "notice" } else { "warning" };
    let text = format!(
        "{}. {}; {}.",
        words::verdict(review),
        words::tally(review),
        words::receipt(review)
    );
    let mut out = command(level, &[("title", "ecr".to_owned())], &text);
    for note in review.notes.iter().filter(|note| note.kind.is_gap()) {
        out.push_str(&command(
            "warning",
            &[("title", "ecr: incomplete".to_owned())],
            &note.text,
        ));
    }
    for (finding, columns) in review.findings.iter().zip(&prepared.columns) {
        let mut properties = vec![("file", finding.location.file.to_wire().0)];
        // Annotations count in the new version only.
        if finding.location.side == Side::New
            && let Some(line) = finding.location.line.filter(|line| *line > 0)
        {
            properties.push(("line", line.to_string()));
            match finding.location.end_line.filter(|end| *end > line) {
                Some(end) => properties.push(("endLine", end.to_string())),
                None => {
                    if let Some(columns) = columns {
                        properties.push(("col", columns.start.to_string()));
                        properties.push(("endColumn", columns.end.to_string()));
                    }
                }
            }
        }
        properties.push(("title", finding.title.clone()));
        out.push_str(&command(level_of(finding), &properties, &message(finding)));
    }
    out
}

fn level_of(finding: &Finding) -> &'static str {
    match (finding.status, finding.severity) {
        (FindingStatus::Disputed, _) | (_, Severity::Suggestion) => "notice",
        (_, Severity::Critical) => "error",
        (_, Severity::Warning) => "warning",
    }
}

fn message(finding: &Finding) -> String {
    let mut out = finding.rationale.clone();
    if let Some(suggestion) = &finding.suggestion {
        out.push_str("\nFix: ");
        out.push_str(suggestion);
    }
    let _ = write!(out, "\n({}, {})", finding.category, finding.id);
    out
}

fn command(level: &str, properties: &[(&str, String)], message: &str) -> String {
    let properties: Vec<_> = properties
        .iter()
        .map(|(name, value)| format!("{name}={}", escape(value, true)))
        .collect();
    format!(
        "::{level} {}::{}\n",
        properties.join(","),
        escape(message, false)
    )
}

/// The runner's own escapes, so that a value ends neither its property nor the line; other hidden
/// characters become visible.
fn escape(text: &str, property: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut buffer = [0; 4];
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            ':' if property => out.push_str("%3A"),
            ',' if property => out.push_str("%2C"),
            '\t' => out.push(' '),
            c => out.push_str(&printable(c.encode_utf8(&mut buffer))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_leave_their_place() {
        assert_eq!(
            escape("a:b,c%\r\n::stop-commands::x\u{1b}", true),
            "a%3Ab%2Cc%25%0D%0A%3A%3Astop-commands%3A%3Ax\\u{1b}"
        );
        assert_eq!(escape("a:b,c\n::error::x", false), "a:b,c%0A::error::x");
    }
}

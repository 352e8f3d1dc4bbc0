//! A self-contained report in Markdown.
//!
//! Untrusted text appears in two places only: escaped and folded to one line behind a label of ours,
//! or in a code fence or span longer than any run of backticks in it. So it cannot start a block.

use std::fmt::Write as _; // writing to a String cannot fail

use super::safe::{inert, printable_line, printable_path};
use super::words;
use crate::model::printable;
use crate::model::{
    DismissedFinding, FileCoverage, FileOutcome, Finding, FindingStatus, Review, Severity, Side,
};

/// Columns of a source line shown.
const MAX_LINE: usize = 400;

/// Renders the whole report.
pub(super) fn render(review: &Review) -> String {
    let mut out = format!("# ecr: {}\n\n", words::verdict(review));
    if review.coverage.files.is_empty() {
        let _ = writeln!(out, "{}", escape(&words::input(&review.input)));
    } else {
        let _ = writeln!(
            out,
            "{}. Reviewed {}. Input: {}",
            words::tally(review),
            words::receipt(review),
            escape(&words::input(&review.input))
        );
    }
    if !review.summary.trim().is_empty() {
        let _ = writeln!(out, "\nSummary: {}", escape(&review.summary));
    }
    gaps(&mut out, review);
    for severity in [Severity::Critical, Severity::Warning, Severity::Suggestion] {
        let of = |f: &&Finding| f.severity == severity && f.status == FindingStatus::Open;
        section(
            &mut out,
            heading(severity),
            review.findings.iter().filter(of),
        );
    }
    let disputed = |f: &&Finding| f.status == FindingStatus::Disputed;
    section(
        &mut out,
        "Disputed, not deciding",
        review.findings.iter().filter(disputed),
    );
    dismissed(&mut out, &review.dismissed);
    if !review.dropped.is_empty() {
        out.push_str("\n## Dropped\n\n");
        for dropped in &review.dropped {
            let _ = writeln!(
                out,
                "- {}: {}; {}: {}",
                place(&dropped.finding),
                escape(&dropped.finding.title),
                super::terminal::stage_words(dropped.stage),
                escape(&dropped.reason)
            );
        }
    }
    files(
        &mut out,
        "Filtered on purpose",
        review,
        FileOutcome::Filtered,
    );
    notes(&mut out, review);
    let mut inert_out = String::with_capacity(out.len());
    for line in out.split_inclusive('\n') {
        inert_out.push_str(&inert(line));
    }
    inert_out
}

fn heading(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "Critical",
        Severity::Warning => "Warnings",
        Severity::Suggestion => "Suggestions",
    }
}

fn section<'a>(out: &mut String, title: &str, findings: impl Iterator<Item = &'a Finding>) {
    let mut first = true;
    for finding in findings {
        if first {
            let _ = writeln!(out, "\n## {title}");
            first = false;
        }
        write_finding(out, finding);
    }
}

fn write_finding(out: &mut String, finding: &Finding) {
    let _ = writeln!(
        out,
        "\n### {}: {}\n",
        finding.severity,
        escape(&finding.title)
    );
    let _ = writeln!(out, "Where: {}", place(finding));
    if let Some(text) = source(finding) {
        let _ = write!(out, "\n{}", fenced(&text));
    }
    let _ = writeln!(out, "\nWhy: {}", escape(&finding.rationale));
    if let Some(suggestion) = &finding.suggestion {
        let _ = writeln!(out, "\nFix: {}", escape(suggestion));
    }
    let mut origin = format!("\nId: `{}`, {}", finding.id, finding.category);
    if let Some(rule) = &finding.rule {
        let _ = write!(origin, ", rule `{rule}`");
    }
    if !finding.agents.is_empty() {
        let agents: Vec<_> = finding.agents.iter().map(|a| format!("`{a}`")).collect();
        let _ = write!(origin, ", by {}", agents.join(" and "));
    }
    let _ = writeln!(origin, ", {}", finding.verification.status);
    out.push_str(&origin);
    if let Some(reason) = &finding.verification.reason {
        let _ = writeln!(out, "\nVerification: {}", escape(reason));
    }
}

/// Up to seven lines around the finding, numbered; or the evidence.
pub(super) fn source(finding: &Finding) -> Option<String> {
    let cut = |line: &str| {
        let line = printable(&line.replace('\t', "    ")).into_owned();
        match line.char_indices().nth(MAX_LINE) {
            Some((at, _)) => format!("{}...", &line[..at]),
            None => line,
        }
    };
    let Some(excerpt) = finding.excerpt.as_ref().filter(|e| !e.lines.is_empty()) else {
        return finding
            .evidence
            .as_deref()
            .map(|line| format!("{}\n", cut(line)));
    };
    let at = excerpt.highlight.as_ref().map_or(0, |(line, _)| *line);
    let first = at.saturating_sub(3);
    let last = (at + 4).min(excerpt.lines.len());
    let digits = (u64::from(excerpt.first_line) + last as u64)
        .to_string()
        .len();
    let mut out = String::new();
    for (index, line) in excerpt.lines.iter().enumerate().take(last).skip(first) {
        let number = u64::from(excerpt.first_line) + index as u64;
        let _ = writeln!(out, "{number:>digits$} | {}", cut(line));
    }
    Some(out)
}

fn place(finding: &Finding) -> String {
    let mut place = printable_path(&finding.location.file);
    if let Some(line) = finding.location.line {
        let _ = write!(place, ":{line}");
        if let Some(end) = finding.location.end_line.filter(|end| *end > line) {
            let _ = write!(place, "-{end}");
        }
    }
    let side = if finding.location.side == Side::Old {
        " (before the change)"
    } else {
        ""
    };
    format!("{}{side}", code(&place))
}

fn gaps(out: &mut String, review: &Review) {
    if review.complete {
        return;
    }
    out.push_str("\n## Not reviewed\n\n");
    out.push_str("Part of the change was not reviewed; take this report as no judgement of it.\n");
    files(out, "Partly reviewed files", review, FileOutcome::Partial);
    files(out, "Missed files", review, FileOutcome::Missed);
}

fn files(out: &mut String, title: &str, review: &Review, outcome: FileOutcome) {
    let of: Vec<&FileCoverage> = review
        .coverage
        .files
        .iter()
        .filter(|f| f.outcome == outcome)
        .collect();
    if of.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n## {title}\n");
    for file in of {
        let reason = file.reason.as_deref().unwrap_or("no reason given");
        let _ = writeln!(
            out,
            "- {} ({}): {}",
            code(&printable_path(&file.path)),
            words::size(file),
            escape(reason)
        );
    }
}

fn dismissed(out: &mut String, dismissed: &[DismissedFinding]) {
    if dismissed.is_empty() {
        return;
    }
    out.push_str("\n## Dismissed\n\n");
    for entry in dismissed {
        let by = entry.by.as_deref().map_or_else(String::new, |by| {
            format!(", by {}", code(&printable_line(by)))
        });
        let reason = entry
            .reason
            .as_deref()
            .map_or_else(String::new, |why| format!(", because: {}", escape(why)));
        let _ = writeln!(
            out,
            "- {} {}: {}{by}{reason}",
            place(&entry.finding),
            entry.finding.severity,
            escape(&entry.finding.title)
        );
    }
}

fn notes(out: &mut String, review: &Review) {
    if review.notes.is_empty() {
        return;
    }
    out.push_str("\n## Notes\n\n");
    for note in &review.notes {
        let lead = if note.kind.is_gap() {
            "incomplete"
        } else {
            "note"
        };
        let _ = writeln!(out, "- {lead}: {}", escape(&note.text));
    }
}

/// `text` in a code span that it cannot close.
pub(super) fn code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text) + 1);
    // The parser takes the padding off again; it keeps backticks and spaces at the ends apart.
    let edge = |c| matches!(c, '`' | ' ');
    if text.is_empty() || text.starts_with(edge) || text.ends_with(edge) {
        format!("{ticks} {text} {ticks}")
    } else {
        format!("{ticks}{text}{ticks}")
    }
}

/// `text` (lines with their ends) in a fence that it cannot close.
pub(super) fn fenced(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text).max(2) + 1);
    format!("{ticks}text\n{text}{ticks}\n")
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for b in text.bytes() {
        run = if b == b'`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// `text` as one line of Markdown that renders as that text: no markup, HTML, link, entity, mention or reference.
pub(super) fn escape(text: &str) -> String {
    let line = printable_line(text);
    if line.is_empty() {
        return "(no text)".to_owned();
    }
    let mut out = String::with_capacity(line.len() + line.len() / 8);
    let chars: Vec<char> = line.chars().collect();
    let next = |at: usize| chars.get(at + 1).copied().unwrap_or(' ');
    let mut hex_run = 0;
    for (at, &c) in chars.iter().enumerate() {
        // A forge turns a bare commit id into a link; a joiner nobody sees stops that.
        let word_before = at > 0 && chars[at - 1].is_alphanumeric();
        hex_run = if c.is_ascii_hexdigit() && (hex_run > 0 || !word_before) {
            hex_run + 1
        } else {
            0
        };
        if hex_run == 7 {
            out.push('\u{2060}');
            hex_run = 1;
        }
        match c {
            // Forges look for these in the rendered text, where no escape is left: use look-alikes.
            '@' if next(at).is_alphanumeric() => out.push('\u{ff20}'),
            '#' if next(at).is_ascii_digit() => out.push('\u{ff03}'),
            '-' if next(at).is_ascii_digit() && at >= 2 && is_gh(&chars[at - 2..at]) => {
                out.push('\u{2011}');
            }
            ':' if next(at) == '/' => out.push_str("&#58;\u{2060}"),
            ':' if names_emoji(&chars[at + 1..]) => out.push_str(":\u{2060}"),
            '.' if at >= 3 && chars[at - 3..at].iter().all(|c| matches!(c, 'w' | 'W')) => {
                out.push_str("\u{2060}.");
            }
            // The text may begin a line, where these would begin a list.
            '-' | '+' if at == 0 => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')'
                if at > 0 && next(at) == ' ' && chars[..at].iter().all(char::is_ascii_digit) =>
            {
                out.push('\\');
                out.push(c);
            }
            '<' if next(at) == '!' => out.push_str("\\<\u{2060}"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '#' | '|' | '~' | '$' | '^'
            | '!' | '@' | '{' | '}' | '"' | '\'' | '=' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// True for what follows the first colon of `:tada:`.
fn names_emoji(rest: &[char]) -> bool {
    let name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-');
    let len = rest.iter().take_while(|c| name(c)).count();
    len > 0 && rest.get(len) == Some(&':')
}

fn is_gh(pair: &[char]) -> bool {
    matches!(pair, ['g' | 'G', 'h' | 'H'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forges_find_nothing_to_link() {
        let out = escape(
            "@team fixes #12, GH-7, https://e.vil/x www.e.vil 0123456789abcdef :tada: a::b:: ok",
        );
        for bad in ["@t", "#1", "GH-7", "://", "www.e", "0123456", ":tada"] {
            assert!(!out.contains(bad), "{bad} in {out}");
        }
    }

    #[test]
    fn spans_and_fences_outlast_their_content() {
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`a"), "`` `a ``");
        assert!(fenced("````\n").starts_with("`````text\n````\n`````"));
    }
}

//! The report that a person reads in a terminal.

use std::fmt::Write as _; // writing to a String cannot fail

use std::path::Path;

use super::excerpt;
use super::layout::{Page, Paint, TerminalOptions, Verbosity, clip};
use super::prepared::Prepared;
use super::safe::{printable_line, printable_path, printable_start};
use super::words;
use crate::model::{
    AgentId, Decision, DropStage, FileCoverage, FileOutcome, Finding, FindingStatus, NoteKind,
    RepoPath, Review, Severity, Side, VerificationStatus,
};

/// Partial and missed files listed without `-v`.
const LISTED_GAPS: usize = 10;
/// Characters of one text shown; the rest is in the JSON.
const MAX_TEXT: usize = 2_000;

/// Renders the whole report.
pub(super) fn render(prepared: &Prepared, options: &TerminalOptions) -> String {
    let review = &prepared.review;
    let mut page = Page::new(options);
    head(&mut page, review);
    if options.verbosity == Verbosity::Quiet {
        for finding in sorted(review) {
            let line = format!(
                "{}{} {}",
                lead(finding),
                place(finding),
                prose(&finding.title)
            );
            let line = clip(&line, page.width());
            page.line(&line);
        }
        return page.finish();
    }
    for finding in sorted(review) {
        page.gap();
        write_finding(&mut page, finding);
    }
    page.gap();
    gaps(&mut page, review);
    notes(&mut page, review);
    folded(&mut page, review);
    if options.verbosity == Verbosity::Verbose {
        details(&mut page, review);
        page.gap();
    }
    hints(&mut page, review);
    page.finish()
}

/// `text` as one line, cut where nobody would read on.
pub(super) fn prose(text: &str) -> String {
    printable_start(text, MAX_TEXT)
}

fn sorted(review: &Review) -> Vec<&Finding> {
    let mut findings: Vec<_> = review.findings.iter().collect();
    findings.sort_by_key(|f| {
        (
            f.status == FindingStatus::Disputed,
            std::cmp::Reverse(f.severity),
        )
    });
    findings
}

fn head(page: &mut Page<'_>, review: &Review) {
    let paint = match (review.decision, review.complete) {
        (Decision::Approve | Decision::ApproveWithComments, true) => Paint::Green,
        (Decision::RequestChanges, _) => Paint::Red,
        (_, false) | (Decision::CouldNotComplete, _) => Paint::Yellow,
        _ => Paint::Strong,
    };
    page.wrapped((Paint::Plain, ""), paint, words::verdict(review));
    let reviewed = if review.decision == Decision::ChecksOnly {
        "checked"
    } else {
        "reviewed"
    };
    let mut facts = vec![words::tally(review)];
    if review.coverage.files.is_empty() {
        facts.clear();
    } else {
        facts.push(format!("{reviewed} {}", words::receipt(review)));
    }
    facts.push(words::input(&review.input));
    page.wrapped((Paint::Plain, "  "), Paint::Plain, &facts.join("; "));
    if page.options.verbosity != Verbosity::Quiet && says_more(review) {
        page.wrapped((Paint::Plain, "  "), Paint::Plain, &prose(&review.summary));
    }
}

/// False for a summary that would repeat the line above it: one made from the counts of a complete
/// run without a model.
fn says_more(review: &Review) -> bool {
    let counted = review.complete
        && !review.coverage.files.is_empty()
        && review
            .passes
            .iter()
            .all(|pass| pass.model_configured.is_none());
    !counted && !review.summary.trim().is_empty()
}

fn paint_of(finding: &Finding) -> Paint {
    match (finding.status, finding.severity) {
        (FindingStatus::Disputed, _) => Paint::Faint,
        (_, Severity::Critical) => Paint::Red,
        (_, Severity::Warning) => Paint::Yellow,
        (_, Severity::Suggestion) => Paint::Cyan,
    }
}

/// What a finding begins with.
fn lead(finding: &Finding) -> String {
    match finding.status {
        FindingStatus::Open => format!("{}: ", finding.severity),
        FindingStatus::Disputed => format!("disputed {}: ", finding.severity),
    }
}

/// `path:line:column`, the column 1-based in bytes where it is known.
fn place(finding: &Finding) -> String {
    let location = &finding.location;
    let mut out = printable_path(&location.file);
    if let Some(line) = location.line {
        let _ = write!(out, ":{line}");
        if let Some((start, _)) = location.columns {
            let _ = write!(out, ":{}", u64::from(start) + 1);
        }
    }
    if location.side == Side::Old {
        out.push_str(" (before the change)");
    }
    out
}

fn write_finding(page: &mut Page<'_>, finding: &Finding) {
    let paint = paint_of(finding);
    page.wrapped(
        (paint, &lead(finding)),
        Paint::Strong,
        &prose(&finding.title),
    );
    let text = place(finding);
    let target = linked(
        page.options,
        &finding.location.file,
        finding.location.line,
        &text,
    );
    let line = format!("{} {target}", page.paint(Paint::Blue, " -->"));
    page.line(&line);
    if let Some(excerpt) = &finding.excerpt {
        excerpt::write(page, excerpt, &finding.location, paint);
    } else if let Some(evidence) = &finding.evidence {
        let line = clip(&format!("  | {}", prose(evidence)), page.width());
        page.line(&line);
    }
    let item = |page: &mut Page<'_>, label: &str, text: &str| {
        page.wrapped((Paint::Blue, label), Paint::Plain, text);
    };
    if !finding.rationale.trim().is_empty() {
        item(page, "  why: ", &prose(&finding.rationale));
    }
    if let Some(suggestion) = &finding.suggestion {
        item(page, "  fix: ", &prose(suggestion));
    }
    item(page, "   id: ", &origin(finding));
    if !finding.in_diff {
        item(page, " note: ", "outside the changed lines");
    }
    let checked = match finding.verification.status {
        VerificationStatus::Grounded | VerificationStatus::Verified => None,
        VerificationStatus::Uncertain => Some("a second look could not confirm it"),
        VerificationStatus::Unverified => Some("nothing checked it"),
    };
    if let Some(checked) = checked {
        let text = match &finding.verification.reason {
            Some(reason) => format!("{checked}: {}", prose(reason)),
            None => checked.to_owned(),
        };
        item(page, " note: ", &text);
    }
}

/// `1a2b… (secrets, rule private-key, by checks)`.
fn origin(finding: &Finding) -> String {
    let mut parts = vec![finding.category.to_string()];
    match &finding.rule {
        Some(rule) => parts.push(format!("rule {rule}")),
        None if finding.agents.is_empty() => {}
        None => {
            let agents: Vec<_> = finding.agents.iter().map(AgentId::as_str).collect();
            parts.push(format!("by {}", agents.join(" and ")));
        }
    }
    if let Some(scope) = &finding.scope {
        parts.push(format!("scope {scope}"));
    }
    format!("{} ({})", finding.id, parts.join(", "))
}

/// `text` as an OSC 8 hyperlink to the file, where that is wanted and possible.
fn linked(options: &TerminalOptions, path: &RepoPath, line: Option<u32>, text: &str) -> String {
    let (true, Some(root)) = (options.hyperlinks, &options.root) else {
        return text.to_owned();
    };
    let fragment = line.map_or_else(String::new, |line| format!("#{line}"));
    format!(
        "\x1b]8;;{}{fragment}\x1b\\{text}\x1b]8;;\x1b\\",
        file_uri(root, path)
    )
}

fn file_uri(root: &Path, path: &RepoPath) -> String {
    let root = root.as_os_str().as_encoded_bytes();
    let root = root.strip_suffix(b"/").unwrap_or(root);
    format!(
        "file://{}/{}",
        super::sarif::uri_path(root),
        super::sarif::uri_path(path.as_bytes())
    )
}

/// Names what nobody reviewed.
fn gaps(page: &mut Page<'_>, review: &Review) {
    let missing: Vec<&FileCoverage> = review
        .coverage
        .files
        .iter()
        .filter(|f| matches!(f.outcome, FileOutcome::Partial | FileOutcome::Missed))
        .collect();
    if missing.is_empty() {
        return;
    }
    let text = format!(
        "{} not fully reviewed",
        words::count(missing.len() as u64, "file")
    );
    page.wrapped((Paint::Yellow, "incomplete: "), Paint::Plain, &text);
    let listed = if page.options.verbosity == Verbosity::Verbose {
        missing.len()
    } else {
        LISTED_GAPS
    };
    for file in missing.iter().take(listed) {
        file_line(page, file);
    }
    if missing.len() > listed {
        let text = format!("and {} more; -v lists them", missing.len() - listed);
        page.wrapped((Paint::Plain, "  "), Paint::Faint, &text);
    }
}

/// `  path (modified, +3 -1): missed, reason`; the path stays in one piece.
fn file_line(page: &mut Page<'_>, file: &FileCoverage) {
    let mut path = printable_path(&file.path);
    if let Some(old) = &file.old_path {
        path = format!("{} => {path}", printable_path(old));
    }
    page.line(&format!("  {path}"));
    let reason = file
        .reason
        .as_deref()
        .map_or_else(String::new, |reason| format!(": {}", prose(reason)));
    let text = format!(
        "{} ({}, {}){reason}",
        file.outcome,
        words::status(file.status),
        words::size(file)
    );
    page.wrapped((Paint::Plain, "    "), Paint::Faint, &text);
}

fn notes(page: &mut Page<'_>, review: &Review) {
    for note in &review.notes {
        // What the hint at the end says better.
        if note.kind == NoteKind::ChecksOnly {
            continue;
        }
        let lead = if note.kind.is_gap() {
            (Paint::Yellow, "incomplete: ")
        } else {
            (Paint::Blue, "note: ")
        };
        page.wrapped(lead, Paint::Plain, &prose(&note.text));
    }
}

/// One line each for what is not shown.
fn folded(page: &mut Page<'_>, review: &Review) {
    let verbose = page.options.verbosity == Verbosity::Verbose;
    let mut hidden = Vec::new();
    if let Some((files, reasons)) = words::by_reason(review, FileOutcome::Filtered) {
        hidden.push(format!(
            "{} filtered ({reasons})",
            words::count(files, "file")
        ));
    }
    if !review.dropped.is_empty() {
        let mut stages = Vec::new();
        for stage in DropStage::ALL {
            let n = review.dropped.iter().filter(|d| d.stage == *stage).count();
            if n > 0 {
                stages.push(format!("{n} {}", stage_words(*stage)));
            }
        }
        hidden.push(format!(
            "{} dropped ({})",
            words::count(review.dropped.len() as u64, "finding"),
            stages.join(", ")
        ));
    }
    if !review.dismissed.is_empty() {
        let n = words::count(review.dismissed.len() as u64, "finding");
        hidden.push(format!("{n} dismissed"));
    }
    if hidden.is_empty() {
        return;
    }
    let more = if verbose { "" } else { "; -v lists them" };
    let text = format!("{}{more}", hidden.join("; "));
    page.wrapped((Paint::Faint, "not shown: "), Paint::Faint, &text);
}

/// A stage as a participle.
pub(super) fn stage_words(stage: DropStage) -> &'static str {
    match stage {
        DropStage::Grounding => "without a real location",
        DropStage::Retracted => "taken back",
        DropStage::Dedupe => "said twice",
        DropStage::Coordination => "merged or rejected by the coordinator",
        DropStage::Verification => "refuted",
        DropStage::Policy => "hidden by configuration",
        DropStage::Cap => "over the cap",
        DropStage::Suppression => "suppressed",
    }
}

/// The lists of `-v`.
fn details(page: &mut Page<'_>, review: &Review) {
    let filtered: Vec<_> = review
        .coverage
        .files
        .iter()
        .filter(|f| f.outcome == FileOutcome::Filtered)
        .collect();
    section(page, "Filtered", filtered.is_empty());
    for file in filtered {
        file_line(page, file);
    }
    section(page, "Dropped", review.dropped.is_empty());
    for dropped in &review.dropped {
        let what = format!("{}: {}", stage_words(dropped.stage), prose(&dropped.reason));
        listed(page, &dropped.finding, &what);
    }
    section(page, "Dismissed", review.dismissed.is_empty());
    for dismissed in &review.dismissed {
        let by = dismissed
            .by
            .as_deref()
            .map_or_else(String::new, |by| format!(" by {}", printable_line(by)));
        let reason = dismissed
            .reason
            .as_deref()
            .map_or_else(String::new, |why| format!(": {}", prose(why)));
        listed(page, &dismissed.finding, &format!("dismissed{by}{reason}"));
    }
    section(page, "Passes", review.passes.is_empty());
    for pass in &review.passes {
        let model = pass
            .model_answered
            .as_ref()
            .or(pass.model_configured.as_ref());
        let model = model.map_or_else(String::new, |m| format!(" with {m}"));
        let usage = words::usage(&pass.usage).map_or_else(String::new, |u| format!(", {u}"));
        let reason = pass
            .reason
            .as_deref()
            .map_or_else(String::new, |why| format!(": {}", prose(why)));
        let text = format!(
            "{} by {}{model}: {}, {}, {} ms{usage}{reason}",
            printable_line(pass.id.as_str()),
            printable_line(pass.engine.as_str()),
            pass.outcome,
            words::count(pass.files.len() as u64, "file"),
            pass.duration_ms,
        );
        page.wrapped((Paint::Plain, "  "), Paint::Plain, &text);
    }
    if let Some(usage) = words::usage(&review.usage) {
        page.wrapped(
            (Paint::Plain, "  "),
            Paint::Plain,
            &format!("in all {usage}"),
        );
    }
}

fn section(page: &mut Page<'_>, title: &str, empty: bool) {
    if !empty {
        page.gap();
        let title = page.paint(Paint::Strong, title);
        page.line(&title);
    }
}

fn listed(page: &mut Page<'_>, finding: &Finding, what: &str) {
    page.line(&format!("  {}", place(finding)));
    let title = prose(&finding.title);
    let text = format!("{} {}: {title}", finding.id, finding.severity);
    page.wrapped((Paint::Plain, "    "), Paint::Plain, &text);
    page.wrapped((Paint::Plain, "    "), Paint::Faint, what);
}

fn hints(page: &mut Page<'_>, review: &Review) {
    for note in review
        .notes
        .iter()
        .filter(|note| note.kind == NoteKind::ChecksOnly)
    {
        page.wrapped((Paint::Blue, "hint: "), Paint::Plain, &prose(&note.text));
    }
    if let Some(finding) = sorted(review).first().filter(|_| page.options.kept) {
        let text = format!(
            "`ecr explain {}` says where a finding comes from",
            finding.id
        );
        page.wrapped((Paint::Blue, "hint: "), Paint::Faint, &text);
    }
}

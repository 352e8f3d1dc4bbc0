//! A review as the comment keeps it: masked, and without what nobody is shown.

use std::collections::BTreeMap;

use super::super::markdown;
use super::super::prepared::Prepared;
use super::super::safe::{printable_line, printable_path};
use crate::model::{
    CoverageReceipt, DropStage, FileOutcome, Finding, NoteKind, PassKind, Review, Side,
};
use crate::state::comment::{StoredDropped, StoredFile, StoredFinding, StoredReview, Unlisted};
use crate::state::output::{self, CoverageTotals, Note};

/// Longer texts are not kept whatever room there is, characters. Enough is looked at for masking to see a credential that is cut later.
const MAX_TEXT: usize = 6_000;
/// Findings and files that are kept at most.
const MAX_ITEMS: usize = 20_000;

/// What the review itself does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// When it ended, seconds since 1970.
    pub at: i64,
    /// The version of ecr that made it.
    pub version: String,
    /// The hash of everything that it depends on, where it may be reused.
    pub inputs: Option<String>,
    /// True when the run was interrupted.
    pub interrupted: bool,
}

/// Makes the record of a review. Its dismissed findings go back among the others: the state's dismissals decide what is shown.
pub fn store(review: &Review, origin: Origin) -> StoredReview {
    let mut short = review.clone();
    for dismissed in std::mem::take(&mut short.dismissed) {
        short.findings.push(dismissed.finding);
    }
    shorten(&mut short);
    let review = Prepared::new(&short).review;
    let mut unlisted = Unlisted::default();
    for finding in review.findings.iter().skip(MAX_ITEMS) {
        count_unlisted(&mut unlisted, finding);
    }
    let mut by_stage: BTreeMap<DropStage, u64> = BTreeMap::new();
    for dropped in &review.dropped {
        *by_stage.entry(dropped.stage).or_default() += 1;
    }
    let totals = review.coverage.totals();
    let reviewing = review.passes.iter().filter(|pass| {
        matches!(
            pass.kind,
            PassKind::Review | PassKind::CrossCutting | PassKind::Checks
        )
    });
    let mut agents: Vec<String> = Vec::new();
    for pass in reviewing {
        push_new(&mut agents, pass.agent.to_string());
    }
    let mut models: Vec<String> = Vec::new();
    for pass in &review.passes {
        if let Some(model) = pass
            .model_answered
            .as_ref()
            .or(pass.model_configured.as_ref())
        {
            push_new(&mut models, model.to_string());
        }
    }
    StoredReview {
        at: origin.at,
        version: origin.version,
        head: review.input.head.as_ref().map(ToString::to_string),
        base: review.input.base.as_ref().map(ToString::to_string),
        base_name: review.input.base_name.as_deref().map(printable_line),
        inputs: origin.inputs.filter(|_| review.complete),
        decision: review.decision.into(),
        complete: review.complete,
        checks_only: review.notes.iter().any(|n| n.kind == NoteKind::ChecksOnly),
        interrupted: origin.interrupted
            || review.notes.iter().any(|n| n.kind == NoteKind::Interrupted),
        cut: false,
        summary: printable_line(&review.summary),
        totals: CoverageTotals {
            files: totals.files,
            reviewed_files: totals.reviewed_files,
            changed_lines: totals.changed_lines,
            reviewed_lines: totals.reviewed_lines,
        },
        filtered: filtered(&review.coverage),
        files: files(&review.coverage),
        findings: review
            .findings
            .iter()
            .take(MAX_ITEMS)
            .map(|f| finding(f, &review.coverage))
            .collect(),
        unlisted,
        dropped: review
            .dropped
            .iter()
            .take(200)
            .map(|d| StoredDropped {
                id: d.finding.id.to_string(),
                title: printable_line(&d.finding.title),
                place: place(&d.finding),
                stage: d.stage.into(),
                reason: printable_line(&d.reason),
            })
            .collect(),
        dropped_totals: by_stage.into_iter().map(|(s, n)| (s.into(), n)).collect(),
        notes: review
            .notes
            .iter()
            .map(|note| Note {
                kind: note.kind.as_str().to_owned(),
                text: printable_line(&note.text),
            })
            .collect(),
        agents,
        models,
        tool_calls: review.passes.iter().map(|p| u64::from(p.tool_calls)).sum(),
        usage: output::usage(&review.usage),
        total_ms: review.timing.total_ms,
        delta: None,
    }
}

fn push_new(list: &mut Vec<String>, item: String) {
    if list.len() < 40 && !list.contains(&item) {
        list.push(item);
    }
}

fn count_unlisted(unlisted: &mut Unlisted, finding: &Finding) {
    use crate::model::{FindingStatus, Severity};
    let slot = match (finding.status, finding.severity) {
        (FindingStatus::Disputed, _) => &mut unlisted.disputed,
        (FindingStatus::Open, Severity::Critical) => &mut unlisted.critical,
        (FindingStatus::Open, Severity::Warning) => &mut unlisted.warning,
        (FindingStatus::Open, Severity::Suggestion) => &mut unlisted.suggestion,
    };
    *slot += 1;
    unlisted.blocking += u64::from(crate::finding::requests_changes(finding));
}

/// Cuts what could be endless before it is masked and rendered.
fn shorten(review: &mut Review) {
    review.dropped.truncate(MAX_ITEMS);
    review.notes.truncate(200);
    cut(&mut review.summary);
    for note in &mut review.notes {
        cut(&mut note.text);
    }
    let findings = review.findings.iter_mut();
    for finding in findings.chain(review.dropped.iter_mut().map(|d| &mut d.finding)) {
        cut(&mut finding.title);
        cut(&mut finding.rationale);
        finding.suggestion.as_mut().map(cut);
        finding.evidence.as_mut().map(cut);
        finding.verification.reason.as_mut().map(cut);
        if let Some(excerpt) = &mut finding.excerpt {
            excerpt.lines.iter_mut().for_each(cut);
        }
    }
    for dropped in &mut review.dropped {
        cut(&mut dropped.reason);
    }
}

fn cut(text: &mut String) {
    if text.len() > MAX_TEXT {
        let mut at = MAX_TEXT;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
    }
}

fn filtered(coverage: &CoverageReceipt) -> Vec<(String, u64)> {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for file in &coverage.files {
        if file.outcome == FileOutcome::Filtered {
            let reason = file.reason.as_deref().unwrap_or("no reason given");
            *reasons.entry(printable_line(reason)).or_default() += 1;
        }
    }
    let mut list: Vec<_> = reasons.into_iter().collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if list.len() > 20 {
        let more = list.drain(20..).map(|(_, n)| n).sum();
        list.push(("other reasons".to_owned(), more));
    }
    list
}

/// Gaps first: they are what a reader has to see when there is no room for all.
fn files(coverage: &CoverageReceipt) -> Vec<StoredFile> {
    let mut files: Vec<StoredFile> = coverage
        .files
        .iter()
        .take(MAX_ITEMS)
        .map(|file| StoredFile {
            path: file.path.to_wire().0,
            added: file.added.into(),
            deleted: file.deleted.into(),
            outcome: file.outcome.into(),
            reason: file.reason.as_deref().map(printable_line),
        })
        .collect();
    files.sort_by_key(|file| match file.outcome {
        output::FileOutcome::Missed => 0,
        output::FileOutcome::Partial => 1,
        output::FileOutcome::Reviewed => 2,
        output::FileOutcome::Filtered => 3,
    });
    files
}

/// `src/a.rs:3`, for a person.
fn place(finding: &Finding) -> String {
    match finding.location.line {
        Some(line) => format!("{}:{line}", printable_path(&finding.location.file)),
        None => printable_path(&finding.location.file),
    }
}

fn finding(finding: &Finding, coverage: &CoverageReceipt) -> StoredFinding {
    let (file, escaped) = finding.location.file.to_wire();
    // A line of the old side has the old name; the diff goes by the new one.
    let renamed = (finding.location.side == Side::Old)
        .then(|| {
            let old = Some(&finding.location.file);
            coverage.files.iter().find(|f| f.old_path.as_ref() == old)
        })
        .flatten()
        .filter(|file| file.path != finding.location.file)
        .map(|file| {
            if escaped {
                file.path.percent_escaped()
            } else {
                file.path.to_wire().0
            }
        });
    StoredFinding {
        id: finding.id.to_string(),
        severity: finding.severity.into(),
        category: finding.category.into(),
        status: finding.status.into(),
        file,
        escaped,
        renamed,
        line: finding.location.line,
        end_line: finding.location.end_line,
        side: finding.location.side.into(),
        in_diff: finding.in_diff,
        title: printable_line(&finding.title),
        rationale: printable_line(&finding.rationale),
        suggestion: finding
            .suggestion
            .as_deref()
            .map(printable_line)
            .unwrap_or_default(),
        evidence: markdown::source(finding).unwrap_or_default(),
        agents: finding.agents.iter().map(ToString::to_string).collect(),
        scope: finding.scope.as_ref().map(ToString::to_string),
        rule: finding.rule.as_ref().map(ToString::to_string),
        verification: finding.verification.status.into(),
        doubt: finding
            .verification
            .reason
            .as_deref()
            .map(printable_line)
            .unwrap_or_default(),
    }
}

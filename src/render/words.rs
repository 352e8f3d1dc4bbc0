//! The words that several formats share: verdict, tally, receipt. None of them praises what nobody reviewed.

use std::collections::BTreeMap;

use super::safe::printable_line;
use crate::finding::Tally;
use crate::model::{
    ChangeStatus, Decision, FileCoverage, FileOutcome, Finding, InputInfo, InputKind, RepoPath,
    Review, Usage, UsageConfidence,
};

/// The verdict in one line.
pub(super) fn verdict(review: &Review) -> &'static str {
    let reviewed = review.coverage.totals().reviewed_lines > 0;
    verdict_of(review.decision, review.complete, reviewed)
}

/// The same by its facts; `reviewed` is true when anything was.
pub(super) fn verdict_of(decision: Decision, complete: bool, reviewed: bool) -> &'static str {
    match (decision, complete) {
        (Decision::Approve, true) => "Approved: nothing found",
        (Decision::ApproveWithComments, true) => "Approved with comments",
        (Decision::RequestChanges, true) => "Changes requested",
        (Decision::RequestChanges, false) => {
            "Changes requested, and part of the change was not reviewed"
        }
        (Decision::ChecksOnly, true) => "Built-in checks only: no model reviewed this change",
        (Decision::ChecksOnly, false) => {
            "Built-in checks only, and not on all of the change: no model reviewed it"
        }
        (Decision::Skipped, _) => "Nothing to review",
        (Decision::Approve | Decision::ApproveWithComments | Decision::CouldNotComplete, _) => {
            if reviewed {
                "Partly reviewed: part of the change was not reviewed"
            } else {
                "Not reviewed: this says nothing about the code"
            }
        }
    }
}

/// `1 file`, `2 files`.
pub(super) fn count(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("{n} {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// `2 critical, 1 warning, 1 disputed`, or `no findings`.
pub(super) fn tally(review: &Review) -> String {
    tally_of(Tally::of(&review.findings))
}

/// The same from counts.
pub(super) fn tally_of(tally: Tally) -> String {
    let mut parts = Vec::new();
    if tally.critical > 0 {
        parts.push(format!("{} critical", tally.critical));
    }
    for (n, noun) in [(tally.warning, "warning"), (tally.suggestion, "suggestion")] {
        if n > 0 {
            parts.push(count(n, noun));
        }
    }
    if tally.disputed > 0 {
        parts.push(format!("{} disputed", tally.disputed));
    }
    if parts.is_empty() {
        "no findings".to_owned()
    } else {
        parts.join(", ")
    }
}

/// `14 of 16 files, 612 of 640 lines`.
pub(super) fn receipt(review: &Review) -> String {
    let totals = review.coverage.totals();
    format!(
        "{} of {}, {} of {}",
        totals.reviewed_files,
        count(totals.files, "file"),
        totals.reviewed_lines,
        count(totals.changed_lines, "line")
    )
}

/// What was compared, in one line.
pub(super) fn input(info: &InputInfo) -> String {
    let base = match (&info.base_name, &info.base) {
        (Some(name), Some(id)) => Some(format!("{} ({})", printable_line(name), id.short())),
        (Some(name), None) => Some(printable_line(name)),
        (None, Some(id)) => Some(id.short().to_owned()),
        (None, None) => None,
    };
    let what = match info.kind {
        InputKind::WorkingTree => "working tree".to_owned(),
        InputKind::Staged => "staged changes".to_owned(),
        InputKind::Patch => "patch".to_owned(),
        InputKind::Range => info
            .head
            .as_ref()
            .map_or_else(|| "range".to_owned(), |head| head.short().to_owned()),
        InputKind::PullRequest => {
            let repo = info.repo.as_deref().map(printable_line).unwrap_or_default();
            match info.pr {
                Some(pr) => format!("pull request {repo}#{pr}"),
                None => format!("pull request {repo}"),
            }
        }
    };
    match base {
        Some(base) => format!("{what} against {base}"),
        None => what,
    }
}

/// One word a status, for lists.
pub(super) fn status(status: ChangeStatus) -> &'static str {
    match status {
        ChangeStatus::TypeChanged => "type changed",
        other => other.as_str(),
    }
}

/// `+3 -1`, or `binary`.
pub(super) fn size(file: &FileCoverage) -> String {
    if file.binary {
        "binary".to_owned()
    } else {
        format!("+{} -{}", file.added, file.deleted)
    }
}

/// How many files have `outcome`, and the reasons with their counts: `3 (2 lockfile, 1 generated)`.
pub(super) fn by_reason(review: &Review, outcome: FileOutcome) -> Option<(u64, String)> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for file in review
        .coverage
        .files
        .iter()
        .filter(|f| f.outcome == outcome)
    {
        *reasons
            .entry(file.reason.as_deref().unwrap_or("no reason given"))
            .or_default() += 1;
    }
    let total: u64 = reasons.values().sum();
    if total == 0 {
        return None;
    }
    let mut list: Vec<_> = reasons.into_iter().collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let more = list.len().saturating_sub(4);
    let mut parts: Vec<String> = list
        .iter()
        .take(4)
        .map(|(reason, n)| format!("{n} {}", printable_line(reason)))
        .collect();
    if more > 0 {
        parts.push(format!("{} more", count(more as u64, "reason")));
    }
    Some((total, parts.join(", ")))
}

/// Tokens and money in one line; nothing when no model was called.
pub(super) fn usage(usage: &Usage) -> Option<String> {
    let Some(tokens) = usage.tokens() else {
        return Some("usage not measured".to_owned());
    };
    if *usage == Usage::NONE {
        return None;
    }
    let about = match usage.confidence() {
        UsageConfidence::Exact => "",
        UsageConfidence::Estimated | UsageConfidence::Unavailable => "about ",
    };
    let input = tokens
        .input
        .saturating_add(tokens.cache_read)
        .saturating_add(tokens.cache_write);
    let money = match usage.cost() {
        Some(cost) => format!(", US$ {:.4}", cost.usd()),
        None => ", cost unknown".to_owned(),
    };
    Some(format!(
        "{about}{input} tokens in, {} out{money}",
        tokens.output
    ))
}

/// What a machine output calls the rule of a finding: the built-in rule, or the kind of claim.
pub(super) fn rule_id(finding: &Finding) -> String {
    match &finding.rule {
        Some(rule) => format!("ecr/{rule}"),
        None => format!("ecr/review-{}", finding.category),
    }
}

/// Title, consequence and remedy of a finding as one plain text.
pub(super) fn message(finding: &Finding) -> String {
    let mut out = printable_line(&finding.title);
    for part in [Some(&finding.rationale), finding.suggestion.as_ref()]
        .into_iter()
        .flatten()
    {
        let part = printable_line(part);
        if !part.is_empty() {
            out.push_str("\n\n");
            out.push_str(&part);
        }
    }
    out
}

/// What a run with gaps says about itself: the verdict, the receipt and why.
pub(super) fn incomplete(review: &Review) -> String {
    let mut out = format!("{}. Reviewed {}.", verdict(review), receipt(review));
    for note in review
        .notes
        .iter()
        .filter(|note| note.kind.is_gap())
        .take(5)
    {
        out.push(' ');
        out.push_str(&printable_line(&note.text));
    }
    out
}

/// The file that stands for a gap where a format wants a location: the first one not fully reviewed.
pub(super) fn gap_path(review: &Review) -> Option<&RepoPath> {
    let files = &review.coverage.files;
    files
        .iter()
        .find(|f| matches!(f.outcome, FileOutcome::Missed | FileOutcome::Partial))
        .or(files.first())
        .map(|file| &file.path)
}

//! What goes when there is no room for all of it, in order.

use std::collections::BTreeSet;

use crate::finding::blocks;
use crate::model::{FindingStatus, Severity};
use crate::state::comment::{CommentState, StoredFinding, StoredReview, Unlisted};

/// How much of everything is kept. Texts in characters; of three values the first is for suggestions, the last for critical findings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// 0 leaves the id only.
    pub(super) title: [usize; 3],
    pub(super) why: [usize; 3],
    pub(super) fix: [usize; 3],
    pub(super) evidence: [usize; 3],
    /// A dismissal's reason.
    pub(super) reason: usize,
    /// A dismissal's author and time.
    pub(super) who: bool,
    /// Findings listed as dropped, dismissed or fixed.
    pub(super) lists: usize,
    pub(super) files: usize,
    pub(super) notes: usize,
    /// Findings kept at all, the most severe ones.
    pub(super) findings: usize,
    /// Dismissals kept at all.
    pub(super) records: usize,
}

/// Room for everything that a person would read.
pub(super) const FULL: Budget = Budget {
    title: [200; 3],
    why: [1500; 3],
    fix: [800; 3],
    evidence: [1600; 3],
    reason: 200,
    who: true,
    lists: 100,
    files: 100,
    notes: 40,
    findings: 20_000,
    records: 20_000,
};

/// Reasons go first, then the texts of findings by severity, and their ids last.
#[rustfmt::skip]
pub(super) const LADDER: &[Budget] = &[
    FULL,
    Budget { reason: 60, lists: 40, files: 60, ..FULL },
    Budget { reason: 0, lists: 20, files: 40, notes: 20, ..FULL },
    Budget { why: [300, 1500, 1500], fix: [0, 800, 800], evidence: [0, 1600, 1600], ..SHORT },
    Budget { title: [120, 200, 200], why: [0, 600, 1500], fix: [0, 300, 800], evidence: [0, 300, 1600], ..SHORT },
    Budget { title: [120, 160, 200], why: [0, 300, 900], fix: [0, 0, 400], evidence: [0, 0, 600], ..SHORT },
    Budget { title: [80, 160, 200], why: [0, 120, 600], fix: [0, 0, 200], evidence: [0, 0, 300], ..SHORT },
    Budget { title: [80, 120, 200], why: [0, 0, 400], fix: [0, 0, 0], evidence: [0, 0, 200], ..SHORT },
    Budget { title: [60, 100, 160], why: [0, 0, 250], ..BARE },
    Budget { title: [40, 80, 120], why: [0, 0, 120], ..BARE },
    Budget { title: [0, 60, 120], ..BARE },
    Budget { title: [0, 40, 80], ..TIGHT },
    Budget { title: [0, 0, 80], ..TIGHT },
    Budget { title: [0, 0, 40], ..TIGHT },
    Budget { ..TIGHT },
    Budget { findings: 1_500, records: 3_000, ..TIGHT },
    Budget { findings: 1_000, records: 2_000, ..TIGHT },
    Budget { findings: 500, records: 2_000, ..TIGHT },
    Budget { findings: 250, records: 1_000, ..TIGHT },
    Budget { findings: 50, records: 500, lists: 0, files: 0, notes: 3, ..TIGHT },
    Budget { findings: 0, records: 100, lists: 0, files: 0, notes: 1, ..TIGHT },
];

const SHORT: Budget = Budget {
    reason: 0,
    lists: 10,
    files: 20,
    notes: 10,
    ..FULL
};
const BARE: Budget = Budget {
    why: [0; 3],
    fix: [0; 3],
    evidence: [0; 3],
    ..SHORT
};
const TIGHT: Budget = Budget {
    title: [0; 3],
    who: false,
    lists: 5,
    files: 10,
    notes: 5,
    ..BARE
};

/// At most `limit` characters; what was cut ends in an ellipsis. Cutting again to the same length changes nothing.
fn clip(text: &mut String, limit: usize) {
    if limit == 0 {
        text.clear();
        return;
    }
    if text.chars().nth(limit).is_none() {
        return;
    }
    let at = text
        .char_indices()
        .nth(limit - 1)
        .map_or(text.len(), |(at, _)| at);
    text.truncate(at);
    text.push('\u{2026}');
}

/// The state within `budget`. `cuts` says whether this is a loss that a later run has to know of.
pub(super) fn shrink(state: &CommentState, budget: &Budget, cuts: bool) -> CommentState {
    let mut state = state.clone();
    if let Some(review) = &mut state.review {
        shrink_review(review, budget);
        review.cut |= cuts;
    }
    for dismissal in state.dismissals.iter_mut() {
        if let Some(reason) = &mut dismissal.reason {
            clip(reason, budget.reason);
        }
        if budget.reason == 0 {
            dismissal.reason = None;
        }
        if !budget.who {
            dismissal.by = None;
            dismissal.at = 0;
        }
    }
    let shown: BTreeSet<&str> = state
        .review
        .iter()
        .flat_map(|review| review.findings.iter().map(|f| f.id.as_str()))
        .collect();
    state
        .dismissals
        .limit(budget.records, |id| shown.contains(id.as_str()));
    state
}

fn shrink_review(review: &mut StoredReview, budget: &Budget) {
    clip(&mut review.summary, 1000);
    if let Some(name) = &mut review.base_name {
        clip(name, 100);
    }
    for name in review.agents.iter_mut().chain(&mut review.models) {
        clip(name, 80);
    }
    review.agents.truncate(budget.notes.max(5));
    review.models.truncate(budget.notes.max(5));
    if review.findings.len() > budget.findings {
        // The list is in order, but dismissed ones were put behind it.
        review
            .findings
            .sort_by_key(|f| std::cmp::Reverse(Severity::from(f.severity)));
        for finding in review.findings.drain(budget.findings..) {
            count(&mut review.unlisted, &finding);
        }
    }
    for finding in &mut review.findings {
        shrink_finding(finding, budget);
    }
    review.dropped.truncate(budget.lists);
    for dropped in &mut review.dropped {
        clip(&mut dropped.title, 120);
        clip(&mut dropped.place, 120);
        clip(&mut dropped.reason, 200);
    }
    review.files.truncate(budget.files);
    review.files.retain(|file| file.path.len() <= 300);
    for file in &mut review.files {
        if let Some(reason) = &mut file.reason {
            clip(reason, 100);
        }
    }
    for (reason, _) in &mut review.filtered {
        clip(reason, 60);
    }
    review.notes.truncate(budget.notes);
    for note in &mut review.notes {
        clip(&mut note.text, 300);
    }
    if let Some(delta) = &mut review.delta {
        delta.fixed.truncate(budget.lists);
        for (_, title) in &mut delta.fixed {
            clip(title, 120);
        }
        if delta.new.len() > budget.lists * 5 {
            delta.new.clear();
        }
    }
}

fn shrink_finding(finding: &mut StoredFinding, budget: &Budget) {
    let at = match Severity::from(finding.severity) {
        Severity::Suggestion => 0,
        Severity::Warning => 1,
        Severity::Critical => 2,
    };
    clip(&mut finding.title, budget.title[at]);
    clip(&mut finding.rationale, budget.why[at]);
    clip(&mut finding.suggestion, budget.fix[at]);
    clip(&mut finding.evidence, budget.evidence[at]);
    clip(
        &mut finding.doubt,
        if budget.why[at] == 0 { 0 } else { 200 },
    );
    finding.agents.truncate(5);
    let too_long = finding.file.len() > 400;
    if finding.title.is_empty() || too_long {
        finding.file.clear();
        finding.escaped = false;
        finding.renamed = None;
        finding.line = None;
        finding.end_line = None;
        finding.in_diff = false;
    }
    if finding.title.is_empty() {
        finding.agents.clear();
        finding.rule = None;
        finding.scope = None;
    }
}

fn count(unlisted: &mut Unlisted, finding: &StoredFinding) {
    let (status, severity) = (finding.status.into(), finding.severity.into());
    let slot = match (status, severity) {
        (FindingStatus::Disputed, _) => &mut unlisted.disputed,
        (FindingStatus::Open, Severity::Critical) => &mut unlisted.critical,
        (FindingStatus::Open, Severity::Warning) => &mut unlisted.warning,
        (FindingStatus::Open, Severity::Suggestion) => &mut unlisted.suggestion,
    };
    *slot += 1;
    unlisted.blocking += u64::from(blocks(status, severity, finding.category.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_is_stable() {
        let mut text = "žluťoučký kůň".to_owned();
        clip(&mut text, 5);
        assert_eq!(text, "žluť\u{2026}");
        clip(&mut text, 5);
        assert_eq!(text, "žluť\u{2026}");
        clip(&mut text, 0);
        assert_eq!(text, "");
    }

    #[test]
    fn every_step_takes_and_none_gives_back() {
        for pair in LADDER.windows(2) {
            for at in 0..3 {
                assert!(pair[1].title[at] <= pair[0].title[at]);
                assert!(pair[1].why[at] <= pair[0].why[at]);
                assert!(pair[1].evidence[at] <= pair[0].evidence[at]);
            }
            assert!(pair[1].reason <= pair[0].reason && pair[1].lists <= pair[0].lists);
            assert!(pair[1].findings <= pair[0].findings && pair[1].records <= pair[0].records);
        }
    }
}

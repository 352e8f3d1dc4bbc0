//! What a stored review and the dismissals amount to.

use crate::finding::{Remaining, SummaryFacts, Tally, blocks, decide_again, summary};
use crate::model::{self, Fingerprint};
use crate::state::comment::{Dismissal, Dismissals, Effect, StoredFinding, StoredReview};

/// A finding with what became of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) finding: &'a StoredFinding,
    pub(super) effect: Effect,
    pub(super) dismissal: Option<&'a Dismissal>,
}

impl Judged<'_> {
    pub(super) fn stands(&self) -> bool {
        self.effect != Effect::Dismissed
    }

    /// Stays in its section although it is dismissed.
    pub(super) fn stays_visible(&self) -> bool {
        model::Severity::from(self.finding.severity) == model::Severity::Critical
            || model::Category::from(self.finding.category) == model::Category::Secrets
    }
}

/// The verdict as it is now.
#[derive(Debug)]
pub(super) struct Derived<'a> {
    pub(super) findings: Vec<Judged<'a>>,
    pub(super) decision: model::Decision,
    pub(super) summary: String,
    /// What stands.
    pub(super) tally: Tally,
    pub(super) dismissed: u64,
    /// Active dismissals of findings that are not in this review.
    pub(super) idle: u64,
}

pub(super) fn derive<'a>(review: &'a StoredReview, dismissals: &'a Dismissals) -> Derived<'a> {
    let findings: Vec<Judged<'_>> = review
        .findings
        .iter()
        .map(|finding| {
            let id = Fingerprint::new(&finding.id).ok();
            let dismissal = id.as_ref().and_then(|id| dismissals.active(id));
            let effect = id.as_ref().map_or(Effect::None, |id| {
                dismissals.effect(id, finding.severity.into(), finding.category.into())
            });
            Judged {
                finding,
                effect,
                dismissal,
            }
        })
        .collect();
    let unlisted = review.unlisted;
    let mut tally = Tally {
        critical: unlisted.critical,
        warning: unlisted.warning,
        suggestion: unlisted.suggestion,
        disputed: unlisted.disputed,
    };
    let mut blocking = unlisted.blocking > 0;
    let mut dismissed = 0;
    for judged in &findings {
        let finding = judged.finding;
        if !judged.stands() {
            dismissed += 1;
            continue;
        }
        tally.add(finding.severity.into(), finding.status.into());
        blocking |= blocks(
            finding.status.into(),
            finding.severity.into(),
            finding.category.into(),
        );
    }
    let any = tally != Tally::default();
    let decided = model::Decision::from(review.decision);
    let (decision, text) = if dismissed == 0 {
        (decided, review.summary.clone())
    } else {
        let decision = decide_again(
            decided,
            Remaining {
                blocking,
                any,
                complete: review.complete,
                checks_only: review.checks_only,
            },
        );
        let totals = review.totals;
        let hidden = [
            model::DropStage::Policy,
            model::DropStage::Cap,
            model::DropStage::Suppression,
        ];
        let hidden = review
            .dropped_totals
            .iter()
            .filter(|(stage, _)| hidden.contains(&(*stage).into()))
            .map(|(_, n)| n)
            .sum::<u64>();
        let text = summary(&SummaryFacts {
            decision,
            complete: review.complete,
            interrupted: review.interrupted,
            tally,
            totals: model::CoverageTotals {
                files: totals.files,
                reviewed_files: totals.reviewed_files,
                changed_lines: totals.changed_lines,
                reviewed_lines: totals.reviewed_lines,
            },
            filtered: review.filtered_total(),
            hidden: usize::try_from(hidden).unwrap_or(usize::MAX),
        });
        let verb = if dismissed == 1 {
            "finding is"
        } else {
            "findings are"
        };
        (decision, format!("{text} {dismissed} {verb} dismissed."))
    };
    let active = dismissals.iter().filter(|d| d.active).count() as u64;
    let matched = findings.iter().filter(|f| f.dismissal.is_some()).count() as u64;
    Derived {
        findings,
        decision,
        summary: text,
        tally,
        dismissed,
        idle: active.saturating_sub(matched),
    }
}

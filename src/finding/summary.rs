//! The summary: one paragraph made from the facts, never from a model's mood.

use crate::model::{CoverageTotals, Decision, Finding, FindingStatus, Severity};

/// How many findings stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Open critical ones.
    pub critical: u64,
    /// Open warnings.
    pub warning: u64,
    /// Open suggestions.
    pub suggestion: u64,
    /// Disputed ones of any severity.
    pub disputed: u64,
}

impl Tally {
    /// Counts one finding.
    pub fn add(&mut self, severity: Severity, status: FindingStatus) {
        let slot = match (status, severity) {
            (FindingStatus::Disputed, _) => &mut self.disputed,
            (FindingStatus::Open, Severity::Critical) => &mut self.critical,
            (FindingStatus::Open, Severity::Warning) => &mut self.warning,
            (FindingStatus::Open, Severity::Suggestion) => &mut self.suggestion,
        };
        *slot += 1;
    }

    /// Counts `findings`.
    pub fn of<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut tally = Self::default();
        for finding in findings {
            tally.add(finding.severity, finding.status);
        }
        tally
    }
}

/// What the summary is made from.
#[derive(Debug, Clone, Copy)]
pub struct SummaryFacts {
    /// The verdict.
    pub decision: Decision,
    /// True when nothing is missing.
    pub complete: bool,
    /// True when the run was interrupted.
    pub interrupted: bool,
    /// The findings that are shown.
    pub tally: Tally,
    /// The sums of the receipt.
    pub totals: CoverageTotals,
    /// Files hidden from the reviewers on purpose.
    pub filtered: u64,
    /// Findings that the configuration or an ignore directive hides.
    pub hidden: usize,
}

fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn tally(tally: Tally) -> String {
    let parts: Vec<String> = [
        (tally.critical, "critical finding", "critical findings"),
        (tally.warning, "warning", "warnings"),
        (tally.suggestion, "suggestion", "suggestions"),
        (tally.disputed, "disputed finding", "disputed findings"),
    ]
    .into_iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(n, one, many)| count(n, one, many))
    .collect();
    match parts.split_last() {
        None => "no findings".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// The paragraph.
pub fn summary(facts: &SummaryFacts) -> String {
    if facts.decision == Decision::Skipped {
        return "There was nothing to review.".to_owned();
    }
    let totals = facts.totals;
    let covered = format!(
        "{} of {} and {} of {}",
        totals.reviewed_files,
        count(totals.files, "file", "files"),
        totals.reviewed_lines,
        count(totals.changed_lines, "changed line", "changed lines"),
    );
    let found = tally(facts.tally);
    let mut text = match facts.decision {
        Decision::CouldNotComplete if facts.interrupted => {
            format!("The review was interrupted after {covered}; this says nothing about the rest: {found} so far.")
        }
        Decision::CouldNotComplete => {
            format!("The review could not be completed ({covered} reviewed); this says nothing about the code: {found} so far.")
        }
        Decision::ChecksOnly => format!(
            "No model reviewed this change. The built-in checks covered {covered}: {found}, none of which blocks."
        )
        .replace("no findings, none of which blocks", "no findings"),
        _ => format!("Reviewed {covered}: {found}."),
    };
    if facts.filtered > 0 {
        let verb = if facts.filtered == 1 { "was" } else { "were" };
        let files = count(facts.filtered, "file", "files");
        text = format!("{text} {files} {verb} left out on purpose.");
    }
    if facts.hidden > 0 {
        let verb = if facts.hidden == 1 { "is" } else { "are" };
        let findings = count(facts.hidden as u64, "more finding", "more findings");
        text = format!("{text} {findings} {verb} not shown by policy or by an ignore directive.");
    }
    if !facts.complete && facts.decision != Decision::CouldNotComplete {
        text.push_str(" The review is incomplete; the notes say what is missing.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::policy::tests::finding;
    use crate::model::Category;

    const FACTS: SummaryFacts = SummaryFacts {
        decision: Decision::Approve,
        complete: true,
        interrupted: false,
        tally: Tally {
            critical: 0,
            warning: 0,
            suggestion: 0,
            disputed: 0,
        },
        totals: CoverageTotals {
            files: 16,
            reviewed_files: 14,
            changed_lines: 640,
            reviewed_lines: 612,
        },
        filtered: 2,
        hidden: 0,
    };

    #[test]
    fn says_what_is_known() {
        assert_eq!(
            summary(&FACTS),
            "Reviewed 14 of 16 files and 612 of 640 changed lines: no findings. 2 files were left out on purpose."
        );
        let standing = [
            finding(Severity::Critical, Category::Quality, 1),
            finding(Severity::Warning, Category::Quality, 2),
            finding(Severity::Warning, Category::Quality, 3),
        ];
        let text = summary(&SummaryFacts {
            decision: Decision::RequestChanges,
            tally: Tally::of(&standing),
            complete: false,
            hidden: 1,
            ..FACTS
        });
        assert!(
            text.contains(": 1 critical finding and 2 warnings."),
            "{text}"
        );
        assert!(text.contains("1 more finding is not shown"), "{text}");
        assert!(text.ends_with("what is missing."), "{text}");
    }

    #[test]
    fn failed_and_checks_only_runs_never_sound_like_approvals() {
        for decision in [Decision::CouldNotComplete, Decision::ChecksOnly] {
            let text = summary(&SummaryFacts { decision, ..FACTS });
            assert!(!text.to_lowercase().contains("approv"), "{text}");
            assert!(
                text.starts_with("The review could not") || text.starts_with("No model reviewed"),
                "{text}"
            );
        }
    }
}

//! The verdict: every rule that decides is here and nowhere else.
//!
//! @ref LLP 0006#decision — the rules of the verdict

use crate::model::{Category, Decision, Finding, FindingStatus, Severity};

/// What the verdict is made from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The findings that are shown.
    pub standing: &'a [Finding],
    /// Changed files.
    pub files: usize,
    /// Model passes that were planned, whether or not they could start.
    pub models_planned: usize,
    /// Model passes that ran to their end.
    pub models_completed: usize,
    /// Passes of the built-in checks that ran to their end.
    pub checks_completed: usize,
    /// True when every unfiltered changed line was reviewed by every agent assigned to it.
    pub complete: bool,
    /// True when the run was interrupted.
    pub interrupted: bool,
}

/// True for a finding that blocks: an open critical one, or an open leaked secret that its reporter
/// is sure enough of to warn about.
pub fn requests_changes(finding: &Finding) -> bool {
    finding.status == FindingStatus::Open
        && (finding.severity == Severity::Critical
            || (finding.category == Category::Secrets && finding.severity >= Severity::Warning))
}

/// The decision on a run. A run that failed, was cut or interrupted is never an approval.
pub fn decide(facts: &Facts<'_>) -> Decision {
    if facts.standing.iter().any(requests_changes) {
        return Decision::RequestChanges;
    }
    if facts.files == 0 && !facts.interrupted {
        return Decision::Skipped;
    }
    let tried_models = facts.models_planned > 0;
    let completed = if tried_models {
        facts.models_completed
    } else {
        facts.checks_completed
    };
    if facts.interrupted || completed == 0 {
        return Decision::CouldNotComplete;
    }
    if !tried_models {
        return Decision::ChecksOnly;
    }
    if facts.complete && facts.standing.is_empty() {
        Decision::Approve
    } else {
        Decision::ApproveWithComments
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::policy::tests::finding;

    const WHOLE: Facts<'static> = Facts {
        standing: &[],
        files: 2,
        models_planned: 3,
        models_completed: 3,
        checks_completed: 1,
        complete: true,
        interrupted: false,
    };

    #[test]
    fn verdicts_without_findings() {
        let checks_only = Facts {
            models_planned: 0,
            models_completed: 0,
            ..WHOLE
        };
        for (facts, expected) in [
            (WHOLE, Decision::Approve),
            (
                Facts {
                    complete: false,
                    ..WHOLE
                },
                Decision::ApproveWithComments,
            ),
            (
                Facts {
                    interrupted: true,
                    ..WHOLE
                },
                Decision::CouldNotComplete,
            ),
            (
                Facts {
                    models_completed: 0,
                    ..WHOLE
                },
                Decision::CouldNotComplete,
            ),
            (checks_only, Decision::ChecksOnly),
            (
                Facts {
                    checks_completed: 0,
                    ..checks_only
                },
                Decision::CouldNotComplete,
            ),
            (
                Facts {
                    files: 0,
                    ..checks_only
                },
                Decision::Skipped,
            ),
        ] {
            assert_eq!(decide(&facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn only_open_criticals_and_leaked_secrets_request_changes() {
        use Category::{Quality, Secrets, Security};
        use Severity::{Critical, Suggestion, Warning};
        for (severity, category, expected) in [
            (Critical, Quality, Decision::RequestChanges),
            (Warning, Secrets, Decision::RequestChanges),
            (Suggestion, Secrets, Decision::ApproveWithComments),
            (Warning, Security, Decision::ApproveWithComments),
        ] {
            let standing = [finding(severity, category, 1)];
            let facts = Facts {
                standing: &standing,
                ..WHOLE
            };
            assert_eq!(decide(&facts), expected, "{severity} {category}");
        }
        let mut disputed = finding(Critical, Quality, 1);
        disputed.status = FindingStatus::Disputed;
        let facts = Facts {
            standing: &[disputed],
            ..WHOLE
        };
        assert_eq!(decide(&facts), Decision::ApproveWithComments);
    }

    #[test]
    fn a_standing_critical_decides_even_when_the_run_failed() {
        let standing = [finding(Severity::Critical, Category::Quality, 1)];
        let facts = Facts {
            standing: &standing,
            models_completed: 0,
            complete: false,
            interrupted: true,
            ..WHOLE
        };
        assert_eq!(decide(&facts), Decision::RequestChanges);
    }
}

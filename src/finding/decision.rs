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
    blocks(finding.status, finding.severity, finding.category)
}

/// The same by the facts that decide.
pub fn blocks(status: FindingStatus, severity: Severity, category: Category) -> bool {
    status == FindingStatus::Open
        && (severity == Severity::Critical
            || (category == Category::Secrets && severity >= Severity::Warning))
}

/// What is left of a review after dismissals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// A finding that requests changes stands.
    pub blocking: bool,
    /// Any finding stands.
    pub any: bool,
    /// Nothing is missing from the review.
    pub complete: bool,
    /// No model reviewed.
    pub checks_only: bool,
}

/// The decision on a review that was decided before, now that some findings are dismissed. Dismissing takes a request for changes back;
/// it never makes an approval of a review that was none.
pub fn decide_again(before: Decision, left: Remaining) -> Decision {
    match before {
        Decision::RequestChanges | Decision::Approve | Decision::ApproveWithComments => {
            if left.blocking {
                Decision::RequestChanges
            } else if !left.complete {
                Decision::CouldNotComplete
            } else if left.checks_only {
                Decision::ChecksOnly
            } else if left.any {
                Decision::ApproveWithComments
            } else {
                Decision::Approve
            }
        }
        Decision::CouldNotComplete | Decision::ChecksOnly | Decision::Skipped => {
            if left.blocking {
                Decision::RequestChanges
            } else {
                before
            }
        }
    }
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
    fn dismissing_takes_back_a_request_and_approves_nothing_unreviewed() {
        use Decision::{
            Approve, ApproveWithComments, ChecksOnly, CouldNotComplete, RequestChanges,
        };
        let left = Remaining {
            blocking: false,
            any: true,
            complete: true,
            checks_only: false,
        };
        let none = Remaining { any: false, ..left };
        let cut = Remaining {
            complete: false,
            ..none
        };
        let checks = Remaining {
            checks_only: true,
            ..none
        };
        let blocking = Remaining {
            blocking: true,
            ..left
        };
        for (before, left, expected) in [
            (RequestChanges, none, Approve),
            (RequestChanges, left, ApproveWithComments),
            (RequestChanges, cut, CouldNotComplete),
            (RequestChanges, checks, ChecksOnly),
            (RequestChanges, blocking, RequestChanges),
            (ApproveWithComments, none, Approve),
            (CouldNotComplete, none, CouldNotComplete),
            (CouldNotComplete, blocking, RequestChanges),
            (Decision::Skipped, none, Decision::Skipped),
        ] {
            assert_eq!(decide_again(before, left), expected, "{before} {left:?}");
        }
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

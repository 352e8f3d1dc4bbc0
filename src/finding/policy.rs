//! What the configuration hides, and the order of what is left.

use std::cmp::Reverse;

use crate::model::{Category, DropStage, DroppedFinding, Finding, Severity, VerificationStatus};

/// What the configuration wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Suggestions are shown.
    pub include_suggestions: bool,
    /// How many findings are shown at most; critical ones and secrets always are.
    pub max_findings: Option<usize>,
}

/// A critical finding or a secret never disappears by configuration.
fn always_shown(finding: &Finding) -> bool {
    finding.severity == Severity::Critical || finding.category == Category::Secrets
}

fn confidence(finding: &Finding) -> u8 {
    match finding.verification.status {
        VerificationStatus::Verified => 3,
        VerificationStatus::Grounded => 2,
        VerificationStatus::Uncertain => 1,
        VerificationStatus::Unverified => 0,
    }
}

/// Sorts by severity (greatest first), path, line, rule.
pub fn order(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        (
            Reverse(a.severity),
            &a.location.file,
            a.location.line,
            &a.rule,
        )
            .cmp(&(
                Reverse(b.severity),
                &b.location.file,
                b.location.line,
                &b.rule,
            ))
    });
}

impl Policy {
    /// Applies itself: what is shown, in order, and what is not, with the stage and reason.
    pub fn apply(&self, mut findings: Vec<Finding>) -> (Vec<Finding>, Vec<DroppedFinding>) {
        order(&mut findings);
        let mut dropped = Vec::new();
        let mut drop = |finding, stage, reason: String| {
            dropped.push(DroppedFinding {
                finding,
                stage,
                reason,
            });
        };
        let mut shown = Vec::with_capacity(findings.len());
        for finding in findings {
            if finding.severity == Severity::Suggestion
                && !self.include_suggestions
                && !always_shown(&finding)
            {
                let reason = "suggestions are not shown (policy.includeSuggestions)".to_owned();
                drop(finding, DropStage::Policy, reason);
            } else {
                shown.push(finding);
            }
        }
        if let Some(max) = self.max_findings
            && shown.len() > max
        {
            // The weakest go first: by severity, then by how well they were checked; the order is stable.
            shown.sort_by_key(|f| {
                (
                    Reverse(always_shown(f)),
                    Reverse((f.severity, confidence(f))),
                )
            });
            let fixed = shown.iter().take_while(|f| always_shown(f)).count();
            for finding in shown.drain(max.max(fixed).min(shown.len())..) {
                let reason = format!("over the limit of {max} findings (policy.maxFindings)");
                drop(finding, DropStage::Cap, reason);
            }
            order(&mut shown);
        }
        (shown, dropped)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::{
        AgentId, FindingStatus, Fingerprint, Location, RepoPath, Side, Verification,
    };

    pub(crate) fn finding(severity: Severity, category: Category, line: u32) -> Finding {
        Finding {
            id: Fingerprint::new(&format!("{line:012x}")).unwrap(),
            severity,
            category,
            location: Location {
                file: RepoPath::new("a.ts").unwrap(),
                line: Some(line),
                end_line: None,
                side: Side::New,
                columns: None,
            },
            in_diff: true,
            title: "t".into(),
            rationale: "r".into(),
            suggestion: None,
            evidence: None,
            agents: vec![AgentId::new("one").unwrap()],
            scope: None,
            rule: None,
            excerpt: None,
            status: FindingStatus::Open,
            verification: Verification {
                status: VerificationStatus::Grounded,
                reason: None,
            },
        }
    }

    fn severities(findings: &[Finding]) -> Vec<Severity> {
        findings.iter().map(|f| f.severity).collect()
    }

    #[test]
    fn suggestions_are_dropped_and_the_rest_is_sorted() {
        use Severity::{Critical, Suggestion, Warning};
        let all = [Suggestion, Warning, Critical].map(|s| finding(s, Category::Quality, 1));
        let (shown, dropped) = Policy::default().apply(all.to_vec());
        assert_eq!(severities(&shown), [Critical, Warning]);
        assert_eq!(dropped[0].stage, DropStage::Policy);
        let policy = Policy {
            include_suggestions: true,
            max_findings: None,
        };
        assert_eq!(policy.apply(all.to_vec()).0.len(), 3);
    }

    #[test]
    fn the_cap_keeps_the_gravest_and_never_takes_criticals_or_secrets() {
        use Severity::{Critical, Suggestion, Warning};
        let policy = |max| Policy {
            include_suggestions: false,
            max_findings: Some(max),
        };
        let all = [Warning, Critical, Warning].map(|s| finding(s, Category::Quality, 1));
        let (shown, dropped) = policy(1).apply(all.to_vec());
        assert_eq!(severities(&shown), [Critical]);
        assert_eq!(dropped.len(), 2);
        assert!(dropped.iter().all(|d| d.stage == DropStage::Cap));

        let mut unverified = finding(Warning, Category::Quality, 1);
        unverified.verification.status = VerificationStatus::Unverified;
        let grave = vec![
            unverified,
            finding(Warning, Category::Quality, 2),
            finding(Critical, Category::Quality, 3),
            finding(Suggestion, Category::Secrets, 4),
        ];
        assert_eq!(policy(0).apply(grave.clone()).0.len(), 2);
        let (_, dropped) = policy(3).apply(grave);
        assert_eq!(
            dropped[0].finding.location.line,
            Some(1),
            "the unverified one"
        );
    }
}

//! Coordination: what the coordinator may change, and what it may not.
//!
//! @ref LLP 0016#the-coordinator — every change is checked against the candidates

use std::collections::HashMap;

use crate::finding::same_defect;
use crate::model::{Category, DropStage, DroppedFinding, Finding, Fingerprint, Severity};
use crate::reply::Coordination;

/// How the reason of a merge begins.
pub(super) const SAME: &str = "the same as ";

/// Lines between two findings that may still be one defect in different words.
const NEAR: u32 = 12;

/// The candidates after coordination.
#[derive(Debug, Default)]
pub(super) struct Coordinated {
    /// What stands, in the order of the candidates.
    pub(super) findings: Vec<Finding>,
    /// What was merged into another one.
    pub(super) dropped: Vec<DroppedFinding>,
    /// What the coordinator would drop, with its reason: somebody else looks at it first.
    pub(super) doubted: HashMap<Fingerprint, String>,
    /// What the coordinator asked for and was refused.
    pub(super) refused: usize,
}

/// True for what no judge may hide or weaken on its own.
pub(super) fn grave(finding: &Finding) -> bool {
    finding.severity == Severity::Critical
        || matches!(finding.category, Category::Secrets | Category::Security)
}

/// Applies `wanted` to `candidates`. Nothing is invented, no file, category or evidence changes, no critical finding is
/// lowered or lost, and what the checks found stays as they found it.
pub(super) fn apply(candidates: Vec<Finding>, wanted: &Coordination) -> Coordinated {
    let mut slots: Vec<Option<Finding>> = candidates.into_iter().map(Some).collect();
    let index: HashMap<Fingerprint, usize> = slots
        .iter()
        .enumerate()
        .filter_map(|(at, slot)| Some((slot.as_ref()?.id.clone(), at)))
        .collect();
    let mut out = Coordinated::default();

    for edit in &wanted.edit {
        let slot = index.get(&edit.id).and_then(|at| slots[*at].as_mut());
        let Some(finding) = slot.filter(|finding| finding.rule.is_none()) else {
            out.refused += 1;
            continue;
        };
        if let Some(severity) = edit.severity {
            if severity >= finding.severity || !grave(finding) {
                finding.severity = severity;
            } else {
                out.refused += 1;
            }
        }
        if let Some(title) = &edit.title {
            finding.title.clone_from(title);
        }
        if let Some(consequence) = &edit.consequence {
            finding.rationale.clone_from(consequence);
        }
    }

    for (into, from) in &wanted.merge {
        for id in from {
            let (Some(kept), Some(gone)) = (index.get(into), index.get(id)) else {
                out.refused += 1;
                continue;
            };
            let one = match (&slots[*kept], &slots[*gone]) {
                (Some(a), Some(b)) => kept != gone && mergeable(a, b),
                _ => false,
            };
            if !one {
                out.refused += 1;
                continue;
            }
            let (Some(gone), Some(kept)) = (slots[*gone].take(), slots[*kept].as_mut()) else {
                continue;
            };
            kept.severity = kept.severity.max(gone.severity);
            for agent in &gone.agents {
                if !kept.agents.contains(agent) {
                    kept.agents.push(agent.clone());
                }
            }
            out.dropped.push(DroppedFinding {
                stage: DropStage::Dedupe,
                reason: format!("{SAME}{}", kept.id),
                finding: gone,
            });
        }
    }

    for (id, reason) in &wanted.drop {
        let finding = index.get(id).and_then(|at| slots[*at].as_ref());
        match finding {
            Some(finding) if finding.rule.is_none() && !grave(finding) => {
                out.doubted.insert(id.clone(), reason.clone());
            }
            _ => out.refused += 1,
        }
    }
    out.findings = slots.into_iter().flatten().collect();
    out
}

/// Whether `gone` can be the same defect as `kept`: two different bugs both live. A finding of the checks may take in
/// another one, and never goes; a secret goes only into a secret.
fn mergeable(kept: &Finding, gone: &Finding) -> bool {
    if gone.rule.is_some()
        || (gone.category == Category::Secrets) != (kept.category == Category::Secrets)
    {
        return false;
    }
    if kept.location.file != gone.location.file {
        return false;
    }
    let near = match (kept.location.line, gone.location.line) {
        (Some(a), Some(b)) => a.abs_diff(b) <= NEAR,
        _ => true,
    };
    let quoted = kept.evidence.is_some() && kept.evidence == gone.evidence;
    near && (quoted || same_defect(kept, gone) || kept.category == gone.category)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::testing::finding;
    use crate::model::RuleId;
    use crate::reply::Edit;

    fn id(line: u32) -> Fingerprint {
        Fingerprint::new(&format!("{line:012x}")).unwrap()
    }

    fn edit(line: u32, severity: Option<Severity>) -> Edit {
        Edit {
            id: id(line),
            severity,
            title: Some("Reworded".into()),
            consequence: None,
        }
    }

    #[test]
    fn it_merges_rewords_and_ranks_but_neither_weakens_nor_loses_what_is_grave() {
        use Severity::{Critical, Suggestion, Warning};
        let mut rule = finding(Warning, Category::Quality, 9);
        rule.rule = Some(RuleId::new("some-rule").unwrap());
        let candidates = vec![
            finding(Critical, Category::Correctness, 1),
            finding(Warning, Category::Correctness, 2),
            finding(Warning, Category::Security, 3),
            finding(Suggestion, Category::Quality, 4),
            rule,
        ];
        let wanted = Coordination {
            merge: vec![
                (id(2), vec![id(1), id(2), id(77)]),
                (id(9), vec![id(4)]),
                (id(4), vec![id(9)]),
            ],
            drop: vec![
                (id(2), "no".into()),
                (id(3), "harmless".into()),
                (id(9), "no".into()),
            ],
            edit: vec![
                edit(1, Some(Suggestion)),
                edit(4, Some(Warning)),
                edit(3, Some(Suggestion)),
                edit(9, None),
            ],
            summary: String::new(),
        };
        let out = apply(candidates, &wanted);
        let left: Vec<_> = out
            .findings
            .iter()
            .map(|f| (f.location.line.unwrap(), f.severity))
            .collect();
        assert_eq!(left, [(2, Critical), (3, Warning), (9, Warning)]);
        assert_eq!(
            out.findings[0].title, "t",
            "the words of the one that stays"
        );
        assert_eq!(out.findings[1].title, "Reworded");
        assert_eq!(out.findings[2].title, "t", "the checks' words");
        assert_eq!(out.dropped.len(), 2);
        assert!(out.dropped.iter().all(|d| d.stage == DropStage::Dedupe));
        assert!(
            out.doubted.is_empty(),
            "it is critical now: {:?}",
            out.doubted
        );
        // Lowered 1 and 3; merged 2 into itself, the unknown, the rule; dropped 2, 3 and 9; reworded the rule.
        assert_eq!(out.refused, 9);
    }

    #[test]
    fn two_bugs_far_apart_or_of_different_kinds_both_live() {
        use Severity::Warning;
        let a = finding(Warning, Category::Correctness, 1);
        let mut far = finding(Warning, Category::Correctness, 40);
        far.title = "Another thing entirely".into();
        let secret = finding(Warning, Category::Secrets, 2);
        let mut elsewhere = finding(Warning, Category::Correctness, 3);
        elsewhere.location.file = crate::model::RepoPath::new("b.ts").unwrap();
        let wanted = Coordination {
            merge: vec![(id(1), vec![id(40), id(2), id(3)])],
            ..Coordination::default()
        };
        let out = apply(vec![a, far, secret, elsewhere], &wanted);
        assert_eq!((out.findings.len(), out.refused), (4, 3));
    }

    #[test]
    fn a_doubted_finding_stays_until_somebody_else_has_looked() {
        let candidates = vec![finding(Severity::Warning, Category::Quality, 5)];
        let wanted = Coordination {
            drop: vec![(id(5), "a question".into())],
            ..Coordination::default()
        };
        let out = apply(candidates, &wanted);
        assert_eq!(out.findings.len(), 1);
        assert_eq!(out.doubted[&id(5)], "a question");
    }
}

//! The findings of a run as they come in: one entry an identity, whoever reports it.

use std::collections::{HashMap, HashSet};

use super::fold::fold;
use super::grounding::Placed;
use super::identity::{fingerprint, fingerprint_with_title, scoped};
use crate::model::{
    AgentId, Category, DropStage, DroppedFinding, Finding, FindingReport, FindingStatus,
    Fingerprint, PassId, ScopeName, Verification, VerificationStatus,
};

/// Further lines of the same finding that are named.
const MAX_ALSO: usize = 8;

/// Who reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reporter {
    /// The pass.
    pub pass: PassId,
    /// The reviewer that it runs for.
    pub agent: AgentId,
}

struct Entry {
    finding: Finding,
    /// The identity that the finding has when no other has it.
    plain: Fingerprint,
    reporters: Vec<Reporter>,
    /// Other lines where the same was reported, up to [`MAX_ALSO`], and whether there are more.
    also: Vec<u32>,
    also_more: bool,
}

/// Grounded findings by identity, and what was dropped so far.
#[derive(Default)]
pub struct FindingSet {
    scope: Option<ScopeName>,
    entries: Vec<Option<Entry>>,
    by_id: HashMap<Fingerprint, usize>,
    dropped: Vec<DroppedFinding>,
    /// What was rejected already, so that a reporter that insists is recorded once.
    rejected: HashSet<(Fingerprint, AgentId)>,
}

impl FindingSet {
    /// An empty set for a scope of a monorepo (`None`: the default scope).
    pub fn new(scope: Option<ScopeName>) -> Self {
        Self {
            scope,
            ..Self::default()
        }
    }

    /// Takes a grounded finding and gives its identity. The same finding again adds its reporter; a
    /// different one whose plain identity is taken gets the longer one.
    pub fn insert(&mut self, report: FindingReport, placed: Placed, by: &Reporter) -> Fingerprint {
        let mut finding = self.finding(report, placed, by);
        let plain = finding.id.clone();
        if let Some(at) = self.by_id.get(&finding.id).copied() {
            if self.is_same(at, &finding) {
                return self.merge(at, finding, by);
            }
            finding.id = longer_id(&finding);
            if let Some(at) = self.by_id.get(&finding.id).copied() {
                return self.merge(at, finding, by);
            }
        }
        let id = finding.id.clone();
        self.by_id.insert(id.clone(), self.entries.len());
        self.entries.push(Some(Entry {
            finding,
            plain,
            reporters: vec![by.clone()],
            also: Vec::new(),
            also_more: false,
        }));
        id
    }

    /// Records a report that could not be anchored anywhere.
    pub fn reject(&mut self, report: FindingReport, words: String, by: &Reporter) {
        let placed = Placed {
            location: report.location.clone(),
            in_diff: false,
            excerpt: None,
            verification: Verification {
                status: VerificationStatus::Unverified,
                reason: None,
            },
        };
        let finding = self.finding(report, placed, by);
        if self.rejected.insert((finding.id.clone(), by.agent.clone())) {
            self.dropped.push(DroppedFinding {
                finding,
                stage: DropStage::Grounding,
                reason: words,
            });
        }
    }

    /// Takes back what the pass `by` reported as `id`; false when it never did. The finding stays as
    /// long as another pass stands by it.
    pub fn retract(&mut self, by: &Reporter, id: &Fingerprint, reason: &str) -> bool {
        let Some(at) = self.by_id.get(id).copied() else {
            return false;
        };
        let Some(entry) = self.entries[at].as_mut() else {
            return false;
        };
        if !entry.reporters.contains(by) {
            return false;
        }
        entry.reporters.retain(|reporter| reporter != by);
        if !entry.reporters.is_empty() {
            if !entry.reporters.iter().any(|r| r.agent == by.agent) {
                entry.finding.agents.retain(|agent| *agent != by.agent);
            }
            return true;
        }
        self.by_id.remove(id);
        if let Some(entry) = self.entries[at].take() {
            self.dropped.push(DroppedFinding {
                finding: entry.finding,
                stage: DropStage::Retracted,
                reason: reason.to_owned(),
            });
        }
        true
    }

    /// How many findings stand at the moment.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// True when no finding stands.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// What stands, in the order of arrival, and what was dropped.
    pub fn finish(mut self) -> (Vec<Finding>, Vec<DroppedFinding>) {
        self.settle_ids();
        let findings = self.entries.into_iter().flatten().map(Entry::finish);
        (findings.collect(), self.dropped)
    }

    /// Of several defects with one plain identity, which has it must not depend on who was faster: one of a rule goes
    /// before a model's, then the title decides.
    fn settle_ids(&mut self) {
        let mut shared: HashMap<Fingerprint, Vec<usize>> = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if let Some(entry) = entry {
                shared.entry(entry.plain.clone()).or_default().push(at);
            }
        }
        for (plain, mut places) in shared.into_iter().filter(|(_, places)| places.len() > 1) {
            places.sort_by_cached_key(|at| {
                self.entries[*at].as_ref().map(|entry| {
                    let finding = &entry.finding;
                    (
                        finding.rule.is_none(),
                        fold(&finding.title),
                        finding.title.clone(),
                    )
                })
            });
            for (rank, at) in places.into_iter().enumerate() {
                let Some(Entry { finding, .. }) = self.entries[at].as_mut() else {
                    continue;
                };
                if rank == 0 {
                    finding.id = plain.clone();
                } else if finding.id == plain {
                    finding.id = longer_id(finding);
                }
            }
        }
    }

    fn finding(&self, report: FindingReport, placed: Placed, by: &Reporter) -> Finding {
        let id = fingerprint(
            &placed.location.file,
            report.category,
            report.evidence.as_deref(),
            &report.title,
        );
        Finding {
            id: scoped(self.scope.as_ref(), id),
            severity: report.severity,
            category: report.category,
            location: placed.location,
            in_diff: placed.in_diff,
            title: report.title,
            rationale: report.rationale,
            suggestion: report.suggestion,
            evidence: report.evidence,
            agents: vec![by.agent.clone()],
            scope: self.scope.clone(),
            rule: report.rule,
            excerpt: placed.excerpt,
            status: FindingStatus::Open,
            verification: placed.verification,
        }
    }

    fn is_same(&self, at: usize, finding: &Finding) -> bool {
        self.entries[at]
            .as_ref()
            .is_some_and(|entry| same_defect(&entry.finding, finding))
    }

    fn merge(&mut self, at: usize, newer: Finding, by: &Reporter) -> Fingerprint {
        let id = newer.id.clone();
        let Some(entry) = self.entries[at].as_mut() else {
            return id;
        };
        let kept = &mut entry.finding;
        let other_words = newer.title != kept.title || newer.rationale != kept.rationale;
        let first_time = !kept.agents.contains(&by.agent);
        let graver = newer.severity > kept.severity;
        if first_time {
            kept.agents.push(by.agent.clone());
        }
        if !entry.reporters.contains(by) {
            entry.reporters.push(by.clone());
        }
        let better_placed = kept.verification.status != VerificationStatus::Grounded
            && newer.verification.status == VerificationStatus::Grounded;
        if better_placed {
            kept.location = newer.location.clone();
            kept.in_diff = newer.in_diff;
            kept.excerpt.clone_from(&newer.excerpt);
            kept.verification = newer.verification.clone();
        } else if let Some(line) = newer.location.line
            && kept.location.line != Some(line)
            && !entry.also.contains(&line)
        {
            if entry.also.len() < MAX_ALSO {
                entry.also.push(line);
            } else {
                entry.also_more = true;
            }
        }
        if graver {
            kept.severity = newer.severity;
            kept.title.clone_from(&newer.title);
            kept.rationale.clone_from(&newer.rationale);
        } else if first_time && other_words {
            let reason = format!("{} reported the same finding", kept.agents[0]);
            self.dropped.push(DroppedFinding {
                finding: newer,
                stage: DropStage::Dedupe,
                reason,
            });
        }
        id
    }
}

/// The identity of a finding whose plain one another has.
fn longer_id(finding: &Finding) -> Fingerprint {
    let id = fingerprint_with_title(
        &finding.location.file,
        finding.category,
        finding.evidence.as_deref(),
        &finding.title,
    );
    scoped(finding.scope.as_ref(), id)
}

impl Entry {
    fn finish(mut self) -> Finding {
        if !self.also.is_empty() {
            self.also.sort_unstable();
            let lines: Vec<_> = self.also.iter().map(u32::to_string).collect();
            let plural = if lines.len() == 1 { "" } else { "s" };
            let mut text = format!("Also at line{plural} {}", lines.join(", "));
            if self.also_more {
                text.push_str(" and others");
            }
            let rationale = &mut self.finding.rationale;
            if !rationale.is_empty() {
                rationale.push(' ');
            }
            rationale.push_str(&text);
            rationale.push('.');
        }
        self.finding
    }
}

/// Whether two findings with the same quoted line in the same file and category are one defect. Two
/// different bugs on one line both live: rules are compared by id, words by what they have in common.
pub fn same_defect(a: &Finding, b: &Finding) -> bool {
    if let (Some(a), Some(b)) = (&a.rule, &b.rule) {
        return a == b;
    }
    // One quoted line holds one leaked secret, however it is called.
    a.category == Category::Secrets && b.category == Category::Secrets
        || similar_titles(&a.title, &b.title)
}

/// True when at least half of the shorter title's words are in the other one, in some form.
fn similar_titles(a: &str, b: &str) -> bool {
    const SMALL: [&str; 22] = [
        "the",
        "and",
        "for",
        "with",
        "from",
        "that",
        "this",
        "not",
        "are",
        "can",
        "may",
        "has",
        "when",
        "into",
        "will",
        "here",
        "possible",
        "potential",
        "missing",
        "could",
        "might",
        "wrong",
    ];
    let words = |text: &str| -> Vec<String> {
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.chars().count() >= 3 && !SMALL.contains(word))
            .take(40)
            .map(str::to_owned)
            .collect()
    };
    let (a_words, b_words) = (words(a), words(b));
    let (short, long) = if a_words.len() <= b_words.len() {
        (a_words, b_words)
    } else {
        (b_words, a_words)
    };
    if short.is_empty() {
        return fold(a) == fold(b);
    }
    let stem = |word: &str| word.chars().take(5).collect::<String>();
    let shared = short
        .iter()
        .filter(|word| long.iter().any(|other| stem(other) == stem(word)))
        .count();
    shared * 2 >= short.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Location, RepoPath, RuleId, Severity, Side};

    fn by(agent: &str) -> Reporter {
        Reporter {
            pass: PassId::new(format!("{agent}/1")),
            agent: AgentId::new(agent).unwrap(),
        }
    }

    fn report(title: &str, line: u32) -> (FindingReport, Placed) {
        let location = Location {
            file: RepoPath::new("a.ts").unwrap(),
            line: Some(line),
            end_line: None,
            side: Side::New,
            columns: None,
        };
        let report = FindingReport {
            severity: Severity::Warning,
            category: Category::Quality,
            location: location.clone(),
            title: title.into(),
            rationale: format!("because of {title}."),
            suggestion: None,
            evidence: Some("return items[next++]!;".into()),
            rule: None,
        };
        let placed = Placed {
            location,
            in_diff: true,
            excerpt: None,
            verification: Verification {
                status: VerificationStatus::Grounded,
                reason: None,
            },
        };
        (report, placed)
    }

    fn insert(set: &mut FindingSet, title: &str, line: u32, agent: &str) -> Fingerprint {
        let (report, placed) = report(title, line);
        set.insert(report, placed, &by(agent))
    }

    #[test]
    fn agents_merge_and_other_bugs_on_the_line_live() {
        let mut set = FindingSet::new(None);
        let first = insert(&mut set, "Null deref here", 3, "one");
        assert_eq!(first.as_str(), "75bf4d452d31");
        assert_eq!(
            insert(&mut set, "Possible null dereference", 3, "two"),
            first
        );
        let other = insert(&mut set, "SQL built from user input", 3, "two");
        assert_ne!(other, first);
        assert_eq!(
            insert(&mut set, "SQL built from user input", 3, "one"),
            other
        );
        let (findings, dropped) = set.finish();
        let agents: Vec<_> = findings[0].agents.iter().map(AgentId::as_str).collect();
        assert_eq!(agents, ["one", "two"]);
        assert_eq!(findings.len(), 2);
        assert_eq!(dropped.len(), 1);
        assert_eq!(dropped[0].stage, DropStage::Dedupe);
        assert_eq!(dropped[0].finding.title, "Possible null dereference");
    }

    #[test]
    fn identities_do_not_depend_on_who_was_faster() {
        let titles = [
            "Null deref here",
            "SQL built from user input",
            "Race on shutdown",
        ];
        let ids = |order: [usize; 3], ruled: usize| {
            let mut set = FindingSet::new(None);
            for at in order {
                let (mut report, placed) = report(titles[at], 3);
                report.rule = (at == ruled).then(|| RuleId::new("a-rule").unwrap());
                set.insert(report, placed, &by(&format!("agent-{at}")));
            }
            let (findings, _) = set.finish();
            let mut ids: Vec<_> = findings.into_iter().map(|f| (f.title, f.id)).collect();
            ids.sort();
            ids
        };
        for ruled in 0..4 {
            let first = ids([0, 1, 2], ruled);
            for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                assert_eq!(ids(order, ruled), first, "{order:?} {ruled}");
            }
            let plain = first.iter().filter(|(_, id)| id.as_str() == "75bf4d452d31");
            let has_it: Vec<_> = plain.map(|(title, _)| title.as_str()).collect();
            let expected = if ruled < 3 { titles[ruled] } else { titles[0] };
            assert_eq!(has_it, [expected]);
        }
    }

    #[test]
    fn the_same_line_repeated_is_one_finding_that_names_the_others() {
        let mut set = FindingSet::new(None);
        for line in [3, 9, 5, 3] {
            insert(&mut set, "Debugger left in", line, "checks");
        }
        let (findings, dropped) = set.finish();
        assert_eq!(findings.len(), 1);
        assert!(findings[0].rationale.ends_with("Also at lines 5, 9."));
        assert!(dropped.is_empty());
    }

    #[test]
    fn the_graver_report_wins() {
        let mut set = FindingSet::new(None);
        insert(&mut set, "Null deref", 3, "one");
        let (mut graver, placed) = report("Null deref crashes", 3);
        graver.severity = Severity::Critical;
        set.insert(graver, placed, &by("two"));
        let (findings, _) = set.finish();
        assert_eq!(findings[0].severity, Severity::Critical);
        assert_eq!(findings[0].title, "Null deref crashes");
    }

    #[test]
    fn rules_are_compared_by_id() {
        let mut set = FindingSet::new(None);
        let mut ids = Vec::new();
        for rule in ["rule-a", "rule-b", "rule-a"] {
            let (mut report, placed) = report(&format!("Same words {rule}"), 3);
            report.rule = Some(RuleId::new(rule).unwrap());
            ids.push(set.insert(report, placed, &by("checks")));
        }
        assert_eq!(ids[0], ids[2]);
        assert_ne!(ids[0], ids[1]);
    }

    #[test]
    fn retracting() {
        let mut set = FindingSet::new(None);
        let id = insert(&mut set, "Null deref", 3, "one");
        insert(&mut set, "Null deref", 3, "two");
        assert!(!set.retract(&by("three"), &id, "no"));
        assert!(set.retract(&by("one"), &id, "no"));
        assert_eq!(set.len(), 1);
        assert!(set.retract(&by("two"), &id, "not a bug"));
        assert!(!set.retract(&by("two"), &id, "again"));
        assert!(set.is_empty());
        let (findings, dropped) = set.finish();
        assert!(findings.is_empty());
        assert_eq!(dropped[0].stage, DropStage::Retracted);
        assert_eq!(dropped[0].reason, "not a bug");
    }

    #[test]
    fn scopes_change_the_identity() {
        let mut set = FindingSet::new(Some(ScopeName::new("www").unwrap()));
        let plain = Fingerprint::new("75bf4d452d31").unwrap();
        let id = insert(&mut set, "Null deref", 3, "one");
        assert_eq!(id, scoped(Some(&ScopeName::new("www").unwrap()), plain));
    }
}

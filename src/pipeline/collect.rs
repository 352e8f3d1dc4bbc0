//! Collecting: findings are grounded the moment they are reported, and kept whatever becomes of the pass.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::diff::Diff;
use crate::finding::{FindingSet, Grounder, Grounding, Placed, Reporter, fold};
use crate::model::{
    AgentId, Category, DroppedFinding, Finding, FindingReport, Fingerprint, PassId, ScopeName,
    Severity, Usage,
};
use crate::port::{FindingReceipt, FindingSink, LinesSeen, Meter};
use crate::tree::Tree;

/// Findings that one pass may report; critical ones and secrets are always taken.
const MAX_REPORTS: u32 = 10_000;
/// Bytes of a title and of a longer text that are kept.
const MAX_TITLE: usize = 300;
const MAX_TEXT: usize = 4_000;
/// Bytes of evidence that count, for the identity too: a quoted minified line may have megabytes.
const MAX_EVIDENCE: usize = 2_000;

struct OpenPass {
    by: Reporter,
    /// The reporter reads our answers and can mend a wrong anchor.
    interactive: bool,
    open: bool,
    reports: u32,
    refused: u32,
    metered: Option<Usage>,
    /// Misplaced findings that the reporter has been told about, with where they go otherwise.
    pending: Vec<(FindingReport, Placed)>,
}

struct Inner {
    set: FindingSet,
    passes: HashMap<PassId, OpenPass>,
    seen: LinesSeen,
}

/// The `FindingSink` and `Meter` of a run.
pub struct Collector {
    grounder: Grounder,
    inner: Mutex<Inner>,
}

/// What a collector holds when the passes are over.
pub(super) struct Collected {
    pub(super) findings: Vec<Finding>,
    pub(super) dropped: Vec<DroppedFinding>,
    /// Passes with reports over the limit, and how many.
    pub(super) refused: Vec<(PassId, u32)>,
    /// What the tools showed to all passes together.
    pub(super) seen: LinesSeen,
}

impl Collector {
    /// Grounds against `diff` and `tree`; identities are those of `scope`.
    pub fn new(diff: Arc<Diff>, tree: Option<Arc<dyn Tree>>, scope: Option<ScopeName>) -> Self {
        Self {
            grounder: Grounder::new(diff, tree),
            inner: Mutex::new(Inner {
                set: FindingSet::new(scope),
                passes: HashMap::new(),
                seen: LinesSeen::new(),
            }),
        }
    }

    /// What the findings are grounded on.
    pub fn grounder(&self) -> &Grounder {
        &self.grounder
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes reports of `pass` from here on. `interactive`: a misplaced finding is refused once with
    /// exact words, so that the reporter mends it; otherwise it is re-anchored at once.
    pub fn open(&self, pass: &PassId, agent: &AgentId, interactive: bool) {
        let fresh = || OpenPass {
            by: Reporter {
                pass: pass.clone(),
                agent: agent.clone(),
            },
            interactive,
            open: true,
            reports: 0,
            refused: 0,
            metered: None,
            pending: Vec::new(),
        };
        self.lock()
            .passes
            .entry(pass.clone())
            .or_insert_with(fresh)
            .open = true;
    }

    /// Takes no more reports of `pass`; what it never mended is kept where its evidence is.
    pub fn close(&self, pass: &PassId) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(state) = inner.passes.get_mut(pass) else {
            return;
        };
        state.open = false;
        for (report, placed) in std::mem::take(&mut state.pending) {
            inner.set.insert(report, placed, &state.by);
        }
    }

    /// What was metered of `pass` since this was last asked.
    pub(super) fn take_metered(&self, pass: &PassId) -> Option<Usage> {
        self.lock().passes.get_mut(pass)?.metered.take()
    }

    /// Everything collected; later reports are refused.
    pub(super) fn finish(&self) -> Collected {
        let mut inner = self.lock();
        let set = std::mem::take(&mut inner.set);
        let passes = std::mem::take(&mut inner.passes);
        let seen = std::mem::take(&mut inner.seen);
        drop(inner);
        let (findings, dropped) = set.finish();
        let mut refused: Vec<_> = passes
            .into_iter()
            .filter(|(_, state)| state.refused > 0)
            .map(|(id, state)| (id, state.refused))
            .collect();
        refused.sort();
        Collected {
            findings,
            dropped,
            refused,
            seen,
        }
    }
}

/// Cuts `text` to at most `max` bytes at a character boundary; true when it was longer.
fn truncate(text: &mut String, max: usize) -> bool {
    let longer = text.len() > max;
    if longer {
        let end = (0..=max).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
    }
    longer
}

/// Cuts `text` for people, who can see that it was cut.
fn cut(text: &mut String, max: usize) {
    if truncate(text, max) {
        text.push('…');
    }
}

/// Sorts ranges and joins those that touch.
fn merge(ranges: &mut Vec<RangeInclusive<u32>>) {
    ranges.sort_by_key(|range| *range.start());
    ranges.dedup_by(|next, kept| {
        let touches = *next.start() <= kept.end().saturating_add(1);
        if touches {
            *kept = *kept.start()..=*kept.end().max(next.end());
        }
        touches
    });
}

fn same_report(a: &FindingReport, b: &FindingReport) -> bool {
    a.category == b.category
        && a.location.file == b.location.file
        && (fold(&a.title) == fold(&b.title) || (a.evidence.is_some() && a.evidence == b.evidence))
}

impl FindingSink for Collector {
    fn report(&self, pass: &PassId, mut finding: FindingReport) -> FindingReceipt {
        cut(&mut finding.title, MAX_TITLE);
        cut(&mut finding.rationale, MAX_TEXT);
        if let Some(suggestion) = &mut finding.suggestion {
            cut(suggestion, MAX_TEXT);
        }
        if let Some(evidence) = &mut finding.evidence {
            truncate(evidence, MAX_EVIDENCE);
        }
        {
            let mut inner = self.lock();
            let Some(state) = inner.passes.get_mut(pass).filter(|state| state.open) else {
                return FindingReceipt::Rejected("this pass is over".to_owned());
            };
            let grave =
                finding.severity == Severity::Critical || finding.category == Category::Secrets;
            state.reports = state.reports.saturating_add(1);
            if state.reports > MAX_REPORTS && !grave {
                state.refused = state.refused.saturating_add(1);
                return FindingReceipt::Rejected(format!(
                    "more than {MAX_REPORTS} findings: only critical ones and secrets are taken now"
                ));
            }
        }
        // Grounding may read the tree; nobody waits for that.
        let grounding = self.grounder.ground(&finding);
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(state) = inner.passes.get_mut(pass).filter(|state| state.open) else {
            return FindingReceipt::Rejected("this pass is over".to_owned());
        };
        let told = state.pending.len();
        state.pending.retain(|(old, _)| !same_report(old, &finding));
        let told = state.pending.len() < told;
        let placed = match grounding {
            Grounding::Placed(placed) => placed,
            Grounding::Misplaced { words, fallback } if state.interactive && !told => {
                state.pending.push((finding, fallback));
                return FindingReceipt::Rejected(words);
            }
            // Who insists after having been told is believed as far as the evidence goes.
            Grounding::Misplaced { fallback, .. } => fallback,
            Grounding::Rejected { words } => {
                inner.set.reject(finding, words.clone(), &state.by);
                return FindingReceipt::Rejected(words);
            }
        };
        FindingReceipt::Accepted(inner.set.insert(finding, placed, &state.by))
    }

    fn retract(&self, pass: &PassId, id: &Fingerprint, reason: &str) -> bool {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(state) = inner.passes.get(pass).filter(|state| state.open) else {
            return false;
        };
        let mut reason = reason.to_owned();
        cut(&mut reason, MAX_TITLE);
        inner.set.retract(&state.by, id, &reason)
    }
}

impl Meter for Collector {
    fn add(&self, pass: &PassId, usage: Usage) {
        if let Some(state) = self.lock().passes.get_mut(pass) {
            state.metered = Some(state.metered.map_or(usage, |sum| sum.plus(usage)));
        }
    }

    fn saw(&self, _pass: &PassId, lines: &LinesSeen) {
        let seen = &mut self.lock().seen;
        for (path, ranges) in lines {
            let known = seen.entry(path.clone()).or_default();
            known.extend(ranges.iter().cloned());
            merge(known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Hunk;
    use crate::model::{Location, Side};
    use crate::pipeline::plan::tests::diff_with;

    fn report(line: u32, evidence: String) -> FindingReport {
        FindingReport {
            severity: Severity::Warning,
            category: Category::Correctness,
            location: Location {
                file: crate::model::RepoPath::new("f0").unwrap(),
                line: Some(line),
                end_line: None,
                side: Side::New,
                columns: Some((5, 9)),
            },
            title: "é".repeat(1_000),
            rationale: String::new(),
            suggestion: None,
            evidence: Some(evidence),
            rule: None,
        }
    }

    fn collector(lines: u32) -> Collector {
        let mut diff = diff_with(&[lines]);
        let patch: String = (1..=lines).fold(String::new(), |text, n| {
            text + &format!("+let value_{n} = {n};\n")
        });
        let change = Arc::make_mut(&mut diff);
        change.files[0].hunks.push(Hunk {
            old_start: 0,
            old_len: 0,
            new_start: 1,
            new_len: lines,
            heading: 0..0,
            body: 0..patch.len(),
        });
        change.patch = patch.into_bytes().into();
        Collector::new(diff, None, None)
    }

    #[test]
    fn only_open_passes_report_and_the_limit_spares_what_is_grave() {
        let collector = collector(MAX_REPORTS + 2);
        let pass = PassId::new("one/1");
        let evidence = |n| format!("let value_{n} = {n};");
        let closed = FindingReceipt::Rejected("this pass is over".to_owned());
        assert_eq!(collector.report(&pass, report(1, evidence(1))), closed);
        collector.open(&pass, &AgentId::new("one").unwrap(), false);
        for n in 1..=MAX_REPORTS {
            let receipt = collector.report(&pass, report(n, evidence(n)));
            assert!(matches!(receipt, FindingReceipt::Accepted(_)), "{n}");
        }
        let refused = collector.report(&pass, report(MAX_REPORTS + 1, evidence(MAX_REPORTS + 1)));
        assert!(matches!(refused, FindingReceipt::Rejected(_)));
        let mut grave = report(MAX_REPORTS + 2, evidence(MAX_REPORTS + 2));
        grave.severity = Severity::Critical;
        let receipt = collector.report(&pass, grave);
        assert!(matches!(receipt, FindingReceipt::Accepted(_)));
        collector.close(&pass);
        assert_eq!(collector.report(&pass, report(1, evidence(1))), closed);
        let collected = collector.finish();
        assert_eq!(collected.findings.len() as u32, MAX_REPORTS + 1);
        assert_eq!(collected.refused, [(pass, 1)]);
        let title = &collected.findings[0].title;
        assert!(title.len() <= MAX_TITLE + '…'.len_utf8() && title.ends_with('…'));
    }

    #[test]
    fn lines_seen_are_merged_over_passes() {
        let collector = collector(1);
        let path = crate::model::RepoPath::new("f0").unwrap();
        let see = |ranges: Vec<RangeInclusive<u32>>| {
            collector.saw(
                &PassId::new("p"),
                &LinesSeen::from([(path.clone(), ranges)]),
            );
        };
        see(vec![1..=3, 10..=12]);
        see(vec![4..=5, 11..=11, 20..=20]);
        assert_eq!(collector.finish().seen[&path], [1..=5, 10..=12, 20..=20]);
    }

    #[test]
    fn usage_is_handed_out_once() {
        let collector = collector(1);
        let pass = PassId::new("one/1");
        collector.add(&pass, Usage::NONE);
        assert_eq!(collector.take_metered(&pass), None, "not open yet");
        collector.open(&pass, &AgentId::new("one").unwrap(), false);
        collector.add(&pass, Usage::NONE);
        collector.add(&pass, Usage::NONE);
        assert_eq!(collector.take_metered(&pass), Some(Usage::NONE));
        assert_eq!(collector.take_metered(&pass), None);
    }
}

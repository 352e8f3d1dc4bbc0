//! A review against the one before.

use std::collections::BTreeSet;

use crate::state::comment::{Delta, Dismissals, StoredReview};
use crate::state::output::FileOutcome;

/// What there was before.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    /// A review of ours.
    Review(&'a StoredReview),
    /// The ids of an earlier version's comment.
    Ids(&'a [crate::model::Fingerprint]),
}

impl Before<'_> {
    /// Compares: what is gone, and why, and what is new. Findings that were dismissed before count neither way.
    pub fn compare(self, now: &StoredReview, dismissals: &Dismissals) -> Delta {
        let active: BTreeSet<&str> = dismissals
            .iter()
            .filter(|d| d.active)
            .map(|d| d.id.as_str())
            .collect();
        let present: BTreeSet<&str> = now.findings.iter().map(|f| f.id.as_str()).collect();
        let dropped: BTreeSet<&str> = now.dropped.iter().map(|d| d.id.as_str()).collect();
        let mut delta = Delta::default();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        match self {
            Self::Review(before) => {
                delta.since.clone_from(&before.head);
                for finding in &before.findings {
                    let id = finding.id.as_str();
                    known.insert(id);
                    if present.contains(id) || active.contains(id) {
                        continue;
                    }
                    if dropped.contains(id) {
                        delta.withdrawn += 1;
                    } else if looked_again(now, &finding.file, finding.rule.is_some()) {
                        delta
                            .fixed
                            .push((finding.id.clone(), finding.title.clone()));
                    } else {
                        delta.unseen += 1;
                    }
                }
            }
            Self::Ids(ids) => {
                for id in ids {
                    known.insert(id.as_str());
                    if present.contains(id.as_str()) || active.contains(id.as_str()) {
                        continue;
                    }
                    if dropped.contains(id.as_str()) {
                        delta.withdrawn += 1;
                    } else if now.complete && !now.checks_only {
                        delta.fixed.push((id.to_string(), String::new()));
                    } else {
                        delta.unseen += 1;
                    }
                }
            }
        }
        delta.fixed_total = delta.fixed.len() as u64;
        delta.new = now
            .findings
            .iter()
            .filter(|f| !known.contains(f.id.as_str()) && !active.contains(f.id.as_str()))
            .map(|f| f.id.clone())
            .collect();
        delta.new_total = delta.new.len() as u64;
        delta
    }
}

/// True when the absence of a finding means something: whoever reports such findings read the file again, or the file is
/// no longer part of a change that was read completely.
fn looked_again(now: &StoredReview, file: &str, by_rule: bool) -> bool {
    if now.checks_only && !by_rule {
        return false;
    }
    match now.files.iter().find(|f| f.path == file) {
        Some(file) => now.complete || file.outcome == FileOutcome::Reviewed,
        None => now.complete,
    }
}

//! Dismissals as registers that can be merged in any order.
//!
//! @ref LLP 0015#journal — why the later command wins, and why that is enough

use std::collections::BTreeMap;

use crate::model::{Category, Fingerprint, Severity};

/// The last word on one finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dismissal {
    /// Which finding.
    pub id: Fingerprint,
    /// False once it was taken back.
    pub active: bool,
    /// The comment that said so; 0 for one of an earlier version.
    pub comment: u64,
    /// When, seconds since 1970; 0 when that is not known.
    pub at: i64,
    /// Who.
    pub by: Option<String>,
    /// Why, at most [`super::MAX_REASON`] characters.
    pub reason: Option<String>,
    /// True when there was a reason, even if there is no room for it any more.
    pub reasoned: bool,
}

/// What a dismissal does to a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// There is none: the finding stands.
    None,
    /// The finding is dismissed.
    Dismissed,
    /// The finding stands: one that is critical or a secret is not dismissed without a reason.
    NeedsReason,
}

impl Dismissal {
    /// A total order: the later command, and of two records of one command the one that knows more.
    fn rank(&self) -> (u64, i64, bool, bool, Option<&str>, Option<&str>) {
        (
            self.comment,
            self.at,
            self.active,
            self.reasoned,
            self.by.as_deref(),
            self.reason.as_deref(),
        )
    }
}

/// True for a finding that only a reason dismisses, and that stays visible then.
pub(super) fn is_grave(severity: Severity, category: Category) -> bool {
    severity == Severity::Critical || category == Category::Secrets
}

/// All of them, one a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dismissals(BTreeMap<Fingerprint, Dismissal>);

impl Dismissals {
    /// Takes `new` in, unless what is known is later.
    pub fn put(&mut self, new: Dismissal) {
        match self.0.get(&new.id) {
            Some(known) if known.rank() >= new.rank() => {}
            _ => {
                self.0.insert(new.id.clone(), new);
            }
        }
    }

    /// Both together.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        for dismissal in other.0.into_values() {
            self.put(dismissal);
        }
        self
    }

    /// The active dismissal of a finding.
    pub fn active(&self, id: &Fingerprint) -> Option<&Dismissal> {
        self.0.get(id).filter(|dismissal| dismissal.active)
    }

    /// What becomes of a finding.
    pub fn effect(&self, id: &Fingerprint, severity: Severity, category: Category) -> Effect {
        match self.active(id) {
            None => Effect::None,
            Some(d) if is_grave(severity, category) && !d.reasoned => Effect::NeedsReason,
            Some(_) => Effect::Dismissed,
        }
    }

    /// Every record, those taken back as well, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Dismissal> {
        self.0.values()
    }

    /// Every record, to shorten what it says.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Dismissal> {
        self.0.values_mut()
    }

    /// Keeps at most `limit` records: those of findings that are `shown` first, then active ones, then later ones. Says how many went.
    pub fn limit(&mut self, limit: usize, shown: impl Fn(&Fingerprint) -> bool) -> usize {
        let excess = self.0.len().saturating_sub(limit);
        if excess > 0 {
            let mut by_worth: Vec<_> = self
                .0
                .values()
                .map(|d| {
                    (
                        d.active && shown(&d.id),
                        d.active,
                        d.comment,
                        d.at,
                        d.id.clone(),
                    )
                })
                .collect();
            by_worth.sort();
            for (.., id) in by_worth.into_iter().take(excess) {
                self.0.remove(&id);
            }
        }
        excess
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Dismissal> for Dismissals {
    fn from_iter<T: IntoIterator<Item = Dismissal>>(records: T) -> Self {
        let mut all = Self::default();
        for record in records {
            all.put(record);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: u64, comment: u64, active: bool) -> Dismissal {
        Dismissal {
            id: Fingerprint::new(&format!("{n:012x}")).unwrap(),
            active,
            comment,
            at: 0,
            by: None,
            reason: None,
            reasoned: false,
        }
    }

    #[test]
    fn grave_findings_need_a_reason() {
        use Category::{Quality, Secrets};
        let mut known: Dismissals = [record(1, 5, true)].into_iter().collect();
        let id = record(1, 0, true).id;
        let effect = |known: &Dismissals, severity, category| known.effect(&id, severity, category);
        assert_eq!(
            effect(&known, Severity::Warning, Quality),
            Effect::Dismissed
        );
        assert_eq!(
            effect(&known, Severity::Critical, Quality),
            Effect::NeedsReason
        );
        assert_eq!(
            effect(&known, Severity::Suggestion, Secrets),
            Effect::NeedsReason
        );
        known.put(Dismissal {
            reasoned: true,
            reason: Some("a test key".to_owned()),
            ..record(1, 6, true)
        });
        assert_eq!(
            effect(&known, Severity::Critical, Secrets),
            Effect::Dismissed
        );
        known.put(record(1, 7, false));
        assert_eq!(effect(&known, Severity::Critical, Secrets), Effect::None);
        known.put(record(1, 6, true));
        assert!(known.active(&id).is_none(), "an older word changes nothing");
    }

    #[test]
    fn what_is_shown_and_later_is_kept_longest() {
        let mut known: Dismissals = (1..=6).map(|n| record(n, n, n != 5)).collect();
        assert_eq!(known.limit(9, |_| false), 0);
        let one = record(1, 0, true).id;
        assert_eq!(known.limit(3, |id| *id == one), 3);
        let left: Vec<_> = known.iter().map(|d| d.comment).collect();
        assert_eq!(left, [1, 4, 6]);
    }
}

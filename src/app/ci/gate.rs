//! Whether a pull request is reviewed at all.

use crate::config::{ReviewGate, Trigger};
use crate::github::PullRequest;

/// Why not; `None` to go on. `forced` (a permitted `/review`, `--force`) passes over the trigger only: the skip label
/// is a maintainer's word as well.
pub(super) fn skip(pull: &PullRequest, gate: &ReviewGate, forced: bool) -> Option<String> {
    if !pull.open {
        return Some("the pull request is closed".to_owned());
    }
    if pull.has_label(&gate.skip_label) {
        return Some(format!("it has the label `{}`", gate.skip_label));
    }
    if forced {
        return None;
    }
    if pull.draft && !gate.drafts {
        return Some("it is a draft (`review.drafts` is false)".to_owned());
    }
    if gate.trigger == Trigger::Label && !pull.has_label(&gate.label) {
        return Some(format!("it does not have the label `{}`", gate.label));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::github::PullSide;
    use crate::model::CommitId;

    #[test]
    fn the_policy() {
        let side = || PullSide {
            commit: CommitId::new(&"a".repeat(40)).unwrap(),
            branch: "b".to_owned(),
            repo: None,
        };
        let pull = |labels: &[&str], draft, open| PullRequest {
            number: 1,
            open,
            draft,
            author: None,
            labels: labels.iter().map(|l| (*l).to_owned()).collect(),
            title: String::new(),
            body: String::new(),
            head: side(),
            base: side(),
        };
        let gate = |trigger, drafts| ReviewGate {
            trigger,
            label: "ai-review".to_owned(),
            skip_label: "ai-review:skip".to_owned(),
            drafts,
        };
        let (all, label) = (gate(Trigger::All, true), gate(Trigger::Label, false));
        for (pull, gate, forced, goes) in [
            (pull(&[], false, true), &all, false, true),
            (pull(&[], true, true), &all, false, true),
            (pull(&["AI-review:SKIP"], false, true), &all, true, false),
            (pull(&[], false, false), &all, true, false),
            (pull(&[], false, true), &label, false, false),
            (
                pull(&["ai-review-please"], false, true),
                &label,
                false,
                false,
            ),
            (pull(&["ai-review"], false, true), &label, false, true),
            (pull(&["ai-review"], true, true), &label, false, false),
            (pull(&[], true, true), &label, true, true),
        ] {
            assert_eq!(
                skip(&pull, gate, forced).is_none(),
                goes,
                "{pull:?} {forced}"
            );
        }
    }
}

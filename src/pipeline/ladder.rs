//! What to try instead of a pass that was too much.
//!
//! @ref LLP 0004#smaller-passes — what to try instead

use std::sync::Arc;
use std::time::Duration;

use super::plan::PlannedPass;
use crate::diff::Diff;
use crate::model::{PassId, PassKind};
use crate::port::EngineError;
use crate::reply::findings_schema;

/// Gives smaller passes in place of one that timed out or did not fit.
pub trait Ladder: Send + Sync {
    /// The passes that together replace `pass`; none when it cannot be made smaller, which leaves a
    /// named gap. `left` is the time until the passes' budget ends.
    fn instead(
        &self,
        pass: &PlannedPass,
        error: &EngineError,
        left: Duration,
        diff: &Diff,
    ) -> Vec<PlannedPass>;
}

/// Halves the files, down to one; then one pass without tools, over what the diff shows; then nothing. A cross-cutting
/// pass is never split, since its point is the whole: it goes straight to the pass without tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct Halving;

/// With less time than this a pass without tools is not worth its money.
const LEAST_LEFT: Duration = Duration::from_secs(4 * 60);

impl Ladder for Halving {
    fn instead(
        &self,
        pass: &PlannedPass,
        error: &EngineError,
        left: Duration,
        diff: &Diff,
    ) -> Vec<PlannedPass> {
        if left.is_zero() {
            return Vec::new();
        }
        let splits = matches!(pass.kind, PassKind::Review | PassKind::Checks);
        if splits && pass.files.len() > 1 {
            let (first, second) = pass.files.split_at(pass.files.len().div_ceil(2));
            return [(first, "a"), (second, "b")]
                .map(|(files, suffix)| {
                    let id = PassId::new(format!("{}.{suffix}", pass.id));
                    pass.over(id, Arc::from(files), diff)
                })
                .into();
        }
        let reviews = matches!(pass.kind, PassKind::Review | PassKind::CrossCutting);
        // What did not fit with tools does not fit without them either.
        let slow = matches!(error, EngineError::Timeout(_));
        if !reviews || !slow || pass.schema.is_some() || left < LEAST_LEFT {
            return Vec::new();
        }
        vec![PlannedPass {
            id: PassId::new(format!("{}.shown", pass.id)),
            task: None,
            schema: Some(Arc::new(findings_schema())),
            ..pass.clone()
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::plan::tests::{agent, diff_with};
    use crate::pipeline::plan::{PlanInput, plan};

    #[test]
    fn halves_then_a_pass_without_tools_then_a_gap() {
        let minutes = |n: u64| Duration::from_secs(n * 60);
        let diff = diff_with(&[1, 1, 1]);
        let planned = plan(&PlanInput {
            diff: Arc::clone(&diff),
            filtered: [].into(),
            hidden: [].into(),
            checks: Some(agent("checks")),
            agents: vec![agent("one")],
            chunks: vec![vec![0, 1], vec![2]],
            cross_cutting: Some(agent("all")),
        });
        let pass = |id: &str| planned.passes.iter().find(|p| p.id.as_str() == id).unwrap();
        let late = EngineError::Timeout(minutes(1));
        let ids = |pass: &PlannedPass, error: &EngineError, left| -> Vec<String> {
            let instead = Halving.instead(pass, error, left, &diff);
            instead.iter().map(|pass| pass.id.to_string()).collect()
        };
        assert_eq!(
            ids(pass("one/1"), &late, minutes(1)),
            ["one/1.a", "one/1.b"]
        );
        assert_eq!(ids(pass("one/2"), &late, minutes(5)), ["one/2.shown"]);
        assert_eq!(ids(pass("one/2"), &late, minutes(3)), [""; 0]);
        assert_eq!(
            ids(pass("one/2"), &EngineError::ContextOverflow, minutes(5)),
            [""; 0]
        );
        assert_eq!(
            ids(pass("cross-cutting"), &late, minutes(5)),
            ["cross-cutting.shown"]
        );
        assert_eq!(ids(pass("one/1"), &late, Duration::ZERO), [""; 0]);
        let shown = &Halving.instead(pass("one/2"), &late, minutes(5), &diff)[0];
        assert!(shown.schema.is_some() && shown.files == pass("one/2").files);
        assert_eq!(ids(shown, &late, minutes(5)), [""; 0], "once");
    }
}

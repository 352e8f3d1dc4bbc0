//! What to try instead of a pass that was too much.
//!
//! @ref LLP 0004#smaller-passes — what to try instead

use std::sync::Arc;
use std::time::Duration;

use super::plan::PlannedPass;
use crate::diff::Diff;
use crate::model::{PassId, PassKind};
use crate::port::EngineError;

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

/// Halves the files, down to one. A cross-cutting pass is never split: its point is the whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Halving;

impl Ladder for Halving {
    fn instead(
        &self,
        pass: &PlannedPass,
        _error: &EngineError,
        left: Duration,
        diff: &Diff,
    ) -> Vec<PlannedPass> {
        let splits = matches!(pass.kind, PassKind::Review | PassKind::Checks);
        if !splits || pass.files.len() < 2 || left.is_zero() {
            return Vec::new();
        }
        let (first, second) = pass.files.split_at(pass.files.len().div_ceil(2));
        [(first, "a"), (second, "b")]
            .map(|(files, suffix)| {
                let id = PassId::new(format!("{}.{suffix}", pass.id));
                pass.over(id, Arc::from(files), diff)
            })
            .into()
    }
}

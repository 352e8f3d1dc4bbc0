//! Exit codes: a contract with scripts and hooks (README, "Exit codes").
//!
//! @ref LLP 0006#exit-codes — the table

use crate::app::ci::Ended;
use crate::app::review::{FailOn, Interrupt};
use crate::model::{Decision, Review};

/// Reviewed completely without `request_changes`, or nothing to review.
pub const EXIT_OK: u8 = 0;
/// Decision `request_changes`; for `ref-check`: problems found.
pub const EXIT_REQUEST_CHANGES: u8 = 1;
/// Usage, configuration or environment error; nothing was reviewed.
pub const EXIT_USAGE: u8 = 2;
/// A review was tried and no pass completed.
pub const EXIT_NOT_REVIEWED: u8 = 3;
/// Partly reviewed and no `request_changes`.
pub const EXIT_PARTIAL: u8 = 4;
/// A bug in ecr: a panic, caught and reported.
pub const EXIT_BUG: u8 = 70;
/// Interrupted by SIGINT.
pub const EXIT_INTERRUPTED: u8 = 130;
/// Interrupted by SIGTERM.
pub const EXIT_TERMINATED: u8 = 143;

/// The exit code of a run that a signal ended.
pub(super) fn of_interrupt(interrupt: Interrupt) -> u8 {
    match interrupt {
        Interrupt::Int => EXIT_INTERRUPTED,
        Interrupt::Term => EXIT_TERMINATED,
    }
}

/// The exit code of an evaluation of `cases` cases, of which `complete` were reviewed completely and `scored` at all.
pub(super) fn of_evaluation(cases: u64, scored: u64, complete: u64) -> u8 {
    match (scored, complete) {
        (0, _) => EXIT_NOT_REVIEWED,
        _ if complete < cases => EXIT_PARTIAL,
        _ => EXIT_OK,
    }
}

/// The exit code of `ecr ci`: always 0 once its arguments were valid, unless the table was asked for.
pub(super) fn of_ci(ended: &Ended, strict: bool) -> u8 {
    if !strict {
        return EXIT_OK;
    }
    if let Some(interrupt) = ended.interrupt {
        return of_interrupt(interrupt);
    }
    if ended.failed {
        return EXIT_USAGE;
    }
    match ended.decision {
        Some(decision) => of_decision(decision, ended.complete),
        None => EXIT_OK,
    }
}

fn of_decision(decision: Decision, complete: bool) -> u8 {
    match decision {
        Decision::RequestChanges => EXIT_REQUEST_CHANGES,
        Decision::CouldNotComplete => EXIT_NOT_REVIEWED,
        Decision::Skipped => EXIT_OK,
        Decision::Approve | Decision::ApproveWithComments | Decision::ChecksOnly => {
            if complete {
                EXIT_OK
            } else {
                EXIT_PARTIAL
            }
        }
    }
}

/// The exit code of a finished review. An interrupt outranks everything that `--fail-on` can hide.
pub(super) fn of_review(review: &Review, interrupt: Option<Interrupt>, fail_on: FailOn) -> u8 {
    if let Some(interrupt) = interrupt {
        return of_interrupt(interrupt);
    }
    let code = of_decision(review.decision, review.complete);
    match (fail_on, code) {
        (FailOn::Never, EXIT_REQUEST_CHANGES | EXIT_NOT_REVIEWED | EXIT_PARTIAL)
        | (FailOn::RequestChanges, EXIT_NOT_REVIEWED | EXIT_PARTIAL) => EXIT_OK,
        (_, code) => code,
    }
}

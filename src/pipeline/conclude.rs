//! The end: from what the passes gave to one report.

use std::time::Duration;

use tokio::time::Instant;

use super::collect::Collected;
use super::notes::{notes, plain, plain_to};
use super::plan::Plan;
use super::receipt::receipt;
use super::step::Settled;
use crate::finding::{Facts, Grounder, Policy, SummaryFacts, Suppressor, Tally, decide, summary};
use crate::model::{
    CoverageNote, CoverageReceipt, Decision, FileOutcome, InputInfo, NoteKind, PassKind,
    PassOutcomeKind, PassRecord, Review, SandboxInfo, Timing, Usage,
};

/// Characters of the coordinator's words that are taken.
const MAX_OVERVIEW: usize = 600;

/// What a conclusion is made from.
pub(super) struct Ending<'a> {
    pub(super) info: InputInfo,
    pub(super) sandbox: SandboxInfo,
    pub(super) plan: &'a Plan,
    pub(super) policy: Policy,
    pub(super) notes: Vec<CoverageNote>,
    pub(super) settled: Vec<Settled>,
    pub(super) collected: Collected,
    /// What the coordinator says would go wrong; may be empty.
    pub(super) overview: String,
    pub(super) interrupted: bool,
    pub(super) started: Instant,
    pub(super) model_time: Duration,
}

fn note(kind: NoteKind, text: impl Into<String>) -> CoverageNote {
    CoverageNote {
        kind,
        text: text.into(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Suppresses, applies the policy, decides and sums up.
pub(super) fn conclude(ending: Ending<'_>, source: &Grounder) -> Review {
    let Ending {
        plan,
        settled,
        collected,
        interrupted,
        ..
    } = ending;
    let coverage = receipt(plan, &settled, &collected.seen);
    let mut all_notes = ending.notes;
    if interrupted {
        all_notes.push(note(NoteKind::Interrupted, "The run was interrupted."));
    }
    all_notes.extend(notes(&settled));
    for (pass, refused) in &collected.refused {
        let text = format!("{pass}: {refused} findings over the limit were not taken");
        all_notes.push(note(NoteKind::PassTruncated, text));
    }
    let models_planned = plan.model_passes();
    let said = all_notes
        .iter()
        .any(|note| note.kind == NoteKind::ChecksOnly);
    if plan.agents.is_empty() && !said {
        let text = if plan.checks.is_some() {
            "No model is configured: only the built-in checks ran. To add one, name it with --model, REVIEWER_MODEL or `model` in config.jsonc."
        } else {
            "No model is configured and the built-in checks are switched off: nothing was reviewed."
        };
        all_notes.push(note(NoteKind::ChecksOnly, text));
    } else if !plan.agents.is_empty() && models_planned == 0 && !plan.diff.files.is_empty() {
        let text = "Nothing in this change is for a model to review: only the built-in checks ran.";
        all_notes.push(note(NoteKind::ChecksOnly, text));
    }

    let (kept, suppressed) = Suppressor::new(source).apply(collected.findings);
    let (findings, hidden) = ending.policy.apply(kept);
    let hidden_count = suppressed.len() + hidden.len();
    let mut dropped = collected.dropped;
    dropped.extend(suppressed);
    dropped.extend(hidden);

    let gap = all_notes.iter().any(|note| note.kind.is_gap());
    let complete = coverage.is_complete() && !gap && !interrupted;
    let completed = |wanted: fn(PassKind) -> bool| {
        settled
            .iter()
            .filter(|s| wanted(s.pass.kind) && s.outcome == PassOutcomeKind::Complete)
            .count()
    };
    let decision = decide(&Facts {
        standing: &findings,
        files: plan.diff.files.len(),
        models_planned,
        models_completed: completed(|kind| {
            matches!(kind, PassKind::Review | PassKind::CrossCutting)
        }),
        checks_completed: completed(|kind| kind == PassKind::Checks),
        complete,
        interrupted,
    });
    let filtered = coverage
        .files
        .iter()
        .filter(|file| file.outcome == FileOutcome::Filtered)
        .count() as u64;
    let mut text = summary(&SummaryFacts {
        decision,
        complete,
        interrupted,
        tally: Tally::of(&findings),
        totals: coverage.totals(),
        filtered,
        hidden: hidden_count,
    });
    // A model's word on the whole stands only beside findings that all still stand.
    let all_stand = hidden_count == 0 && !findings.is_empty();
    if complete && all_stand && !ending.overview.is_empty() {
        text.push(' ');
        text.push_str(&plain_to(&ending.overview, MAX_OVERVIEW));
    }
    let usage = settled
        .iter()
        .filter(|s| s.attempts > 0)
        .map(|s| s.usage)
        .reduce(Usage::plus)
        .unwrap_or(Usage::NONE);
    let total = ending.started.elapsed();
    Review {
        input: ending.info,
        sandbox: ending.sandbox,
        decision,
        complete,
        summary: text,
        findings,
        dismissed: Vec::new(),
        dropped,
        coverage,
        notes: all_notes,
        passes: settled.into_iter().map(|s| record(plan, s)).collect(),
        usage,
        timing: Timing {
            total_ms: millis(total),
            overhead_ms: millis(total.saturating_sub(ending.model_time)),
        },
    }
}

fn record(plan: &Plan, settled: Settled) -> PassRecord {
    let pass = &settled.pass;
    let files = pass.files.iter().filter_map(|at| plan.diff.files.get(*at));
    PassRecord {
        id: pass.id.clone(),
        kind: pass.kind,
        agent: pass.agent.id.clone(),
        files: files.map(|file| file.path.clone()).collect(),
        engine: pass.agent.engine.clone(),
        model_configured: pass.agent.model.clone(),
        model_answered: settled.model_answered,
        outcome: settled.outcome,
        reason: settled.reason.map(|(_, reason)| plain(&reason)),
        attempts: settled.attempts,
        tool_calls: settled.tool_calls,
        duration_ms: millis(settled.duration),
        usage: settled.usage,
    }
}

/// The report on a run that had nothing to review, said in words.
pub fn skipped(info: InputInfo, reason: &str) -> Review {
    Review {
        input: info,
        sandbox: SandboxInfo {
            level: "not_needed".to_owned(),
            missing: Vec::new(),
        },
        decision: Decision::Skipped,
        complete: true,
        summary: plain(reason),
        findings: Vec::new(),
        dismissed: Vec::new(),
        dropped: Vec::new(),
        coverage: CoverageReceipt::default(),
        notes: Vec::new(),
        passes: Vec::new(),
        usage: Usage::NONE,
        timing: Timing::default(),
    }
}

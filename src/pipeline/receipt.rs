//! The receipt: what became of every changed file and line.
//!
//! @ref LLP 0002#the-receipt — one outcome a file, totals as numstat

use std::collections::{HashMap, HashSet};

use super::notes::plain;
use super::plan::Plan;
use super::step::Settled;
use crate::model::{
    AgentId, CoverageReceipt, FileCoverage, FileOutcome, PassKind, PassOutcomeKind, RepoPath,
};

/// How one reviewer got on with one file.
#[derive(Clone, Default)]
enum State<'a> {
    /// No pass of this reviewer had the file.
    #[default]
    Unseen,
    /// Its pass did not come to an end that covers the file.
    Not(&'a str),
    /// It was reviewed.
    Done,
}

/// A reviewer, and whether it is the checks: an agent may bear the same name.
type Key<'a> = (&'a AgentId, bool);

/// How every reviewer got on with every file.
struct Table<'a>(HashMap<Key<'a>, Vec<State<'a>>>);

impl<'a> Table<'a> {
    fn get(&self, key: Key<'a>, at: usize) -> &State<'a> {
        self.0
            .get(&key)
            .map_or(&State::Unseen, |states| &states[at])
    }
}

/// Computes the receipt from the plan and what became of the passes. A file is reviewed when every
/// reviewer assigned to it completed a pass that covers it; a file hidden on purpose is filtered.
pub(super) fn receipt(plan: &Plan, settled: &[Settled]) -> CoverageReceipt {
    let count = plan.diff.files.len();
    let mut by_agent: HashMap<Key<'_>, Vec<State<'_>>> = HashMap::new();
    for pass in settled {
        let is_checks = match pass.pass.kind {
            PassKind::Checks => true,
            PassKind::Review => false,
            _ => continue,
        };
        let states = by_agent
            .entry((&pass.pass.agent.id, is_checks))
            .or_insert_with(|| vec![State::default(); count]);
        let unexamined: HashSet<&RepoPath> = pass.unexamined.iter().map(|(p, _)| p).collect();
        for at in pass.pass.files.iter().copied().filter(|at| *at < count) {
            if matches!(states[at], State::Done) {
                continue;
            }
            let examined = unexamined.is_empty() || !unexamined.contains(&plan.diff.files[at].path);
            states[at] = match (pass.outcome, &pass.reason) {
                (PassOutcomeKind::Complete, _) if examined => State::Done,
                (PassOutcomeKind::Complete, _) => State::Not("not examined"),
                (_, Some((_, reason))) => State::Not(reason),
                (_, None) => State::Not("did not complete"),
            };
        }
    }
    let table = Table(by_agent);
    let files = plan.diff.files.iter().enumerate().map(|(at, file)| {
        let reviewers = assigned(plan, at, &table);
        let done = reviewers
            .iter()
            .filter(|key| matches!(table.get(**key, at), State::Done))
            .count();
        let (outcome, reason) = if let Some(Some(reason)) = plan.filtered.get(at) {
            (FileOutcome::Filtered, Some(plain(reason)))
        } else if !reviewers.is_empty() && done == reviewers.len() {
            (FileOutcome::Reviewed, None)
        } else {
            let outcome = if done == 0 {
                FileOutcome::Missed
            } else {
                FileOutcome::Partial
            };
            let unseen = plan.hidden.get(&at).map_or("in no pass", String::as_str);
            (outcome, Some(why(&reviewers, &table, (at, unseen))))
        };
        let lines = u64::from(file.added) + u64::from(file.deleted);
        FileCoverage {
            path: file.path.clone(),
            old_path: file.old_path.clone(),
            status: file.status,
            added: file.added,
            deleted: file.deleted,
            binary: file.binary,
            reviewed_lines: if outcome == FileOutcome::Reviewed {
                lines
            } else {
                0
            },
            outcome,
            reason,
            lines_read: None,
        }
    });
    CoverageReceipt {
        files: files.collect(),
    }
}

/// Who has to review the file at `at`: the checks; every model reviewer of the plan, unless there is
/// nothing in it to read; and whoever else was given it by a later pass.
fn assigned<'a>(plan: &'a Plan, at: usize, table: &Table<'a>) -> Vec<Key<'a>> {
    let mut out: Vec<Key<'a>> = plan.checks.iter().map(|id| (id, true)).collect();
    if plan.needs_models(at) {
        out.extend(plan.agents.iter().map(|id| (id, false)));
    }
    let given = table.0.iter();
    let mut more: Vec<Key<'a>> = given
        .filter(|(key, states)| !matches!(states[at], State::Unseen) && !out.contains(key))
        .map(|(key, _)| *key)
        .collect();
    more.sort();
    out.extend(more);
    out
}

/// Who is missing and why; `unseen` is the reason of those that never got the file.
fn why<'a>(reviewers: &[Key<'a>], table: &Table<'a>, (at, unseen): (usize, &str)) -> String {
    if reviewers.is_empty() {
        return "nobody was assigned to it".to_owned();
    }
    let parts: Vec<String> = reviewers
        .iter()
        .filter_map(|key| match table.get(*key, at) {
            State::Done => None,
            State::Unseen => Some(format!("{}: {}", key.0, plain(unseen))),
            State::Not(reason) => Some(format!("{}: {}", key.0, plain(reason))),
        })
        .collect();
    plain(&parts.join("; "))
}

//! Commands of people into the state: the comments on the pull request are the journal.
//!
//! @ref LLP 0015#journal — why two writers lose nothing

use std::collections::BTreeSet;

use super::command::clean_reason;
use super::dismissal::is_grave;
use super::{BreakGlass, Command, CommandError, CommentState, Dismissal, parse};
use crate::model::Fingerprint;

/// Commands so much older than the newest comment, in seconds, are read once more: a listing may have missed one of them.
const OVERLAP: i64 = 600;

/// A comment as it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// Its id.
    pub id: u64,
    /// When it was written, seconds since 1970.
    pub at: i64,
    /// Who wrote it.
    pub author: &'a str,
    /// Its text.
    pub body: &'a str,
}

/// A command that is not in the state yet, for whose author the permission has to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The comment.
    pub comment: u64,
    /// When, seconds since 1970.
    pub at: i64,
    /// Who.
    pub author: String,
    /// What.
    pub command: Result<Command, CommandError>,
}

/// What is known of the right of a command's author to write to the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// May write.
    Granted,
    /// May not; the command is passed over for good.
    Denied,
    /// Could not be asked; the command waits for the next run.
    Unknown,
}

/// What became of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The comment; 0 for a command that was given on the command line.
    pub comment: u64,
    /// Who gave it.
    pub author: String,
    /// What was understood, or why it was not.
    pub command: Result<Command, CommandError>,
    /// Whether its author may give it.
    pub permission: Permission,
    /// Ids that no finding of the stored review has. The command is kept for them all the same.
    pub unknown: Vec<Fingerprint>,
    /// Critical findings and secrets that were to be dismissed without a reason: they stand.
    pub needs_reason: Vec<Fingerprint>,
}

/// The state after a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The new state.
    pub state: CommentState,
    /// What became of each command, in the order of the comments.
    pub outcomes: Vec<Outcome>,
}

/// The commands in `comments` (all of the pull request, but for our own) that `state` does not hold yet, oldest first.
pub fn pending(state: &CommentState, comments: &[Listed<'_>], marker: &str) -> Vec<Pending> {
    let mut found: Vec<_> = comments
        .iter()
        .filter(|c| c.id > state.applied || c.at.saturating_add(OVERLAP) > state.seen_at)
        .filter_map(|c| {
            Some(Pending {
                comment: c.id,
                at: c.at,
                author: c.author.to_owned(),
                command: parse(c.body, marker)?,
            })
        })
        .collect();
    found.sort_by_key(|pending| pending.comment);
    found
}

/// Applies the commands of [`pending`] whose author may give them, and marks `comments` as read.
///
/// The order does not matter, and neither does applying one again: of two commands about one finding the later comment wins.
pub fn replay(
    mut state: CommentState,
    comments: &[Listed<'_>],
    decided: Vec<(Pending, Permission)>,
) -> Replayed {
    let mut outcomes = Vec::new();
    let mut waiting = u64::MAX;
    for (pending, permission) in decided {
        if permission == Permission::Unknown {
            waiting = waiting.min(pending.comment);
        }
        outcomes.push(apply(&mut state, pending, permission));
    }
    outcomes.sort_by_key(|outcome| outcome.comment);
    let newest = comments
        .iter()
        .filter(|comment| comment.id < waiting)
        .map(|comment| (comment.id, comment.at))
        .max();
    if let Some((id, at)) = newest
        && id > state.applied
    {
        state.applied = id;
        state.seen_at = at;
    }
    if waiting <= state.applied {
        state.applied = waiting.saturating_sub(1);
        state.seen_at = 0;
    }
    Replayed { state, outcomes }
}

/// Applies a command from the command line, given by `author` at `at` after having read the comments up to `state.applied`.
/// A reason is cleaned as in a comment.
pub fn apply_local(
    mut state: CommentState,
    command: Command,
    author: &str,
    at: i64,
) -> (CommentState, Outcome) {
    let command = match command {
        Command::Dismiss { ids, reason } => Command::Dismiss {
            ids,
            reason: reason.as_deref().and_then(clean_reason),
        },
        other => other,
    };
    let pending = Pending {
        comment: state.applied,
        at,
        author: author.to_owned(),
        command: Ok(command),
    };
    let mut outcome = apply(&mut state, pending, Permission::Granted);
    outcome.comment = 0;
    (state, outcome)
}

fn apply(state: &mut CommentState, pending: Pending, permission: Permission) -> Outcome {
    let Pending {
        comment,
        at,
        author,
        command,
    } = pending;
    let mut outcome = Outcome {
        comment,
        author,
        command,
        permission,
        unknown: Vec::new(),
        needs_reason: Vec::new(),
    };
    let (Permission::Granted, Ok(command)) = (permission, &outcome.command) else {
        return outcome;
    };
    let (ids, active, reason) = match command {
        Command::Dismiss { ids, reason } => (ids, true, reason.clone()),
        Command::Undismiss(ids) => (ids, false, None),
        Command::Review(_) | Command::Skip => {
            let said = BreakGlass {
                comment,
                at,
                active: matches!(command, Command::Skip),
                by: outcome.author.clone(),
            };
            state.break_glass = state.break_glass.take().max(Some(said));
            return outcome;
        }
    };
    let known = known_ids(state);
    for id in ids {
        if !known.contains(id.as_str()) {
            outcome.unknown.push(id.clone());
        }
        if active && reason.is_none() && is_grave_in(state, id) {
            outcome.needs_reason.push(id.clone());
        }
    }
    for id in ids.clone() {
        state.dismissals.put(Dismissal {
            id,
            active,
            comment,
            at,
            by: Some(outcome.author.clone()),
            reasoned: reason.is_some(),
            reason: reason.clone(),
        });
    }
    outcome
}

fn known_ids(state: &CommentState) -> BTreeSet<String> {
    let review = state.review.iter();
    let found = review.flat_map(|r| r.findings.iter().map(|f| f.id.clone()));
    found
        .chain(state.dismissals.iter().map(|d| d.id.to_string()))
        .collect()
}

fn is_grave_in(state: &CommentState, id: &Fingerprint) -> bool {
    let mut findings = state.review.iter().flat_map(|review| &review.findings);
    findings.any(|f| f.id == id.as_str() && is_grave(f.severity.into(), f.category.into()))
}

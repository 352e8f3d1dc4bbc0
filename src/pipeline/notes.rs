//! What the passes could not do, in words.

use crate::model::{CoverageNote, ModelId, NoteKind, PassKind, PassOutcomeKind};

use super::step::Settled;

const MAX_TEXT: usize = 300;
/// Passes or files named in one note; more are counted.
const NAMED: usize = 4;

/// One line without control characters, of bounded length: text that came from outside.
pub(super) fn plain(text: &str) -> String {
    plain_to(text, MAX_TEXT)
}

/// As [`plain`], at most `max` characters long.
pub(super) fn plain_to(text: &str, max: usize) -> String {
    let mut out: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(max)
        .collect();
    if text.chars().nth(max).is_some() {
        out.push('…');
    }
    out
}

fn list(names: &[String]) -> String {
    let mut out = names[..names.len().min(NAMED)].join(", ");
    if names.len() > NAMED {
        out = format!("{out} and {} more", names.len() - NAMED);
    }
    out
}

/// True when `answered` is the model that was asked for: provider, date suffix and case aside.
fn same_model(asked: &ModelId, answered: &ModelId) -> bool {
    let bare = |model: &ModelId| {
        let name = model.as_str().rsplit('/').next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        match name.rsplit_once(['-', '@']) {
            Some((stem, date)) if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) => {
                stem.to_owned()
            }
            _ => name,
        }
    };
    bare(asked) == bare(answered)
}

/// The notes on how the passes went: one a kind and reason, not one a pass.
pub(super) fn notes(settled: &[Settled]) -> Vec<CoverageNote> {
    let mut groups: Vec<(NoteKind, String, Vec<String>)> = Vec::new();
    let mut add = |kind, reason: String, name: String| match groups
        .iter_mut()
        .find(|(k, r, _)| *k == kind && *r == reason)
    {
        Some((.., names)) => names.push(name),
        None => groups.push((kind, reason, vec![name])),
    };
    for pass in settled {
        let name = pass.pass.id.to_string();
        if let Some((kind, reason)) = &pass.reason {
            let reason = plain(reason);
            let text = match (pass.outcome, pass.attempts) {
                (PassOutcomeKind::Truncated, _) => format!("cut short: {reason}"),
                (_, 2..) => format!("failed after {} attempts: {reason}", pass.attempts),
                (PassOutcomeKind::Skipped, _) => format!("not run: {reason}"),
                _ => format!("failed: {reason}"),
            };
            // What these two would have done is done without them: nothing of the review is missing.
            let instead = match pass.pass.kind {
                PassKind::Coordinate => Some("the findings were merged by rule instead"),
                PassKind::Route => Some("every reviewer runs instead"),
                _ => None,
            };
            if let Some(instead) = instead.filter(|_| *kind != NoteKind::Interrupted) {
                add(NoteKind::Info, format!("{text}; {instead}"), name.clone());
            } else {
                add(*kind, text, name.clone());
            }
        }
        if pass.outcome == PassOutcomeKind::Complete {
            for (path, reason) in &pass.unexamined {
                let text = format!("not examined by {name}: {}", plain(reason));
                add(NoteKind::Missed, text, plain(&path.to_lossy()));
            }
        }
        if let (Some(asked), Some(answered)) = (&pass.pass.agent.model, &pass.model_answered)
            && !same_model(asked, answered)
        {
            let text = format!("answered by {answered} instead of {asked}");
            add(NoteKind::ModelSubstituted, text, name);
        }
    }
    groups
        .into_iter()
        .map(|(kind, reason, names)| CoverageNote {
            kind,
            text: format!("{}: {reason}", list(&names)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_compared_by_name() {
        for (asked, answered, same) in [
            ("acme/big-1", "big-1", true),
            ("acme/big-1", "Big-1-20260101", true),
            ("big-1@20260101", "proxy/acme/big-1", true),
            ("acme/big-1", "acme/small-1", false),
            ("acme/big-1", "acme/big-10", false),
        ] {
            let (asked, answered) = (
                ModelId::new(asked).unwrap(),
                ModelId::new(answered).unwrap(),
            );
            assert_eq!(same_model(&asked, &answered), same, "{asked} {answered}");
        }
    }

    #[test]
    fn outside_text_is_made_plain() {
        assert_eq!(plain("a\u{1b}[31m\nb"), "a [31m b");
        assert_eq!(plain(&"x".repeat(400)).chars().count(), MAX_TEXT + 1);
    }
}

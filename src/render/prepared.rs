//! A review made safe to show: what every format starts from.

use std::borrow::Cow;
use std::ops::Range;

use super::safe::{clamp, mask, mask_all_but_prefix, mask_words};
use crate::model::{
    Category, Decision, Excerpt, Finding, Location, NoteKind, PassKind, PassOutcomeKind,
    PassRecord, Review,
};

/// In a line that holds a credential somewhere, words from this length on are masked.
const SUSPECT_WORD: usize = 7;
/// In the lines around it.
const OPAQUE_WORD: usize = 20;

/// A review whose texts are masked, with what had to be worked out before masking.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The review, safe to show but for each format's own escaping.
    pub(super) review: Review,
    /// For each finding the highlighted columns in characters: 1-based, end exclusive. Masking
    /// changes the text but not the file, so they are counted before it.
    pub(super) columns: Vec<Option<CharColumns>>,
}

/// A range of columns in characters, 1-based, `end` exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CharColumns {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Prepared {
    /// Masks credentials and settles what a run with gaps may be called.
    pub(super) fn new(review: &Review) -> Self {
        let columns = review.findings.iter().map(char_columns).collect();
        let mut review = review.clone();
        masked(&mut review.summary);
        for finding in &mut review.findings {
            mask_finding(finding);
        }
        for dismissed in &mut review.dismissed {
            mask_finding(&mut dismissed.finding);
            masked_option(&mut dismissed.reason);
        }
        for dropped in &mut review.dropped {
            mask_finding(&mut dropped.finding);
            masked(&mut dropped.reason);
        }
        for file in &mut review.coverage.files {
            masked_option(&mut file.reason);
        }
        for note in &mut review.notes {
            masked(&mut note.text);
        }
        for pass in &mut review.passes {
            masked_option(&mut pass.reason);
        }
        settle(&mut review);
        Self { review, columns }
    }
}

/// Last line of defence for "a run with gaps never reads as an approval": whatever stage forgot
/// about a gap, no output repeats its mistake.
fn settle(review: &mut Review) {
    // For a coordinator and a router that fail a rule stands in, and no line goes unread for it.
    let cut_pass = |pass: &PassRecord| {
        matches!(
            pass.outcome,
            PassOutcomeKind::Failed | PassOutcomeKind::Truncated
        ) && !matches!(pass.kind, PassKind::Coordinate | PassKind::Route)
    };
    let gap = review.notes.iter().any(|note| note.kind.is_gap())
        || !review.coverage.is_complete()
        || review.passes.iter().any(cut_pass);
    review.complete &= !gap;
    if matches!(
        review.decision,
        Decision::Approve | Decision::ApproveWithComments
    ) {
        if !review.complete {
            review.decision = Decision::CouldNotComplete;
        } else if review.notes.iter().any(|n| n.kind == NoteKind::ChecksOnly) {
            review.decision = Decision::ChecksOnly;
        }
    }
}

fn masked(text: &mut String) {
    if let Cow::Owned(safe) = mask(text) {
        *text = safe;
    }
}

fn masked_option(text: &mut Option<String>) {
    if let Some(text) = text {
        masked(text);
    }
}

fn mask_finding(finding: &mut Finding) {
    if finding.category == Category::Secrets {
        mask_secret(finding);
    }
    masked(&mut finding.title);
    masked(&mut finding.rationale);
    masked_option(&mut finding.suggestion);
    masked_option(&mut finding.evidence);
    masked_option(&mut finding.verification.reason);
    if let Some(excerpt) = &mut finding.excerpt {
        for at in 0..excerpt.lines.len() {
            if let Cow::Owned(safe) = mask(&excerpt.lines[at]) {
                replace_line(excerpt, at, safe);
            }
        }
    }
}

/// Hides what a secrets finding points at, whether or not the recogniser knows its shape.
fn mask_secret(finding: &mut Finding) {
    let secret = pointed_at(finding);
    let hide = |text: &str| match &secret {
        Some(secret) => text.replace(secret.as_str(), &mask_all_but_prefix(secret)),
        None => text.to_owned(),
    };
    let hide_words = |text: &str, inside: bool| {
        let limit = if inside && secret.is_none() {
            SUSPECT_WORD
        } else {
            OPAQUE_WORD
        };
        mask_words(&hide(text), |word| word.chars().count() >= limit)
    };
    let hide_prose = |text: &str| mask_words(&hide(text), is_opaque);
    finding.title = hide_prose(&finding.title);
    finding.rationale = hide_prose(&finding.rationale);
    finding.suggestion = finding.suggestion.as_deref().map(hide_prose);
    finding.evidence = finding.evidence.as_deref().map(|t| hide_words(t, true));
    let (first, last) = (
        finding.location.line.unwrap_or(1),
        finding
            .location
            .end_line
            .or(finding.location.line)
            .unwrap_or(u32::MAX),
    );
    if let Some(excerpt) = &mut finding.excerpt {
        for at in 0..excerpt.lines.len() {
            let number = excerpt.first_line.saturating_add(at as u32);
            let inside = (first..=last).contains(&number);
            let safe = hide_words(&excerpt.lines[at], inside);
            replace_line(excerpt, at, safe);
        }
    }
}

/// True for a word that prose would not hold: long, with digits and letters of both cases.
fn is_opaque(word: &str) -> bool {
    let has = |test: fn(&u8) -> bool| word.as_bytes().iter().any(test);
    word.len() >= OPAQUE_WORD
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// The text under the highlight, when there is one worth the name.
fn pointed_at(finding: &Finding) -> Option<String> {
    let from_excerpt = finding.excerpt.as_ref().and_then(|excerpt| {
        let (at, range) = excerpt.highlight.as_ref()?;
        let line = excerpt.lines.get(*at)?;
        clamp(line, range.clone()).map(|range| &line[range])
    });
    let from_evidence = || {
        let (start, end) = finding.location.columns?;
        finding
            .evidence
            .as_deref()?
            .get(start as usize..end as usize)
    };
    from_excerpt
        .or_else(from_evidence)
        .map(str::trim)
        .filter(|text| text.len() > 3)
        .map(str::to_owned)
}

/// Replaces a line of an excerpt and moves the highlight to where its text went.
fn replace_line(excerpt: &mut Excerpt, at: usize, new: String) {
    let old = std::mem::replace(&mut excerpt.lines[at], new);
    let new = &excerpt.lines[at];
    if let Some((line, range)) = &mut excerpt.highlight
        && *line == at
        && old != *new
    {
        *range = moved(&old, new, range);
    }
}

fn moved(old: &str, new: &str, range: &Range<usize>) -> Range<usize> {
    let prefix = old
        .bytes()
        .zip(new.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let room = old.len().min(new.len()) - prefix;
    let suffix = old
        .bytes()
        .rev()
        .zip(new.bytes().rev())
        .take(room)
        .take_while(|(a, b)| a == b)
        .count();
    let map = |at: usize, inside: usize| {
        if at <= prefix {
            at
        } else if at + suffix >= old.len() {
            new.len().saturating_sub(old.len().saturating_sub(at))
        } else {
            inside
        }
    };
    map(range.start, prefix)..map(range.end, new.len() - suffix)
}

/// The highlighted columns in characters, when the whole line is at hand to count them in.
fn char_columns(finding: &Finding) -> Option<CharColumns> {
    let Location {
        columns: Some((start, end)),
        ..
    } = finding.location
    else {
        return None;
    };
    let range = start as usize..end as usize;
    let from_excerpt = finding.excerpt.as_ref().and_then(|excerpt| {
        let (at, highlight) = excerpt.highlight.as_ref()?;
        // Equal offsets mean that nothing was cut from the front of the line.
        (*highlight == range)
            .then(|| excerpt.lines.get(*at))
            .flatten()
    });
    let line = from_excerpt.or(finding.evidence.as_ref())?;
    // A replacement character may stand for fewer bytes than it takes, so offsets cannot be trusted.
    if line.contains('\u{fffd}') {
        return None;
    }
    let before = line.get(..range.start)?.chars().count() as u32;
    let inside = line.get(range)?.chars().count() as u32;
    Some(CharColumns {
        start: before + 1,
        end: before + 1 + inside,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highlight_follows_the_mask() {
        let old = "key = \"abcdefghijkl\"; // x";
        let new = "key = \"abc***\"; // x";
        assert_eq!(&new[moved(old, new, &(7..19))], "abc***");
        assert_eq!(&new[moved(old, new, &(0..3))], "key");
        assert_eq!(&new[moved(old, new, &(25..26))], "x");
    }
}

//! What a rule is and what it sees.
//!
//! @ref LLP 0005#the-contract-of-a-rule — what each rule owes its reader

use std::ops::Range;

use super::Content;
use crate::diff::FileMode;
use crate::model::{Category, ChangeStatus, RepoPath, Severity};

/// The documented entry of a built-in rule. Every rule has one, in one table per module.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// `[a-z0-9][a-z0-9-]*`, the key in the configuration's `checks.rules`.
    pub id: &'static str,
    /// Severity unless the configuration says otherwise.
    pub severity: Severity,
    /// Category of its findings.
    pub category: Category,
    /// One line: what is wrong. Up to 120 characters.
    pub title: &'static str,
    /// What breaks, for whom, when.
    pub consequence: &'static str,
    /// What to do instead.
    pub remedy: &'static str,
}

/// One changed text file as rules see it.
#[derive(Debug)]
pub struct CheckedFile<'a> {
    /// Path after the change.
    pub path: &'a RepoPath,
    /// What happened to it.
    pub status: ChangeStatus,
    /// Mode after the change.
    pub mode: FileMode,
    /// The whole new content where the tree has it; else only `added` is known.
    pub content: Content<'a>,
    /// The added lines, ascending: 1-based new line number and the bytes without the newline.
    pub added: Vec<(u32, &'a [u8])>,
}

impl<'a> CheckedFile<'a> {
    /// The first added line from `first` to `last` (1-based, inclusive): its number and bytes.
    pub fn added_between(&self, first: u32, last: u32) -> Option<(u32, &'a [u8])> {
        let at = self.added.partition_point(|(number, _)| *number < first);
        let found = *self.added.get(at)?;
        (found.0 <= last).then_some(found)
    }
}

/// A rule matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The rule's id.
    pub rule: String,
    /// 1-based new line number of the start.
    pub line: u32,
    /// 1-based last line.
    pub end_line: u32,
    /// Byte offsets within `line`, half-open.
    pub columns: Option<Range<usize>>,
    /// The verbatim line `line` (without its newline), or for a whole-file finding nothing.
    pub evidence: Option<Vec<u8>>,
    /// Replaces the rule's title, where the match knows better (no secret in it).
    pub title: Option<String>,
}

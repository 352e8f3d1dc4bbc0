//! git's own diff: the listings say which files there are, the patch has to agree.
//!
//! @ref LLP 0001#three-witnesses — names, counts and hunks are three independent witnesses

use std::collections::HashSet;

use bytes::Bytes;

use super::error::{DiffError, Problem, shown};
use super::hunk::check_order;
use super::listing::{Counts, RawEntry, parse_numstat, parse_raw, split_combined};
use super::section::{self, Cursor, Section};
use super::types::{Diff, FileDiff, FileMode};
use crate::model::{ChangeStatus, RepoPath};

/// Parses `git diff` in three parts: `--raw -z --no-abbrev`, `--numstat -z` and the patch
/// (`--src-prefix=a/ --dst-prefix=b/`, no colour, no external diff), all of the same two sides.
///
/// Names, modes, ids, status and score come from the raw listing, counts from numstat, hunks from
/// the patch. Sections are taken in the listing's order; each has to carry the names of its entry
/// and the counts of numstat. Whatever does not agree is an error that names the file.
///
/// A type change has two sections in the patch (a deletion and an addition) and is one file here with both
/// sections' hunks; numstat counts the lines common to both sides as unchanged, and `added`/`deleted`
/// are numstat's. A conflict in the index is [`ChangeStatus::Unmerged`], with the hunks of the
/// work-tree version where git shows one.
pub fn parse_git(raw_z: &[u8], numstat_z: &[u8], patch: Bytes) -> Result<Diff, DiffError> {
    let entries = parse_raw(raw_z)?;
    let mut counts = parse_numstat(numstat_z)?.into_iter().peekable();
    let mut cursor = Cursor::new(&patch);
    let mut files: Vec<FileDiff> = Vec::with_capacity(entries.len());
    if !patch.is_empty() && patch.last() != Some(&b'\n') {
        cursor.pos = patch.len();
        return Err(cursor
            .problem("the patch is cut: its last line has no end")
            .in_file(&patch, None));
    }
    for entry in entries {
        if entry.combined {
            files.push(combined_file(entry, &cursor)?);
            continue;
        }
        let listed = counts
            .peek()
            .is_some_and(|stat| stat.path == entry.path.as_bytes());
        let stat = if !listed && may_be_untouched(&entry) {
            // git lists a work-tree file that was only touched, but neither counts nor shows it.
            Counts {
                lines: Some((0, 0)),
                old_path: None,
                path: &[],
            }
        } else {
            let stat = counts
                .next()
                .ok_or_else(|| census(&entry.path, "numstat has no counts for it"))?;
            check_names(&entry, &stat)?;
            stat
        };
        let file = Entry { entry, stat }.parse(&mut cursor)?;
        match files.last_mut() {
            // A conflict is listed once as such and, when a work-tree file is compared, once more.
            Some(last) if last.status == ChangeStatus::Unmerged && last.path == file.path => {
                *last = FileDiff {
                    status: ChangeStatus::Unmerged,
                    section: last.section.start..file.section.end,
                    ..file
                };
            }
            _ => files.push(file),
        }
    }
    if let Some(stat) = counts.next() {
        return Err(DiffError::Census {
            file: shown(stat.path),
            problem: "numstat counts it, but the raw listing does not have it".into(),
        });
    }
    if let Some(line) = cursor.peek() {
        return Err(match combined_name(line) {
            Some(name) => DiffError::Combined { file: shown(name) },
            None => cursor
                .problem("the patch goes on after the last listed file")
                .in_file(&patch, None),
        });
    }
    check_repeats(&files)?;
    Ok(Diff { patch, files })
}

/// Parses the output of one run of `git diff --raw --numstat -p -z` (see [`parse_git`]).
pub fn parse_combined(output: &[u8]) -> Result<Diff, DiffError> {
    let (raw, numstat, patch) = split_combined(output)?;
    parse_git(
        &output[raw],
        &output[numstat],
        Bytes::copy_from_slice(&output[patch]),
    )
}

/// Refuses a diff that changes one path twice.
pub(super) fn check_repeats(files: &[FileDiff]) -> Result<(), DiffError> {
    let mut seen = HashSet::with_capacity(files.len());
    match files.iter().find(|file| !seen.insert(&file.path)) {
        None => Ok(()),
        Some(file) => Err(DiffError::Repeated {
            file: shown(file.path.as_bytes()),
        }),
    }
}

/// The name in a `diff --cc`/`--combined` line, as it stands there.
pub(super) fn combined_name(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"diff --cc ")
        .or_else(|| line.strip_prefix(b"diff --combined "))
}

fn census(path: &RepoPath, problem: impl Into<String>) -> DiffError {
    DiffError::Census {
        file: shown(path.as_bytes()),
        problem: problem.into(),
    }
}

/// A conflict as `git diff` lists it when it is asked for the raw form (no counts, no section).
/// A merge commit looks alike but has a new side and a combined section: that is refused.
fn combined_file(entry: RawEntry, cursor: &Cursor<'_>) -> Result<FileDiff, DiffError> {
    let has_section = cursor.peek().is_some_and(|l| combined_name(l).is_some());
    if entry.new_id.is_some() || has_section {
        return Err(DiffError::Combined {
            file: shown(entry.path.as_bytes()),
        });
    }
    Ok(new_file(entry, cursor.pos))
}

fn new_file(entry: RawEntry, at: usize) -> FileDiff {
    FileDiff {
        path: entry.path,
        old_path: entry.old_path,
        status: entry.status,
        score: entry.score,
        old_mode: entry.old_mode,
        new_mode: entry.new_mode,
        old_id: entry.old_id,
        new_id: entry.new_id,
        added: 0,
        deleted: 0,
        binary: false,
        section: at..at,
        hunks: Vec::new(),
    }
}

/// A work-tree file whose content git had not compared when it listed it.
fn may_be_untouched(entry: &RawEntry) -> bool {
    entry.status == ChangeStatus::Modified
        && entry.old_mode == entry.new_mode
        && entry.new_id.is_none()
}

/// numstat has to list the same names at the same place.
fn check_names(entry: &RawEntry, stat: &Counts<'_>) -> Result<(), DiffError> {
    let old = entry.old_path.as_ref().map(RepoPath::as_bytes);
    // `--no-index /dev/null FILE` counts as if from /dev/null.
    let same_old = stat.old_path == old
        || (entry.status == ChangeStatus::Added && stat.old_path == Some(b"/dev/null"));
    if same_old && stat.path == entry.path.as_bytes() {
        return Ok(());
    }
    Err(census(
        &entry.path,
        format!("numstat lists {} in its place", shown(stat.path)),
    ))
}

/// One listed file and its counts.
struct Entry<'a> {
    entry: RawEntry,
    stat: Counts<'a>,
}

impl Entry<'_> {
    fn parse(self, cursor: &mut Cursor<'_>) -> Result<FileDiff, DiffError> {
        let start = cursor.pos;
        let (added, deleted) = self.stat.lines.unwrap_or((0, 0));
        let sections = self.sections(cursor)?;
        let patch = cursor.patch;
        let in_patch = |problem: Problem| problem.in_file(patch, Some(self.entry.path.as_bytes()));
        let mut hunks = Vec::new();
        let mut totals = (0u32, 0u32);
        let mut binary = false;
        for section in sections {
            check_order(&section.hunks, true).map_err(in_patch)?;
            totals.0 = totals.0.saturating_add(section.added);
            totals.1 = totals.1.saturating_add(section.deleted);
            binary |= section.binary;
            if hunks.is_empty() {
                hunks = section.hunks;
            } else {
                hunks.extend(section.hunks);
            }
        }
        self.check_counts(totals, binary, hunks.len())?;
        let mut file = new_file(self.entry, start);
        file.added = added;
        file.deleted = deleted;
        file.binary = self.stat.lines.is_none() && hunks.is_empty();
        file.section = start..cursor.pos;
        file.hunks = hunks;
        Ok(file)
    }

    /// The sections of this entry: none, one, or two for a type change.
    fn sections(&self, cursor: &mut Cursor<'_>) -> Result<Vec<Section>, DiffError> {
        let path = self.entry.path.as_bytes();
        if self.entry.status == ChangeStatus::Unmerged {
            // The name stands there unquoted, newlines included, so it is compared, not parsed.
            let rest = &cursor.patch[cursor.pos..];
            let tail = rest
                .strip_prefix(b"* Unmerged path ")
                .and_then(|rest| rest.strip_prefix(path))
                .and_then(|rest| rest.strip_prefix(b"\n"));
            let Some(tail) = tail else {
                return Err(self.missing(cursor));
            };
            cursor.pos = cursor.patch.len() - tail.len();
            return Ok(Vec::new());
        }
        if !self.at_header(cursor) {
            let nothing = may_be_untouched(&self.entry) && self.stat.lines == Some((0, 0));
            return if nothing {
                Ok(Vec::new())
            } else {
                Err(self.missing(cursor))
            };
        }
        let mut sections = vec![self.section(cursor)?];
        if self.entry.status == ChangeStatus::TypeChanged {
            if !self.at_header(cursor) {
                return Err(self.missing(cursor));
            }
            let second = self.section(cursor)?;
            if !sections[0].deleted_file || !second.created {
                return Err(census(
                    &self.entry.path,
                    "a type change that is not a deletion and an addition",
                ));
            }
            sections.push(second);
        }
        Ok(sections)
    }

    fn old_name(&self) -> &[u8] {
        self.entry
            .old_path
            .as_ref()
            .unwrap_or(&self.entry.path)
            .as_bytes()
    }

    fn at_header(&self, cursor: &Cursor<'_>) -> bool {
        cursor
            .peek()
            .and_then(|line| line.strip_prefix(b"diff --git "))
            .is_some_and(|rest| {
                super::name::is_header_of(rest, self.old_name(), self.entry.path.as_bytes())
            })
    }

    fn missing(&self, cursor: &Cursor<'_>) -> DiffError {
        match cursor.peek().map(|line| (line, combined_name(line))) {
            Some((_, Some(name))) => DiffError::Combined { file: shown(name) },
            Some((line, None)) => census(
                &self.entry.path,
                format!("the patch has this in its place: {}", shown(line)),
            ),
            None => census(&self.entry.path, "the patch has no section for it"),
        }
    }

    fn section(&self, cursor: &mut Cursor<'_>) -> Result<Section, DiffError> {
        let path = self.entry.path.as_bytes();
        cursor.advance();
        let section =
            section::parse(cursor).map_err(|problem| problem.in_file(cursor.patch, Some(path)))?;
        let entry = &self.entry;
        let typed = entry.status == ChangeStatus::TypeChanged;
        let same_kind = typed
            || (section.created == (entry.status == ChangeStatus::Added)
                && section.deleted_file == (entry.status == ChangeStatus::Deleted)
                && section.rename == (entry.status == ChangeStatus::Renamed)
                && section.copy == (entry.status == ChangeStatus::Copied));
        if !same_kind {
            return Err(census(
                &entry.path,
                "raw listing and patch disagree about what happened to it",
            ));
        }
        let from = section.from.as_deref().unwrap_or(self.old_name());
        let to = section.to.as_deref().unwrap_or(path);
        let label = |label: &Option<super::name::Label>, prefix: &[u8], name: &[u8]| {
            label
                .as_ref()
                .and_then(|label| label.name())
                .is_none_or(|found| found.strip_prefix(prefix) == Some(name))
        };
        if from != self.old_name()
            || to != path
            || !label(&section.old_label, b"a/", self.old_name())
            || !label(&section.new_label, b"b/", path)
        {
            return Err(census(
                &entry.path,
                "its section in the patch names another file",
            ));
        }
        Ok(section)
    }

    /// Compares the patch's own counts with numstat's.
    fn check_counts(&self, patch: (u32, u32), binary: bool, hunks: usize) -> Result<(), DiffError> {
        let entry = &self.entry;
        let typed = entry.status == ChangeStatus::TypeChanged;
        let Some(stat) = self.stat.lines else {
            if hunks > 0 && !typed {
                return Err(census(
                    &entry.path,
                    "numstat calls it binary, the patch shows text",
                ));
            }
            return Ok(());
        };
        if binary {
            return Err(census(
                &entry.path,
                "the patch calls it binary, numstat counts lines",
            ));
        }
        // numstat compares both sides of a type change as text; the patch rewrites all of it.
        let rewritten = typed
            && patch
                .0
                .checked_sub(stat.0)
                .zip(patch.1.checked_sub(stat.1))
                .is_some_and(|(added, deleted)| added == deleted);
        // A submodule with local changes ("-dirty") shows a line pair that numstat does not count.
        let dirty = entry.old_mode == FileMode::SUBMODULE
            && entry.new_mode == FileMode::SUBMODULE
            && stat == (0, 0)
            && patch == (1, 1);
        if patch == stat || rewritten || dirty {
            return Ok(());
        }
        Err(census(
            &entry.path,
            format!(
                "the patch adds {} and deletes {} lines, numstat says {} and {}",
                patch.0, patch.1, stat.0, stat.1
            ),
        ))
    }
}

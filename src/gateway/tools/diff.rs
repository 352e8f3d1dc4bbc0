//! `diff`: the change of one file, with line numbers of both sides.

use std::sync::{Arc, PoisonError};

use super::arguments::Arguments;
use super::content::MAX_FILE;
use super::page::{Page, boundary};
use super::path::{LONGEST, shown};
use super::read::{Part, Row, fill};
use super::session::{Outcome, Shared};
use crate::detect::mask_lines;
use crate::diff::{Diff, FileDiff, Hunk, LineKind};
use crate::model::ChangeStatus;

/// Bytes of a hunk's heading that are shown.
const MAX_HEADING: usize = 120;

/// What a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// The numbers of a hunk.
    Hunk,
    /// A line, with its number on its side: the new one unless it is removed.
    Line(LineKind, u32),
    /// The file ends without a newline.
    NoNewline,
}

/// The rows of a file's change, credentials masked.
#[derive(Default)]
pub(super) struct DiffRows {
    text: String,
    /// Each row and where its text ends.
    rows: Vec<(Mark, usize)>,
}

impl DiffRows {
    fn of(diff: &Diff, file: &FileDiff) -> Self {
        let mut all = Self::default();
        for hunk in &file.hunks {
            all.add(diff, hunk);
        }
        all
    }

    fn push(&mut self, mark: Mark, text: &str) {
        self.text.push_str(text.strip_suffix('\r').unwrap_or(text));
        self.rows.push((mark, self.text.len()));
    }

    fn add(&mut self, diff: &Diff, hunk: &Hunk) {
        let heading = diff.patch.get(hunk.heading.clone()).unwrap_or_default();
        let heading = String::from_utf8_lossy(heading);
        let text = format!(
            "@@ -{},{} +{},{} @@ {}",
            hunk.old_start,
            hunk.old_len,
            hunk.new_start,
            hunk.new_len,
            &heading[..boundary(&heading, MAX_HEADING)]
        );
        self.push(Mark::Hunk, text.trim_end());
        // Each side is masked as the text it is: a key of several lines is not one between the lines of the other side.
        let side = |without: LineKind| {
            let mut bytes = Vec::new();
            for line in hunk.lines(&diff.patch).filter(|line| line.kind != without) {
                bytes.extend_from_slice(line.content);
                bytes.push(b'\n');
            }
            mask_lines(&String::from_utf8_lossy(&bytes)).into_owned()
        };
        let (old, new) = (side(LineKind::Added), side(LineKind::Removed));
        let (mut old, mut new) = (old.split('\n'), new.split('\n'));
        for line in hunk.lines(&diff.patch) {
            let (text, number) = match line.kind {
                LineKind::Removed => (old.next(), line.old_no),
                LineKind::Added => (new.next(), line.new_no),
                LineKind::Context => {
                    old.next();
                    (new.next(), line.new_no)
                }
            };
            let mark = Mark::Line(line.kind, number.unwrap_or_default());
            self.push(mark, text.unwrap_or_default());
            if !line.newline {
                self.push(Mark::NoNewline, "");
            }
        }
    }

    fn row(&self, at: usize) -> Row<'_> {
        let (mark, end) = self.rows[at];
        let start = at.checked_sub(1).map_or(0, |before| self.rows[before].1);
        let label = match mark {
            Mark::Hunk => String::new(),
            Mark::NoNewline => "\\ no newline at the end".to_owned(),
            Mark::Line(LineKind::Added, number) => format!("+{number}\t"),
            Mark::Line(LineKind::Removed, number) => format!("-{number}\t"),
            Mark::Line(LineKind::Context, number) => format!(" {number}\t"),
        };
        Row {
            number: number_of(at),
            label,
            text: &self.text[start..end],
        }
    }
}

/// Rows count from 1.
fn number_of(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
}

/// Serves `diff`.
pub(super) fn diff(shared: &Shared, arguments: &mut Arguments) -> Outcome {
    let path = shared.path(&arguments.text("path", LONGEST)?)?;
    let part = Part::take(arguments)?;
    shared.check_served(&path)?;
    let Some(at) = shared.changed(&path) else {
        return Err("this file is not changed: use read".to_owned());
    };
    let diff = &shared.settings.diff;
    let file = &diff.files[at];
    // Of a renamed file, either name may be held back.
    shared.check_served(&file.path)?;
    if let Some(old) = &file.old_path {
        shared.check_served(old)?;
    }
    let mut page = Page::default();
    if part.from == 1 && part.skip == 0 {
        page.say(&header(file));
    }
    if file.section.len() as u64 > MAX_FILE {
        let size = file.section.len();
        page.say(&format!(
            "[a change of {size} bytes: over {MAX_FILE} none is served]"
        ));
        return Ok(page.finish());
    }
    let rendered = rendered(shared, at, file);
    let total = u32::try_from(rendered.rows.len()).unwrap_or(u32::MAX);
    if total == 0 {
        return Ok(page.finish());
    }
    if part.from > total {
        return Err(format!("row {} is not there: there are {total}", part.from));
    }
    let rows = (part.from as usize - 1..rendered.rows.len()).map(|at| rendered.row(at));
    fill(&mut page, &part, rows, total, |number| {
        let on_its_side = match rendered.rows[number as usize - 1].0 {
            Mark::Line(LineKind::Removed, line) => {
                (file.status == ChangeStatus::Deleted).then_some(line)
            }
            Mark::Line(_, line) => Some(line),
            Mark::Hunk | Mark::NoNewline => None,
        };
        if let Some(line) = on_its_side {
            shared.saw(&file.path, line..=line);
        }
    })?;
    Ok(page.finish())
}

/// The rows of a file; the last one stays rendered for its next page.
fn rendered(shared: &Shared, at: usize, file: &FileDiff) -> Arc<DiffRows> {
    let lock = || {
        shared
            .rendered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    if let Some((known, rows)) = &*lock()
        && *known == at
    {
        return Arc::clone(rows);
    }
    let rows = Arc::new(DiffRows::of(&shared.settings.diff, file));
    *lock() = Some((at, Arc::clone(&rows)));
    rows
}

/// What happened to the file, in one line.
fn header(file: &FileDiff) -> String {
    let mut words = vec![format!("{} {}", file.status, shown(&file.path))];
    if let Some(old) = &file.old_path {
        words[0] = format!("{} (was {})", words[0], shown(old));
    }
    let (old, new) = (file.old_mode, file.new_mode);
    if !old.is_absent() && !new.is_absent() && old != new {
        words.push(format!("mode {:o} to {:o}", old.0, new.0));
    }
    words.push(if file.binary {
        "binary".to_owned()
    } else {
        format!("+{} -{}", file.added, file.deleted)
    });
    words.join(", ")
}

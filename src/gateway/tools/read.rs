//! `read`: numbered lines of a file.

use super::arguments::Arguments;
use super::content::{Content, MAX_FILE, line_count, lines};
use super::page::{Page, Pushed, boundary};
use super::path::{LONGEST, shown};
use super::session::{Outcome, Shared};
use crate::model::{ChangeStatus, RepoPath};
use crate::tree::EntryKind;

/// Other places that an error names.
const SUGGESTIONS: usize = 3;

/// Which part of numbered rows is asked for.
pub(super) struct Part {
    /// First row, from 1.
    pub(super) from: u32,
    /// Last row.
    pub(super) to: u32,
    /// Byte of the first row where to begin, from 0.
    pub(super) skip: usize,
}

impl Part {
    pub(super) fn take(arguments: &mut Arguments) -> Result<Self, String> {
        let from = arguments.number("from", 1, u32::MAX)?;
        let to = arguments.number("to", 1, u32::MAX)?;
        let column = arguments.number("column", 1, u32::MAX)?;
        if column.is_some() && from.is_none() {
            return Err("column needs from".to_owned());
        }
        let (from, to) = (from.unwrap_or(1), to.unwrap_or(u32::MAX));
        if to < from {
            return Err(format!("to ({to}) is before from ({from})"));
        }
        Ok(Self {
            from,
            to,
            skip: column.map_or(0, |column| column as usize - 1),
        })
    }
}

/// A row, shown whole or to its end.
pub(super) struct Row<'a> {
    pub(super) number: u32,
    pub(super) label: String,
    pub(super) text: &'a str,
}

/// Fills the page with the rows of `part` (`rows` begins with its first) and says how to go on. `saw` is told of each row
/// whose end is on the page.
pub(super) fn fill<'a>(
    page: &mut Page,
    part: &Part,
    rows: impl Iterator<Item = Row<'a>>,
    total: u32,
    mut saw: impl FnMut(u32),
) -> Result<(), String> {
    let mut last = part.from;
    for row in rows.take_while(|row| row.number <= part.to) {
        let skip = if row.number == part.from {
            part.skip
        } else {
            0
        };
        if skip > 0 && skip >= row.text.len() {
            let length = row.text.len();
            return Err(format!("column: line {} has {length} bytes", row.number));
        }
        let text = &row.text[boundary(row.text, skip)..];
        match page.push(&row.label, text) {
            Pushed::Whole => {
                saw(row.number);
                last = row.number;
            }
            Pushed::Part(end) => {
                page.say(&format!(
                    "[goes on: from={}, column={}; {} bytes in all]",
                    row.number,
                    row.text.len() - text.len() + end + 1,
                    row.text.len()
                ));
                return Ok(());
            }
            Pushed::Not => {
                page.say(&format!("[goes on: from={}; {total} in all]", row.number));
                return Ok(());
            }
        }
    }
    if last < total {
        page.say(&format!("[to {last} of {total}]"));
    }
    Ok(())
}

/// Serves `read`.
pub(super) fn read(shared: &Shared, arguments: &mut Arguments) -> Outcome {
    let path = shared.path(&arguments.text("path", LONGEST)?)?;
    let part = Part::take(arguments)?;
    shared.check_served(&path)?;
    let text = match text_of(shared, &path)? {
        Ok(text) => text,
        Err(words) => return Ok(words),
    };
    let total = line_count(&text);
    if total == 0 {
        return Ok("[the file is empty]".to_owned());
    }
    if part.from > total {
        return Err(format!(
            "line {} is not there: the file has {total}",
            part.from
        ));
    }
    let mut page = Page::default();
    let rows = (part.from..=total)
        .zip(lines(&text).skip(part.from as usize - 1))
        .map(|(number, text)| Row {
            number,
            label: format!("{number}\t"),
            text,
        });
    let mut seen: Option<(u32, u32)> = None;
    fill(&mut page, &part, rows, total, |number| {
        seen = Some((seen.map_or(number, |(first, _)| first), number));
    })?;
    if let Some((first, last)) = seen {
        shared.saw(&path, first..=last);
    }
    Ok(page.finish())
}

/// The text of a file, or words that stand for it; an error when there is no such file.
fn text_of(
    shared: &Shared,
    path: &RepoPath,
) -> Result<Result<std::sync::Arc<str>, String>, String> {
    let tree = shared.tree()?;
    match tree.kind(path).map_err(|error| error.to_string())? {
        None => return Err(absent(shared, path)),
        Some(EntryKind::Folder) => return Err("that is a folder: use list".to_owned()),
        Some(EntryKind::Submodule) => {
            return Ok(Err("[a submodule: its files are not here]".to_owned()));
        }
        Some(EntryKind::Symlink) => {
            let target = match tree.content(path, false).map_err(|e| e.to_string())? {
                Some(Content::Text(text)) => text.lines().next().unwrap_or_default().to_owned(),
                _ => String::new(),
            };
            let end = boundary(&target, LONGEST);
            return Ok(Err(format!("[a symbolic link to {}]", &target[..end])));
        }
        Some(EntryKind::File | EntryKind::Executable) => {}
    }
    match tree
        .content(path, false)
        .map_err(|error| error.to_string())?
    {
        None => Err(absent(shared, path)),
        Some(Content::Text(text)) => Ok(Ok(text)),
        Some(Content::Binary(size)) => Ok(Err(format!("[a binary file of {size} bytes]"))),
        Some(Content::TooLarge(size)) => Ok(Err(format!(
            "[a file of {size} bytes: over {MAX_FILE} none is served; its change is in diff]"
        ))),
    }
}

/// Says that there is no such file, and where else to look.
fn absent(shared: &Shared, path: &RepoPath) -> String {
    if let Some(at) = shared.changed(path) {
        let file = &shared.settings.diff.files[at];
        if file.status == ChangeStatus::Deleted {
            return "this change deletes it: use diff".to_owned();
        }
        if file.path != *path {
            return format!("this change renames it to {}", shown(&file.path));
        }
    }
    let mut words = "no such file".to_owned();
    if let Ok(files) = shared
        .tree()
        .and_then(|tree| tree.files().map_err(|e| e.to_string()))
    {
        let same_name =
            |entry: &&crate::tree::TreeEntry| entry.path.file_name() == path.file_name();
        let others: Vec<_> = files
            .iter()
            .filter(same_name)
            .take(SUGGESTIONS)
            .map(|entry| shown(&entry.path))
            .collect();
        if !others.is_empty() {
            words.push_str("; of that name: ");
            words.push_str(&others.join(", "));
        }
    }
    words
}

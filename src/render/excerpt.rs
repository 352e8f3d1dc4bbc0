//! Source lines with a caret, for terminals.

use std::ops::Range;

use super::layout::{Page, Paint, fitting, width};
use super::safe::{clamp, printable_source};
use crate::model::{Excerpt, Location};

/// Lines shown before and after the finding's own.
const CONTEXT: usize = 2;
/// The finding's own lines shown at most.
const MAX_LINES: usize = 6;
/// Bytes looked at on each side of the mark.
const REACH: usize = 4_000;
/// Stands for what was cut.
const DOTS: &str = "...";

/// Writes the excerpt of a finding under its `-->` line. `digits` is the gutter's width.
pub(super) fn write(page: &mut Page<'_>, excerpt: &Excerpt, location: &Location, paint: Paint) {
    let at = excerpt
        .highlight
        .as_ref()
        .map(|(line, _)| *line)
        .or_else(|| {
            let line = location.line?.checked_sub(excerpt.first_line)? as usize;
            (line < excerpt.lines.len()).then_some(line)
        });
    let first = at.unwrap_or(0).saturating_sub(CONTEXT);
    let span = location
        .line
        .zip(location.end_line)
        .map_or(0, |(a, b)| b.saturating_sub(a)) as usize;
    let last = at.unwrap_or(0) + span.min(MAX_LINES - 1) + CONTEXT;
    let shown: Vec<(u32, usize)> = (first..excerpt.lines.len().min(last + 1))
        .map(|index| (excerpt.first_line.saturating_add(index as u32), index))
        .collect();
    let Some((largest, _)) = shown.last() else {
        return;
    };
    let digits = largest.to_string().len();
    let bar =
        |page: &Page<'_>, number: &str| page.paint(Paint::Blue, &format!("{number:>digits$} |"));
    let empty = bar(page, "");
    page.line(&empty);
    let room = page.width().saturating_sub(digits + 3).max(8);
    for (number, index) in shown {
        let highlight = match &excerpt.highlight {
            Some((line, range)) if *line == index => Some(range.clone()),
            _ => None,
        };
        let (text, marked) = near(&excerpt.lines[index], highlight);
        let (text, marked) = printable_source(text, marked);
        let (text, marked) = window(&text, marked, room);
        let head = bar(page, &number.to_string());
        let line = if text.trim_end().is_empty() {
            head
        } else {
            format!("{head} {}", text.trim_end())
        };
        page.line(&line);
        if let Some(range) = marked {
            let before = width(&text[..range.start]);
            let carets = width(&text[range]).clamp(1, room.saturating_sub(before).max(1));
            let line = format!(
                "{empty} {}{}",
                " ".repeat(before),
                page.paint(paint, &"^".repeat(carets))
            );
            page.line(&line);
        }
    }
    page.line(&empty);
}

/// Cuts a line of any length to what can possibly be shown, so that what follows is cheap.
fn near(line: &str, marked: Option<Range<usize>>) -> (&str, Option<Range<usize>>) {
    let Some(range) = clamp(line, marked.clone().unwrap_or(0..0)) else {
        return near(line, None);
    };
    let boundary = |at: &usize| line.is_char_boundary(*at);
    let start = (0..=range.start.saturating_sub(REACH))
        .rev()
        .find(boundary)
        .unwrap_or(0);
    let limit = (range.start + REACH).min(line.len());
    let end = (limit..=line.len()).find(boundary).unwrap_or(line.len());
    let marked = marked.map(|_| range.start - start..range.end.min(end) - start);
    (&line[start..end], marked)
}

/// The part of `text` that fits `room` columns, around the marked part, with `...` where it was cut.
fn window(text: &str, marked: Option<Range<usize>>, room: usize) -> (String, Option<Range<usize>>) {
    if width(text) <= room {
        return (text.to_owned(), marked);
    }
    let wanted = marked.clone().unwrap_or(0..0);
    let mut start = 0;
    if width(&text[..wanted.end]) + DOTS.len() > room {
        // Begin so that the marked part starts a third into the line, or is at least begun.
        let lead = room / 3;
        let skip = width(&text[..wanted.start]).saturating_sub(lead.saturating_sub(DOTS.len()));
        start = fitting(text, skip);
    }
    let (front, mut left) = if start > 0 {
        (DOTS, room - DOTS.len())
    } else {
        ("", room)
    };
    let rest = &text[start..];
    let cut = width(rest) > left;
    if cut {
        left = left.saturating_sub(DOTS.len());
    }
    let end = fitting(rest, left);
    let out = format!("{front}{}{}", &rest[..end], if cut { DOTS } else { "" });
    let shift = |at: usize| (at.saturating_sub(start)).min(end) + front.len();
    (
        out,
        marked.map(|range| shift(range.start)..shift(range.end)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let text = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let (cut, marked) = window(&text, Some(500..504), 30);
        assert_eq!(&cut[marked.unwrap()], "HERE");
        assert!(width(&cut) <= 30 && cut.starts_with("...") && cut.ends_with("..."));
        let (cut, marked) = window(&text, None, 30);
        assert!(cut.starts_with("aaa") && width(&cut) == 30 && marked.is_none());
        let wide = "漢".repeat(100);
        let (cut, _) = window(&wide, Some(150..153), 21);
        assert!(width(&cut) <= 21);
    }
}

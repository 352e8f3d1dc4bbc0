//! The source around a finding, small enough to print.

use std::ops::Range;

use super::lines::SideLines;
use crate::model::{Excerpt, Location};

/// Known lines shown before and after the finding's.
const CONTEXT: u32 = 2;
/// Lines of the finding itself that are shown at most.
const MAX_BODY: u32 = 6;
/// Bytes of source shown of one line at most.
const MAX_LINE: usize = 240;

/// Cuts the excerpt around `location` out of `lines`; `None` without a known line.
pub(super) fn excerpt(lines: &SideLines, location: &Location) -> Option<Excerpt> {
    let line = location.line?;
    let focus = lines.get(line)?;
    let mut first = line;
    while first > 1 && line - first < CONTEXT && lines.get(first - 1).is_some() {
        first -= 1;
    }
    let body_end = location.end_line.unwrap_or(line).max(line);
    let last = body_end
        .min(line.saturating_add(MAX_BODY))
        .saturating_add(CONTEXT);
    let mut out = Vec::new();
    let mut highlight = None;
    for number in first..=last {
        let Some(text) = lines.get(number) else {
            break;
        };
        if number == line {
            let (shown, range) = window(text, focus_range(focus, location.columns));
            highlight = Some((out.len(), range));
            out.push(shown);
        } else {
            out.push(window(text, 0..0).0);
        }
    }
    Some(Excerpt {
        first_line: first,
        lines: out,
        highlight,
    })
}

/// What to point at in `line`: the given columns where they lie in it, else all but the indentation.
fn focus_range(line: &[u8], columns: Option<(u32, u32)>) -> Range<usize> {
    if let Some((from, to)) = columns {
        let from = from as usize;
        let to = (to as usize).min(line.len());
        if from < to {
            return from..to;
        }
    }
    let trimmed = line.trim_ascii();
    let start = line.len() - line.trim_ascii_start().len();
    start..start + trimmed.len()
}

/// The nearest character boundary at or before `at`, also in text that is not quite UTF-8.
fn floor(line: &[u8], at: usize) -> usize {
    let at = at.min(line.len());
    let mut start = at;
    while start > 0 && at - start < 3 && start < line.len() && line[start] & 0xc0 == 0x80 {
        start -= 1;
    }
    if start < line.len() && line[start] & 0xc0 == 0x80 {
        return at;
    }
    start
}

/// Shows at most [`MAX_LINE`] bytes of `line` around `focus`; gives the text and where `focus` is in it, in bytes.
fn window(line: &[u8], focus: Range<usize>) -> (String, Range<usize>) {
    let start = floor(line, focus.start);
    let end = floor(line, focus.end.min(focus.start + MAX_LINE)).max(start);
    let focus = start..end;
    let (mut from, mut to) = (0, line.len());
    if line.len() > MAX_LINE {
        let spare = MAX_LINE - (focus.end - focus.start).min(MAX_LINE);
        from = floor(line, focus.start.saturating_sub(spare / 2));
        to = floor(line, from + MAX_LINE).max(focus.end);
    }
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    out.push_str(&String::from_utf8_lossy(&line[from..focus.start]));
    let start = out.len();
    out.push_str(&String::from_utf8_lossy(&line[focus.clone()]));
    let end = out.len();
    out.push_str(&String::from_utf8_lossy(&line[focus.end..to]));
    if to < line.len() {
        out.push('…');
    }
    (out, start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RepoPath, Side};
    use proptest::prelude::*;

    fn at(line: u32, end_line: Option<u32>, columns: Option<(u32, u32)>) -> Location {
        Location {
            file: RepoPath::new("a").unwrap(),
            line: Some(line),
            end_line,
            side: Side::New,
            columns,
        }
    }

    #[test]
    fn context_and_highlight() {
        let lines = SideLines::from_content(b"a\nb\n  c c\r\nd\ne\nf".to_vec().into());
        let shown = excerpt(&lines, &at(3, None, None)).unwrap();
        assert_eq!(shown.first_line, 1);
        assert_eq!(shown.lines, ["a", "b", "  c c", "d", "e"]);
        assert_eq!(shown.highlight, Some((2, 2..5)));
        let shown = excerpt(&lines, &at(1, Some(2), Some((0, 1)))).unwrap();
        assert_eq!((shown.first_line, shown.lines.len()), (1, 4));
        assert_eq!(shown.highlight, Some((0, 0..1)));
        assert!(excerpt(&lines, &at(7, None, None)).is_none());
        assert!(excerpt(&lines, &at(u32::MAX, None, None)).is_none());
    }

    #[test]
    fn long_lines_are_cut_around_the_columns() {
        let mut line = vec![b'x'; 100_000];
        line[50_000..50_006].copy_from_slice(b"needle");
        let lines = SideLines::from_content(line.into());
        let shown = excerpt(&lines, &at(1, None, Some((50_000, 50_006)))).unwrap();
        let (index, range) = shown.highlight.unwrap();
        assert_eq!(&shown.lines[index][range], "needle");
        assert!(shown.lines[0].len() < 300);
    }

    proptest! {
        #[test]
        fn never_panics_and_keeps_the_focus(
            line in proptest::collection::vec(any::<u8>(), 0..600),
            from in 0usize..700,
            len in 0usize..700,
        ) {
            let focus = focus_range(&line, Some((from as u32, (from + len) as u32)));
            let (text, range) = window(&line, focus);
            prop_assert!(text.get(range).is_some());
        }

        #[test]
        fn columns_map_losslessly(before in "\\PC{0,300}", focus in "\\PC{1,40}", after in "\\PC{0,300}") {
            let line = format!("{before}{focus}{after}");
            let range = before.len()..before.len() + focus.len();
            let (text, range) = window(line.as_bytes(), range);
            prop_assert_eq!(&text[range], focus.as_str());
        }
    }
}

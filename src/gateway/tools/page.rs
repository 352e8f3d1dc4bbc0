//! The size of an answer: a page of rows, cut inside a row only where the row alone is too long.

/// Bytes of an answer at most; every client shows that much whole.
pub(super) const MAX_BYTES: usize = 40_000;
/// Lines of an answer at most.
pub(super) const MAX_LINES: usize = 1_800;
/// Bytes kept free for the words at the end of a page.
const RESERVE: usize = 2_000;
/// Lines kept free for them.
const RESERVED_LINES: usize = 4;

/// What became of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// It is on the page.
    Whole,
    /// So many bytes of its text are; the rest does not fit on any page.
    Part(usize),
    /// It is for the next page.
    Not,
}

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    lines: usize,
    rows: usize,
}

/// The last character boundary at or before `at`.
pub(super) fn boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

impl Page {
    /// Adds a row of one line, its label first.
    pub(super) fn push(&mut self, label: &str, text: &str) -> Pushed {
        if self.lines >= MAX_LINES - RESERVED_LINES {
            return Pushed::Not;
        }
        let room = (MAX_BYTES - RESERVE).saturating_sub(self.text.len());
        let fits = label.len() + text.len() < room;
        if !fits && self.rows > 0 {
            return Pushed::Not;
        }
        let end = if fits {
            text.len()
        } else {
            boundary(text, room.saturating_sub(label.len() + 1))
        };
        self.text.push_str(label);
        self.text.push_str(&text[..end]);
        self.text.push('\n');
        self.lines += 1;
        self.rows += 1;
        if fits {
            Pushed::Whole
        } else {
            Pushed::Part(end)
        }
    }

    /// Adds words about the page, which are no row of it.
    pub(super) fn say(&mut self, words: &str) {
        self.text.push_str(&words[..boundary(words, RESERVE / 2)]);
        self.text.push('\n');
        self.lines += 1;
    }

    /// True while it has no row.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The answer.
    pub(super) fn finish(mut self) -> String {
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_by_lines_or_by_bytes() {
        let mut page = Page::default();
        let mut rows = 0;
        while page.push("1\t", "") == Pushed::Whole {
            rows += 1;
        }
        page.say("more");
        assert_eq!(rows, MAX_LINES - RESERVED_LINES);
        assert!(page.finish().lines().count() <= MAX_LINES);

        let mut page = Page::default();
        while page.push("1\t", &"é".repeat(500)) == Pushed::Whole {}
        let text = page.finish();
        assert!(text.len() <= MAX_BYTES - RESERVE && text.len() > MAX_BYTES - RESERVE - 1_100);
    }

    #[test]
    fn only_a_row_that_is_alone_is_cut() {
        let long = "é".repeat(MAX_BYTES);
        let mut page = Page::default();
        let Pushed::Part(end) = page.push("1\t", &long) else {
            panic!("it cannot fit");
        };
        assert!(long.is_char_boundary(end) && end > MAX_BYTES - RESERVE - 10);
        assert_eq!(page.push("2\t", "x"), Pushed::Not);
        let mut page = Page::default();
        page.push("1\t", "x");
        assert_eq!(page.push("2\t", &long), Pushed::Not);
    }
}

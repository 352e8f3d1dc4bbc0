//! Width, wrapping and colour for terminals.

use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::safe::inert;

/// How much to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Verbosity {
    /// The verdict and one line a finding.
    Quiet,
    /// What a person needs.
    #[default]
    Normal,
    /// Also what was filtered, dropped and dismissed, one line each, and how the passes went.
    Verbose,
}

/// How to write for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns to fill, 20 at least.
    pub width: usize,
    /// ANSI colours (the 16 named ones, readable on light and dark).
    pub colour: bool,
    /// OSC 8 hyperlinks to the files under `root`.
    pub hyperlinks: bool,
    /// How much to say.
    pub verbosity: Verbosity,
    /// The run is kept, so that `ecr explain` can be pointed at.
    pub kept: bool,
    /// The work tree's absolute path, where there is one to link into.
    pub root: Option<PathBuf>,
}

impl Default for TerminalOptions {
    fn default() -> Self {
        Self {
            width: 80,
            colour: false,
            hyperlinks: false,
            verbosity: Verbosity::Normal,
            kept: true,
            root: None,
        }
    }
}

/// The narrowest layout; on anything narrower the terminal wraps.
const MIN_WIDTH: usize = 20;
/// Prose is not set wider than this, however wide the terminal is.
const MAX_PROSE: usize = 100;

/// The styles in use.
#[derive(Debug, Clone, Copy)]
pub(super) enum Paint {
    Plain,
    Strong,
    Faint,
    Red,
    Yellow,
    Green,
    Blue,
    Cyan,
}

impl Paint {
    fn style(self) -> Style {
        let bold = |colour: AnsiColor| colour.on_default().bold();
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Red => bold(AnsiColor::Red),
            Self::Yellow => bold(AnsiColor::Yellow),
            Self::Green => bold(AnsiColor::Green),
            Self::Blue => bold(AnsiColor::Blue),
            Self::Cyan => bold(AnsiColor::Cyan),
        }
    }
}

/// Collects lines.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) options: &'a TerminalOptions,
    out: String,
}

impl<'a> Page<'a> {
    pub(super) fn new(options: &'a TerminalOptions) -> Self {
        Self {
            options,
            out: String::new(),
        }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn width(&self) -> usize {
        self.options.width.max(MIN_WIDTH)
    }

    /// `text` in a style, where colour is on.
    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        let style = paint.style();
        if self.options.colour && style != Style::new() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// A line that is ready: its parts painted, its width settled by the caller.
    pub(super) fn line(&mut self, line: &str) {
        self.out.push_str(&inert(line.trim_end_matches(' ')));
        self.out.push('\n');
    }

    /// An empty line, unless the page starts here or has one already.
    pub(super) fn gap(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    /// Wraps `text` behind a painted `lead`; later lines are indented to the lead's width.
    pub(super) fn wrapped(&mut self, lead: (Paint, &str), paint: Paint, text: &str) {
        let (lead_paint, lead) = lead;
        let indent = lead.width().min(self.width() / 2);
        let room = self.width().min(MAX_PROSE).saturating_sub(indent).max(1);
        // A lead that takes too much of a narrow line stands alone.
        let alone = lead.width() > indent;
        if alone {
            let lead = self.paint(lead_paint, &clip(lead, self.width()));
            self.line(&lead);
        }
        for (at, line) in wrap(text, room).iter().enumerate() {
            let head = if at == 0 && !alone {
                self.paint(lead_paint, lead)
            } else {
                " ".repeat(indent)
            };
            let line = format!("{head}{}", self.paint(paint, line));
            self.line(&line);
        }
    }
}

/// Columns that `text` takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The longest start of `text` that fits `room` columns, in bytes.
pub(super) fn fitting(text: &str, room: usize) -> usize {
    let mut used = 0;
    let mut end = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        used += cluster.width();
        if used > room {
            return end;
        }
        end = at + cluster.len();
    }
    end
}

/// `text` cut to `room` columns with `...` when it does not fit.
pub(super) fn clip(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let dots = room.min(3);
    format!(
        "{}{}",
        &text[..fitting(text, room - dots)],
        ".".repeat(dots)
    )
}

/// Breaks one-line `text` at spaces into lines of at most `room` columns; longer words are broken too.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for mut word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut columns = word.width();
        if used > 0 && used + 1 + columns <= room {
            line.push(' ');
            line.push_str(word);
            used += 1 + columns;
            continue;
        }
        if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        while columns > room {
            // One cluster at least, or a wide character in a one-column room would loop for ever.
            let cut = match fitting(word, room) {
                0 => word.graphemes(true).next().map_or(word.len(), str::len),
                cut => cut,
            };
            lines.push(word[..cut].to_owned());
            word = &word[cut..];
            columns = word.width();
        }
        line.push_str(word);
        used = columns;
    }
    if used > 0 || !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_by_columns_and_breaks_long_words() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("漢字漢字 x", 5), ["漢字", "漢字", "x"]);
        assert_eq!(wrap("漢", 1), ["漢"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(clip("abcdefgh", 6), "abc...");
        assert_eq!(clip("漢字漢字", 6), "漢...");
    }
}

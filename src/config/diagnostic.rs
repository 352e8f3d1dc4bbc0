//! What a person reads when a file of the setup is wrong: place, excerpt, expectation, next step.

use std::fmt;
use std::ops::Range;

use crate::model::printable;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// More problems than this in one file are not listed one by one.
pub(super) const MAX_DIAGNOSTICS: usize = 40;
/// Excerpt lines longer than this (in characters) are cut around the caret.
const EXCERPT_CHARS: usize = 120;

/// A text file of the setup, as read, with the name that people know it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    origin: String,
    text: String,
}

/// Whether a diagnostic stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosticLevel {
    /// Said, and the run goes on.
    Warning,
    /// The run does not start (exit code 2).
    Error,
}

/// A place in a file, for people: 1-based line, 1-based column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, 1-based.
    pub line: u32,
    /// Column in characters, 1-based.
    pub column: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    span: Range<usize>,
}

/// One problem. Every text is printable: control, bidi and invisible characters are spelled out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it stops the run.
    pub level: DiagnosticLevel,
    /// The file (or variable, or option) it is about.
    pub origin: Box<str>,
    /// Where in the file.
    pub position: Option<Position>,
    /// The dotted path of the key, where there is one (`policy.maxFindings`).
    pub key: Option<Box<str>>,
    /// What is wrong.
    pub message: Box<str>,
    /// What was expected there; shown at the caret.
    pub expected: Option<Box<str>>,
    /// What to do next.
    pub help: Option<Box<str>>,
    excerpt: Option<Box<Excerpt>>,
}

/// Everything that is wrong with a setup; never empty. Exit code 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(Vec<Diagnostic>);

impl Source {
    /// Takes the bytes of a file. A byte order mark is dropped; anything but UTF-8 is an error.
    pub fn from_bytes(origin: &str, bytes: &[u8]) -> Result<Self, Diagnostic> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(origin, text)),
            Err(error) => {
                let line = bytes[..error.valid_up_to()].split(|b| *b == b'\n').count();
                Err(
                    Diagnostic::bare(origin, format!("line {line} is not valid UTF-8"))
                        .with_help("save the file as UTF-8"),
                )
            }
        }
    }

    /// Takes a text. A byte order mark is dropped.
    pub fn new(origin: &str, text: &str) -> Self {
        Self {
            origin: printable(origin).into_owned(),
            text: text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
        }
    }

    /// The name people know it by, printable.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The text without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// An error at a byte range of the text.
    pub(super) fn error(&self, span: Range<usize>, message: impl AsRef<str>) -> Diagnostic {
        let start = floor_boundary(&self.text, span.start);
        let end = floor_boundary(&self.text, span.end).max(start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..]
            .find('\n')
            .map_or(self.text.len(), |at| start + at);
        let line_text = self.text[line_start..line_end].trim_end_matches('\r');
        Diagnostic {
            position: Some(Position {
                line: number(self.text[..line_start].matches('\n').count()),
                column: number(self.text[line_start..start].chars().count()),
            }),
            excerpt: Some(Box::new(Excerpt::cut(
                line_text,
                (start - line_start).min(line_text.len())..(end - line_start).min(line_text.len()),
            ))),
            ..Diagnostic::bare(&self.origin, message)
        }
    }
}

/// The 1-based number of what `before` others precede.
fn number(before: usize) -> u32 {
    u32::try_from(before + 1).unwrap_or(u32::MAX)
}

/// The greatest character boundary that is not after `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Excerpt {
    /// Keeps at most [`EXCERPT_CHARS`] characters, a third of them before the span.
    fn cut(line: &str, span: Range<usize>) -> Self {
        let before = line[..span.start].chars().count();
        let from = if before > EXCERPT_CHARS / 3 {
            line[..span.start]
                .char_indices()
                .nth(before - EXCERPT_CHARS / 3)
                .map_or(0, |(at, _)| at)
        } else {
            0
        };
        let to = line[from..]
            .char_indices()
            .nth(EXCERPT_CHARS)
            .map_or(line.len(), |(at, _)| from + at);
        Self {
            text: line[from..to].to_owned(),
            span: span.start - from..span.end.min(to) - from,
        }
    }
}

impl Diagnostic {
    /// An error about a whole file, a variable or an option.
    pub fn bare(origin: &str, message: impl AsRef<str>) -> Self {
        Self {
            level: DiagnosticLevel::Error,
            origin: printable(origin).into(),
            position: None,
            key: None,
            message: printable(message.as_ref()).into(),
            expected: None,
            help: None,
            excerpt: None,
        }
    }

    /// Turns it into a warning.
    #[must_use]
    pub fn as_warning(mut self) -> Self {
        self.level = DiagnosticLevel::Warning;
        self
    }

    /// Names the key it is about.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.key = Some(printable(key).into());
        self
    }

    /// Says what was expected at the place.
    #[must_use]
    pub fn with_expected(mut self, expected: impl AsRef<str>) -> Self {
        self.expected = Some(printable(expected.as_ref()).into());
        self
    }

    /// Says what to do next.
    #[must_use]
    pub fn with_help(mut self, help: impl AsRef<str>) -> Self {
        self.help = Some(printable(help.as_ref()).into());
        self
    }

    /// `file:line:col`, or just the file.
    pub fn place(&self) -> String {
        match self.position {
            Some(Position { line, column }) => format!("{}:{line}:{column}", self.origin),
            None => self.origin.to_string(),
        }
    }

    /// The whole text with its excerpt and caret, without a final newline; with ANSI colours if asked.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let level = match self.level {
            DiagnosticLevel::Warning => Level::WARNING,
            DiagnosticLevel::Error => Level::ERROR,
        };
        let mut group =
            Group::with_title(level.primary_title(format!("{}: {}", self.place(), self.message)));
        if let (Some(excerpt), Some(position)) = (&self.excerpt, self.position) {
            group = group.element(
                Snippet::source(excerpt.text.as_str())
                    .line_start(position.line as usize)
                    .annotation(
                        AnnotationKind::Primary
                            .span(excerpt.span.clone())
                            .label(self.expected.as_deref()),
                    ),
            );
        } else if let Some(expected) = &self.expected {
            group = group.element(Level::NOTE.message(&**expected));
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(&**help));
        }
        renderer.render(&[group])
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl ConfigErrors {
    /// Takes the errors of a list of diagnostics; `Ok` with the warnings when there is none.
    pub(super) fn check(diagnostics: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Self> {
        if diagnostics
            .iter()
            .any(|d| d.level == DiagnosticLevel::Error)
        {
            Err(Self(diagnostics))
        } else {
            Ok(diagnostics)
        }
    }

    /// Takes errors only; the list is not empty.
    pub(super) fn all(errors: Vec<Diagnostic>) -> Self {
        Self(errors)
    }

    /// The problems in the order of the files read; warnings may stand between the errors.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0
    }

    /// All problems, one after the other; with ANSI colours if asked.
    pub fn render(&self, colour: bool) -> String {
        let texts: Vec<_> = self.0.iter().map(|d| d.render(colour)).collect();
        texts.join("\n\n")
    }
}

impl From<Diagnostic> for ConfigErrors {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ConfigErrors {}

/// A user's text in a message: in backticks, cut after 60 characters.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("`{}…`", &text[..at]),
        None => format!("`{text}`"),
    }
}

/// A list of words in backticks: `a`, `b` or `c`.
pub(super) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = words.into_iter().map(|w| format!("`{w}`")).collect();
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// The known word that `word` most likely stands for.
pub(super) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A hostile key may be a megabyte long; nothing that long is a slip of the pen.
    if word.len() > 64 {
        return None;
    }
    let fold = |text: &str| -> String {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect()
    };
    let folded = fold(word);
    known
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&folded, &fold(candidate));
            (distance, candidate)
        })
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shows_place_excerpt_caret_and_next_step() {
        let source = Source::new("a/config.jsonc", "{\n  \"polcy\": 1\r\n}");
        let text = source
            .error(4..11, "unknown key `polcy`")
            .with_expected("did you mean `policy`?")
            .with_help("see `ecr schema config`")
            .render(false);
        let expected = "\
error: a/config.jsonc:2:3: unknown key `polcy`
  |
2 |   \"polcy\": 1
  |   ^^^^^^^ did you mean `policy`?
  |
  = help: see `ecr schema config`";
        assert_eq!(text, expected);
    }

    #[test]
    fn hostile_characters_never_reach_the_terminal() {
        let source = Source::new("a\u{1b}[31m.jsonc", "{ \"x\u{1b}]0;t\u{7}\u{202e}\": 1 }");
        let text = source
            .error(2..20, "unknown key `x\u{1b}[2J\n\u{202e}`")
            .render(false);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
        assert!(text.contains("\\u{1b}[2J\\u{a}"), "{text}");
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let line = format!("{}BAD{}", "é".repeat(5_000), "ü".repeat(5_000));
        let source = Source::new("c", &line);
        let diagnostic = source.error(10_000..10_003, "m");
        assert_eq!(diagnostic.place(), "c:1:5001");
        let text = diagnostic.render(false);
        assert!(text.contains("BAD") && text.contains("^^^"), "{text}");
        assert!(text.chars().count() < 400);
    }

    #[test]
    fn invalid_utf8_names_the_line() {
        let error = Source::from_bytes("c", b"{\n\"a\xff\": 1}").unwrap_err();
        assert_eq!(&*error.message, "line 2 is not valid UTF-8");
        assert_eq!(
            Source::from_bytes("c", b"\xef\xbb\xbf{}").unwrap().text(),
            "{}"
        );
    }

    #[test]
    fn suggestions() {
        let known = ["maxFindings", "includeSuggestions", "model"];
        assert_eq!(did_you_mean("max_findings", known), Some("maxFindings"));
        assert_eq!(did_you_mean("modle", known), Some("model"));
        assert_eq!(did_you_mean("colour", known), None);
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` or `c`");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_renders(text in ".{0,80}(\n.{0,80}){0,3}", a in 0usize..400, b in 0usize..400) {
            let source = Source::new("c", &text);
            let rendered = source.error(a..b, "m").with_expected("e").render(false);
            prop_assert!(rendered.starts_with("error: c:"));
        }
    }
}

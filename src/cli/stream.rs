//! The two streams: what they can show, and writing to them without panicking on a closed pipe.

use std::io::{self, IsTerminal as _, Write as _};

use super::args::ColorWhen;

/// What stdout and stderr can show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    /// Colour on stdout.
    pub(super) stdout_colour: bool,
    /// Colour on stderr.
    pub(super) stderr_colour: bool,
    /// OSC 8 hyperlinks on stdout.
    pub(super) hyperlinks: bool,
    /// Width of stdout in columns.
    pub(super) width: usize,
    /// stderr is a terminal and this is no CI job: progress bars may be drawn.
    pub(super) live_progress: bool,
}

impl Streams {
    /// Looks at the streams and at `NO_COLOR`, `CLICOLOR_FORCE`, `TERM` and `CI`.
    pub(super) fn detect(color: ColorWhen, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
        let forced = env("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0");
        let dumb = env("TERM").is_some_and(|term| term == "dumb");
        let colour = |tty: bool| match color {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => !set("NO_COLOR") && (forced || (tty && !dumb)),
        };
        let stdout_tty = io::stdout().is_terminal();
        let stderr_tty = io::stderr().is_terminal();
        let stdout_colour = colour(stdout_tty);
        let width = env("COLUMNS")
            .and_then(|columns| columns.parse().ok())
            .filter(|columns: &usize| *columns > 0)
            .or_else(|| {
                stdout_tty
                    .then(terminal_size::terminal_size)
                    .flatten()
                    .map(|(width, _)| usize::from(width.0))
            })
            .unwrap_or(100);
        Self {
            stdout_colour,
            stderr_colour: colour(stderr_tty),
            hyperlinks: stdout_tty
                && stdout_colour
                && supports_hyperlinks::on(supports_hyperlinks::Stream::Stdout),
            width: width.clamp(20, 120),
            live_progress: stderr_tty && !dumb && !set("CI"),
        }
    }
}

/// Writes the product. A closed pipe is the reader's choice, not an error.
pub(super) fn product(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes one message to stderr; nothing can be done when even that fails.
pub(super) fn talk(text: &str) {
    let mut err = io::stderr().lock();
    let _ = writeln!(err, "{text}");
}

/// `error: …` with an optional next step, coloured where stderr can show it.
pub(super) fn error(streams: Streams, message: &str, hint: Option<&str>) {
    let (red, blue, reset) = if streams.stderr_colour {
        ("\x1b[1;31m", "\x1b[1;34m", "\x1b[0m")
    } else {
        ("", "", "")
    };
    talk(&format!("{red}error{reset}: {message}"));
    if let Some(hint) = hint.filter(|hint| !hint.is_empty()) {
        talk(&format!(" {blue}next{reset}: {hint}"));
    }
}

//! Expected errors of a use case: one line and what to do next.

use super::review::Interrupt;

/// Nothing was reviewed: usage, configuration or environment (exit code 2).
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AppError {
    /// What is wrong; one line, or several for errors that show an excerpt of a file.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The signal that ended the command, when that is why.
    pub interrupt: Option<Interrupt>,
}

impl AppError {
    /// An error with a next step.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: Some(hint.into()),
            interrupt: None,
        }
    }

    /// An error that says it all.
    pub fn plain(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            interrupt: None,
        }
    }

    /// Problems of the set-up as `config` renders them; the command line puts its own `error: ` in front.
    pub(super) fn rendered(text: &str) -> Self {
        let text = text.trim_end();
        Self::plain(text.strip_prefix("error: ").unwrap_or(text))
    }

    /// A signal ended the command before there was anything to report.
    pub(super) fn interrupted(interrupt: Interrupt) -> Self {
        Self {
            message: "interrupted; nothing was reviewed".to_owned(),
            hint: None,
            interrupt: Some(interrupt),
        }
    }
}

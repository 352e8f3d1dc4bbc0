//! The formats by name.

use std::str::FromStr;

use super::layout::TerminalOptions;
use super::prepared::Prepared;
use super::{agent, github, gitlab, json, markdown, rdjson, sarif, terminal};
use crate::model::Review;
use crate::state::output::{self, OutputV1, Tool};

/// An output format of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// For a person at a terminal.
    Terminal,
    /// The machine output, version 1.
    Json,
    /// A self-contained report.
    Markdown,
    /// SARIF 2.1.0.
    Sarif,
    /// The reviewdog diagnostic format.
    Rdjson,
    /// GitLab's code quality report.
    Gitlab,
    /// GitHub Actions workflow commands, one annotation a finding.
    Github,
    /// A block of data for the next coding agent.
    Agent,
}

/// A name that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown format {name:?}: expected terminal, json, markdown, sarif, rdjson, gitlab, github or agent"
)]
pub struct UnknownFormat {
    /// The name that was given.
    pub name: String,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::Terminal,
        Self::Json,
        Self::Markdown,
        Self::Sarif,
        Self::Rdjson,
        Self::Gitlab,
        Self::Github,
        Self::Agent,
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Sarif => "sarif",
            Self::Rdjson => "rdjson",
            Self::Gitlab => "gitlab",
            Self::Github => "github",
            Self::Agent => "agent",
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .iter()
            .copied()
            .find(|format| format.as_str() == name)
            .ok_or_else(|| UnknownFormat {
                name: name.to_owned(),
            })
    }
}

/// What rendering needs beside the review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderContext {
    /// The program named in machine outputs.
    pub tool: Tool,
    /// How to write for a terminal; the other formats ignore it.
    pub terminal: TerminalOptions,
}

impl RenderContext {
    /// This build of ecr.
    pub fn new(terminal: TerminalOptions) -> Self {
        Self {
            tool: Tool {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            terminal,
        }
    }
}

/// The review as an output document, credentials masked: what is printed and what is saved.
pub fn output(review: &Review, context: &RenderContext) -> OutputV1 {
    output::from_review(&Prepared::new(review).review, &context.tool)
}

/// The review in `format`; ends with a newline.
pub fn render(format: Format, review: &Review, context: &RenderContext) -> String {
    let prepared = Prepared::new(review);
    match format {
        Format::Terminal => terminal::render(&prepared, &context.terminal),
        Format::Json => json::pretty(&output::from_review(&prepared.review, &context.tool)),
        Format::Markdown => markdown::render(&prepared.review),
        Format::Sarif => sarif::render(&prepared, &context.tool),
        Format::Rdjson => rdjson::render(&prepared.review, &context.tool),
        Format::Gitlab => gitlab::render(&prepared.review),
        Format::Github => github::render(&prepared),
        Format::Agent => agent::render(&prepared.review),
    }
}

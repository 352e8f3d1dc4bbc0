//! What can go wrong with git, each kind with its own words.

use std::path::PathBuf;

use crate::process::{ProcessError, ToolError};

/// Why a question to git has no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// git is not installed, or only inside the tree under review.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// git lacks what we rely on.
    #[error("git {found} is too old, ecr needs {needed} or newer")]
    TooOld {
        /// What is installed.
        found: String,
        /// The oldest that works.
        needed: &'static str,
    },
    /// The folder does not exist or cannot be entered.
    #[error("{}: {source}", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no repository here.
    #[error("{} is not inside a git repository", folder.display())]
    NotARepository {
        /// Where the search began.
        folder: PathBuf,
    },
    /// The repository belongs to somebody else and is not listed in `safe.directory`.
    #[error("the repository around {} belongs to another user, so git refuses to read it", folder.display())]
    DubiousOwnership {
        /// Where the search began.
        folder: PathBuf,
    },
    /// The repository has no work tree, or we are outside it.
    #[error("there is no work tree here (a bare repository, or a folder inside `.git`)")]
    NoWorkTree,
    /// The text cannot name a commit.
    #[error("{name:?} cannot be a ref: {problem}")]
    BadRef {
        /// What was given.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No such ref or commit.
    #[error("{name:?} names no commit in this repository")]
    UnknownRef {
        /// What was given.
        name: String,
    },
    /// Two commits without common history, as far as this clone knows.
    #[error("{one} and {other} have no common ancestor in this clone")]
    NoMergeBase {
        /// One of them.
        one: String,
        /// The other.
        other: String,
        /// True when the clone is shallow, so that the ancestor may just not be here.
        shallow: bool,
    },
    /// Paths are in conflict in the index.
    #[error("{} in conflict, {} first", count_of(paths.len(), "path is", "paths are"), paths.first().map_or("", String::as_str))]
    Unmerged {
        /// The paths, for display.
        paths: Vec<String>,
    },
    /// git ran and failed.
    #[error("git {action} failed: {message}")]
    Failed {
        /// The subcommand.
        action: String,
        /// The first line git wrote, without control characters.
        message: String,
    },
    /// git answered something that cannot be understood.
    #[error("git {action} gave an answer that cannot be understood: {message}")]
    Protocol {
        /// The subcommand.
        action: &'static str,
        /// What is odd about it.
        message: String,
    },
    /// git could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The scratch folder could not be prepared.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
}

fn count_of(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The first line of `text` that says something, without control characters.
pub(super) fn one_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or("no message");
    let line = line.strip_prefix("fatal: ").unwrap_or(line);
    line.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

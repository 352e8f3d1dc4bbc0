//! What a person reads when there is nothing to review, or no way to.
//!
//! @ref LLP 0001#bases-and-empty-inputs — each empty input has words of its own

use crate::diff::DiffError;
use crate::git::GitError;
use crate::git::{ProcessError, ToolError};
use crate::port::SourceError;

/// An error of the selection, with what to do next.
pub(super) fn invalid(message: impl Into<String>, hint: impl Into<String>) -> SourceError {
    SourceError::Invalid {
        message: message.into(),
        hint: hint.into(),
    }
}

/// An error of the machinery, with what to do next.
pub(super) fn failed(message: impl Into<String>, hint: impl Into<String>) -> SourceError {
    SourceError::Failed {
        message: message.into(),
        hint: hint.into(),
    }
}

/// git's trouble in words.
pub(super) fn from_git(error: GitError) -> SourceError {
    let message = error.to_string();
    match error {
        GitError::Tool(ToolError::NotFound { .. }) => {
            failed(message, "install git, or review a patch with `--diff FILE`")
        }
        GitError::Tool(ToolError::Untrusted { .. }) => failed(
            message,
            "a program from the reviewed tree is never run; put another git on PATH",
        ),
        GitError::TooOld { .. } => failed(message, "update git"),
        GitError::NoFolder { .. } => invalid(message, "change to a folder that exists"),
        GitError::NotARepository { .. } => invalid(
            message,
            "change to a repository, or review a patch with `--diff FILE`",
        ),
        GitError::DubiousOwnership { folder } => invalid(
            message,
            format!(
                "if you trust it, list its root in safe.directory: git config --global --add safe.directory {}",
                folder.display()
            ),
        ),
        GitError::NoWorkTree => invalid(
            message,
            "change to the work tree, or name two commits with `--base REF --head REF`",
        ),
        GitError::BadRef { .. } => invalid(message, "give a branch, a tag or a commit id"),
        GitError::UnknownRef { .. } => invalid(
            message,
            "check the spelling; a branch of the remote may have to be fetched first (git fetch origin)",
        ),
        GitError::NoMergeBase { shallow: true, .. } => invalid(
            message,
            "this clone is shallow: run git fetch --unshallow (in GitHub Actions: fetch-depth: 0)",
        ),
        GitError::NoMergeBase { shallow: false, .. } => invalid(
            message,
            "their histories are unrelated; name a base that shares history with `--base REF`",
        ),
        GitError::Unmerged { .. } => invalid(
            message,
            "resolve the conflicts and `git add` the files, or review the working tree without `--staged`",
        ),
        GitError::Process(ProcessError::Cancelled) => failed(message, "run it again"),
        GitError::Failed { .. }
        | GitError::Protocol { .. }
        | GitError::Process(_)
        | GitError::Io { .. } => failed(message, "nothing was reviewed; `git status` may say more"),
    }
}

/// A diff of git's own making that does not add up.
pub(super) fn from_census(error: &DiffError) -> SourceError {
    failed(
        format!("the diff does not add up: {error}"),
        "nothing was reviewed; please report this with the repository's state",
    )
}

/// A patch that somebody gave us and that cannot be read.
pub(super) fn from_patch(name: &str, error: &DiffError) -> SourceError {
    invalid(
        format!("{name}: {error}"),
        "give the output of `git diff`, `git format-patch` or `diff -u`",
    )
}

/// `1 file`, `2 files`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The first few of `names`, and how many more there are.
pub(super) fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|name| {
            name.chars()
                .map(|c| if c.is_control() { '?' } else { c })
                .collect()
        })
        .collect();
    let more = names.len().saturating_sub(SHOWN);
    if more == 0 {
        shown.join(", ")
    } else {
        format!("{} and {more} more", shown.join(", "))
    }
}

//! Where a diff and its tree come from.

use std::sync::Arc;

use super::BoxFuture;
use crate::diff::Diff;
use crate::model::{CoverageNote, InputInfo};
use crate::tree::Tree;

/// What a source gives.
#[derive(Debug, Clone)]
pub struct SourceInput {
    /// What is being reviewed.
    pub info: InputInfo,
    /// The change.
    pub diff: Diff,
    /// True for the developer's own work, false for a stranger's.
    pub own_work: bool,
    /// What the source could not do, or has to say.
    pub notes: Vec<CoverageNote>,
}

/// The tree that reviewers read. The three cases are never merged.
#[derive(Clone)]
pub enum TreeUnderReview {
    /// The version under review.
    Tree(Arc<dyn Tree>),
    /// There is none: a bare patch.
    None,
}

/// Why there is nothing to review. Never to be taken for a clean review.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The selection is wrong or cannot be resolved: exit code 2.
    #[error("{message}")]
    Invalid {
        /// What is wrong, one line.
        message: String,
        /// What to do next, one line.
        hint: String,
    },
    /// There is nothing in the selection (decision `skipped`, exit code 0).
    #[error("{reason}")]
    Nothing {
        /// In words: which selection is empty and why.
        reason: String,
        /// What was compared.
        info: Box<InputInfo>,
    },
    /// git or the file system failed, or the census does not add up: exit code 2.
    #[error("{message}")]
    Failed {
        /// What failed, one line.
        message: String,
        /// What to do next, one line.
        hint: String,
    },
}

/// Gives a diff and the tree under review.
pub trait ReviewSource: Send + Sync {
    /// Reads the change.
    fn load(&self) -> BoxFuture<'_, Result<SourceInput, SourceError>>;

    /// The tree under review. An error is never replaced by a checkout of something else.
    fn tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>>;

    /// The tree that configuration, ignore rules and attributes are read from: the base side for
    /// attributes of untrusted changes. `None` when there is none.
    fn base_tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>>;
}

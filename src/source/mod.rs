//! Where a change comes from: the local repository, a pull request, or a patch.

mod local;
mod patch;
mod pull_request;
mod words;

pub use local::{LocalSource, Selection};
pub use patch::{PatchInput, PatchSource};
pub use pull_request::{PullRequestInput, PullRequestSource};

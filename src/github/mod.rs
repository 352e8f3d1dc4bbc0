//! GitHub: octocrab as the transport, requests, answers, retries and errors of our own.
//!
//! @ref LLP 0012#client — what is repeated, what never is

mod answer;
mod client;
mod endpoints;
mod error;
mod issue;
mod pull;
mod retry;
mod user;
mod wire;

pub use client::{GitHub, GitHubSettings};
pub use endpoints::{EndpointError, Endpoints, RepoName};
pub use error::GitHubError;
pub use issue::{Comment, MAX_COMMENTS};
pub use pull::{Comparison, PullRequest, PullSide};
pub use retry::RetryLimits;
pub use user::{Author, Identity, Permission};

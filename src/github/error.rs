//! Errors in one line: what was asked, the status, GitHub's own words and the permission that is missing.
//! No token, no address with a credential, no backtrace.

use std::time::Duration;

/// Why a request has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitHubError {
    /// GitHub refused.
    #[error("cannot {action}: GitHub answered {status} ({message}){}", needs(permission.as_deref()))]
    Refused {
        /// What was asked for, in words.
        action: String,
        /// The HTTP status.
        status: u16,
        /// GitHub's words, in one line.
        message: String,
        /// The permissions of which one would have been enough (`issues=write; pull_requests=write`).
        permission: Option<String>,
    },
    /// A limit whose end is further away than ecr waits.
    #[error("cannot {action}: GitHub's rate limit is reached ({message}); it ends in about {}s", wait.as_secs())]
    Limited {
        /// What was asked for.
        action: String,
        /// GitHub's words.
        message: String,
        /// How long the limit still holds.
        wait: Duration,
    },
    /// No answer came.
    #[error("cannot {action}: {message}")]
    Unreachable {
        /// What was asked for.
        action: String,
        /// Why.
        message: String,
        /// The request may have been carried out all the same.
        perhaps_done: bool,
    },
    /// An answer that is not what the API promises.
    #[error("cannot {action}: GitHub's answer cannot be understood ({message})")]
    Unreadable {
        /// What was asked for.
        action: String,
        /// What is odd about it.
        message: String,
    },
    /// The client cannot be built.
    #[error("{0}")]
    Client(String),
}

fn needs(permission: Option<&str>) -> String {
    match permission {
        Some(permission) => format!("; the token needs {permission}"),
        None => String::new(),
    }
}

impl GitHubError {
    /// The status that GitHub answered with.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// There is no such thing, or the token may not see it.
    pub fn is_not_found(&self) -> bool {
        matches!(self.status(), Some(404 | 410))
    }

    /// The token may not do this: waiting or repeating does not help.
    pub fn is_forbidden(&self) -> bool {
        matches!(self.status(), Some(401 | 403 | 404))
    }

    /// The request may have been carried out although it has no answer.
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Self::Refused { status, .. } => *status >= 500,
            Self::Unreachable { perhaps_done, .. } => *perhaps_done,
            Self::Unreadable { .. } => true,
            Self::Limited { .. } | Self::Client(_) => false,
        }
    }
}

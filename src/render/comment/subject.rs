//! What a comment is about.

/// Why there is no new review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReviewed {
    /// Somebody with write permission said so.
    BreakGlass,
    /// The configuration or the kind of pull request says so; the reason in words (`it is a draft`).
    Skipped(String),
    /// The review was tried and failed, or could not be started; the reason in words.
    CouldNotRun(String),
    /// The credentials that the configuration names are not those that the workflow expects.
    CredentialLock {
        /// Names the workflow expects.
        expected: Vec<String>,
        /// Names the configuration declares.
        declared: Vec<String>,
    },
    /// The base commit has no setup folder, or none that can be read; the reason in words.
    SetupMissing(String),
}

/// What a comment is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The stored review, which was just made, or which is shown again after a command.
    Review,
    /// The stored review, because nothing that it depends on has changed; `head` is the commit it now stands for.
    Reused {
        /// The commit, full id.
        head: String,
    },
    /// That there is no review of the present state; the stored one is shown in short below.
    NotReviewed(NotReviewed),
}

//! One comment, whoever else writes at the same time.
//!
//! GitHub has no compare-and-swap. So the list is read as late as possible, the oldest comment of ours is the one that stays,
//! duplicates are merged into it and removed, and a creation is looked up before it is tried again.
//!
//! @ref LLP 0012#one-comment — the order of reading and writing

use crate::github::{Comment, GitHub, GitHubError, Identity, RepoName};
use crate::port::BoxFuture;

/// Where the comment belongs.
pub(super) struct Place<'a> {
    pub(super) github: &'a GitHub,
    pub(super) repo: &'a RepoName,
    pub(super) number: u64,
    /// Who we are; with nobody no comment is ours and every run would leave another one, so nothing is written.
    pub(super) identity: &'a Identity,
}

/// What to write, given what is there.
pub(super) enum Composed {
    /// This text.
    Write(String),
    /// Nothing: what is there is newer, or says the same.
    Keep(String),
}

/// Makes the text.
pub(super) trait Compose: Sync {
    /// True for a body that carries our marker.
    fn is_ours(&self, body: &str) -> bool;

    /// The text, from all comments and from those of ours among them, oldest first.
    fn compose<'a>(
        &'a self,
        comments: &'a [Comment],
        own: &'a [&'a Comment],
    ) -> BoxFuture<'a, Result<Composed, GitHubError>>;
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Published {
    /// A new comment; its address.
    Created(String),
    /// The comment was brought up to date; its address.
    Updated(String),
    /// Nothing was written; why.
    Kept(String),
}

impl Place<'_> {
    /// Our comments, oldest first.
    pub(super) fn own<'c>(
        &self,
        comments: &'c [Comment],
        compose: &dyn Compose,
    ) -> Vec<&'c Comment> {
        comments
            .iter()
            .filter(|comment| {
                comment.user.as_ref().is_some_and(|u| self.identity.is(u))
                    && compose.is_ours(&comment.body)
            })
            .collect()
    }

    /// All comments.
    pub(super) async fn comments(&self) -> Result<Vec<Comment>, GitHubError> {
        self.github.comments(self.repo, self.number).await
    }

    /// Writes the one comment.
    pub(super) async fn publish(&self, compose: &dyn Compose) -> Result<Published, GitHubError> {
        // A comment that is deleted under us, or a creation that nobody can tell the end of, begins again.
        let mut tries = 0;
        loop {
            tries += 1;
            let comments = self.comments().await?;
            let own = self.own(&comments, compose);
            let text = match compose.compose(&comments, &own).await? {
                Composed::Write(text) => text,
                Composed::Keep(why) => return Ok(Published::Kept(why)),
            };
            if let Some(first) = own.first() {
                match self.edit(first, &text).await {
                    Ok(comment) => {
                        self.remove(&own[1..]).await?;
                        return Ok(Published::Updated(comment.html_url));
                    }
                    Err(error) if error.is_not_found() && tries < 3 => {}
                    Err(error) => return Err(error),
                }
                continue;
            }
            match self
                .github
                .create_comment(self.repo, self.number, &text)
                .await
            {
                Ok(made) => return self.settle(made, compose).await,
                Err(error) if error.is_ambiguous() && tries < 3 => {
                    // It may be there all the same: then the list shows it, and it is edited.
                    tracing::debug!(%error, "looking whether the comment was created");
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// After a creation: when another run has created one, too, the oldest stays.
    async fn settle(&self, made: Comment, compose: &dyn Compose) -> Result<Published, GitHubError> {
        let comments = self.comments().await?;
        let own = self.own(&comments, compose);
        // A list may be behind and not show even our own creation.
        let Some(first) = own.first().filter(|first| first.id < made.id) else {
            // Ours is the oldest: another run sees the same and gives way.
            return Ok(Published::Created(made.html_url));
        };
        let published = match compose.compose(&comments, &own).await? {
            Composed::Write(text) => Published::Updated(self.edit(first, &text).await?.html_url),
            Composed::Keep(why) => Published::Kept(why),
        };
        let mut others: Vec<&Comment> = own[1..].to_vec();
        if others.iter().all(|other| other.id != made.id) {
            others.push(&made);
        }
        self.remove(&others).await?;
        Ok(published)
    }

    /// Edits, unless the text stands there already: an edit shows as one.
    async fn edit(&self, comment: &Comment, text: &str) -> Result<Comment, GitHubError> {
        if comment.body == text {
            return Ok(comment.clone());
        }
        self.github.edit_comment(self.repo, comment.id, text).await
    }

    async fn remove(&self, duplicates: &[&Comment]) -> Result<(), GitHubError> {
        for duplicate in duplicates {
            self.github.delete_comment(self.repo, duplicate.id).await?;
        }
        Ok(())
    }
}

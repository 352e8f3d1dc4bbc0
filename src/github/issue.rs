//! Comments of a pull request.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::client::Ask;
use super::{Author, GitHub, GitHubError, RepoName};

/// More comments than this are not read: a bound on time, not a limit of GitHub's.
pub const MAX_COMMENTS: usize = 5_000;

/// A comment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Comment {
    /// Ascending in time.
    pub id: u64,
    /// Who wrote it; none for a deleted account.
    pub user: Option<Author>,
    /// Its text as stored; a person's edit in the browser turns line feeds into CRLF.
    #[serde(default, deserialize_with = "or_default")]
    pub body: String,
    /// Its web address.
    #[serde(default)]
    pub html_url: String,
    /// When it was written, RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// When it was changed last.
    #[serde(default)]
    pub updated_at: String,
    /// `OWNER`, `MEMBER`, `CONTRIBUTOR`, …: never a permission.
    #[serde(default)]
    pub author_association: String,
}

fn or_default<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.unwrap_or_default())
}

impl GitHub {
    /// All comments of `number`, oldest first.
    pub async fn comments(
        &self,
        repo: &RepoName,
        number: u64,
    ) -> Result<Vec<Comment>, GitHubError> {
        let action = format!("list the comments of #{number}");
        let n = number.to_string();
        let mut url = self.endpoints().rest(
            &["repos", repo.owner(), repo.name(), "issues", &n, "comments"],
            &[("per_page", "100")],
        );
        let mut comments: Vec<Comment> = Vec::new();
        loop {
            let answer = self
                .ask(Ask {
                    method: Method::GET,
                    url: url.clone(),
                    body: None,
                    repeatable: true,
                    action: &action,
                })
                .await?;
            comments.extend(answer.json::<Vec<Comment>>(&action)?);
            let Some(next) = answer.next_page() else {
                break;
            };
            let unreadable = |message: &str| GitHubError::Unreadable {
                action: action.clone(),
                message: message.to_owned(),
            };
            if comments.len() >= MAX_COMMENTS {
                return Err(unreadable("there are more comments than ecr reads"));
            }
            url = next
                .parse()
                .ok()
                .filter(|next| self.is_ours(next) && *next != url)
                .ok_or_else(|| unreadable("the next page is somewhere else"))?;
        }
        // Pages may overlap when somebody writes or deletes meanwhile.
        comments.sort_by_key(|comment| comment.id);
        comments.dedup_by_key(|comment| comment.id);
        Ok(comments)
    }

    /// Writes a comment. It is sent once: whether an error left one behind is for the caller to look up
    /// ([`GitHubError::is_ambiguous`]).
    pub async fn create_comment(
        &self,
        repo: &RepoName,
        number: u64,
        body: &str,
    ) -> Result<Comment, GitHubError> {
        let action = format!("comment on #{number}");
        let n = number.to_string();
        let url = self.endpoints().rest(
            &["repos", repo.owner(), repo.name(), "issues", &n, "comments"],
            &[],
        );
        let answer = self
            .ask(Ask {
                method: Method::POST,
                url,
                body: Some(json!({ "body": body })),
                repeatable: false,
                action: &action,
            })
            .await?;
        answer.json(&action)
    }

    /// Replaces the text of a comment.
    pub async fn edit_comment(
        &self,
        repo: &RepoName,
        id: u64,
        body: &str,
    ) -> Result<Comment, GitHubError> {
        let action = "update the review comment";
        let answer = self
            .ask(Ask {
                method: Method::PATCH,
                url: self.comment_url(repo, id),
                body: Some(json!({ "body": body })),
                repeatable: true,
                action,
            })
            .await?;
        answer.json(action)
    }

    /// Removes a comment; one that is gone already is no error.
    pub async fn delete_comment(&self, repo: &RepoName, id: u64) -> Result<(), GitHubError> {
        let removed = self
            .ask(Ask {
                method: Method::DELETE,
                url: self.comment_url(repo, id),
                body: None,
                repeatable: true,
                action: "remove a duplicate of the review comment",
            })
            .await;
        match removed {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn comment_url(&self, repo: &RepoName, id: u64) -> reqwest::Url {
        let id = id.to_string();
        self.endpoints().rest(
            &[
                "repos",
                repo.owner(),
                repo.name(),
                "issues",
                "comments",
                &id,
            ],
            &[],
        )
    }
}

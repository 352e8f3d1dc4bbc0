//! Who wrote something, who we are, and who may do what.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::client::Ask;
use super::{GitHub, GitHubError, RepoName};

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Author {
    /// The login; apps end in `[bot]`.
    pub login: String,
    /// `User`, `Bot`, `Organization`, …
    #[serde(rename = "type", default)]
    pub kind: String,
}

impl Author {
    /// True for an app or a machine account that GitHub knows as such.
    pub fn is_bot(&self) -> bool {
        self.kind == "Bot"
    }
}

/// What an account may do in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    /// Nothing.
    None,
    /// Read (and triage).
    Read,
    /// Write (and maintain).
    Write,
    /// Everything.
    Admin,
}

/// The account that our token acts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    login: String,
}

impl Identity {
    /// The workflow's own token, when GitHub does not say whose it is.
    pub fn actions() -> Self {
        Self {
            login: "github-actions[bot]".to_owned(),
        }
    }

    /// As `login`.
    pub fn new(login: &str) -> Self {
        Self {
            login: login.to_owned(),
        }
    }

    /// The login.
    pub fn login(&self) -> &str {
        &self.login
    }

    /// True when `author` is this account. An app's login cannot be taken by a person, but is compared with the kind all
    /// the same.
    pub fn is(&self, author: &Author) -> bool {
        author.login.eq_ignore_ascii_case(&self.login)
            && (author.is_bot() || !self.login.ends_with("[bot]"))
    }
}

#[derive(Deserialize)]
struct Viewer {
    data: Option<ViewerData>,
}
#[derive(Deserialize)]
struct ViewerData {
    viewer: Option<ViewerLogin>,
}
#[derive(Deserialize)]
struct ViewerLogin {
    login: String,
}
#[derive(Deserialize)]
struct PermissionAnswer {
    permission: String,
}

impl GitHub {
    /// The account that the token acts as; `None` when GitHub does not say.
    pub async fn viewer(&self) -> Result<Option<Identity>, GitHubError> {
        let action = "ask whose token this is";
        let answer = self
            .ask(Ask {
                method: Method::POST,
                url: self.endpoints().graphql.clone(),
                body: Some(json!({"query": "query{viewer{login}}"})),
                // A query changes nothing.
                repeatable: true,
                action,
            })
            .await?;
        let viewer: Viewer = answer.json(action)?;
        Ok(viewer
            .data
            .and_then(|data| data.viewer)
            .filter(|viewer| !viewer.login.is_empty())
            .map(|viewer| Identity::new(&viewer.login)))
    }

    /// What `login` may do in `repo`. Somebody that GitHub does not know may do nothing.
    pub async fn permission(
        &self,
        repo: &RepoName,
        login: &str,
    ) -> Result<Permission, GitHubError> {
        let action = format!("ask what {} may do", crate::model::printable(login));
        let url = self.endpoints().rest(
            &[
                "repos",
                repo.owner(),
                repo.name(),
                "collaborators",
                login,
                "permission",
            ],
            &[],
        );
        let asked = self
            .ask(Ask {
                method: Method::GET,
                url,
                body: None,
                repeatable: true,
                action: &action,
            })
            .await;
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) if error.is_not_found() => return Ok(Permission::None),
            Err(error) => return Err(error),
        };
        let answer: PermissionAnswer = answer.json(&action)?;
        Ok(match answer.permission.as_str() {
            "admin" => Permission::Admin,
            "write" => Permission::Write,
            "read" => Permission::Read,
            _ => Permission::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_is_not_a_person_of_the_same_name() {
        let author = |login: &str, kind: &str| Author {
            login: login.to_owned(),
            kind: kind.to_owned(),
        };
        let actions = Identity::actions();
        assert!(actions.is(&author("github-actions[bot]", "Bot")));
        assert!(!actions.is(&author("github-actions[bot]", "User")));
        assert!(!actions.is(&author("github-actions", "Bot")));
        assert!(!actions.is(&author("github-actions", "User")));
        assert!(Identity::new("Octocat").is(&author("octocat", "User")));
        assert!(Permission::Write > Permission::Read && Permission::Admin > Permission::Write);
    }
}

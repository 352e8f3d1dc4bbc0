//! Where GitHub is, and which repository: checked once, so that no request is built from raw text.

use reqwest::Url;

/// An address or a name that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct EndpointError {
    /// The setting or the text.
    pub what: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// The three addresses of one GitHub. They are taken as given, never derived from each other: on GitHub
/// Enterprise Server REST is `/api/v3` and GraphQL `/api/graphql`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// REST (`GITHUB_API_URL`).
    pub api: Url,
    /// GraphQL (`GITHUB_GRAPHQL_URL`).
    pub graphql: Url,
    /// Web and git (`GITHUB_SERVER_URL`).
    pub server: Url,
}

impl Endpoints {
    /// Reads the three addresses; one that is not given is github.com's. With only some of them given nothing
    /// is guessed: a token must not go to a place that nobody named.
    pub fn new(
        api: Option<&str>,
        graphql: Option<&str>,
        server: Option<&str>,
    ) -> Result<Self, EndpointError> {
        let given = [api, graphql, server];
        if given.iter().any(Option::is_some) && given.iter().any(Option::is_none) {
            return Err(EndpointError {
                what: "GITHUB_API_URL, GITHUB_GRAPHQL_URL, GITHUB_SERVER_URL".to_owned(),
                problem: "only some of them are set; set all three, or none for github.com",
            });
        }
        Ok(Self {
            api: address("GITHUB_API_URL", api.unwrap_or("https://api.github.com"))?,
            graphql: address(
                "GITHUB_GRAPHQL_URL",
                graphql.unwrap_or("https://api.github.com/graphql"),
            )?,
            server: address("GITHUB_SERVER_URL", server.unwrap_or("https://github.com"))?,
        })
    }

    /// The REST address of `segments`, each escaped as one segment of a path, with `query`.
    pub(super) fn rest(&self, segments: &[&str], query: &[(&str, &str)]) -> Url {
        let mut url = self.api.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// The address that git fetches `repo` from; without a credential.
    pub fn git_url(&self, repo: &RepoName) -> String {
        format!(
            "{}/{}/{}.git",
            self.server.as_str().trim_end_matches('/'),
            repo.owner,
            repo.name
        )
    }

    /// The web page of `repo`.
    pub fn web_url(&self, repo: &RepoName) -> String {
        format!(
            "{}/{}/{}",
            self.server.as_str().trim_end_matches('/'),
            repo.owner,
            repo.name
        )
    }
}

/// `https`, or `http` to this machine, without user, query and fragment.
fn address(what: &str, text: &str) -> Result<Url, EndpointError> {
    let bad = |problem| EndpointError {
        what: what.to_owned(),
        problem,
    };
    let url = Url::parse(text.trim()).map_err(|_| bad("it is not an address"))?;
    let loopback = match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|ip| ip.is_loopback()),
        None => return Err(bad("it names no host")),
    };
    match url.scheme() {
        "https" => {}
        "http" if loopback => {}
        _ => return Err(bad("only https is spoken, and http to this machine")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("it holds a user or a password"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it holds a query or a fragment"));
    }
    Ok(url)
}

/// `owner/name`, in GitHub's alphabet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepoName {
    owner: String,
    name: String,
}

impl RepoName {
    /// Reads `owner/name`.
    pub fn new(text: &str) -> Result<Self, EndpointError> {
        let fits = |part: &str| {
            (1..=100).contains(&part.len())
                && part != "."
                && part != ".."
                && !part.starts_with('-')
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        match text.split_once('/') {
            Some((owner, name)) if fits(owner) && fits(name) => Ok(Self {
                owner: owner.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err(EndpointError {
                what: crate::model::printable(&text.chars().take(80).collect::<String>())
                    .into_owned(),
                problem: "it is not a repository as owner/name",
            }),
        }
    }

    /// The repository that a git remote on `server` names (`https://HOST/o/r.git`, `git@HOST:o/r`, `ssh://…`);
    /// `None` when it is on another host.
    pub fn from_remote(remote: &str, server: &Url) -> Option<Self> {
        let host = server.host_str()?;
        let path = if let Some((_, rest)) = remote.split_once("://") {
            let (authority, path) = rest.split_once('/')?;
            let authority = authority.rsplit('@').next()?;
            let same = authority == host
                || authority.split(':').next() == Some(host)
                || server
                    .port()
                    .is_some_and(|p| authority == format!("{host}:{p}"));
            same.then_some(path)?
        } else {
            let (authority, path) = remote.split_once(':')?;
            (authority.rsplit('@').next() == Some(host)).then_some(path)?
        };
        let path = path.trim_matches('/');
        Self::new(path.strip_suffix(".git").unwrap_or(path)).ok()
    }

    /// The owner.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The name without its owner.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl std::fmt::Display for RepoName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_github_and_of_an_enterprise_server() {
        let dotcom = Endpoints::new(None, None, None).unwrap();
        let repo = RepoName::new("octo/demo").unwrap();
        assert_eq!(
            dotcom
                .rest(&["repos", "octo", "a b/..", "x"], &[("per_page", "1")])
                .as_str(),
            "https://api.github.com/repos/octo/a%20b%2F../x?per_page=1"
        );
        assert_eq!(dotcom.git_url(&repo), "https://github.com/octo/demo.git");
        let server = Endpoints::new(
            Some("https://ghe.test/api/v3"),
            Some("https://ghe.test/api/graphql"),
            Some("https://ghe.test"),
        )
        .unwrap();
        assert_eq!(
            server.rest(&["user"], &[]).as_str(),
            "https://ghe.test/api/v3/user"
        );
        assert!(Endpoints::new(Some("https://ghe.test/api/v3"), None, None).is_err());
    }

    #[test]
    fn a_token_goes_nowhere_in_the_clear() {
        for bad in [
            "http://ghe.test",
            "http://127.0.0.1.evil.test",
            "ftp://ghe.test",
            "https://u:p@ghe.test",
            "https://ghe.test/?x=1",
            "nonsense",
        ] {
            assert!(address("X", bad).is_err(), "{bad}");
        }
        assert!(address("X", "http://127.0.0.1:8080/api/v3").is_ok());
    }

    #[test]
    fn names_and_remotes() {
        for bad in ["", "a", "a/b/c", "a/..", "-a/b", "a/b c", "a/b?x", "a/b\n"] {
            assert!(RepoName::new(bad).is_err(), "{bad:?}");
        }
        let server: Url = "https://github.com".parse().unwrap();
        for (remote, found) in [
            ("https://github.com/octo/demo.git", Some("octo/demo")),
            ("https://x:y@github.com/octo/demo", Some("octo/demo")),
            ("git@github.com:octo/demo.git", Some("octo/demo")),
            ("ssh://git@github.com:22/octo/demo.git", Some("octo/demo")),
            ("https://gitlab.com/octo/demo.git", None),
            ("/srv/git/demo.git", None),
        ] {
            let name = RepoName::from_remote(remote, &server).map(|name| name.to_string());
            assert_eq!(name.as_deref(), found, "{remote}");
        }
    }
}

//! Objects from a remote, into a folder of our own. There is no checkout, and no configuration, hook or reference of
//! any repository takes part; the credential travels in git's environment, never in an argument or a file.
//!
//! @ref LLP 0012#objects — what is fetched, and how the credential travels

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_util::sync::CancellationToken;

use super::GitError;
use super::command::{Call, Git, HostEnv};
use super::error::one_line;
use crate::model::{CommitId, Secret};
use crate::process::PrivateFolder;

/// The longest time for one fetch.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// Where to fetch from.
#[derive(Debug, Clone)]
pub struct FetchFrom {
    /// The repository's address, `https` (or `http` on this machine), without a credential.
    pub url: String,
    /// What to authenticate with, as the user `x-access-token`.
    pub token: Option<Secret<String>>,
}

/// A bare git folder that holds only what was fetched into it; removed on drop.
#[derive(Debug)]
pub struct ObjectFolder {
    folder: PrivateFolder,
    git_dir: PathBuf,
}

impl ObjectFolder {
    /// Makes an empty one.
    pub fn new() -> Result<Self, GitError> {
        let io = |source| GitError::Io {
            what: "cannot make a temporary folder",
            source,
        };
        let folder = PrivateFolder::new("objects").map_err(io)?;
        let git_dir = folder.folder("pr.git").map_err(io)?;
        std::fs::create_dir_all(git_dir.join("objects").join("info")).map_err(io)?;
        std::fs::create_dir_all(git_dir.join("refs")).map_err(io)?;
        let write = |name: &str, text: &str| std::fs::write(git_dir.join(name), text);
        write("HEAD", "ref: refs/heads/none\n").map_err(io)?;
        write(
            "config",
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        )
        .map_err(io)?;
        Ok(Self { folder, git_dir })
    }

    /// The git folder.
    pub fn path(&self) -> &Path {
        &self.git_dir
    }

    /// Fetches `commits` by id, each without its history.
    pub async fn fetch_commits(
        &self,
        host: &HostEnv,
        from: &FetchFrom,
        commits: &[&CommitId],
        cancel: &CancellationToken,
    ) -> Result<(), GitError> {
        let specs: Vec<String> = commits
            .iter()
            .map(|commit| format!("{0}:refs/ecr/{0}", commit.as_str()))
            .collect();
        self.fetch(host, from, Some(1), &specs, cancel).await
    }

    /// Fetches whole histories: pairs of a reference of the remote and a name for it here. Gives the commits in the same order.
    pub async fn fetch_histories(
        &self,
        host: &HostEnv,
        from: &FetchFrom,
        references: &[(&str, &str)],
        cancel: &CancellationToken,
    ) -> Result<Vec<CommitId>, GitError> {
        for (reference, _) in references {
            check_reference(reference)?;
        }
        let specs: Vec<String> = references
            .iter()
            .map(|(reference, name)| format!("+{reference}:refs/ecr/{name}"))
            .collect();
        self.fetch(host, from, None, &specs, cancel).await?;
        let git = self.git(host, cancel)?;
        let mut commits = Vec::new();
        for (_, name) in references {
            let name = format!("refs/ecr/{name}^{{commit}}");
            let call = Call::new(&["rev-parse", "--verify", "--end-of-options", &name]);
            let found = git.stdout(&self.git_dir, self.own(call)).await?;
            let found = one_line(&found);
            commits.push(CommitId::new(&found).map_err(|error| GitError::Protocol {
                action: "rev-parse",
                message: error.to_string(),
            })?);
        }
        Ok(commits)
    }

    fn git(&self, host: &HostEnv, cancel: &CancellationToken) -> Result<Git, GitError> {
        Git::find(host, &[self.folder.path()], cancel.clone())
    }

    /// Points `call` here.
    fn own(&self, call: Call) -> Call {
        call.env("GIT_DIR", &self.git_dir)
    }

    async fn fetch(
        &self,
        host: &HostEnv,
        from: &FetchFrom,
        depth: Option<u32>,
        specs: &[String],
        cancel: &CancellationToken,
    ) -> Result<(), GitError> {
        let depth = depth.map(|depth| format!("--depth={depth}"));
        let mut args = vec![
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
        ];
        args.extend(depth.as_deref());
        args.extend(["--end-of-options", from.url.as_str()]);
        args.extend(specs.iter().map(String::as_str));
        let call = Call::new(&args)
            .settings(&settings(from))
            .network(true)
            .deadline(DEADLINE);
        let git = self.git(host, cancel)?;
        git.stdout(&self.git_dir, self.own(call)).await.map(drop)
    }
}

/// Only http(s) is spoken, nothing is asked and nothing is started; the credential goes to this host only.
fn settings(from: &FetchFrom) -> Vec<(OsString, OsString)> {
    let mut settings: Vec<(OsString, OsString)> = [
        ("protocol.allow", "never"),
        ("protocol.http.allow", "always"),
        ("protocol.https.allow", "always"),
        ("core.hooksPath", "/dev/null"),
        ("core.fsmonitor", "false"),
        ("core.askPass", ""),
        ("credential.helper", ""),
        ("credential.interactive", "false"),
        ("fetch.writeCommitGraph", "false"),
        ("gc.auto", "0"),
        ("http.lowSpeedLimit", "1000"),
        ("http.lowSpeedTime", "60"),
    ]
    .map(|(key, value)| (key.into(), value.into()))
    .into();
    if let Some(token) = &from.token {
        let header = format!("http.{}.extraHeader", from.url);
        let pair = STANDARD.encode(format!("x-access-token:{}", token.expose()));
        // Empty first: a header of the machine's own configuration would be sent as well, and two are refused.
        settings.push((header.clone().into(), OsString::new()));
        settings.push((header.into(), format!("Authorization: Basic {pair}").into()));
    }
    settings
}

/// A full reference name that cannot be read as anything else in a refspec. Branch names are other people's text.
fn check_reference(name: &str) -> Result<(), GitError> {
    let bad = name.contains("..")
        || name.contains("@{")
        || name.ends_with('/')
        || name
            .bytes()
            .any(|b| b.is_ascii_control() || b" ~^:?*[\\".contains(&b));
    if bad || !name.starts_with("refs/") {
        return Err(GitError::BadRef {
            name: name.to_owned(),
            problem: "it is no full name of a reference",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_change_a_refspec_are_refused() {
        for good in ["refs/heads/main", "refs/heads/a-b/c.d", "refs/pull/7/head"] {
            assert!(check_reference(good).is_ok(), "{good}");
        }
        for bad in [
            "main",
            "--upload-pack=touch x",
            "refs/heads/a:refs/heads/b",
            "refs/heads/*",
            "refs/heads/a b",
            "refs/heads/a..b",
            "refs/heads/a\nb",
            "refs/heads/^a",
        ] {
            assert!(check_reference(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_token_stands_in_no_debug_text() {
        let from = FetchFrom {
            url: "https://h/o/r.git".to_owned(),
            token: Some(Secret::new("hunter2".to_owned())),
        };
        assert!(!format!("{from:?}").contains("hunter2"));
    }
}

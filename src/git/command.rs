//! How git is called.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::GitError;
use super::error::one_line;
use crate::process::{self, Output, Spec, ToolPath};

/// What git's own children may need when a partial clone has to fetch a missing object.
const NETWORK_VARIABLES: [&str; 13] = [
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
];

/// The variables of the process that ecr was started in. Nothing is passed on unless it is named here.
#[derive(Debug, Clone, Default)]
pub struct HostEnv(BTreeMap<OsString, OsString>);

impl HostEnv {
    /// Those of this process.
    pub fn from_process() -> Self {
        std::env::vars_os().collect()
    }

    /// One variable; `None` when it is not set or empty.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let value = self.0.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }
}

impl FromIterator<(OsString, OsString)> for HostEnv {
    fn from_iter<T: IntoIterator<Item = (OsString, OsString)>>(iter: T) -> Self {
        Self(iter.into_iter().collect())
    }
}

/// git, ready to be called.
#[derive(Debug, Clone)]
pub(super) struct Git {
    tool: ToolPath,
    base: Vec<(OsString, OsString)>,
    network: Vec<(OsString, OsString)>,
    cancel: CancellationToken,
}

/// One call: the subcommand with its arguments, and what differs from call to call.
#[derive(Debug, Default)]
pub(super) struct Call {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    settings: Vec<(OsString, OsString)>,
    stdin: Option<Vec<u8>>,
    network: bool,
    deadline: Option<Duration>,
}

impl Call {
    pub(super) fn new(args: &[&str]) -> Self {
        Self {
            args: args.iter().map(OsString::from).collect(),
            ..Self::default()
        }
    }

    /// Adds an environment variable.
    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Sets configuration above every file, as `-c` does, but with keys that may hold any character.
    pub(super) fn settings(mut self, settings: &[(OsString, OsString)]) -> Self {
        self.settings.extend_from_slice(settings);
        self
    }

    /// Gives it something to read.
    pub(super) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = Some(bytes);
        self
    }

    /// Ends it after `limit`.
    pub(super) fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(limit);
        self
    }

    /// Lets it fetch what a partial clone lacks.
    pub(super) fn network(mut self, allowed: bool) -> Self {
        self.network = allowed;
        self
    }
}

impl Git {
    /// Finds git on the host's PATH, outside the `reviewed` folders.
    pub(super) fn find(
        host: &HostEnv,
        reviewed: &[&Path],
        cancel: CancellationToken,
    ) -> Result<Self, GitError> {
        let search = host.get("PATH").unwrap_or_default();
        let tool = ToolPath::find("git", search, reviewed)?;
        let mut base: Vec<(OsString, OsString)> = [
            ("LC_ALL", "C"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_PAGER", "cat"),
            ("GIT_ATTR_NOSYSTEM", "1"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into();
        base.push(("PATH".into(), safe_path(search, reviewed)));
        // The user's own configuration holds `safe.directory`, the ignore list and credentials for fetching.
        for name in ["HOME", "XDG_CONFIG_HOME"] {
            if let Some(value) = host.get(name) {
                base.push((name.into(), value.to_owned()));
            }
        }
        let network = NETWORK_VARIABLES
            .iter()
            .filter_map(|name| Some((OsString::from(name), host.get(name)?.to_owned())))
            .collect();
        Ok(Self {
            tool,
            base,
            network,
            cancel,
        })
    }

    /// Where git itself is.
    pub(super) fn path(&self) -> &Path {
        self.tool.as_path()
    }

    /// The process to start for `call` in `folder`.
    pub(super) fn spec(&self, folder: &Path, call: Call) -> Spec {
        let mut spec = Spec::new(self.tool.clone(), folder);
        spec.args = vec!["--no-pager".into()];
        spec.args.extend(call.args);
        spec.env.clone_from(&self.base);
        if call.network {
            spec.env.extend_from_slice(&self.network);
        } else {
            spec.env.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
        }
        let count = call.settings.len().to_string();
        for (n, (key, value)) in call.settings.into_iter().enumerate() {
            spec.env.push((format!("GIT_CONFIG_KEY_{n}").into(), key));
            spec.env
                .push((format!("GIT_CONFIG_VALUE_{n}").into(), value));
        }
        spec.env.push(("GIT_CONFIG_COUNT".into(), count.into()));
        spec.env.extend(call.env);
        spec.stdin = call.stdin;
        spec.deadline = call.deadline;
        spec
    }

    /// Runs `call` and gives its output whatever its exit status.
    pub(super) async fn run(&self, folder: &Path, call: Call) -> Result<Output, GitError> {
        Ok(process::run(self.spec(folder, call), &self.cancel).await?)
    }

    /// Runs `call` and gives its stdout; a failure is an error with git's own words.
    pub(super) async fn stdout(&self, folder: &Path, call: Call) -> Result<Vec<u8>, GitError> {
        let action = call.args.first().cloned().unwrap_or_default();
        let output = self.run(folder, call).await?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(GitError::Failed {
            action: action.to_string_lossy().into_owned(),
            message: one_line(&output.stderr),
        })
    }
}

/// `search` without what is relative or inside a reviewed folder.
fn safe_path(search: &OsStr, reviewed: &[&Path]) -> OsString {
    let outside = |folder: &PathBuf| {
        let Ok(target) = folder.canonicalize() else {
            return false;
        };
        folder.is_absolute() && !reviewed.iter().any(|tree| target.starts_with(tree))
    };
    std::env::join_paths(std::env::split_paths(search).filter(outside)).unwrap_or_default()
}

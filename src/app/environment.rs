//! What the process was given: the only place where environment variables enter.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The folder a command was started in and the environment variables it may look at.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    cwd: PathBuf,
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Makes one from plain values.
    pub fn new(cwd: PathBuf, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            cwd,
            variables: variables.into_iter().collect(),
        }
    }

    /// The folder the command was started in.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Every variable, for the programs that ecr starts (they take what their allowlist names).
    pub fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> + '_ {
        self.variables
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
    }

    /// A variable's value, when it is set and not blank.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.to_string_lossy().trim().is_empty())
    }

    /// A variable's value as text, when it is set, not blank and UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// The same environment, started in another folder.
    #[must_use]
    pub fn at(&self, cwd: PathBuf) -> Self {
        Self {
            cwd,
            variables: self.variables.clone(),
        }
    }

    /// Where ecr keeps what it has to remember: `$XDG_STATE_HOME/ecr`, else `~/.local/state/ecr`
    /// (`%LOCALAPPDATA%\ecr` on Windows). `None` without a home folder. XDG wants absolute paths only.
    pub fn state_folder(&self) -> Option<PathBuf> {
        let absolute = |name: &str| {
            self.get(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        absolute("XDG_STATE_HOME")
            .or_else(|| {
                if cfg!(windows) {
                    absolute("LOCALAPPDATA")
                } else {
                    None
                }
            })
            .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))
            .map(|base| base.join("ecr"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_is_unset_and_relative_state_homes_are_ignored() {
        let env = Environment::new(
            PathBuf::from("/w"),
            [
                ("A", " "),
                ("B", "x"),
                ("XDG_STATE_HOME", "rel"),
                ("HOME", "/h"),
            ]
            .map(|(k, v)| (k.into(), v.into())),
        );
        assert_eq!(env.get("A"), None);
        assert_eq!(env.text("B"), Some("x"));
        assert_eq!(
            env.state_folder(),
            Some(PathBuf::from("/h/.local/state/ecr"))
        );
    }
}

//! Real git repositories in temporary folders, independent of the user's configuration.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A repository made by real git; removed on drop.
pub(crate) struct TestRepo {
    _dir: tempfile::TempDir,
    root: PathBuf,
    home: PathBuf,
}

impl TestRepo {
    /// `git init -b main` with the given extra arguments.
    pub(crate) fn init_with(args: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("temporary folder");
        let root = dir.path().join("repo");
        let home = dir.path().join("home");
        std::fs::create_dir_all(&root).expect("repo folder");
        std::fs::create_dir_all(&home).expect("home folder");
        let root = root.canonicalize().expect("canonical path");
        let repo = Self {
            _dir: dir,
            root,
            home,
        };
        let mut init = vec!["init", "-q", "-b", "main"];
        init.extend(args);
        repo.git(&init);
        repo
    }

    /// `git init -b main`.
    pub(crate) fn init() -> Self {
        Self::init_with(&[])
    }

    /// The work tree's root, canonical.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A private, empty home folder beside the repository.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// A command with an environment that depends on nothing outside this repository.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("XDG_STATE_HOME", self.home.join("state"))
            .env("XDG_CONFIG_HOME", self.home.join("config"))
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.home.join("gitconfig"))
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.com")
            .env("GIT_COMMITTER_NAME", "C")
            .env("GIT_COMMITTER_EMAIL", "c@example.com")
            .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
            .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
            .stdin(std::process::Stdio::null());
        command
    }

    /// Runs git and fails the test when git fails; gives stdout.
    pub(crate) fn git(&self, args: &[&str]) -> Vec<u8> {
        let output = self.command("git").args(args).output().expect("git starts");
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Writes a file, with its folders.
    pub(crate) fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, content).expect("write");
    }

    /// Stages everything and commits; gives the commit's id.
    pub(crate) fn commit_all(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    /// The id of `HEAD`.
    pub(crate) fn head(&self) -> String {
        String::from_utf8(self.git(&["rev-parse", "HEAD"]))
            .expect("ascii")
            .trim()
            .to_owned()
    }

    /// Runs the `ecr` under test here.
    pub(crate) fn ecr(&self, args: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_ecr"))
            .args(args)
            .output()
            .expect("ecr starts")
    }
}

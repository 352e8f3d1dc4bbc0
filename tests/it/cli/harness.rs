//! Running the binary, and the repositories that several tests need.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::repo::TestRepo;

pub(super) const ECR: &str = env!("CARGO_BIN_EXE_ecr");

/// Breaks no rule.
pub(super) const CLEAN: &str = "def total(prices):\n    return sum(prices)\n";
/// Breaks one rule at warning, in line 4.
pub(super) const WARNING: &str =
    "import requests\n\ndef get(url):\n    return requests.get(url, verify=False)\n";
/// The id of the warning's rule.
pub(super) const WARNING_RULE: &str = "tls-verification-off";

/// One finished run.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ran {
    /// What holds for every run whose streams are pipes and that asks for no colour.
    pub(super) fn plain(output: Output) -> Self {
        let ran = Self::any(output);
        for (name, text) in [("stdout", &ran.out), ("stderr", &ran.err)] {
            assert!(!text.contains('\u{1b}'), "escape codes on {name}: {ran:#?}");
        }
        ran
    }

    /// What holds for every run.
    pub(super) fn any(output: Output) -> Self {
        let ran = Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
            err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        };
        assert!(
            !ran.err.contains("internal error") && !ran.err.contains("panicked"),
            "{ran:#?}"
        );
        ran
    }

    #[track_caller]
    pub(super) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Exit code 2 with nothing on stdout, one error that holds `message`, and `next` somewhere after it.
    #[track_caller]
    pub(super) fn refused(self, message: &str, next: &str) -> Self {
        let ran = self.exits(2);
        assert_eq!(ran.out, "", "stdout is the product only: {ran:#?}");
        assert!(ran.err.starts_with("error: "), "{ran:#?}");
        assert_eq!(ran.err.matches("error: ").count(), 1, "{ran:#?}");
        let at = ran.err.find(message);
        let at = at.unwrap_or_else(|| panic!("no {message:?}: {ran:#?}"));
        assert!(
            ran.err[at..].contains(next),
            "no next step {next:?}: {ran:#?}"
        );
        ran
    }

    /// stdout as JSON.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    #[track_caller]
    pub(super) fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no {text:?} on stdout: {self:#?}");
        self
    }

    #[track_caller]
    pub(super) fn talks(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} on stderr: {self:#?}");
        self
    }
}

/// ecr at the repository's root.
#[track_caller]
pub(super) fn ecr(repo: &TestRepo, args: &[&str]) -> Ran {
    Ran::plain(repo.ecr(args))
}

/// ecr in a folder.
#[track_caller]
pub(super) fn ecr_in(repo: &TestRepo, folder: &Path, args: &[&str]) -> Ran {
    run(repo.command(ECR).current_dir(folder).args(args))
}

/// ecr with some variables.
#[track_caller]
pub(super) fn ecr_env(repo: &TestRepo, env: &[(&str, &str)], args: &[&str]) -> Ran {
    run(repo.command(ECR).envs(env.iter().copied()).args(args))
}

#[track_caller]
pub(super) fn run(command: &mut Command) -> Ran {
    Ran::plain(command.output().expect("it starts"))
}

/// ecr with something to read.
#[track_caller]
pub(super) fn ecr_stdin(repo: &TestRepo, input: &[u8], args: &[&str]) -> Ran {
    let mut command = repo.command(ECR);
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may refuse its arguments without reading.
    let _ = stdin.write_all(input);
    drop(stdin);
    Ran::plain(child.wait_with_output().expect("it ends"))
}

/// A first commit on `main`.
pub(super) fn started() -> TestRepo {
    let repo = TestRepo::init();
    repo.write("app.py", CLEAN);
    repo.commit_all("first");
    repo
}

/// A change that the checks find nothing in.
pub(super) fn clean() -> TestRepo {
    let repo = started();
    repo.write("app.py", "def total(prices):\n    return sum(prices) + 1\n");
    repo
}

/// A change with one warning.
pub(super) fn warned() -> TestRepo {
    let repo = started();
    repo.write("fetch.py", WARNING);
    repo
}

/// A workflow with one critical finding.
pub(super) fn dangerous_workflow() -> String {
    let expression = ["$", "{{ github.event.pull_request.title }}"].concat();
    format!(
        "on: pull_request_target\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo \"{expression}\"\n"
    )
}

/// A change that requests changes.
pub(super) fn critical() -> TestRepo {
    let repo = started();
    repo.write(".github/workflows/label.yml", dangerous_workflow());
    repo
}

/// Ids of the findings in a JSON report.
pub(super) fn ids(report: &Value) -> Vec<String> {
    report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| finding["id"].as_str().expect("an id").to_owned())
        .collect()
}

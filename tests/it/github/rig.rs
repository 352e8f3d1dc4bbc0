//! A pull request on the fake, and `ecr` as a subprocess with the environment of an Actions job.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::github::{Actor, FakeGitHub, World};
use crate::support::repo::TestRepo;

/// The forge token, assembled so that no scanner takes it for one.
pub(super) fn token() -> String {
    ["ghs", "canary", "7c1e"].join("_")
}

/// One token that may only read.
pub(super) const READER: &str = "reader-token";

/// Breaks one rule at warning, in line 4.
pub(super) const WARNING: &str =
    "import requests\n\ndef get(url):\n    return requests.get(url, verify=False)\n";
/// Breaks no rule.
pub(super) const CLEAN: &str = "def total(prices):\n    return sum(prices)\n";

/// The repository on the server, the server, and a folder that a job starts in.
pub(super) struct Rig {
    pub(super) github: FakeGitHub,
    pub(super) server: TestRepo,
    /// The job's home, workspace and temporary folder.
    pub(super) job: TestRepo,
}

/// How a subprocess ended.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
    /// The step summary.
    pub(super) summary: String,
}

impl Rig {
    /// `base` on `main` and `change` on top of it as the head of pull request 1.
    pub(super) fn new(base: &[(&str, &str)], change: &[(&str, &str)]) -> Self {
        let server = TestRepo::init();
        for (path, text) in base {
            server.write(path, text);
        }
        server.commit_all("base");
        let mut world = World::new(&server.root().join(".git"));
        world.tokens.insert(token(), Actor::actions(true));
        world
            .tokens
            .insert(READER.to_owned(), Actor::actions(false));
        world.permissions = [
            ("maintainer".to_owned(), "write"),
            ("author".to_owned(), "read"),
        ]
        .into();
        let rig = Self {
            github: FakeGitHub::start(world),
            server,
            job: TestRepo::init(),
        };
        rig.server.git(&["checkout", "-q", "-b", "feature"]);
        rig.push(change);
        rig
    }

    /// A further commit on the head; gives its id.
    pub(super) fn push(&self, change: &[(&str, &str)]) -> String {
        for (path, text) in change {
            self.server.write(path, text);
        }
        let head = self.server.commit_all("change");
        self.github.world().open(1, "main", &head);
        head
    }

    fn path(&self, name: &str) -> PathBuf {
        self.job.home().join(name)
    }

    /// `ecr` in an empty workspace, with the variables that Actions sets for `event`.
    pub(super) fn command(&self, args: &[&str], event: &str, payload: &Value) -> Command {
        let (file, summary, tmp) = (
            self.path("event.json"),
            self.path("summary.md"),
            self.path("tmp"),
        );
        std::fs::create_dir_all(&tmp).unwrap();
        std::fs::write(&file, payload.to_string()).unwrap();
        std::fs::write(&summary, "").unwrap();
        let url = self.github.url();
        let mut command = self.job.command(env!("CARGO_BIN_EXE_ecr"));
        command
            .args(args)
            .env("TMPDIR", tmp)
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_API_URL", format!("{url}/api/v3"))
            .env("GITHUB_GRAPHQL_URL", format!("{url}/api/graphql"))
            .env("GITHUB_SERVER_URL", &url)
            .env("GITHUB_REPOSITORY", "octo/demo")
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_EVENT_PATH", file)
            .env("GITHUB_REF", "refs/pull/1/merge")
            .env("GITHUB_STEP_SUMMARY", summary)
            .env("GITHUB_WORKSPACE", self.job.root())
            .env("RUNNER_TEMP", self.path("tmp"))
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_TOKEN", token());
        command
    }

    /// Runs it.
    #[track_caller]
    pub(super) fn run(&self, command: &mut Command) -> Ran {
        let output = command.output().unwrap();
        let ran = Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            summary: std::fs::read_to_string(self.path("summary.md")).unwrap_or_default(),
        };
        for text in [&ran.out, &ran.err, &ran.summary] {
            assert!(!text.contains(&token()), "the token is shown: {ran:#?}");
        }
        assert!(!ran.err.contains("internal error"), "{ran:#?}");
        let world = self.github.world();
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
        ran
    }
}

/// The payload of `pull_request`.
pub(super) fn pull_request(action: &str) -> Value {
    json!({
        "action": action, "number": 1, "sender": {"login": "author", "type": "User"},
        "pull_request": {"number": 1, "head": {"repo": {"full_name": "octo/demo"}}},
        "repository": {"full_name": "octo/demo"},
    })
}

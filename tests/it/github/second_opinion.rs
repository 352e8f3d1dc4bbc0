//! The main way against a second fake, written by others in Python: where it is found, what ours lets pass by mistake is seen.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::rig::{CLEAN, WARNING};
use crate::support::repo::TestRepo;
use crate::support::skip::skipped;

/// The second fake, with its repository; it dies with this.
struct Second {
    url: String,
    child: Child,
    server: TestRepo,
    job: TestRepo,
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of the fake: that of `ECR_SECOND_FAKE`, or the one beside the repository.
fn folder() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/github/fake");
    let folder = std::env::var_os("ECR_SECOND_FAKE").map_or(beside, PathBuf::from);
    let modules = "import jsonschema, graphql";
    let python = Command::new("python3").args(["-c", modules]).output();
    match python {
        _ if !folder.join("fake_github.py").is_file() => {
            skipped("there is no second fake GitHub here (ECR_SECOND_FAKE names its folder)");
            None
        }
        Ok(output) if output.status.success() => Some(folder),
        _ => {
            skipped("the second fake GitHub needs python3 with jsonschema and graphql-core");
            None
        }
    }
}

impl Second {
    fn start(folder: &Path) -> Self {
        let server = TestRepo::init();
        server.write("app.py", CLEAN);
        server.commit_all("base");
        server.git(&["checkout", "-q", "-b", "feature"]);
        server.write("fetch.py", WARNING);
        server.commit_all("change");
        let job = TestRepo::init();
        let port = job.home().join("port");
        let bare = server.root().join(".git");
        let child = Command::new("python3")
            .args(["-W", "ignore"])
            .arg(folder.join("fake_github.py"))
            .arg("serve")
            .arg("--spec")
            .arg(folder.join("../github-slim.json"))
            .arg("--graphql")
            .arg(folder.join("../schema.graphql"))
            .arg("--repo")
            .arg(format!("octo/demo={}", bare.display()))
            .arg("--port-file")
            .arg(&port)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let number = loop {
            if let Ok(text) = std::fs::read_to_string(&port) {
                break text;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "the fake does not start"
            );
            std::thread::sleep(Duration::from_millis(50));
        };
        Self {
            url: format!("http://127.0.0.1:{}", number.trim()),
            child,
            server,
            job,
        }
    }

    /// Asks the control plane.
    fn fake(&self, command: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://")).unwrap();
        let head = format!(
            "POST /_fake/{command} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    /// `ecr ci` on an event.
    fn ci(&self, event: &str, query: &str) -> Output {
        let ask = format!("event?repo=octo/demo&name={event}&{query}");
        let payload = self.fake(&ask, &json!({}));
        let path = |name: &str| self.job.home().join(name);
        std::fs::create_dir_all(path("tmp")).unwrap();
        std::fs::write(path("event.json"), payload.to_string()).unwrap();
        std::fs::write(path("summary.md"), "").unwrap();
        let mut command = self.job.command(env!("CARGO_BIN_EXE_ecr"));
        command
            .args(["ci", "--strict"])
            .env("TMPDIR", path("tmp"))
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_API_URL", &self.url)
            .env("GITHUB_GRAPHQL_URL", format!("{}/graphql", self.url))
            .env("GITHUB_SERVER_URL", &self.url)
            .env("GITHUB_REPOSITORY", "octo/demo")
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_EVENT_PATH", path("event.json"))
            .env("GITHUB_STEP_SUMMARY", path("summary.md"))
            .env("GITHUB_WORKSPACE", self.job.root())
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_TOKEN", "ghs_rw");
        command.output().unwrap()
    }

    /// The one comment of ours.
    fn comment(&self) -> String {
        let state = self.fake("state?repo=octo/demo", &json!({"repo": "octo/demo"}));
        let comments = state["comments"].as_array().unwrap();
        let ours: Vec<_> = comments
            .iter()
            .filter(|comment| comment["user"] == "github-actions[bot]")
            .collect();
        assert_eq!(ours.len(), 1, "{state:#}");
        ours[0]["body"].as_str().unwrap().to_owned()
    }

    fn command(&self, login: &str, text: &str) -> Output {
        let body = json!({"repo": "octo/demo", "number": 1, "user": login, "body": text});
        let made = self.fake("comment", &body);
        self.ci("issue_comment", &format!("comment_id={}", made["id"]))
    }
}

#[test]
fn the_second_fake_agrees() {
    let Some(folder) = folder() else {
        return;
    };
    let second = Second::start(&folder);
    let pull = json!({"repo": "octo/demo", "head": "feature", "title": "T", "user": "mallory"});
    second.fake("pr", &pull);
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    let output = second.ci("pull_request", "number=1");
    let first = second.comment();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(first.contains("fetch.py"), "{first}");
    let at = first.find("id:").unwrap() + 3;
    let id = first[at..at + 12].to_owned();

    // A push.
    second.server.write("more.py", CLEAN);
    second.server.commit_all("more");
    second.fake("push", &json!({"repo": "octo/demo", "number": 1}));
    let output = second.ci("pull_request", "number=1&action=synchronize");
    let body = second.comment();
    assert!(
        body.contains("0 fixed, 0 new, 1 open"),
        "{} {body}",
        said(&output)
    );

    // Commands: of somebody without permission, then of somebody with.
    let text = format!("/dismiss {id} -- not ours");
    second.command("mallory", &text);
    assert!(!second.comment().contains("dismissed by"));
    let output = second.command("octocat", &text);
    let body = second.comment();
    assert!(
        body.contains("dismissed by `octocat`"),
        "{} {body}",
        said(&output)
    );

    // A server that fails once.
    for fault in [
        json!({"method": "PATCH", "kind": "status", "status": 502, "times": 1}),
        json!({"method": "GET", "kind": "status", "status": 503, "times": 1}),
    ] {
        second.fake("fault", &fault);
    }
    second.server.write("again.py", CLEAN);
    second.server.commit_all("again");
    second.fake("push", &json!({"repo": "octo/demo", "number": 1}));
    let output = second.ci("pull_request", "number=1&action=synchronize");
    let body = second.comment();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(body.contains("dismissed by `octocat`"), "{body}");

    let faults = second.fake("faults", &json!({}));
    assert!(
        faults.as_array().unwrap().iter().all(|f| f["times"] == 0),
        "{faults:#}"
    );
    let violations = second.fake("violations", &json!({}));
    assert_eq!(violations, json!([]), "{violations:#}");
}

//! `ecr review` as a subprocess with the real `OpenCode`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::super::OPENCODE;
use super::super::rig::{confirmed, finish, key, room};
use super::folder;
use crate::support::model_server::{ModelServer, Reply, ReplyUsage, Script, Step};
use crate::support::repo::TestRepo;

/// A repository whose models of `lab` are served by `OpenCode`, with one changed file.
pub(super) fn repository(url: &str, protocol: &str) -> TestRepo {
    let repo = TestRepo::init();
    let config = json!({
        "engines": {"lab": "opencode"},
        "auth": {"providers": {"lab": {"tokenEnv": "LAB_KEY", "baseUrl": url, "protocol": protocol}}},
    });
    repo.write(".expo-code-review/config.jsonc", config.to_string());
    repo.write("src/a.rs", "fn a() {\n}\n");
    repo.write("src/b.rs", "fn helper() {}\n");
    repo
}

/// The search path: `first`, then the real tools.
fn search(first: &[PathBuf]) -> OsString {
    let path = std::env::var_os("PATH").unwrap();
    let cli = folder().unwrap();
    let folders = first.iter().cloned();
    let folders = folders.chain([cli]).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap()
}

/// A program with all that a review needs, and with folders of the tree before the real tools in `PATH`.
pub(super) fn command(repo: &TestRepo, first: &[&str], program: &str) -> Command {
    let temporary = repo.home().join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let first: Vec<_> = first.iter().map(|name| repo.root().join(name)).collect();
    let mut command = repo.command(program);
    command
        .env("PATH", search(&first))
        .env("LAB_KEY", key())
        .env("TMPDIR", &temporary);
    command
}

/// Adds the arguments of a review.
pub(super) fn arguments(command: &mut Command) -> &mut Command {
    command.args([
        "review",
        "--model",
        "lab/big",
        "--agents",
        "correctness",
        "--json",
    ])
}

/// `ecr review` of the work tree.
pub(super) async fn ecr(
    repo: TestRepo,
    first: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
) -> (TestRepo, Output) {
    let _room = room().await;
    let work = tokio::task::spawn_blocking(move || {
        let mut command = command(&repo, first, env!("CARGO_BIN_EXE_ecr"));
        let output = arguments(&mut command)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        (repo, output)
    });
    work.await.unwrap()
}

pub(super) fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

pub(super) fn holds(bytes: &[u8], needle: &str) -> bool {
    memchr::memmem::find(bytes, needle.as_bytes()).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_reviewed_with_findings_usage_and_a_receipt() {
    if folder().is_none() {
        return;
    }
    for protocol in ["anthropic-messages", "openai-responses", "openai-chat"] {
        let server = ModelServer::start(Script::new([])).await;
        let repo = repository(&server.url(), protocol);
        repo.commit_all("base");
        repo.write("src/a.rs", "fn a() {\n    let total = 1;\n}\n");
        let usage = ReplyUsage {
            input: 1_000,
            output: 50,
            cached: 300,
            written: 0,
        };
        let report = json!({"severity": "critical", "category": "correctness", "file": "src/a.rs", "line": 2,
            "side": "new", "title": "The sum is wrong", "consequence": "Callers get 1.", "evidence": "    let total = 1;"});
        for reply in [
            Reply::default()
                .tool("tree_read", json!({"path": "src/a.rs"}))
                .tool("tree_grep", json!({"pattern": "fn helper"})),
            Reply::default().tool("tree_report", report),
            finish(&OPENCODE),
            confirmed(&OPENCODE),
        ] {
            server.script().push(reply.usage(usage));
        }
        let (repo, output) = ecr(repo, &[], &[]).await;
        let review = json_of(&output);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said} {review:#}");
        assert_eq!(review["decision"], "request_changes");
        assert_eq!(review["complete"], true, "{review:#}");
        assert_eq!(review["findings"].as_array().unwrap().len(), 1);
        assert_eq!(review["findings"][0]["verification"]["status"], "verified");
        let used = &review["usage"];
        assert_eq!(used["confidence"], "exact", "{used}");
        assert_eq!(
            (&used["input"], &used["output"], &used["cacheRead"]),
            (&json!(4_000), &json!(200), &json!(1_200)),
            "{protocol}: {used}"
        );
        let pass = &review["passes"][0];
        assert_eq!(
            (&pass["engine"], &pass["toolCalls"]),
            (&json!("opencode"), &json!(4)),
            "{pass}"
        );
        assert_ne!(review["sandbox"]["level"], "not_needed", "{review:#}");
        let file = &review["coverage"]["files"][0];
        assert_eq!(
            (&file["path"], &file["outcome"]),
            (&json!("src/a.rs"), &json!("reviewed"))
        );
        assert_eq!(file["linesRead"], 3, "{file}");
        assert_eq!(
            std::fs::read_dir(repo.home().join("tmp")).unwrap().count(),
            0
        );
        assert!(!holds(&output.stdout, &key()) && !holds(&output.stderr, &key()));
        for request in server.script().requests() {
            let all = request.everything();
            let times = memchr::memmem::find_iter(&all, key().as_bytes()).count();
            assert_eq!(times, 1, "{}", request.path);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_no_approval() {
    if folder().is_none() {
        return;
    }
    let denied = Step::status(
        401,
        "{\"error\":{\"type\":\"authentication_error\",\"message\":\"bad\"}}",
    );
    let server = ModelServer::start(Script::new([denied])).await;
    let repo = repository(&server.url(), "openai-chat");
    repo.commit_all("base");
    repo.write("src/a.rs", "fn a() {\n    let total = 1;\n}\n");
    let (_repo, output) = ecr(repo, &[], &[]).await;
    let review = json_of(&output);
    assert_eq!(output.status.code(), Some(3), "{review:#}");
    assert_eq!(review["decision"], "could_not_complete");
    assert!(
        review["notes"]
            .to_string()
            .contains("authentication failed")
    );
}

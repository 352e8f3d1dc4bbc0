//! `--record` and `--replay` with the real tools: a whole run, again, without key and network.

use std::path::Path;
use std::process::Output;

use ecr::gateway::Protocol;
use serde_json::{Value, json};

use super::Subject;
use super::install::installed;
use super::rig::{confirmed, finish, key, room, spelled};
use crate::support::model_server::{ModelServer, Reply, ReplyUsage, Script, Step};
use crate::support::repo::TestRepo;

fn repository(subject: &Subject, url: &str) -> TestRepo {
    let protocol = match subject.protocol {
        Protocol::AnthropicMessages => "anthropic-messages",
        Protocol::OpenAiResponses => "openai-responses",
        Protocol::OpenAiChat => "openai-chat",
    };
    let repo = TestRepo::init();
    let config = json!({
        "engines": {"lab": subject.name},
        "auth": {"providers": {"lab": {"tokenEnv": "LAB_KEY", "baseUrl": url, "protocol": protocol}}},
    });
    repo.write(".expo-code-review/config.jsonc", config.to_string());
    repo.write("src/a.rs", "fn a() {\n}\n");
    repo.commit_all("base");
    repo.write("src/a.rs", "fn a() {\n    let total = 1;\n}\n");
    repo
}

async fn ecr(repo: TestRepo, tools: &Path, args: &[&str], with_key: bool) -> (TestRepo, Output) {
    let path = std::env::var_os("PATH").unwrap();
    let search = std::iter::once(tools.to_owned()).chain(std::env::split_paths(&path));
    let search = std::env::join_paths(search).unwrap();
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let work = tokio::task::spawn_blocking(move || {
        let mut command = repo.command(env!("CARGO_BIN_EXE_ecr"));
        command.env("PATH", search);
        if with_key {
            command.env("LAB_KEY", key());
        }
        command.args(["review", "--model", "lab/model-1", "--json"]);
        command.args(["--agents", "correctness"]);
        let output = command.args(&args).output().unwrap();
        (repo, output)
    });
    work.await.unwrap()
}

/// The result without its clocks.
fn timeless(output: &Output) -> Value {
    let mut review: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", words(output)));
    review["timing"] = Value::Null;
    for pass in review["passes"].as_array_mut().unwrap() {
        pass["durationMs"] = Value::Null;
    }
    review
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(super) async fn a_run_repeats_offline(subject: &'static Subject) {
    let Some(tools) = installed(subject) else {
        return;
    };
    let _room = room().await;
    let server = ModelServer::start(Script::new([])).await;
    let url = match subject.protocol {
        Protocol::AnthropicMessages => server.url(),
        _ => server.url() + "/v1",
    };
    let repo = repository(subject, &url);
    let busy = Step::status(503, "{\"error\": {\"message\": \"busy\"}}");
    server.script().push(busy.header("retry-after", "1"));
    let usage = ReplyUsage {
        input: 700,
        output: 30,
        ..ReplyUsage::default()
    };
    let report = |line: u64| {
        json!({"severity": "warning", "category": "correctness", "file": "src/a.rs", "line": line,
            "side": "new", "title": "Total is never used", "consequence": "The sum is lost.",
            "evidence": "    let total = 1;"})
    };
    for reply in [
        Reply::default().tool(&spelled(subject, "read"), json!({"path": "src/a.rs"})),
        Reply::default().tool(&spelled(subject, "report"), report(1)),
        Reply::default().tool(&spelled(subject, "report"), report(2)),
        finish(subject),
        confirmed(subject),
    ] {
        server.script().push(reply.usage(usage));
    }
    let tape = repo.home().join("tape").to_str().unwrap().to_owned();
    let (repo, output) = ecr(repo, &tools, &["--record", &tape], true).await;
    let first = timeless(&output);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{} {first:#}",
        words(&output)
    );
    assert_eq!(first["complete"], true, "{first:#}");
    assert_eq!(first["findings"].as_array().unwrap().len(), 1, "{first:#}");
    assert_eq!(first["passes"][0]["engine"], subject.name);
    let calls = server.script().requests().len();
    assert_eq!(std::fs::read_dir(&tape).unwrap().count(), calls + 1);
    for entry in std::fs::read_dir(&tape).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for secret in [&key()[..], "ecr-pass-", "authorization", "x-api-key"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }

    // Neither a key nor the server.
    drop(server);
    let (_repo, again) = ecr(repo, &tools, &["--replay", &tape], false).await;
    assert_eq!(again.status.code(), Some(0), "{}", words(&again));
    assert_eq!(timeless(&again), first, "{}", words(&again));
    assert!(
        !words(&again).contains("not asked for"),
        "{}",
        words(&again)
    );
}

//! `--record` and `--replay`: a whole run, again, without key and network.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::review::{
    SOURCES, canary, confirmed, evidence_line, files_below, holds, json_of, report, repository,
};
use crate::support::model_server::{ModelServer, Reply, ReplyUsage, Script, Step};
use crate::support::repo::TestRepo;

/// Runs ecr on the working tree; with a key, or with nothing that could reach a provider.
async fn ecr(repo: TestRepo, args: &[&str], key: bool) -> (TestRepo, Output) {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let work = tokio::task::spawn_blocking(move || {
        let mut command = repo.command(env!("CARGO_BIN_EXE_ecr"));
        if key {
            command.env("LAB_KEY", canary());
        }
        let output = command
            .args([
                "review",
                "--model",
                "lab/big",
                "--agents",
                "correctness",
                "--json",
            ])
            .args(&args)
            .output()
            .unwrap();
        (repo, output)
    });
    work.await.unwrap()
}

/// The result without its clocks.
fn timeless(output: &Output) -> Value {
    let mut review = json_of(output);
    review["timing"] = Value::Null;
    for pass in review["passes"].as_array_mut().unwrap() {
        pass["durationMs"] = Value::Null;
    }
    review
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A run with everything in it: tools, a mended finding, a quoted credential, an error that is repeated, a cut stream.
async fn recorded(protocol: &str) -> (TestRepo, Output) {
    let server = ModelServer::start(Script::new([])).await;
    let repo = repository(&server.url(), protocol);
    let token = ["ghp_", &"a1B2c3D4e5F6".repeat(3)].concat();
    repo.write("key.py", format!("TOKEN = \"{token}\"\n"));
    let line = evidence_line(&repo);
    let usage = ReplyUsage {
        input: 1_000,
        output: 50,
        cached: 300,
        written: 0,
    };
    server
        .script()
        .push(Step::status(503, "{\"error\": {\"message\": \"busy\"}}").header("retry-after", "1"));
    for reply in [
        Reply::text(&format!("I see {token} in the change."))
            .tool("read", json!({"path": SOURCES[0], "from": 1, "to": 20}))
            .tool("grep", json!({"pattern": "TOKEN"})),
        Reply::default().tool("report", report(line - 1)),
        Reply::default().tool("report", report(line)),
        Reply::default().tool("finish", json!({"examined": SOURCES})),
        confirmed(),
    ] {
        server.script().push(reply.usage(usage));
    }
    let (repo, output) = ecr(repo, &["--record", "tape"], true).await;
    assert_eq!(output.status.code(), Some(1), "{}", words(&output));
    let calls = server.script().requests().len();
    assert_eq!(calls, 6);
    let tape = repo.root().join("tape");
    let files = files_below(&tape);
    assert_eq!(files.len(), calls + 1);
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        for secret in [
            &canary()[..],
            &token,
            "ecr-pass-",
            "x-api-key",
            "authorization",
        ] {
            assert!(!holds(&bytes, secret), "{secret} in {}", file.display());
        }
    }
    (repo, output)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_repeats_offline_and_gives_the_same_result() {
    for protocol in ["anthropic-messages", "openai-responses", "openai-chat"] {
        let (repo, output) = recorded(protocol).await;
        // The server is gone. The tape lies in the work tree, where it would be a change of its own.
        std::fs::rename(repo.root().join("tape"), repo.home().join("tape")).unwrap();
        let tape = repo.home().join("tape").to_str().unwrap().to_owned();
        let (_repo, again) = ecr(repo, &["--replay", &tape], false).await;
        assert_eq!(
            again.status.code(),
            Some(1),
            "{protocol}: {}",
            words(&again)
        );
        assert_eq!(timeless(&again), timeless(&output), "{protocol}");
        assert!(
            !words(&again).contains("not asked for"),
            "{}",
            words(&again)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_run_than_the_recorded_one_is_an_error_that_shows_the_difference() {
    let (repo, _) = recorded("openai-chat").await;
    let home = repo.home().join("tape");
    std::fs::rename(repo.root().join("tape"), &home).unwrap();
    let tape = home.to_str().unwrap().to_owned();
    repo.write("key.py", "TOKEN = None  # changed since\n");
    let (repo, output) = ecr(repo, &["--replay", &tape], false).await;
    let said = words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    assert!(
        said.contains("is not the recorded one") && said.contains("changed since"),
        "{said}"
    );

    // Another base.
    repo.git(&["commit", "-q", "-am", "more"]);
    let (_repo, output) = ecr(repo, &["--base", "HEAD", "--replay", &tape], false).await;
    let said = words(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is of another change"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tapes_that_cannot_be_used_are_refused_before_anything_is_done() {
    let repo = repository("http://127.0.0.1:9/v1", "openai-chat");
    let refused = |output: &Output, expected: &str| {
        let said = words(output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.contains("next: "), "{said}");
    };
    let (repo, output) = ecr(repo, &["--replay", "nowhere"], false).await;
    refused(&output, "holds no tape");
    repo.write("tape/tape.json", "{\"tapeVersion\": 7}");
    let (repo, output) = ecr(repo, &["--replay", "tape"], false).await;
    refused(&output, "newer ecr");
    let (repo, output) = ecr(repo, &["--record", "tape"], true).await;
    refused(&output, "is not empty");
    let (repo, output) = ecr(repo, &["--record", "a", "--replay", "b"], true).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(!Path::new(&repo.root().join("a")).exists());
    let mut command = repo.command(env!("CARGO_BIN_EXE_ecr"));
    let output = command
        .args(["review", "--agents", "checks", "--record", "a"])
        .output()
        .unwrap();
    refused(&output, "no model takes part");
}

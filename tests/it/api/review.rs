//! `ecr review` with the engine of our own, as a subprocess, against a scripted provider.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::model_server::{ModelServer, Reply, ReplyUsage, Script, Step};
use crate::support::repo::TestRepo;

/// The provider's key, assembled so that no scanner takes it for one.
pub(super) fn canary() -> String {
    ["canary", "key", "90c4"].join("-")
}

pub(super) const SOURCES: [&str; 14] = [
    "model/category.rs",
    "model/coverage.rs",
    "model/finding.rs",
    "model/ids.rs",
    "model/mod.rs",
    "model/path.rs",
    "model/review.rs",
    "model/usage.rs",
    "diff/chunk.rs",
    "diff/glob.rs",
    "diff/types.rs",
    "tree/memory.rs",
    "tree/mod.rs",
    "port/engine.rs",
];

/// A repository with fourteen changed files of real code.
pub(super) fn repository(url: &str, protocol: &str) -> TestRepo {
    let repo = TestRepo::init();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |name: &str| {
        std::fs::read_to_string(sources.join(name))
            .unwrap_or_else(|_| std::fs::read_to_string(sources.join("lib.rs")).unwrap())
    };
    for name in SOURCES {
        repo.write(name, read(name));
    }
    repo.write("unchanged.rs", "fn helper() {}\n");
    let config = json!({
        "engines": {"lab": "api"},
        "auth": {"providers": {"lab": {"tokenEnv": "LAB_KEY", "baseUrl": url, "protocol": protocol}}},
    });
    repo.write(".expo-code-review/config.jsonc", config.to_string());
    repo.commit_all("base");
    for name in SOURCES {
        let text = read(name);
        repo.write(
            name,
            format!("{text}\npub fn added() -> u32 {{\n    41 + 1\n}}\n"),
        );
    }
    repo
}

async fn ecr(repo: TestRepo, args: &'static [&'static str]) -> (TestRepo, Output) {
    let work = tokio::task::spawn_blocking(move || {
        let temporary = repo.home().join("tmp");
        std::fs::create_dir_all(&temporary).unwrap();
        let output = repo
            .command(env!("CARGO_BIN_EXE_ecr"))
            .env("LAB_KEY", canary())
            .env("TMPDIR", &temporary)
            .args([
                "review",
                "--model",
                "lab/big",
                "--agents",
                "correctness",
                "--json",
            ])
            .args(args)
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

pub(super) fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

pub(super) fn holds(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|w| w == needle.as_bytes())
}

pub(super) fn report(line: u64) -> Value {
    json!({"severity": "critical", "category": "correctness", "file": SOURCES[0], "line": line, "side": "new",
        "title": "The sum is wrong", "consequence": "Callers get 42.", "evidence": "    41 + 1"})
}

/// The verifier's answer on a critical finding that holds.
pub(super) fn confirmed() -> Reply {
    let verdict = json!({"verdict": "confirmed", "reason": "It is 41 + 1."});
    Reply::text(&verdict.to_string())
}

/// The line of the evidence in the first source.
pub(super) fn evidence_line(repo: &TestRepo) -> u64 {
    let text = std::fs::read_to_string(repo.root().join(SOURCES[0])).unwrap();
    let at = text.lines().position(|line| line == "    41 + 1").unwrap();
    at as u64 + 1
}

#[tokio::test(flavor = "multi_thread")]
async fn fourteen_files_are_reviewed_with_nothing_else_installed() {
    for (protocol, key_header) in [
        ("anthropic-messages", "x-api-key"),
        ("openai-responses", "authorization"),
        ("openai-chat", "authorization"),
    ] {
        let server = ModelServer::start(Script::new([])).await;
        let repo = repository(&server.url(), protocol);
        let line = evidence_line(&repo);
        let usage = ReplyUsage {
            input: 1_000,
            output: 50,
            cached: 300,
            written: 0,
        };
        for reply in [
            Reply::default()
                .tool("read", json!({"path": SOURCES[0], "from": 1, "to": 20}))
                .tool("grep", json!({"pattern": "fn helper"})),
            Reply::default().tool("report", report(line - 1)),
            Reply::default().tool("report", report(line)),
            Reply::default().tool("finish", json!({"examined": SOURCES})),
            confirmed(),
        ] {
            server.script().push(reply.usage(usage));
        }
        let (repo, output) = ecr(repo, &[]).await;
        let review = json_of(&output);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said} {review:#}");
        assert_eq!(review["decision"], "request_changes");
        assert_eq!(review["complete"], true, "{review:#}");
        let finding = &review["findings"][0];
        assert_eq!(
            (&finding["file"], &finding["line"]),
            (&json!(SOURCES[0]), &json!(line))
        );
        assert_eq!(
            finding["verification"],
            json!({"status": "verified", "reason": "It is 41 + 1."})
        );
        assert_eq!(review["findings"].as_array().unwrap().len(), 1);
        let used = &review["usage"];
        assert_eq!(used["confidence"], "exact", "{used}");
        assert_eq!(
            (&used["input"], &used["output"], &used["cacheRead"]),
            (&json!(5_000), &json!(250), &json!(1_500)),
            "{protocol}: {used}"
        );
        let pass = &review["passes"][0];
        assert_eq!(
            (&pass["engine"], &pass["toolCalls"]),
            (&json!("api"), &json!(5)),
            "{pass}"
        );
        let files = review["coverage"]["files"].as_array().unwrap();
        assert_eq!(files.len(), 14);
        assert!(files.iter().all(|file| file["outcome"] == "reviewed"));
        let first = files
            .iter()
            .find(|file| file["path"] == SOURCES[0])
            .unwrap();
        assert_eq!(first["linesRead"], 20, "{first}");

        // Nothing of the tree is left, or was put, anywhere else.
        assert_eq!(
            files_below(&repo.home().join("tmp")),
            [] as [std::path::PathBuf; 0]
        );
        for file in files_below(repo.home()) {
            let content = std::fs::read(&file).unwrap();
            assert!(!holds(&content, "fn helper"), "{}", file.display());
            assert!(!holds(&content, &canary()), "{}", file.display());
        }
        assert!(!holds(&output.stdout, &canary()) && !holds(&output.stderr, &canary()));
        for request in server.script().requests() {
            let times = request
                .everything()
                .windows(canary().len())
                .filter(|w| *w == canary().as_bytes())
                .count();
            assert_eq!(times, 1, "{}", request.path);
            assert!(request.header(key_header).contains(&canary()));
        }
    }
}

async fn outcome(steps: Vec<Step>, args: &'static [&'static str]) -> (Value, i32, String) {
    let server = ModelServer::start(Script::new(steps)).await;
    let repo = repository(&server.url(), "openai-chat");
    let (_repo, output) = ecr(repo, args).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (json_of(&output), output.status.code().unwrap(), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_review_never_reads_as_an_approval() {
    let prose = || Step::from(Reply::text("LGTM, approve. {} null"));
    for (name, steps) in [
        ("prose", vec![prose(), prose(), prose()]),
        ("refusal", vec![Reply::text("No.").refused().into()]),
        (
            "truncation",
            vec![Reply::text("I think that").truncated().into()],
        ),
        (
            "empty",
            vec![
                Reply::text("").into(),
                Reply::text("").into(),
                Reply::text("").into(),
            ],
        ),
    ] {
        let (review, code, said) = outcome(steps, &[]).await;
        assert_eq!(review["decision"], "could_not_complete", "{name}: {said}");
        assert_eq!(review["complete"], false, "{name}");
        assert_eq!(code, 3, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_is_said_in_words_and_not_shown() {
    let denied = Step::status(
        401,
        "{\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid key\"}}",
    );
    let (review, code, _) = outcome(vec![denied], &[]).await;
    assert_eq!(code, 3, "{review:#}");
    assert_eq!(review["decision"], "could_not_complete");
    let notes = review["notes"].to_string();
    assert!(notes.contains("authentication failed"), "{notes}");
    assert!(!notes.contains(&canary()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_ends_with_the_time_limit_and_what_was_reported_is_kept() {
    let server = ModelServer::start(Script::new([])).await;
    let repo = repository(&server.url(), "openai-chat");
    let line = evidence_line(&repo);
    server
        .script()
        .push(Reply::default().tool("report", report(line)));
    for _ in 0..8 {
        server.script().push(Step::Hang);
    }
    let (_repo, output) = ecr(repo, &["--time-limit", "3s"]).await;
    let review = json_of(&output);
    assert_eq!(review["complete"], false);
    assert_eq!(review["findings"][0]["line"], line, "{review:#}");
    assert_ne!(review["decision"], "approve");
}

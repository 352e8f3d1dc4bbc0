//! The cases of `tests/eval`, replayed. When a prompt or a tool changes, the recordings no longer fit; the test says so.
//! Record them again with `ECR_RECORD_TAPES=1 cargo test --test it -- eval::own_cases` and look at what changed.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{copy, ecr, json_of, root, said, text};
use crate::support::model_server::{ModelServer, Recorded, Reply, ReplyUsage, Script, Step};
use crate::support::repo::TestRepo;

/// What the scripted model says in a case: the reviewer reports what `replies.json` lists and finishes, the verifier
/// gives the verdict on the claim that it is asked about, the coordinator leaves everything as it is.
fn answer(replies: &Value, request: &Recorded) -> Step {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let system = messages[0]["content"].as_str().unwrap();
    let task = messages[1]["content"].as_str().unwrap();
    let reply = if system.starts_with("# You check one claim") {
        let verdicts = replies["verdicts"].as_array().unwrap();
        let verdict = verdicts
            .iter()
            .find(|verdict| task.contains(verdict["claim"].as_str().unwrap()));
        let verdict = match verdict {
            Some(one) => json!({"verdict": one["verdict"], "reason": one["reason"]}),
            None => {
                json!({"verdict": "uncertain", "reason": "The script knows nothing of this claim."})
            }
        };
        Reply::text(&verdict.to_string())
    } else if body["tools"].as_array().is_none_or(Vec::is_empty) {
        Reply::text(&json!({"merges": [], "summary": "", "findings": []}).to_string())
    } else if messages.len() == 2 && !replies["reports"].as_array().unwrap().is_empty() {
        let reports = replies["reports"].as_array().unwrap();
        reports.iter().fold(Reply::default(), |reply, report| {
            reply.tool("report", report.clone())
        })
    } else {
        Reply::default().tool("finish", json!({"examined": changed_files(task)}))
    };
    let usage = ReplyUsage {
        input: 900,
        output: 60,
        cached: 700,
        written: 0,
    };
    reply.usage(usage).into()
}

/// The files that the diff in a task is about.
fn changed_files(task: &str) -> Vec<&str> {
    task.lines()
        .filter_map(|line| line.strip_prefix("+++ b/"))
        .collect()
}

async fn record(case: &str) {
    let folder = root().join("cases").join(case);
    let replies = std::fs::read_to_string(folder.join("replies.json")).unwrap();
    let replies: Value = serde_json::from_str(&replies).unwrap();
    let server =
        ModelServer::start(Script::answering(move |request| answer(&replies, request))).await;
    let repo = TestRepo::init();
    let setup = repo.home().join("setup");
    copy(&root().join("setup"), &setup);
    let config = std::fs::read_to_string(setup.join("config.jsonc")).unwrap();
    let config = config.replace("http://127.0.0.1:9/v1", &server.url());
    assert!(config.contains(&server.url()));
    std::fs::write(setup.join("config.jsonc"), config).unwrap();
    let tapes = repo.home().join("tapes");
    let (repo, output) = run(
        repo,
        &[
            "--only",
            case,
            "--config-dir",
            text(&setup),
            "--record",
            text(&tapes),
        ],
    )
    .await;
    assert_eq!(output.status.code(), Some(0), "{case}: {}", said(&output));
    let target = root().join("tapes").join(case);
    let _ = std::fs::remove_dir_all(&target);
    copy(&repo.home().join("tapes").join(case), &target);
}

async fn run(repo: TestRepo, args: &[&str]) -> (TestRepo, std::process::Output) {
    let cases = root().join("cases");
    let args: Vec<String> = [text(&cases)]
        .iter()
        .chain(args)
        .map(|arg| (*arg).to_owned())
        .collect();
    let work = tokio::task::spawn_blocking(move || {
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        let output = ecr(&repo, &args);
        (repo, output)
    });
    work.await.unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_replies_give_these_figures() {
    let cases = names(&root().join("cases"));
    assert_eq!(cases.len(), 12);
    if std::env::var_os("ECR_RECORD_TAPES").is_some() {
        for case in &cases {
            record(case).await;
        }
    }
    assert_eq!(names(&root().join("tapes")), cases, "a tape for each case");

    let (setup, tapes) = (root().join("setup"), root().join("tapes"));
    let args = [
        "--config-dir",
        text(&setup),
        "--replay",
        text(&tapes),
        "--json",
    ];
    let (repo, output) = run(TestRepo::init(), &args).await;
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}\n(if a prompt has changed: ECR_RECORD_TAPES=1, see the head of this file)",
        said(&output)
    );
    let report = json_of(&output);
    let validator = jsonschema::validator_for(&ecr::eval::report_schema()).unwrap();
    assert!(validator.is_valid(&report));
    assert_eq!(
        (&report["cases"], &report["complete"]),
        (&json!(12), &json!(12))
    );
    // Two known defects are missed on purpose: one nobody reports, one the verifier refutes though it is true.
    assert_eq!(
        report["counts"],
        json!({"hits": 8, "falseAlarms": 1, "missed": 2}),
        "{report:#}"
    );
    assert_eq!(
        report["verifier"],
        json!({"keptTrue": 6, "keptFalse": 1, "killedTrue": 1, "killedFalse": 2})
    );
    assert_eq!(report["silence"]["silent"], 2, "{report:#}");
    assert_eq!(report["silence"]["cases"], 3);
    let at = |keep: &str| {
        let points = report["curve"].as_array().unwrap();
        points.iter().find(|point| point["keep"] == keep).unwrap()["counts"].clone()
    };
    assert_eq!(
        at("without_verifier"),
        json!({"hits": 9, "falseAlarms": 3, "missed": 1})
    );
    assert_eq!(
        at("not_uncertain"),
        json!({"hits": 8, "falseAlarms": 0, "missed": 2})
    );
    assert!(report["cost"]["usd"].as_f64().unwrap() > 0.0);
    assert_eq!(report["cost"]["unpricedCases"], 0);

    // Again from what is kept: the same figures, no tape needed.
    let (_repo, again) = run(repo, &[&args[..], &["--resume"]].concat()).await;
    assert_eq!(json_of(&again), report);
    assert_eq!(
        said(&again).matches("kept from before").count(),
        12,
        "{}",
        said(&again)
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_signal_ends_keeps_what_it_has_and_goes_on() {
    let held = Arc::new(AtomicBool::new(true));
    let hold = Arc::clone(&held);
    let nothing = json!({"reports": [], "verdicts": []});
    let server = ModelServer::start(Script::answering(move |request| {
        let page = String::from_utf8_lossy(&request.body).contains("src/page.ts");
        if page && hold.load(Ordering::SeqCst) {
            return Step::Hang;
        }
        answer(&nothing, request)
    }))
    .await;
    let repo = TestRepo::init();
    let setup = repo.home().join("setup");
    copy(&root().join("setup"), &setup);
    let config = std::fs::read_to_string(setup.join("config.jsonc")).unwrap();
    let config = config.replace("http://127.0.0.1:9/v1", &server.url());
    std::fs::write(setup.join("config.jsonc"), config).unwrap();
    let cases = root().join("cases");
    let args = [
        "eval",
        text(&cases),
        "--only",
        "clean-python-rename,typescript-wrong-default",
        "--config-dir",
        text(&setup),
        "--json",
        "--resume",
    ];
    let start = || {
        let mut command = repo.command(env!("CARGO_BIN_EXE_ecr"));
        let command = command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let child = start();
    // One request of the first case, and the one that is held.
    while server.script().requests().len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let sent = std::process::Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = output.await.unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", said(&output));
    assert_eq!(json_of(&output)["scored"], 1, "{}", said(&output));

    held.store(false, Ordering::SeqCst);
    let child = start();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let output = output.await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let words = said(&output);
    assert!(
        words.contains("clean-python-rename: kept from before")
            && !words.contains("typescript-wrong-default: kept"),
        "{words}"
    );
    assert_eq!(json_of(&output)["scored"], 2);
}

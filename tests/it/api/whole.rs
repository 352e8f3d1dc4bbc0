//! Whole reviews: three reviewers, a cross-cutting pass, a coordinator and a verifier against a scripted provider that
//! answers by what it is asked.

use std::collections::{BTreeSet, HashMap};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::review::{SOURCES, canary, evidence_line, json_of, report};
use crate::support::model_server::{ModelServer, Recorded, Reply, ReplyUsage, Script, Step};
use crate::support::repo::TestRepo;
use crate::support::skip::skipped;

/// Who asks: a word of its system prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Correctness,
    Security,
    Consistency,
    CrossCutting,
    Coordinator,
    Verifier,
}

const ROLES: [(&str, Role); 6] = [
    ("You are the coordinator", Role::Coordinator),
    ("You check one claim", Role::Verifier),
    (
        "You look for what falls between the parts",
        Role::CrossCutting,
    ),
    (
        "You look for code that does something else",
        Role::Correctness,
    ),
    ("You look for what an attacker", Role::Security),
    ("", Role::Consistency),
];

/// One request of the Messages protocol.
struct Asked {
    role: Role,
    task: String,
    turn: usize,
    body: Value,
}

impl Asked {
    fn of(request: &Recorded) -> Self {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let system = body["system"].to_string();
        let role = ROLES
            .iter()
            .find(|(words, _)| system.contains(words))
            .unwrap()
            .1;
        let messages = body["messages"].as_array().unwrap();
        Self {
            role,
            task: messages[0].to_string(),
            turn: messages.len() / 2,
            body: body.clone(),
        }
    }

    fn sees(&self, file: &str) -> bool {
        self.task.contains(&format!("diff --git a/{file} b/{file}"))
    }
}

const USAGE: ReplyUsage = ReplyUsage {
    input: 1_000,
    output: 50,
    cached: 300,
    written: 0,
};

/// What an able model says: the correctness reviewer finds the seeded defect, the security one is wrong about another
/// file and the verifier knows it, the consistency one words the first anew two lines further up.
fn able(asked: &Asked, line: u64, files: &[String]) -> Reply {
    let finish = || Reply::default().tool("finish", json!({"examined": files}));
    let seeded = asked.sees(SOURCES[0]);
    let reply = match (asked.role, asked.turn) {
        (Role::Correctness, 0) if seeded => Reply::default().tool("report", report(line)),
        (Role::Security, 0) if asked.sees(SOURCES[13]) => {
            let mut wrong = report(line);
            wrong["file"] = json!(SOURCES[13]);
            wrong["category"] = json!("security");
            wrong["title"] = json!("Anyone can add numbers");
            // The line is another one there; the door says which.
            Reply::default().tool("report", wrong)
        }
        (Role::Security, 1) if asked.sees(SOURCES[13]) => {
            let said = asked.body["messages"][2].to_string();
            let there = said.split("line ").filter_map(|rest| {
                rest.split(|c: char| !c.is_ascii_digit())
                    .next()?
                    .parse::<u64>()
                    .ok()
            });
            let mut mended = report(there.last().unwrap());
            mended["file"] = json!(SOURCES[13]);
            mended["category"] = json!("security");
            mended["title"] = json!("Anyone can add numbers");
            Reply::default().tool("report", mended)
        }
        (Role::Consistency, 0) if seeded => {
            let mut near = report(line - 1);
            near["severity"] = json!("warning");
            near["evidence"] = json!("pub fn added() -> u32 {");
            near["title"] = json!("The sum that is added is wrong");
            Reply::default().tool("report", near)
        }
        (Role::Coordinator, _) => {
            let text = asked.task.replace("\\\"", "\"");
            let ids: Vec<String> = text
                .split("\"id\":\"")
                .skip(1)
                .map(|rest| rest[..12].to_owned())
                .collect();
            let titles: Vec<&str> = text.split("\"title\":\"").skip(1).collect();
            let of = |title: &str| {
                titles
                    .iter()
                    .position(|t| t.starts_with(title))
                    .map(|at| ids[at].clone())
            };
            let merge = match (of("The sum is wrong"), of("The sum that is added")) {
                (Some(into), Some(from)) => json!([{"into": into, "from": [from]}]),
                _ => json!([]),
            };
            Reply::text(&json!({"merge": merge, "drop": [], "edit": [], "summary": "The sum would be wrong."}).to_string())
        }
        (Role::Verifier, _) => {
            let verdict = if asked.task.contains("Anyone can add") {
                "refuted"
            } else {
                "confirmed"
            };
            Reply::text(&json!({"verdict": verdict, "reason": "As the source shows."}).to_string())
        }
        _ => finish(),
    };
    reply.usage(USAGE)
}

fn names() -> Vec<String> {
    let set_up = ".expo-code-review/config.jsonc".to_owned();
    let sources = SOURCES.iter().map(ToString::to_string);
    sources.chain([set_up]).collect()
}

/// A repository with the fourteen changed files of real code, reviewed in chunks of five.
fn repository(url: &str) -> TestRepo {
    let repo = super::review::repository(url, "anthropic-messages");
    let config = json!({
        "model": "lab/big",
        "chunk": {"maxFiles": 5},
        "engines": {"lab": "api"},
        "prices": {"lab/big": {"input": 3.0, "output": 15.0, "cacheRead": 0.3, "cacheWrite": 3.75}},
        "auth": {"providers": {"lab": {"tokenEnv": "LAB_KEY", "baseUrl": url, "protocol": "anthropic-messages"}}},
    });
    repo.write(".expo-code-review/config.jsonc", config.to_string());
    repo
}

async fn ecr(repo: TestRepo, args: &[&str]) -> (TestRepo, Output) {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let work = tokio::task::spawn_blocking(move || {
        let output = repo
            .command(env!("CARGO_BIN_EXE_ecr"))
            .env("LAB_KEY", canary())
            .args(["review", "--json"])
            .args(&args)
            .output()
            .unwrap();
        (repo, output)
    });
    work.await.unwrap()
}

fn of_kind<'a>(review: &'a Value, kind: &str) -> Vec<&'a Value> {
    let passes = review["passes"].as_array().unwrap().iter();
    passes.filter(|pass| pass["kind"] == kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_reviewers_and_the_judges_review_fourteen_files() {
    let dummy = repository("http://127.0.0.1:9");
    let line = evidence_line(&dummy);
    let server = ModelServer::start(Script::answering(move |request| {
        able(&Asked::of(request), line, &names()).into()
    }))
    .await;
    let repo = repository(&server.url());
    let (_repo, output) = ecr(repo, &[]).await;
    let review = json_of(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said} {review:#}");
    assert_eq!(review["decision"], "request_changes");
    assert_eq!(review["complete"], true, "{review:#}");
    // Fifteen changed files: the configuration is one, and none of a model's business to leave out.
    let chunks = 3;
    assert_eq!(of_kind(&review, "review").len(), 3 * chunks);
    assert_eq!(of_kind(&review, "cross_cutting").len(), 1);
    assert_eq!(of_kind(&review, "coordinate").len(), 1);
    assert_eq!(
        of_kind(&review, "verify").len(),
        3,
        "one confirmed, one refuted twice"
    );
    let findings = review["findings"].as_array().unwrap();
    let shown: Vec<_> = findings
        .iter()
        .map(|f| {
            (
                f["title"].as_str().unwrap(),
                f["status"].as_str().unwrap(),
                f["verification"]["status"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("The sum is wrong", "open", "verified"),
            ("Anyone can add numbers", "disputed", "uncertain"),
        ],
        "{review:#}"
    );
    assert_eq!(findings[0]["agents"], json!(["correctness", "consistency"]));
    assert_eq!(review["dropped"][0]["stage"], "dedupe");
    // Usage and money are exact: every reply costs the same.
    let calls = server.script().requests().len() as u64;
    let used = &review["usage"];
    assert_eq!(
        (&used["input"], &used["confidence"]),
        (&json!(calls * 1_000), &json!("exact")),
        "{used}"
    );
    let one = (1_000.0 * 3.0 + 300.0 * 0.3 + 50.0 * 15.0) / 1e6;
    let cost = used["costUsd"].as_f64().unwrap();
    assert!(
        (cost - one * calls as f64).abs() < 1e-4,
        "{cost} for {calls} calls"
    );
    // The prefix that a provider's cache keys on is one a role.
    let prefixes: BTreeSet<(Role, String)> = server
        .script()
        .requests()
        .iter()
        .map(|request| {
            let asked = Asked::of(request);
            (
                asked.role,
                asked.body["system"].to_string() + &asked.body["tools"].to_string(),
            )
        })
        .collect();
    assert_eq!(prefixes.len(), 6);
    // Everybody saw every file of the diff, or its name.
    for request in server.script().requests() {
        let asked = Asked::of(&request);
        if asked.role < Role::Coordinator {
            assert!(SOURCES.iter().all(|file| asked.task.contains(file)));
        }
    }
}

/// What goes wrong, and what has to come of it.
struct Fault {
    name: &'static str,
    /// Instead of the able model's reply.
    step: fn(&Asked, usize) -> Option<Step>,
    args: &'static [&'static str],
    code: i32,
    complete: bool,
    /// A word of a note or of the reason of a pass.
    says: &'static str,
}

fn garbage() -> Step {
    Reply::text("I am sure that all is well!")
        .usage(USAGE)
        .into()
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_at_every_stage_end_in_the_right_verdict() {
    let faults = [
        Fault {
            name: "a storm of 429",
            step: |_, n| (n < 12).then(|| Step::status(429, "{}").header("retry-after", "0")),
            args: &[],
            code: 1,
            complete: true,
            says: "",
        },
        Fault {
            name: "a reviewer that talks",
            step: |asked, _| (asked.role == Role::Security).then(garbage),
            args: &[],
            code: 1,
            complete: false,
            says: "never called `finish`",
        },
        Fault {
            name: "a defect that cannot be read",
            step: |asked, _| {
                (asked.role == Role::Security && asked.turn == 0).then(|| {
                    let mut found = report(1);
                    found["line"] = Value::Null;
                    Reply::default().tool("report", found).usage(USAGE).into()
                })
            },
            args: &[],
            code: 1,
            complete: false,
            says: "reported defects could not be read",
        },
        Fault {
            name: "all reviewers talk",
            step: |asked, _| (asked.role < Role::Coordinator).then(garbage),
            args: &[],
            code: 3,
            complete: false,
            says: "never called `finish`",
        },
        Fault {
            name: "a cross-cutting pass that is refused",
            step: |asked, _| {
                (asked.role == Role::CrossCutting).then(|| Reply::default().refused().into())
            },
            args: &[],
            code: 1,
            complete: false,
            says: "cross-cutting",
        },
        Fault {
            name: "a coordinator that talks",
            step: |asked, _| (asked.role == Role::Coordinator).then(garbage),
            args: &[],
            code: 1,
            complete: true,
            says: "merged by rule instead",
        },
        Fault {
            name: "a verifier that talks",
            step: |asked, _| (asked.role == Role::Verifier).then(garbage),
            args: &[],
            code: 1,
            complete: false,
            says: "verify/",
        },
        Fault {
            name: "a wrong key",
            step: |_, _| {
                Some(Step::status(
                    401,
                    "{\"error\":{\"message\":\"invalid x-api-key\"}}",
                ))
            },
            args: &[],
            code: 3,
            complete: false,
            says: "authentication failed",
        },
        Fault {
            name: "no money for the first call",
            step: |_, _| None,
            args: &["--max-cost", "0.001"],
            code: 3,
            complete: false,
            says: "cost",
        },
        Fault {
            name: "money for some calls",
            step: |_, _| None,
            args: &["--max-cost", "0.60"],
            code: 4,
            complete: false,
            says: "cost",
        },
        Fault {
            name: "time for nothing",
            step: |_, _| Some(Step::Hang),
            args: &["--time-limit", "4s"],
            code: 3,
            complete: false,
            says: "time",
        },
    ];
    let line = evidence_line(&repository("http://127.0.0.1:9"));
    for fault in faults {
        let count = AtomicUsize::new(0);
        let step = fault.step;
        let quiet = fault.code == 4;
        let server = ModelServer::start(Script::answering(move |request| {
            let asked = Asked::of(request);
            let number = count.fetch_add(1, Ordering::SeqCst);
            match step(&asked, number) {
                Some(step) => step,
                // Where the code has to tell a gap from a finding, nothing is found.
                None if quiet => Reply::default()
                    .tool("finish", json!({"examined": names()}))
                    .usage(USAGE)
                    .into(),
                None => able(&asked, line, &names()).into(),
            }
        }))
        .await;
        let (_repo, output) = ecr(repository(&server.url()), fault.args).await;
        let review = json_of(&output);
        let name = fault.name;
        assert_eq!(output.status.code(), Some(fault.code), "{name}: {review:#}");
        assert_eq!(
            review["complete"], fault.complete,
            "{name}: {:#} {:#} {:#}",
            review["notes"], review["coverage"], review["passes"],
        );
        let text = format!("{} {}", review["notes"], review["passes"]);
        assert!(text.contains(fault.says), "{name}: {text}");
        if !fault.complete {
            assert_ne!(review["decision"], "approve", "{name}");
        }
        let cost = review["usage"]["costUsd"].as_f64().unwrap_or(0.0);
        if let Some(cap) = fault.args.get(1).and_then(|cap| cap.parse::<f64>().ok()) {
            assert!(cost <= cap, "{name}: {cost}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_files_of_other_peoples_code() {
    let Some(sources) = foreign_sources(300) else {
        skipped("the cargo registry has no 300 source files to make a change of");
        return;
    };
    let repo = TestRepo::init();
    for (at, text) in sources.iter().enumerate() {
        repo.write(format!("src/m{:02}/f{at}.rs", at / 12), text);
    }
    let files: Arc<Vec<String>> = Arc::new(
        (0..300)
            .map(|at| format!("src/m{:02}/f{at}.rs", at / 12))
            .collect(),
    );
    let named = Arc::clone(&files);
    let lines: HashMap<String, u64> = files
        .iter()
        .zip(&sources)
        .map(|(file, text)| (file.clone(), text.lines().count() as u64 + 3))
        .collect();
    let server = ModelServer::start(Script::answering(move |request| {
        let asked = Asked::of(request);
        let reply = match (asked.role, asked.turn) {
            (Role::Coordinator, _) => Reply::text(
                &json!({"merge": [], "drop": [], "edit": [], "summary": "Sums are wrong."})
                    .to_string(),
            ),
            (Role::Verifier, _) => {
                Reply::text(&json!({"verdict": "confirmed", "reason": "It is."}).to_string())
            }
            (Role::Correctness, 0) => {
                // It finds every seeded defect of its chunk.
                let seen = named
                    .iter()
                    .filter(|file| asked.sees(file) && file.ends_with("0.rs"));
                let mut reply = Reply::default();
                for file in seen {
                    let mut found = report(lines[file.as_str()]);
                    found["file"] = json!(file);
                    reply = reply.tool("report", found);
                }
                reply.tool("list", json!({"path": "src"}))
            }
            _ => Reply::default().tool("finish", json!({"examined": *named})),
        };
        reply.usage(USAGE).into()
    }))
    .await;
    let config = json!({
        "model": "lab/big",
        "engines": {"lab": "api"},
        "auth": {"providers": {"lab": {"tokenEnv": "LAB_KEY", "baseUrl": server.url(), "protocol": "anthropic-messages"}}},
    });
    repo.write(".expo-code-review/config.jsonc", config.to_string());
    repo.commit_all("base");
    for (at, text) in sources.iter().enumerate() {
        let defect = if at % 10 == 0 { "41 + 1" } else { "40 + 2" };
        repo.write(
            &files[at],
            format!("{text}\npub fn added_{at}() -> u32 {{\n    {defect}\n}}\n"),
        );
    }
    let (_repo, output) = ecr(repo, &[]).await;
    let review = json_of(&output);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{said} {:#}",
        review["notes"]
    );
    assert_eq!(review["complete"], true, "{:#}", review["notes"]);
    let seeded = review["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["title"] == "The sum is wrong");
    let verified = seeded
        .filter(|f| f["verification"]["status"] == "verified")
        .count();
    assert_eq!(verified, 30, "{:#}", review["notes"]);
    let totals = &review["coverage"]["totals"];
    assert_eq!(
        (&totals["files"], &totals["reviewedFiles"]),
        (&json!(300), &json!(300))
    );
    assert_eq!(of_kind(&review, "verify").len(), 30);
}

/// Source files that nobody here wrote, small enough to be quick.
fn foreign_sources(count: usize) -> Option<Vec<String>> {
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || std::path::PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        std::path::PathBuf::from,
    );
    let mut found = Vec::new();
    let mut folders = vec![home.join("registry/src")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else {
            continue;
        };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs")
                && entry
                    .metadata()
                    .is_ok_and(|m| (500..20_000).contains(&m.len()))
                && let Ok(text) = std::fs::read_to_string(&path)
                && !text.contains("@generated")
            {
                found.push(text);
                if found.len() == count {
                    return Some(found);
                }
            }
        }
    }
    None
}

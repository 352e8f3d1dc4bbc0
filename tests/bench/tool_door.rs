//! The tool door over 20,000 files: first and later searches, a read, a masked file. Prints one line a figure; no assertion.
#![allow(missing_docs, clippy::print_stdout)] // a bench prints

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ecr::diff::Diff;
use ecr::gateway::tools::{Session, SessionSettings, TreeCache, Withheld, mcp_service};
use ecr::gateway::{Landing, ToolSession};
use ecr::git::{HostEnv, Repository};
use ecr::model::{FindingReport, Fingerprint, PassId, RepoPath};
use ecr::port::{FindingReceipt, FindingSink};
use ecr::tree::{MemoryTree, Tree};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const FILES: usize = 20_000;
const LINES: usize = 120;
const ROUNDS: usize = 5;

type Failure = Box<dyn std::error::Error>;

struct NoSink;

impl FindingSink for NoSink {
    fn report(&self, _pass: &PassId, _finding: FindingReport) -> FindingReceipt {
        FindingReceipt::Rejected(String::new())
    }
    fn retract(&self, _pass: &PassId, _id: &Fingerprint, _reason: &str) -> bool {
        false
    }
}

/// A source file of ordinary lines; one file in a hundred has what is searched for.
fn source(file: usize) -> String {
    let mut text = String::new();
    for line in 0..LINES {
        let _ = match line % 6 {
            0 => writeln!(
                text,
                "pub fn handle_{file}_{line}(request: &Request, limit: usize) -> Result<Response> {{"
            ),
            1 => writeln!(
                text,
                "    let value = request.header(\"x-item-{line}\").unwrap_or_default();"
            ),
            2 => writeln!(
                text,
                "    if value.len() > limit {{ return Err(Error::TooLong(value.len())); }}"
            ),
            3 => writeln!(
                text,
                "    // The token of the session {file} is looked up by name, not by number."
            ),
            4 => writeln!(
                text,
                "    store.lookup(&value)?.map(|entry| entry.render(limit)).ok_or(Error::Absent)"
            ),
            _ => writeln!(text, "}}\n"),
        };
    }
    if file.is_multiple_of(100) {
        let _ = writeln!(text, "fn rarely_used_helper() {{}}");
    }
    text
}

fn path(file: usize) -> String {
    format!("src/area{}/module{}/file{file}.rs", file / 1000, file / 50)
}

fn memory() -> Result<(Arc<dyn Tree>, usize), Failure> {
    let mut tree = MemoryTree::new();
    let mut bytes = 0;
    for file in 0..FILES {
        let text = source(file);
        bytes += text.len();
        tree.insert(RepoPath::new(path(file))?, text.into_bytes());
    }
    Ok((Arc::new(tree), bytes))
}

/// The same files as a commit, packed, made by `git fast-import`.
async fn committed(folder: &std::path::Path) -> Result<Arc<dyn Tree>, Failure> {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(folder).args(args).stdout(Stdio::null());
        command
    };
    git(&["init", "-q", "-b", "main"]).status()?;
    let mut import = git(&["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = import.stdin.take() {
        write!(
            stdin,
            "commit refs/heads/main\ncommitter A <a@example.com> 1 +0000\ndata 0\n"
        )?;
        for file in 0..FILES {
            let text = source(file);
            write!(
                stdin,
                "M 100644 inline {}\ndata {}\n{text}\n",
                path(file),
                text.len()
            )?;
        }
    }
    import.wait()?;
    let variables =
        ["PATH", "HOME"].map(|name| (name.into(), std::env::var_os(name).unwrap_or_default()));
    let host: HostEnv = variables.into_iter().collect();
    let repository = Repository::discover(&host, folder, CancellationToken::new()).await?;
    let head = repository.resolve("HEAD").await?;
    Ok(Arc::new(repository.commit_tree(&head)?))
}

fn session(tree: Arc<dyn Tree>) -> Session {
    let diff = Diff {
        patch: bytes::Bytes::new(),
        files: Vec::new(),
    };
    let deadline = tokio::time::Instant::now() + Duration::from_secs(86_400);
    Session::new(SessionSettings {
        pass: PassId::new("bench"),
        tree: Some(Arc::new(TreeCache::new(tree))),
        diff: Arc::new(diff),
        withheld: Arc::new(Withheld::default()),
        sink: Arc::new(NoSink),
        landing: Arc::new(Landing::new(deadline, Duration::ZERO)),
        tool_calls: u32::MAX,
    })
}

async fn timed(session: &Session, tool: &str, arguments: &Value) -> (Duration, usize) {
    let start = Instant::now();
    let answer = session.call(tool, arguments.clone()).await;
    (start.elapsed(), answer.text.len())
}

async fn report(name: &str, session: &Session, tool: &str, arguments: Value) {
    let (first, _) = timed(session, tool, &arguments).await;
    let mut best = Duration::MAX;
    let mut worst = Duration::ZERO;
    let mut size = 0;
    for _ in 0..ROUNDS {
        let (time, bytes) = timed(session, tool, &arguments).await;
        best = best.min(time);
        worst = worst.max(time);
        size = bytes;
    }
    println!("{name}: first {first:.1?}, then {best:.1?} to {worst:.1?}, answer {size} bytes");
}

async fn searches(name: &str, tree: Arc<dyn Tree>) {
    let session = session(tree);
    for (what, pattern) in [
        ("a rare word", "rarely_used_helper"),
        ("a common word", "Error::TooLong"),
        ("no literal", r"\b[a-z]+_\d+_6\b"),
        ("ignoring case", "(?i)rarely_USED"),
        ("nothing", "this is not there"),
    ] {
        let name = format!("{name}: grep {what}");
        report(&name, &session, "grep", json!({"pattern": pattern})).await;
    }
    let name = format!("{name}: glob");
    report(
        &name,
        &session,
        "glob",
        json!({"pattern": "**/file123*.rs"}),
    )
    .await;
}

/// What MCP adds to a read.
async fn over_mcp(session: &Arc<Session>) -> Result<(), Failure> {
    let service = mcp_service(Arc::clone(session) as Arc<dyn ToolSession>);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "read", "arguments": {"path": path(778)}}});
    let mut times = Vec::new();
    for _ in 0..2_000 {
        let request = http::Request::post("/mcp")
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(call.to_string().into())?;
        let start = Instant::now();
        let answer = service.handle(request).await;
        times.push(start.elapsed());
        assert!(answer.status().is_success());
    }
    times.sort_unstable();
    println!(
        "read over MCP: median {:.1?}, p99 {:.1?}",
        times[1_000], times[1_980]
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let (tree, bytes) = memory()?;
    println!("{FILES} files, {:.1} MB", bytes as f64 / 1e6);
    let start = Instant::now();
    let text = source(1).repeat(100);
    std::hint::black_box(ecr::detect::mask_lines(&text));
    let rate = text.len() as f64 / 1e6 / start.elapsed().as_secs_f64();
    println!("mask: {rate:.0} MB/s on one core");

    searches("memory", Arc::clone(&tree)).await;
    let folder = tempfile::tempdir()?;
    searches("git objects", committed(folder.path()).await?).await;

    let session = Arc::new(session(tree));
    over_mcp(&session).await?;
    report("read", &session, "read", json!({"path": path(777)})).await;
    report(
        "read, wrong path",
        &session,
        "read",
        json!({"path": "nope.rs"}),
    )
    .await;
    report("list", &session, "list", json!({"path": "src/area1"})).await;
    Ok(())
}

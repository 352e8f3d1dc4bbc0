//! What a pass with a real command-line tool costs: a minimal one in the jar against the same program with the same
//! arguments outside of it, its memory, the bytes that it adds to a request, and the time of a round of tools. The provider answers at
//! once, in memory. Prints; no assertion.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::panic)] // a bench prints, and may fail
#![allow(dead_code, unused_imports)] // the model server is shared with the tests

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ecr::diff::Diff;
use ecr::engine::claude::Claude;
use ecr::engine::cli::{CliDialect, CliEngine, CliSettings, PassFacts, Rehearsals};
use ecr::engine::codex::Codex;
use ecr::engine::opencode::OpenCode;
use ecr::engine::{Client, Doors, DoorsSettings};
use ecr::gateway::tools::mcp_service;
use ecr::gateway::{Credential, Gateway, GatewaySettings, PassLimits, Protocol, Upstream};
use ecr::ledger::{PriceTable, RunCaps};
use ecr::model::{
    AgentId, FindingReport, Fingerprint, ModelId, PassId, PassKind, RepoPath, Secret, Usage,
};
use ecr::port::{
    FindingReceipt, FindingSink, Meter, PassContext, PassRequest, Progress, ProgressEvent,
    ReviewEngine as _,
};
use ecr::process::RunFolders;
use ecr::process::sandbox::Level;
use ecr::tree::{MemoryTree, Tree};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[path = "../it/support/model_server/mod.rs"]
#[allow(unused_imports)] // the tests use more of it
mod model_server;

use model_server::{MemoryProvider, Reply, Script, Step};

const ROUNDS: usize = 7;
const TOOL_ROUNDS: usize = 20;

struct Silent;

impl Meter for Silent {
    fn add(&self, _: &PassId, _: Usage) {}
}

impl Progress for Silent {
    fn event(&self, _: ProgressEvent) {}
}

impl FindingSink for Silent {
    fn report(&self, _: &PassId, _: FindingReport) -> FindingReceipt {
        FindingReceipt::Rejected(String::new())
    }

    fn retract(&self, _: &PassId, _: &Fingerprint, _: &str) -> bool {
        false
    }
}

struct Tool {
    dialect: Arc<dyn CliDialect>,
    protocol: Protocol,
    model: &'static str,
    folder: PathBuf,
}

/// The tools that the tests have installed.
fn tools() -> Vec<Tool> {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let cache = std::env::var_os("ECR_TEST_CLI_CACHE")
        .map_or_else(|| home.join(".cache/ecr-real-cli"), PathBuf::from);
    let all: [(Arc<dyn CliDialect>, _, _, _); 3] = [
        (
            Arc::new(Claude),
            Protocol::AnthropicMessages,
            "claude-opus-5-5",
            "claude-2.1.332",
        ),
        (
            Arc::new(Codex),
            Protocol::OpenAiResponses,
            "gpt-5.5",
            "codex-0.171.0",
        ),
        (
            Arc::new(OpenCode),
            Protocol::OpenAiChat,
            "org/big",
            "opencode-1.18.33",
        ),
    ];
    all.into_iter()
        .map(|(dialect, protocol, model, name)| Tool {
            dialect,
            protocol,
            model,
            folder: cache.join(name).join("node_modules/.bin"),
        })
        .filter(|tool| {
            let there = tool.folder.exists();
            if !there {
                println!(
                    "{}: not installed; run the tests once",
                    tool.folder.display()
                );
            }
            there
        })
        .collect()
}

struct Bench {
    engine: CliEngine,
    doors: Arc<Doors>,
    script: Script,
    diff: Arc<Diff>,
    model: ModelId,
}

impl Bench {
    async fn new(tool: &Tool) -> Self {
        let script = Script::new([]);
        let gateway = Gateway::start(GatewaySettings {
            transport: Arc::new(MemoryProvider::new(script.clone())),
            tools: Some(mcp_service),
            caps: RunCaps::default(),
            prices: PriceTable::default(),
            concurrent_calls: 8,
            clock: || 1_800_000_000,
        })
        .await
        .unwrap();
        let upstream = Upstream {
            provider: "acme".to_owned(),
            protocol: tool.protocol,
            base_url: "http://127.0.0.1:9/v1".parse().unwrap(),
            credential: Credential::ApiKey(Secret::new("key".to_owned())),
        };
        let doors = Arc::new(Doors::new(DoorsSettings {
            gateway: Arc::new(gateway),
            upstreams: [("acme".to_owned(), Arc::new(upstream))].into(),
            withheld: Arc::default(),
            limits: PassLimits::default(),
        }));
        let patch = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,3 @@\n fn a() {\n+    let total = 1;\n }\n";
        Self {
            engine: CliEngine::new(
                Arc::clone(&tool.dialect),
                Arc::clone(&doors),
                CliSettings {
                    search: tool.folder.clone().into(),
                    reviewed: Vec::new(),
                    require: Level::None,
                    rehearsals: Rehearsals::default(),
                },
            ),
            doors,
            script,
            diff: Arc::new(ecr::diff::parse_patch(Arc::from(patch.as_bytes())).unwrap()),
            model: ModelId::new(&format!("acme/{}", tool.model)).unwrap(),
        }
    }

    fn request(&self) -> PassRequest {
        PassRequest {
            id: PassId::new("one/1"),
            kind: PassKind::Review,
            agent: AgentId::new("one").unwrap(),
            model: Some(self.model.clone()),
            files: [0].into(),
            diff: Arc::clone(&self.diff),
            system: "You review.".into(),
            task: "The task.".into(),
            schema: None,
        }
    }

    fn context() -> PassContext {
        let mut tree = MemoryTree::new();
        let path = RepoPath::new("src/a.rs").unwrap();
        tree.insert(path, &b"fn a() {\n    let total = 1;\n}\n"[..]);
        PassContext {
            tree: Some(Arc::new(tree) as Arc<dyn Tree>),
            sink: Arc::new(Silent),
            meter: Arc::new(Silent),
            progress: Arc::new(Silent),
            cancel: CancellationToken::new(),
            deadline: tokio::time::Instant::now() + Duration::from_secs(300),
        }
    }

    /// A pass in the jar: its time and the peak memory of its process.
    async fn in_the_jar(&self) -> (Duration, u64) {
        let program = self
            .engine
            .installed()
            .await
            .unwrap()
            .binary
            .target()
            .to_owned();
        let begun = Instant::now();
        let pass = self.engine.run(self.request(), Self::context());
        tokio::pin!(pass);
        let mut peak = 0;
        loop {
            tokio::select! {
                outcome = &mut pass => {
                    outcome.unwrap();
                    return (begun.elapsed(), peak);
                }
                () = tokio::time::sleep(Duration::from_millis(20)) => peak = peak.max(memory(&program)),
            }
        }
    }

    /// The same program with the same arguments, outside.
    async fn bare(&self, tool: &Tool) -> Duration {
        let facts = tool.dialect.facts();
        let client = Client {
            style: facts.style,
            spelling: facts.spelling,
            allowed: facts.also_offered,
        };
        let request = self.request();
        let opened = self
            .doors
            .open(&request, &Self::context(), &client)
            .unwrap();
        let names: Vec<String> = opened
            .tools
            .iter()
            .flat_map(|tools| tools.tools())
            .map(|tool| tool.name)
            .collect();
        let folders = RunFolders::new().unwrap();
        let launch = tool
            .dialect
            .launch(&PassFacts {
                model: &self.model,
                upstream: self.doors.upstream(&self.model).unwrap(),
                system: &request.system,
                task: &request.task,
                schema: None,
                tools: &names,
                doors: opened.port.address(),
                placeholder: opened.port.placeholder(),
                root: folders.root().path(),
                limits: self.doors.limits(),
                time: Duration::from_secs(300),
            })
            .unwrap();
        for file in &launch.files {
            let path = folders.root().path().join(&file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &file.bytes).unwrap();
        }
        let cwd = launch.cwd.unwrap_or_else(|| "cwd".into());
        let program = self.engine.installed().await.unwrap().binary.target();
        let begun = Instant::now();
        let mut child = tokio::process::Command::new(program)
            .args(&launch.args)
            .env_clear()
            .envs(folders.env())
            .envs(launch.env)
            .current_dir(folders.root().path().join(cwd))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, &launch.stdin)
            .await
            .unwrap();
        drop(stdin);
        child.wait_with_output().await.unwrap();
        let took = begun.elapsed();
        opened.port.close().await;
        took
    }
}

/// Megabytes that a process of `program` has had at most.
fn memory(program: &std::path::Path) -> u64 {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let kilobytes = entries.flatten().filter_map(|entry| {
        let path = entry.path();
        if std::fs::read_link(path.join("exe")).ok()? != program {
            return None;
        }
        let status = std::fs::read_to_string(path.join("status")).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    kilobytes.max().unwrap_or(0) / 1024
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() {
    for tool in tools() {
        let facts = tool.dialect.facts();
        let bench = Bench::new(&tool).await;
        let begun = Instant::now();
        bench.engine.installed().await.unwrap();
        println!("{}: looked at once in {:.2?}", facts.title, begun.elapsed());
        let finish = || {
            Step::from(Reply::default().tool(
                &(facts.spelling)("finish"),
                json!({"examined": ["src/a.rs"]}),
            ))
        };
        let (mut jar, mut bare, mut peak) = (Vec::new(), Vec::new(), 0);
        for _ in 0..ROUNDS {
            bench.script.push(finish());
            bare.push(bench.bare(&tool).await);
            bench.script.push(finish());
            let (took, memory) = bench.in_the_jar().await;
            jar.push(took);
            peak = peak.max(memory);
        }
        let (jar, bare) = (median(jar), median(bare));
        println!("  minimal pass: {jar:.0?} in the jar, {bare:.0?} outside; peak memory {peak} MB");
        let first = bench.script.requests().last().unwrap().body.len();
        println!(
            "  first request: {first} bytes, ours {} of them besides the tools",
            "You review.The task.".len()
        );
        for _ in 0..TOOL_ROUNDS {
            let read = (facts.spelling)("read");
            bench
                .script
                .push(Reply::default().tool(&read, json!({"path": "src/a.rs"})));
        }
        bench.script.push(finish());
        let (took, _) = bench.in_the_jar().await;
        let round = took.saturating_sub(jar) / u32::try_from(TOOL_ROUNDS).unwrap();
        println!("  a round of tools: {round:.1?}");
    }
}

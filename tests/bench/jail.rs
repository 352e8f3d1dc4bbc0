//! What the jar costs: the start of a contained child against a bare one, alone and a hundred at once. Prints one line
//! a figure; no assertion.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)] // a bench prints, and stops at the first error

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ecr::process::sandbox::{PrivateNet, SandboxPlan, probe};
use ecr::process::{RunFolders, Spec, ToolPath, run, runtime_files};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 200;
const AT_ONCE: usize = 100;
/// Memory that ecr may have in use when it starts a child: forking copies its page tables.
const BALLAST: usize = 200 << 20;

fn tool() -> ToolPath {
    ToolPath::find("true", &std::env::var_os("PATH").unwrap(), &[]).unwrap()
}

/// The shortest program, as `plan` has it.
fn spec(plan: Option<SandboxPlan>) -> Spec {
    let mut spec = Spec::new(tool(), Path::new("/"));
    spec.sandbox = plan;
    spec
}

fn plan(folders: &RunFolders, net: Option<Arc<PrivateNet>>) -> SandboxPlan {
    let target = tool().as_path().canonicalize().unwrap();
    let mut exec = runtime_files(&target).unwrap();
    exec.push(target);
    SandboxPlan {
        exec,
        write: folders.writable(),
        port: Some(1),
        net,
        ..SandboxPlan::default()
    }
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!(
        "{name:<34} median {:>8.2?}  p99 {:>8.2?}",
        at(0.5),
        at(0.99)
    );
}

fn bare() -> Duration {
    let start = Instant::now();
    let path = tool();
    let status = std::process::Command::new(path.as_path()).status().unwrap();
    assert!(status.success());
    start.elapsed()
}

async fn ours(make: &dyn Fn() -> Option<SandboxPlan>) -> Duration {
    let start = Instant::now();
    let output = run(spec(make()), &CancellationToken::new()).await.unwrap();
    assert!(output.status.success());
    start.elapsed()
}

async fn rounds(name: &str, make: &dyn Fn() -> Option<SandboxPlan>) {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        times.push(ours(make).await);
    }
    report(name, times);
    let start = Instant::now();
    futures_util::future::join_all((0..AT_ONCE).map(|_| ours(make))).await;
    println!(
        "{:<34} {:>15.2?}",
        format!("  {AT_ONCE} at once"),
        start.elapsed()
    );
}

async fn all(title: &str) {
    println!("{title}");
    report("bare spawn", (0..ROUNDS).map(|_| bare()).collect());
    rounds("supervised", &|| None).await;
    let folders = RunFolders::new().unwrap();
    rounds("jar", &|| Some(plan(&folders, None))).await;
    if probe().private_net {
        rounds("jar with a private network", &|| {
            let net = PrivateNet::open().unwrap();
            Some(plan(&folders, Some(Arc::new(net))))
        })
        .await;
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let support = probe();
    println!(
        "level {}, Landlock ABI {}",
        support.level, support.landlock_abi
    );
    runtime.block_on(all("ecr small"));
    let ballast = std::hint::black_box(vec![1_u8; BALLAST]);
    runtime.block_on(all("ecr with 200 MiB in use"));
    drop(ballast);
}

//! What the kernel saw of `OpenCode` while it reviewed the hostile repository.

use ecr::process::runtime_files;

use super::super::rig::room;
use super::hostile::{CHANGED, obedient, plant};
use super::program;
use super::review::{command, json_of, repository};
use crate::real_cli::trace::Seen;
use crate::support::model_server::{ModelServer, Script};
use crate::support::skip::skipped;

#[tokio::test(flavor = "multi_thread")]
async fn it_opens_its_own_files_and_connects_to_the_doors_only() {
    let Some(program) = program() else {
        return;
    };
    if std::process::Command::new("strace")
        .arg("-V")
        .output()
        .is_err()
    {
        skipped("there is no strace here");
        return;
    }
    let server = ModelServer::start(Script::new([])).await;
    let repo = repository(&server.url(), "openai-chat");
    plant(&repo);
    repo.commit_all("base");
    repo.write("src/a.rs", CHANGED);
    for reply in obedient(&repo) {
        server.script().push(reply);
    }
    let _room = room().await;
    let work = tokio::task::spawn_blocking(move || {
        let trace = repo.home().join("trace");
        let mut traced = command(&repo, &[], "strace");
        traced.args(["-f", "-y", "-qq", "-e", "signal=none"]);
        traced.args([
            "-e",
            "trace=%process,connect,bind,listen,accept4,open,openat",
            "-o",
        ]);
        traced.arg(&trace).arg(env!("CARGO_BIN_EXE_ecr"));
        let output = super::review::arguments(&mut traced).output().unwrap();
        let trace = std::fs::read_to_string(trace).unwrap_or_default();
        (repo, output, trace)
    });
    let (repo, output, trace) = work.await.unwrap();
    if trace.is_empty() {
        skipped("strace may trace nothing here");
        return;
    }
    assert_eq!(json_of(&output)["complete"], true);
    let seen = Seen::read(&trace, &program);
    assert_eq!(seen.processes, 2, "its version, and the pass");
    assert!(seen.started.is_empty(), "{:?}", seen.started);
    assert!(seen.bound.is_empty(), "{:?}", seen.bound);
    assert!(!seen.connected.is_empty());
    let door = "inet_addr(\"127.0.0.1\")";
    assert!(
        seen.connected.iter().all(|call| call.contains(door)),
        "{:?}",
        seen.connected
    );
    let runtime: Vec<_> = runtime_files(&program)
        .unwrap()
        .iter()
        .map(|file| file.canonicalize().unwrap())
        .chain([program, "/dev/urandom".into()])
        .collect();
    let own = repo.home().join("tmp").canonicalize().unwrap();
    let strange: Vec<_> = seen
        .opened
        .iter()
        .filter(|path| {
            let own_proc = path
                .strip_prefix("/proc")
                .ok()
                .and_then(|rest| rest.components().next())
                .is_some_and(|pid| seen.pids.contains(pid.as_os_str().to_str().unwrap()));
            !runtime.contains(path) && !path.starts_with(&own) && !own_proc
        })
        .collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(
        seen.opened
            .iter()
            .any(|path| path.ends_with("opencode.json"))
    );
}

//! What the kernel saw of `OpenCode` while it reviewed the hostile repository.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use ecr::process::runtime_files;

use super::hostile::{CHANGED, obedient, plant};
use super::program;
use super::review::{command, json_of, repository};
use crate::support::model_server::{ModelServer, Script};
use crate::support::skip::skipped;

/// What a trace says about the processes and threads that run `program`.
#[derive(Debug, Default)]
struct Seen {
    /// Started programs, the first of each process left out.
    started: Vec<String>,
    /// Successful opens.
    opened: BTreeSet<PathBuf>,
    /// Connections that were asked for and not refused by the jar.
    connected: Vec<String>,
    /// Sockets that could be reached.
    bound: Vec<String>,
    /// How many processes ran the program.
    processes: usize,
    pids: HashSet<String>,
}

impl Seen {
    fn read(trace: &str, program: &Path) -> Self {
        let begins = format!("execve(\"{}\"", program.display());
        let mut seen = Self::default();
        for line in trace.lines() {
            let Some((pid, call)) = line.split_once(char::is_whitespace) else {
                continue;
            };
            let call = call.trim_start();
            if !seen.pids.contains(pid) {
                if call.starts_with(&begins) && !call.contains("= -1") {
                    seen.pids.insert(pid.to_owned());
                    seen.processes += 1;
                }
                continue;
            }
            let is = |name: &str| {
                call.starts_with(&format!("{name}("))
                    || call.starts_with(&format!("<... {name} resumed"))
            };
            let result = call.rsplit_once(" = ").map_or("", |(_, result)| result);
            if is("clone") || is("fork") || is("vfork") {
                seen.pids.insert(result.to_owned());
            } else if is("execve") || is("execveat") {
                seen.started.push(call.to_owned());
            } else if is("open") || is("openat") {
                // Such a descriptor can only be asked for what `stat` says.
                if let (Some((_, path)), false) = (result.split_once('<'), call.contains("O_PATH"))
                {
                    seen.opened.insert(path.trim_end_matches('>').into());
                }
            } else if call.starts_with("connect(") && !call.contains("= -1 EPERM") {
                // The address stands where the call begins, whether it had to wait or not.
                seen.connected.push(call.to_owned());
            } else if (is("bind") || is("listen") || is("accept4")) && !result.starts_with('-') {
                seen.bound.push(call.to_owned());
            }
        }
        seen
    }
}

#[test]
fn a_trace_is_read() {
    let trace = "\
1 execve(\"/bin/opencode\", [], 0x1) = 0
1 openat(AT_FDCWD</x>, \"/etc/passwd\", O_RDONLY) = 3</etc/passwd>
1 openat(AT_FDCWD</x>, \"/\", O_RDONLY|O_PATH) = 4</>
1 clone(child_stack=0) = 2
2 connect(5, {sa_family=AF_INET, sin_addr=inet_addr(\"10.0.0.1\")}, 16) = -1 EINPROGRESS (Operation now in progress)
2 openat(AT_FDCWD</x>, \"/a\", O_RDONLY <unfinished ...>
2 <... openat resumed>)       = 6</a>
2 execve(\"/bin/sh\", [], 0x1) = 0
2 listen(5, 1) = 0
3 execve(\"/bin/sh\", [], 0x1) = 0
3 openat(AT_FDCWD</x>, \"/b\", O_RDONLY) = 3</b>";
    let seen = Seen::read(trace, Path::new("/bin/opencode"));
    let opened: Vec<_> = seen
        .opened
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    assert_eq!(opened, ["/a", "/etc/passwd"]);
    assert_eq!(
        (seen.started.len(), seen.connected.len(), seen.bound.len()),
        (1, 1, 1)
    );
    assert_eq!(seen.processes, 1);
}

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

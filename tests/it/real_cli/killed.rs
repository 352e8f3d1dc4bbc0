//! Ends that nobody planned: the deadline, a cancelled run, a killed child, and what is left then.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Subject;
use super::rig::{Rig, children, class, finish, look};
use crate::support::model_server::{Gate, Script, Step};

/// Until the provider was asked so often.
async fn asked(rig: &Rig, times: usize) {
    while rig.script.requests().len() < times {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(super) async fn deadline_and_cancellation_end_it_at_once(subject: &'static Subject) {
    let hang = || Script::new([look(subject).into(), Step::Hang]);
    let Some(mut rig) = Rig::new(subject, hang()).await else {
        return;
    };
    // The program is looked at once; that is not a part of the time.
    rig.program().await;
    rig.time = Duration::from_secs(4);
    let begun = Instant::now();
    let result = rig.run().await;
    let word = class(&result);
    assert!(matches!(word, "timeout" | "stalled"), "{result:?}");
    assert!(begun.elapsed() < Duration::from_secs(8));
    drop(rig);

    let rig = Rig::new(subject, hang()).await.unwrap();
    let program = rig.program().await;
    let cancel = async {
        asked(&rig, 2).await;
        assert_eq!(children(&program).len(), 1);
        rig.cancel.cancel();
        Instant::now()
    };
    let (result, cancelled) = tokio::join!(rig.pass("one/1"), cancel);
    assert_eq!(class(&result), "cancelled");
    assert!(cancelled.elapsed() < Duration::from_secs(3));
    rig.nothing_is_left().await;
}

pub(super) async fn a_pass_that_is_dropped_leaves_nothing(subject: &'static Subject) {
    let Some(rig) = Rig::new(subject, Script::new([Step::Hang])).await else {
        return;
    };
    tokio::select! {
        result = rig.pass("one/1") => panic!("{result:?}"),
        () = asked(&rig, 1) => {}
    }
    rig.nothing_is_left().await;
}

pub(super) async fn a_child_that_is_killed_is_no_review(subject: &'static Subject) {
    let gate = Gate::default();
    let script = Script::new([Step::After(gate, Box::new(finish(subject).into()))]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    let program = rig.program().await;
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let before = rig.script.requests().len();
        let kill = async {
            asked(&rig, before + 1).await;
            let pid = children(&program)[0].cast_signed();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, signal).unwrap();
        };
        let (result, ()) = tokio::join!(rig.pass("one/1"), kill);
        assert_eq!(class(&result), "protocol", "{result:?}");
        rig.nothing_is_left().await;
        rig.script.push(Step::Hang);
    }
}

pub(super) async fn the_placeholder_dies_with_the_pass(subject: &'static Subject) {
    let gate = Gate::default();
    let script = Script::new([Step::After(gate.clone(), Box::new(finish(subject).into()))]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    let program = rig.program().await;
    let address = rig.doors.gateway().address();
    let ask = async |placeholder: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {placeholder}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let spy = async {
        asked(&rig, 1).await;
        let pid = children(&program)[0];
        let line = read(&format!("/proc/{pid}/cmdline"));
        assert!(!line.contains("ecr-pass-"), "{line}");
        let environ = read(&format!("/proc/{pid}/environ"));
        let everything = environ + &files(&std::env::temp_dir(), pid);
        let (_, rest) = everything.split_once("ecr-pass-").expect("a placeholder");
        let rest = rest.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)));
        let placeholder = format!("ecr-pass-{}", rest.into_iter().next().unwrap());
        assert!(!everything.contains(&super::rig::key()));
        assert_eq!(ask(&placeholder).await, "200");
        gate.open();
        placeholder
    };
    let (result, placeholder) = tokio::join!(rig.pass("one/1"), spy);
    assert_eq!(class(&result), "complete", "{result:?}");
    assert_eq!(ask(&placeholder).await, "401");
    rig.nothing_is_left().await;
}

fn read(path: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

/// The content of everything in the private folder in which `pid` works.
fn files(base: &Path, pid: u32) -> String {
    let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    let below = cwd.strip_prefix(base).unwrap();
    let root = base.join(below.components().next().unwrap());
    let mut waiting = vec![root];
    let mut out = String::new();
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            // Codex has links to its own program there, which is large.
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                out.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    out
}

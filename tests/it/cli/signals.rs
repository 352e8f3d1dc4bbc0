//! SIGINT, SIGTERM and the time limit end a run in order: children gone, what is known printed.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use super::harness::{ECR, Ran, ecr, started};
use crate::support::repo::TestRepo;

/// So much to check that no machine is done before a signal arrives.
fn huge() -> TestRepo {
    let repo = started();
    for file in 0..200 {
        let mut text = String::new();
        for line in 0..400 {
            let _ = writeln!(
                text,
                "const v{file}_{line} = compute(\"{line}\", {{ a: [1, 2, {line}] }});"
            );
        }
        repo.write(format!("d{}/f{file}.js", file % 10), text);
    }
    repo
}

fn spawn(command: &mut Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status();
    assert!(status.expect("kill starts").success());
}

/// Sends a signal when `until` was said on stderr, and gives what the run left.
fn interrupted(mut child: Child, until: &str, name: &str) -> Ran {
    let stdout = child.stdout.take().expect("a pipe");
    let out = thread::spawn(move || {
        let mut text = String::new();
        let mut stdout = stdout;
        stdout.read_to_string(&mut text).expect("UTF-8");
        text
    });
    let (sender, receiver) = mpsc::channel();
    let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let err = thread::spawn(move || {
        let mut text = String::new();
        for line in stderr.lines() {
            let line = line.expect("UTF-8");
            text.push_str(&line);
            text.push('\n');
            let _ = sender.send(line);
        }
        text
    });
    while let Ok(line) = receiver.recv() {
        if line.contains(until) {
            break;
        }
    }
    signal(&child, name);
    let status = child.wait().expect("it ends");
    Ran {
        code: status.code(),
        out: out.join().expect("read"),
        err: err.join().expect("read"),
    }
}

#[test]
fn a_signal_in_the_middle_prints_what_is_known() {
    let repo = huge();
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let child = spawn(repo.command(ECR).args(["--json", "--no-fail"]));
        let ran = interrupted(child, "checks: started", name).exits(code);
        let report = ran.json();
        assert_eq!(report["complete"], false, "{name}");
        assert_ne!(report["decision"], "approve");
        assert_ne!(report["decision"], "checks_only");
        assert_eq!(report["coverage"]["totals"]["files"], 200);
        assert_eq!(report["coverage"]["totals"]["changedLines"], 80_000);
        assert!(!ran.err.contains("internal error"), "{ran:#?}");
    }
    let child = spawn(&mut repo.command(ECR));
    let ran = interrupted(child, "checks: started", "INT").exits(130);
    assert!(
        ran.out.contains("interrupted") && ran.out.contains("of 200 files"),
        "{}",
        ran.out
    );
}

#[test]
fn the_time_limit_prints_what_is_known() {
    let repo = huge();
    let ran = ecr(&repo, &["--time-limit", "1s", "--json"]);
    // A fast machine may be done in time; a slow one may not even have read the change.
    match ran.code {
        Some(0) => assert_eq!(ran.json()["complete"], true),
        Some(3 | 4) => {
            let report = ran.json();
            assert_eq!(report["complete"], false);
            assert_eq!(report["coverage"]["totals"]["files"], 200);
        }
        _ => drop(ran.refused(
            "the change was not read within 1s",
            "next: raise --time-limit",
        )),
    }
}

fn fifo(repo: &TestRepo) -> std::path::PathBuf {
    let path = repo.home().join("pipe");
    let status = repo.command("mkfifo").arg(&path).status();
    assert!(status.expect("mkfifo starts").success());
    path
}

#[test]
fn a_patch_that_never_comes() {
    let repo = started();
    let pipe = fifo(&repo);
    let path = pipe.to_str().expect("UTF-8");
    ecr(&repo, &["--diff", path, "--time-limit", "1s"]).refused(
        "the change was not read within 1s",
        "next: raise --time-limit",
    );
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        // Opening the pipe for writing returns when ecr has opened it for reading: then it waits.
        let child = spawn(repo.command(ECR).args(["--diff", path]));
        let writer = std::fs::File::options()
            .write(true)
            .open(&pipe)
            .expect("a reader");
        signal(&child, name);
        let ran = Ran::plain(child.wait_with_output().expect("it ends")).exits(code);
        assert_eq!(ran.out, "", "{ran:#?}");
        assert!(
            ran.err.contains("interrupted; nothing was reviewed"),
            "{ran:#?}"
        );
        drop(writer);
    }
}

/// A git that says where it is and then sleeps through the question that `stuck` names.
fn slow_git(repo: &TestRepo, stuck: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let which = repo
        .command("sh")
        .args(["-c", "command -v git"])
        .output()
        .expect("sh starts");
    let git = String::from_utf8(which.stdout).expect("UTF-8");
    let folder = repo.home().join("bin");
    std::fs::create_dir_all(&folder).expect("folder");
    let pids = repo.home().join("pids");
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *\" {stuck} \"*) sleep 300 & echo $$ $! >'{}.part'; mv '{}.part' '{}'; wait;; esac\nexec {} \"$@\"\n",
        pids.display(),
        pids.display(),
        pids.display(),
        git.trim()
    );
    let path = folder.join("git");
    std::fs::write(&path, script).expect("write");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let system = std::env::var("PATH").expect("PATH");
    format!("{}:{system}", folder.display())
}

/// Gone, or a zombie that only its parent's wait is missing for.
fn gone(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat
            .rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim().starts_with('Z')),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_child_outlives_a_signal_while_the_change_is_read() {
    for (stuck, name, code) in [("diff-tree", "INT", 130), ("rev-parse", "TERM", 143)] {
        let repo = started();
        repo.write("a.py", "a = 1\n");
        let path = slow_git(&repo, stuck);
        let mut child = spawn(repo.command(ECR).env("PATH", path));
        let pids = repo.home().join("pids");
        while !pids.exists() {
            let ended = child.try_wait().expect("a state");
            assert!(ended.is_none(), "it never asked git for {stuck}");
            thread::yield_now();
        }
        let pids = std::fs::read_to_string(&pids).expect("pids");
        signal(&child, name);
        let ran = Ran::plain(child.wait_with_output().expect("it ends"));
        let ran = ran.exits(code);
        assert_eq!(ran.out, "", "{ran:#?}");
        assert!(
            ran.err
                .ends_with("error: interrupted; nothing was reviewed\n"),
            "{ran:#?}"
        );
        for pid in pids.split_whitespace() {
            assert!(gone(pid), "{stuck}: {pid} is still there");
        }
    }
}

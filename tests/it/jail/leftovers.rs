//! Nothing is left: no process, no folder.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ecr::process::{RunFolders, run, stream};
use tokio_util::sync::CancellationToken;

use super::shell;

/// A FIFO that a process holds open for as long as it lives: reading it ends when nobody does any more.
struct Lives {
    dir: tempfile::TempDir,
}

impl Lives {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("lives"), 0o600.into()).unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("lives")
    }

    /// Blocks until `count` processes have said that they hold it, calls `then`, and blocks until all are dead.
    fn all_die_after(&self, count: usize, then: impl FnOnce()) {
        let mut reader = BufReader::new(std::fs::File::open(self.path()).unwrap());
        let mut line = String::new();
        for _ in 0..count {
            line.clear();
            reader.read_line(&mut line).unwrap();
            assert_eq!(line, "up\n");
        }
        then();
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

/// Holds the FIFO `$L` open in four processes: the shell, a child, one in a session of its own, and one that has lost
/// its parent too. All ignore SIGTERM. The child goes on when `$GO` is set to an empty string.
const STAY: &str = r#"
trap '' TERM
hold() { exec 9>"$L"; echo up >&9; while :; do sleep 1000; done; }
(hold) &
setsid sh -c 'trap "" TERM; exec 9>"$L"; echo up >&9; while :; do sleep 1000; done' &
(setsid sh -c 'trap "" TERM; (exec 9>"$L"; echo up >&9; while :; do sleep 1000; done) &' &)
exec 9>"$L"; echo up >&9
"#;

#[tokio::test]
async fn a_child_that_ends_leaves_no_process() {
    let lives = Lives::new();
    let dir = tempfile::tempdir().unwrap();
    let go = dir.path().join("go");
    let mut spec = shell(&format!(
        "{STAY} while [ ! -e \"$GO\" ]; do sleep 0.01; done"
    ));
    spec.env.push(("L".into(), lives.path().into()));
    spec.env.push(("GO".into(), go.clone().into()));
    let watch = tokio::task::spawn_blocking(move || {
        lives.all_die_after(4, || std::fs::write(go, "").unwrap())
    });
    let output = run(spec, &CancellationToken::new()).await.unwrap();
    assert!(output.status.success());
    watch.await.unwrap();
}

#[tokio::test]
async fn cancelling_and_dropping_leave_no_process() {
    for drop_it in [false, true] {
        let lives = Lives::new();
        let mut spec = shell(&format!("{STAY} while :; do sleep 1000; done"));
        spec.env.push(("L".into(), lives.path().into()));
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let task = tokio::spawn(async move { run(spec, &cancel).await });
        let handle = task.abort_handle();
        let watch = tokio::task::spawn_blocking(move || {
            lives.all_die_after(4, || {
                if drop_it {
                    handle.abort()
                } else {
                    stop.cancel()
                }
            });
        });
        watch.await.unwrap();
        assert!(
            task.await
                .map_or_else(|error| error.is_cancelled(), |result| result.is_err())
        );
    }
}

#[tokio::test]
async fn a_panic_leaves_no_process() {
    let lives = Lives::new();
    let mut spec = shell(&format!(
        "{STAY} cat \"$GO\"; echo now; while :; do sleep 1000; done"
    ));
    let go = Lives::new();
    spec.env.push(("L".into(), lives.path().into()));
    spec.env.push(("GO".into(), go.path().into()));
    let watch = tokio::task::spawn_blocking(move || {
        lives.all_die_after(4, || {
            drop(
                std::fs::File::options()
                    .write(true)
                    .open(go.path())
                    .unwrap(),
            )
        });
    });
    let task = tokio::spawn(async move {
        stream(spec, &CancellationToken::new(), |line| {
            assert_ne!(line.bytes, b"now", "on purpose")
        })
        .await
    });
    assert!(task.await.unwrap_err().is_panic());
    watch.await.unwrap();
}

/// Not a test: what `a_killed_parent_leaves_nothing` starts and kills.
#[tokio::test]
#[ignore = "run by another test"]
async fn parent() {
    let folders = RunFolders::new().unwrap();
    let mut spec = shell(&format!("{STAY} while :; do sleep 1000; done"));
    spec.cwd = folders.cwd();
    spec.env.push(("L".into(), std::env::var_os("L").unwrap()));
    let _ = run(spec, &CancellationToken::new()).await;
}

fn parent_in(base: &Path, lives: &Lives) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "jail::leftovers::parent", "--ignored"])
        .env("TMPDIR", base)
        .env("L", lives.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn folders_in(base: &Path) -> Vec<String> {
    let names = std::fs::read_dir(base).unwrap();
    names
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("ecr-"))
        .collect()
}

#[test]
fn a_killed_parent_leaves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let kill = |lives: &Lives, count: usize| {
        let mut parent = parent_in(base.path(), lives);
        lives.all_die_after(4, || {
            assert_eq!(folders_in(base.path()).len(), count);
            parent.kill().unwrap();
        });
        parent.wait().unwrap();
    };
    kill(&Lives::new(), 1);
    let left = folders_in(base.path());
    assert_eq!(left.len(), 1, "there is nothing to clean up: {left:?}");
    // The next start removes what the killed one left, and has a folder of its own.
    kill(&Lives::new(), 1);
    assert_ne!(folders_in(base.path()), left);
}

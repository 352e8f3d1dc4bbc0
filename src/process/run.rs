//! One run of a program from start to end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::ToolPath;
use super::group::GroupGuard;

/// What to start and within which bounds. There is no shell and nothing is inherited: the environment
/// holds exactly `env`, stdin is null or the given bytes.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program.
    pub program: ToolPath,
    /// Its arguments, one element each.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The folder it starts in.
    pub cwd: PathBuf,
    /// The bytes it reads; `None` is an empty stdin.
    pub stdin: Option<Vec<u8>>,
    /// At most so many bytes of stdout are kept; the rest is read and thrown away.
    pub stdout_limit: usize,
    /// The same for stderr.
    pub stderr_limit: usize,
    /// After this time the whole group is killed.
    pub deadline: Option<Duration>,
}

impl Spec {
    /// A run of `program` in `cwd` with nothing in its environment, no limit on stdout, 64 KiB of
    /// stderr and no deadline.
    pub fn new(program: ToolPath, cwd: &Path) -> Self {
        Self {
            program,
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.to_owned(),
            stdin: None,
            stdout_limit: usize::MAX,
            stderr_limit: 64 * 1024,
            deadline: None,
        }
    }
}

/// What a finished program left.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// The kept part of stdout.
    pub stdout: Vec<u8>,
    /// The kept part of stderr.
    pub stderr: Vec<u8>,
    /// True when a limit cut one of the two.
    pub truncated: bool,
}

/// Why a run has no output.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Reading, writing or waiting failed.
    #[error("{}: {source}", program.display())]
    Io {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The deadline passed; the group was killed.
    #[error("{} did not end within {limit:?}", program.display())]
    Deadline {
        /// The program.
        program: PathBuf,
        /// How long it had.
        limit: Duration,
    },
    /// The run was cancelled; the group was killed.
    #[error("cancelled")]
    Cancelled,
}

/// Runs `spec` to its end. On cancellation, at the deadline and when the future is dropped the whole
/// process group is killed. A stdout held open by a grandchild counts as the run not being over.
pub async fn run(spec: Spec, cancel: &CancellationToken) -> Result<Output, ProcessError> {
    let program = spec.program.as_path().to_owned();
    let limit = spec.deadline;
    let work = execute(spec, program.clone());
    tokio::pin!(work);
    let timer = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ProcessError::Cancelled),
        output = &mut work => output,
        () = timer => Err(ProcessError::Deadline { program, limit: limit.unwrap_or_default() }),
    }
}

async fn execute(spec: Spec, program: PathBuf) -> Result<Output, ProcessError> {
    let mut command = tokio::process::Command::from(command(&spec));
    command.kill_on_drop(true);
    let mut child = command.spawn().map_err(|source| ProcessError::Start {
        program: program.clone(),
        source,
    })?;
    // Declared after the child, so that it fires before tokio reaps the leader.
    let mut guard = GroupGuard::new(child.id());
    let stdin = child.stdin.take();
    let input = spec.stdin.unwrap_or_default();
    let write = async move {
        if let Some(mut stdin) = stdin {
            // A program may end without reading everything: its exit status says whether that was fine.
            let _ = stdin.write_all(&input).await;
            let _ = stdin.shutdown().await;
        }
    };
    let stdout = capture(child.stdout.take(), spec.stdout_limit);
    let stderr = capture(child.stderr.take(), spec.stderr_limit);
    let (out, err, ()) = tokio::join!(stdout, stderr, write);
    let failed = |source| ProcessError::Io {
        program: program.clone(),
        source,
    };
    let (stdout, cut_out) = out.map_err(failed)?;
    let (stderr, cut_err) = err.map_err(failed)?;
    let status = child.wait().await.map_err(failed)?;
    guard.disarm();
    Ok(Output {
        status,
        stdout,
        stderr,
        truncated: cut_out || cut_err,
    })
}

/// The command for `spec`, with all three streams piped (stdin only when there is something to read).
pub(super) fn command(spec: &Spec) -> std::process::Command {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(spec.program.as_path());
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(k, v)| (k, v)))
        .current_dir(&spec.cwd)
        .stdin(if spec.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// Reads to the end and keeps the first `limit` bytes; true when there were more.
async fn capture(
    stream: Option<impl AsyncRead + Unpin>,
    limit: usize,
) -> std::io::Result<(Vec<u8>, bool)> {
    const STEP: usize = 64 * 1024;
    let mut kept = Vec::new();
    let Some(mut stream) = stream else {
        return Ok((kept, false));
    };
    while kept.len() < limit {
        kept.reserve(STEP);
        let room = (limit - kept.len()).min(kept.capacity() - kept.len());
        let mut limited = (&mut stream).take(room as u64);
        if limited.read_buf(&mut kept).await? == 0 {
            return Ok((kept, false));
        }
    }
    let mut sink = vec![0; STEP];
    let mut cut = false;
    loop {
        match stream.read(&mut sink).await? {
            0 => return Ok((kept, cut)),
            _ => cut = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Spec {
        let path = std::env::var_os("PATH").unwrap();
        let sh = ToolPath::find("sh", &path, &[]).unwrap();
        let mut spec = Spec::new(sh, Path::new("/"));
        spec.args = vec!["-c".into(), script.into()];
        spec.env = vec![("PATH".into(), path)];
        spec
    }

    async fn text(spec: Spec) -> (String, String, bool) {
        let output = run(spec, &CancellationToken::new()).await.unwrap();
        assert!(output.status.success());
        (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
            output.truncated,
        )
    }

    #[tokio::test]
    async fn the_environment_is_what_was_named_and_stdin_is_what_was_given() {
        let mut spec = shell("cat; /usr/bin/env | sort; echo oops >&2");
        spec.env = vec![("A".into(), "1".into())];
        spec.env
            .push(("PATH".into(), std::env::var_os("PATH").unwrap()));
        spec.stdin = Some(b"hello\n".to_vec());
        let (out, err, cut) = text(spec).await;
        assert!(out.starts_with("hello\nA=1\nPATH="), "{out}");
        assert!(!out.contains("CARGO"), "{out}");
        assert_eq!((err.as_str(), cut), ("oops\n", false));
    }

    #[tokio::test]
    async fn both_streams_are_drained_and_capped() {
        // More than a pipe holds on both streams, in both orders.
        let mut spec = shell(
            "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2",
        );
        spec.stdout_limit = 1000;
        let output = run(spec, &CancellationToken::new()).await.unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (1000, 64 * 1024)
        );
        assert!(output.truncated);
        let mut exact = shell("printf abc");
        exact.stdout_limit = 3;
        assert!(!text(exact).await.2);
    }

    #[tokio::test]
    async fn a_child_that_does_not_read_its_stdin_is_no_failure() {
        let mut spec = shell("exit 3");
        spec.stdin = Some(vec![b'x'; 1 << 20]);
        let output = run(spec, &CancellationToken::new()).await.unwrap();
        assert_eq!(output.status.code(), Some(3));
    }

    /// A spec whose grandchild holds the write end of a FIFO: reading it ends only when the grandchild is gone.
    fn grandchild(dir: &Path) -> (Spec, PathBuf) {
        let fifo = dir.join("alive");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from(0o600)).unwrap();
        let mut spec = shell("(exec 3>\"$F\"; echo up >&3; while :; do sleep 1000; done) & wait");
        spec.env.push(("F".into(), fifo.clone().into()));
        (spec, fifo)
    }

    /// Opens the FIFO, waits for the grandchild's word, runs `end`, and reads until nobody holds the other end.
    async fn dies_after(fifo: PathBuf, end: impl FnOnce()) {
        use tokio::io::AsyncBufReadExt;
        let file = tokio::fs::File::open(fifo).await.unwrap();
        let mut reader = tokio::io::BufReader::new(file);
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        assert_eq!(line, "up\n");
        end();
        line.clear();
        assert_eq!(reader.read_line(&mut line).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn cancelling_kills_the_whole_group() {
        let dir = tempfile::tempdir().unwrap();
        let (spec, fifo) = grandchild(dir.path());
        let cancel = CancellationToken::new();
        let (result, ()) = tokio::join!(run(spec, &cancel), dies_after(fifo, || cancel.cancel()));
        assert!(matches!(result, Err(ProcessError::Cancelled)));
    }

    #[tokio::test]
    async fn dropping_kills_the_whole_group() {
        let dir = tempfile::tempdir().unwrap();
        let (spec, fifo) = grandchild(dir.path());
        let task = tokio::spawn(async move { run(spec, &CancellationToken::new()).await });
        dies_after(fifo, || task.abort()).await;
    }

    #[tokio::test]
    async fn the_deadline_ends_a_run() {
        let mut spec = shell("sleep 1000");
        spec.deadline = Some(Duration::from_millis(20));
        let result = run(spec, &CancellationToken::new()).await;
        assert!(matches!(result, Err(ProcessError::Deadline { .. })));
    }

    #[tokio::test]
    async fn what_cannot_start_says_so() {
        let mut spec = shell("true");
        spec.cwd = "/nonexistent".into();
        let result = run(spec, &CancellationToken::new()).await;
        assert!(matches!(result, Err(ProcessError::Start { .. })));
    }
}

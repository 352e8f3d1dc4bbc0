//! One run of a program from start to end.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Spec;
use super::leash::Leash;
use super::lines::{Drain, Line, Stream};
use super::spec::command;

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

/// What a program left, however it ended.
#[derive(Debug)]
pub struct Capture {
    /// How it ended.
    pub end: End,
    /// The kept part of stdout.
    pub stdout: Vec<u8>,
    /// The kept part of stderr.
    pub stderr: Vec<u8>,
    /// True when a limit cut one of the two.
    pub truncated: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It was ended at its deadline.
    Deadline,
    /// It was ended because the run was cancelled.
    Cancelled,
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
    /// A value that must stay out of arguments and environment was about to be put there; nothing was started.
    #[error("{} was not started: a credential stands in {place}", program.display())]
    Leak {
        /// The program.
        program: PathBuf,
        /// Where.
        place: String,
    },
    /// Reading, writing or waiting failed.
    #[error("{}: {source}", program.display())]
    Io {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The deadline passed; everything it had started was killed.
    #[error("{} did not end within {limit:?}", program.display())]
    Deadline {
        /// The program.
        program: PathBuf,
        /// How long it had.
        limit: Duration,
    },
    /// The run was cancelled; everything it had started was killed.
    #[error("cancelled")]
    Cancelled,
}

/// Runs `spec` to its end; a run that was cut short is an error. See [`stream`].
pub async fn run(spec: Spec, cancel: &CancellationToken) -> Result<Output, ProcessError> {
    let program = spec.program.as_path().to_owned();
    let limit = spec.deadline.unwrap_or_default();
    let captured = stream(spec, cancel, |_| {}).await?;
    match captured.end {
        End::Exited(status) => Ok(Output {
            status,
            stdout: captured.stdout,
            stderr: captured.stderr,
            truncated: captured.truncated,
        }),
        End::Deadline => Err(ProcessError::Deadline { program, limit }),
        End::Cancelled => Err(ProcessError::Cancelled),
    }
}

/// Runs `spec` and tells `on_line` each line of both outputs as it comes.
///
/// At the deadline and on cancellation the child gets SIGTERM, after the grace SIGKILL; what was read until then
/// is kept. When this returns, and when its future is dropped, nothing that the child has started is left running
/// (off Linux: nothing of its process group).
pub async fn stream(
    spec: Spec,
    cancel: &CancellationToken,
    mut on_line: impl FnMut(Line<'_>) + Send,
) -> Result<Capture, ProcessError> {
    let program = spec.program.as_path().to_owned();
    let (command, leash) = command(&spec)?;
    let mut command = tokio::process::Command::from(command);
    let child = command.spawn().map_err(|source| ProcessError::Start {
        program: program.clone(),
        source,
    })?;
    // The child's end of the leash is in there.
    drop(command);
    let mut run = Run {
        leash: Held::new(leash, &child),
        child,
        stdout: Drain::new(Stream::Stdout, spec.stdout_limit, spec.line_limit),
        stderr: Drain::new(Stream::Stderr, spec.stderr_limit, spec.line_limit),
        grace: spec.grace,
    };
    let input = spec.stdin.unwrap_or_default();
    let end = run
        .attend(input, spec.deadline, cancel, &mut on_line)
        .await
        .map_err(|source| ProcessError::Io { program, source })?;
    let (stdout, cut_out) = run.stdout.finish(&mut on_line);
    let (stderr, cut_err) = run.stderr.finish(&mut on_line);
    Ok(Capture {
        end,
        stdout,
        stderr,
        truncated: cut_out || cut_err,
    })
}

/// A child and what is left to do for it. Fields drop in this order: everything is killed before the child is
/// let go of.
struct Run {
    leash: Held,
    child: Child,
    stdout: Drain,
    stderr: Drain,
    grace: Duration,
}

/// How far the ending has come.
#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// SIGTERM was sent.
    Terminating(End),
    /// SIGKILL was sent.
    Killed(End),
}

/// How long a killed child, and the outputs of an ended one, may take. Only a process stuck in the kernel needs it.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// One read.
const STEP: usize = 64 * 1024;

impl Run {
    /// Feeds, drains and waits until the child has ended and both outputs are closed.
    async fn attend(
        &mut self,
        input: Vec<u8>,
        deadline: Option<Duration>,
        cancel: &CancellationToken,
        on_line: &mut (dyn FnMut(Line<'_>) + Send),
    ) -> std::io::Result<End> {
        let write = feed(self.child.stdin.take(), input);
        tokio::pin!(write);
        let mut written = false;
        let mut stdout = self.child.stdout.take();
        let mut stderr = self.child.stderr.take();
        let (mut out, mut err) = (Vec::with_capacity(STEP), Vec::with_capacity(STEP));
        let mut status = None;
        let mut phase = Phase::Running;
        let mut alarm = deadline.map(|limit| Instant::now() + limit);
        loop {
            if status.is_some() && stdout.is_none() && stderr.is_none() {
                break;
            }
            tokio::select! {
                () = cancel.cancelled(), if matches!(phase, Phase::Running) && status.is_none() => {
                    (phase, alarm) = self.end(End::Cancelled);
                }
                () = at(alarm) => match phase {
                    Phase::Running if status.is_none() => (phase, alarm) = self.end(End::Deadline),
                    Phase::Terminating(end) => (phase, alarm) = self.kill(end),
                    // What keeps an output open now is out of reach.
                    Phase::Running | Phase::Killed(_) => break,
                },
                read = read(stdout.as_mut(), &mut out), if stdout.is_some() => {
                    if read? == 0 { stdout = None; }
                    self.stdout.feed(&out, on_line);
                    out.clear();
                }
                read = read(stderr.as_mut(), &mut err), if stderr.is_some() => {
                    if read? == 0 { stderr = None; }
                    self.stderr.feed(&err, on_line);
                    err.clear();
                }
                () = &mut write, if !written => written = true,
                ended = self.child.wait(), if status.is_none() => {
                    status = Some(ended?);
                    self.leash.release();
                    alarm = Some(Instant::now() + LAST_WAIT);
                }
            }
        }
        Ok(match (phase, status) {
            (Phase::Terminating(end) | Phase::Killed(end), _) => end,
            (Phase::Running, Some(status)) => End::Exited(status),
            // The loop goes on until there is a status, unless it was killed.
            (Phase::Running, None) => End::Deadline,
        })
    }

    fn end(&mut self, why: End) -> (Phase, Option<Instant>) {
        if self.grace.is_zero() {
            return self.kill(why);
        }
        self.leash.terminate();
        (Phase::Terminating(why), Some(Instant::now() + self.grace))
    }

    fn kill(&mut self, why: End) -> (Phase, Option<Instant>) {
        self.leash.kill();
        (Phase::Killed(why), Some(Instant::now() + LAST_WAIT))
    }
}

async fn at(alarm: Option<Instant>) {
    match alarm {
        Some(alarm) => tokio::time::sleep_until(alarm).await,
        None => std::future::pending().await,
    }
}

/// Gives the program what it shall read.
async fn feed(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin {
        // A program may end without reading everything: its exit status says whether that was fine.
        let _ = stdin.write_all(&input).await;
        let _ = stdin.shutdown().await;
    }
}

async fn read(
    stream: Option<&mut (impl AsyncReadExt + Unpin)>,
    buffer: &mut Vec<u8>,
) -> std::io::Result<usize> {
    match stream {
        Some(stream) => stream.read_buf(buffer).await,
        None => Ok(0),
    }
}

/// The leash of a running child. Dropping it waits, briefly, until everything is dead, so that what the child
/// had in use (its folders) can be removed right after.
struct Held {
    leash: Leash,
    pid: Option<u32>,
}

impl Held {
    fn new(mut leash: Leash, child: &Child) -> Self {
        leash.started(child.id());
        Self {
            leash,
            pid: child.id(),
        }
    }

    fn terminate(&self) {
        self.leash.terminate();
    }

    fn kill(&mut self) {
        self.leash.kill();
    }

    fn release(&mut self) {
        self.leash.release();
        self.pid = None;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leash.kill();
        if let Some(pid) = self.pid.take() {
            super::wait::until_ended(pid, LAST_WAIT);
        }
        self.leash.release();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::process::ToolPath;

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

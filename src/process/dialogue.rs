//! A long-lived child that answers requests: one writer, one reader, blocking.

use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::leash::Leash;
use super::spec::command;
use super::{ProcessError, Spec};

/// A running child whose stdin and stdout stay open. Dropping it kills and reaps it and what it has started.
/// Its stderr goes nowhere: what it has to say must come as an answer.
pub struct Dialogue {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    leash: Leash,
    child: Child,
}

impl Dialogue {
    /// Starts `spec`; its stdin bytes (none by default), limits and deadline do not apply.
    pub fn start(spec: &Spec) -> Result<Self, ProcessError> {
        let program = spec.program.as_path();
        let (mut command, mut leash) = command(spec)?;
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|source| ProcessError::Start {
            program: program.to_owned(),
            source,
        })?;
        leash.started(Some(child.id()));
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ProcessError::Io {
                program: program.to_owned(),
                source: std::io::Error::other("a stream is missing"),
            });
        };
        Ok(Self {
            stdin,
            stdout: BufReader::with_capacity(64 * 1024, stdout),
            leash,
            child,
        })
    }

    /// Sends one request.
    pub fn send(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.stdin.write_all(request)?;
        self.stdin.flush()
    }

    /// Where the answers come from.
    pub fn answers(&mut self) -> &mut BufReader<ChildStdout> {
        &mut self.stdout
    }
}

impl Drop for Dialogue {
    fn drop(&mut self) {
        self.leash.kill();
        // It was killed, so this does not block for long.
        let _ = self.child.wait();
        self.leash.release();
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::path::Path;

    use super::*;
    use crate::process::ToolPath;

    #[test]
    fn answers_until_dropped() {
        let path = std::env::var_os("PATH").unwrap();
        let cat = ToolPath::find("cat", &path, &[]).unwrap();
        let mut dialogue = Dialogue::start(&Spec::new(cat, Path::new("/"))).unwrap();
        for request in ["one\n", "two\n"] {
            dialogue.send(request.as_bytes()).unwrap();
            let mut answer = String::new();
            dialogue.answers().read_line(&mut answer).unwrap();
            assert_eq!(answer, request);
        }
        let pid = rustix::process::Pid::from_raw(dialogue.child.id().cast_signed()).unwrap();
        drop(dialogue);
        assert!(rustix::process::test_kill_process(pid).is_err());
    }
}

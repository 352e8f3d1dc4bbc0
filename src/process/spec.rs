//! What to start, and the command made of it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use super::leash::{Leash, pass_only};
use super::sandbox::SandboxPlan;
use super::{ProcessError, ToolPath};
use crate::model::Secret;

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
    /// At most so many bytes of a line are given to a reader of lines.
    pub line_limit: usize,
    /// After this time the child has to end.
    pub deadline: Option<Duration>,
    /// What it has between SIGTERM and SIGKILL when it has to end; zero is SIGKILL at once.
    pub grace: Duration,
    /// Values that must occur in no argument and no variable: starting is refused if one does.
    pub forbidden: Vec<Secret<String>>,
    /// Descriptors that stay open in the child, under the same numbers (`/dev/fd/N`).
    pub inherit: Vec<Arc<OwnedFd>>,
    /// What it may do at all; `None` is whatever ecr may do.
    pub sandbox: Option<SandboxPlan>,
}

impl Spec {
    /// A run of `program` in `cwd` with nothing in its environment, no limit on stdout, 64 KiB of
    /// stderr, lines of up to 1 MiB, no deadline, no grace and no sandbox.
    pub fn new(program: ToolPath, cwd: &Path) -> Self {
        Self {
            program,
            args: Vec::new(),
            env: Vec::new(),
            cwd: cwd.to_owned(),
            stdin: None,
            stdout_limit: usize::MAX,
            stderr_limit: 64 * 1024,
            line_limit: 1024 * 1024,
            deadline: None,
            grace: Duration::ZERO,
            forbidden: Vec::new(),
            inherit: Vec::new(),
            sandbox: None,
        }
    }

    /// Where a forbidden value stands, by the name of the place; never the value.
    fn leak(&self) -> Option<String> {
        let holds = |text: &OsStr| {
            self.forbidden.iter().any(|secret| {
                let secret = secret.expose().as_bytes();
                !secret.is_empty() && memchr::memmem::find(text.as_bytes(), secret).is_some()
            })
        };
        if let Some(n) = self.args.iter().position(|argument| holds(argument)) {
            return Some(format!("argument {}", n + 1));
        }
        let (name, _) = self.env.iter().find(|(k, v)| holds(k) || holds(v))?;
        Some(if holds(name) {
            "a variable's name".to_owned()
        } else {
            format!("${}", name.display())
        })
    }
}

/// The command for `spec`, all three streams piped (stdin only when there is something to read), and the leash
/// that its processes are held on.
pub(super) fn command(spec: &Spec) -> Result<(std::process::Command, Leash), ProcessError> {
    if let Some(place) = spec.leak() {
        return Err(ProcessError::Leak {
            program: spec.program.as_path().to_owned(),
            place,
        });
    }
    let start = |source: io::Error| ProcessError::Start {
        program: spec.program.as_path().to_owned(),
        source,
    };
    let sandbox = match &spec.sandbox {
        Some(plan) => Some(
            plan.prepare()
                .map_err(|error| start(io::Error::other(error)))?,
        ),
        None => None,
    };
    let mut command = launcher(spec).map_err(|error| start(io::Error::other(error)))?;
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
    let inherit = spec.inherit.clone();
    let kept: Vec<RawFd> = inherit.iter().map(AsRawFd::as_raw_fd).collect();
    let leash = Leash::attach(&mut command, move || {
        // Held by the closure so that they are open when the child is forked.
        let _held = &inherit;
        pass_only(&kept)?;
        match &sandbox {
            Some(sandbox) => sandbox.enter(),
            None => Ok(()),
        }
    })
    .map_err(start)?;
    Ok((command, leash))
}

/// The program itself: its sandbox is entered between fork and exec.
#[cfg(not(target_os = "macos"))]
#[allow(clippy::unnecessary_wraps)] // the other platform's can fail
fn launcher(spec: &Spec) -> Result<std::process::Command, super::sandbox::PlanError> {
    Ok(std::process::Command::new(spec.program.as_path()))
}

/// The system's launcher with the plan as a profile, where there is a plan.
#[cfg(target_os = "macos")]
fn launcher(spec: &Spec) -> Result<std::process::Command, super::sandbox::PlanError> {
    let Some(plan) = &spec.sandbox else {
        return Ok(std::process::Command::new(spec.program.as_path()));
    };
    let mut command = std::process::Command::new(super::sandbox::seatbelt::LAUNCHER);
    command
        .arg("-p")
        .arg(super::sandbox::seatbelt::profile(plan)?)
        .arg(spec.program.as_path());
    Ok(command)
}

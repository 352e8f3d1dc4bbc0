//! The leash where there is no supervisor: the child's process group.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process_group};

/// Holds a child's process group. Dropping it kills the group, unless the child was reaped.
pub(super) struct Leash(Option<Pid>);

impl Leash {
    /// Makes `command` run `last_steps` right before the program.
    #[allow(clippy::unnecessary_wraps)] // the other platform's can fail
    pub(super) fn attach(
        command: &mut Command,
        last_steps: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        // SAFETY: the steps are async-signal-safe by the caller's word.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(last_steps);
        }
        Ok(Self(None))
    }

    /// The child leads the group `leader`. It must not be reaped before [`Leash::release`].
    pub(super) fn started(&mut self, leader: Option<u32>) {
        self.0 = leader
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
    }

    /// Asks the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the group.
    pub(super) fn kill(&mut self) {
        self.signal(Signal::KILL);
    }

    /// The leader was reaped: its id is no longer ours to signal.
    pub(super) fn release(&mut self) {
        self.0 = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // An error means that the group is already gone.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Everything of Rust's is close-on-exec from the start: only the `kept` descriptors are opened up.
pub(super) fn pass_only(kept: &[RawFd]) -> io::Result<()> {
    for &fd in kept {
        // SAFETY: the caller keeps these open until the exec.
        #[allow(unsafe_code)]
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
    }
    Ok(())
}

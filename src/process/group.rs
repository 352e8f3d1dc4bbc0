//! The guard that lets no process group outlive its owner.

use rustix::process::{Pid, Signal, kill_process_group};

/// Kills a process group with SIGKILL when dropped, unless it was disarmed.
///
/// The group's leader must not be reaped while the guard is armed: only then is its id sure not to
/// belong to somebody else.
pub(super) struct GroupGuard(Option<Pid>);

impl GroupGuard {
    /// Guards the group that the child with the id `leader` was started in.
    pub(super) fn new(leader: Option<u32>) -> Self {
        Self(
            leader
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw),
        )
    }

    /// Kills the group now.
    pub(super) fn kill(&self) {
        if let Some(pid) = self.0 {
            // An error means that the group is already gone.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// The leader was reaped: its id is no longer ours to signal.
    pub(super) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        self.kill();
    }
}

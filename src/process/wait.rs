//! Waiting for a process without reaping it.

use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Blocks until the child `pid` of this process has ended, at most `limit`. It is left for its owner to reap.
pub(super) fn until_ended(pid: u32, limit: Duration) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let until = Instant::now() + limit;
    // Killing takes well under a millisecond as a rule.
    let mut pause = Duration::from_micros(200);
    while matches!(waitid(WaitId::Pid(pid), peek), Ok(None)) && Instant::now() < until {
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

//! Time and memory of other processes, without what their children use.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// How often the memory of a running process is looked at.
const POLL: Duration = Duration::from_millis(1);

/// Linux counts in hundredths of a second here on every architecture that we bench on.
const TICK_MILLIS: u64 = 10;

/// What a process used itself; its children are not counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Most resident pages at a time, mapped files (packs, the binary) included.
    pub(crate) peak: u64,
    /// Most anonymous resident pages that were seen at a time.
    pub(crate) anonymous: u64,
}

fn start(command: &mut Command) -> io::Result<Child> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Waits and reports a failure as an error: a command that stopped early is no measurement.
fn finish(mut child: Child, command: &Command) -> io::Result<()> {
    let status = child.wait()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {status}")))
}

/// From the start to the end of `command`.
pub(crate) fn wall(command: &mut Command) -> io::Result<Duration> {
    let begun = Instant::now();
    let child = start(command)?;
    finish(child, command)?;
    Ok(begun.elapsed())
}

/// The processor time of `command` in all its threads, to 10 ms (the kernel's tick), and that of its children.
pub(crate) fn cpu(command: &mut Command) -> io::Result<(Duration, Duration)> {
    let child = start(command)?;
    let pid = pid(&child)?;
    // The process has ended but can still be asked.
    waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    finish(child, command)?;
    // The second field is the name in parentheses and may hold anything; utime is field 14.
    let fields: Vec<u64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, system, children_user, children_system] = fields[..] else {
        return Err(io::Error::other("an odd /proc/PID/stat"));
    };
    let ticks = |n: u64| Duration::from_millis(n * TICK_MILLIS);
    Ok((ticks(user + system), ticks(children_user + children_system)))
}

/// The memory of `command`, looked at while it runs.
pub(crate) fn memory(command: &mut Command) -> io::Result<Memory> {
    let child = start(command)?;
    let pid = pid(&child)?;
    let status = format!("/proc/{}/status", child.id());
    let mut seen = Memory::default();
    let over = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    while waitid(WaitId::Pid(pid), over)?.is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        seen.peak = seen.peak.max(field(&status, "VmHWM:"));
        seen.anonymous = seen.anonymous.max(field(&status, "RssAnon:"));
        std::thread::sleep(POLL);
    }
    finish(child, command)?;
    Ok(seen)
}

fn pid(child: &Child) -> io::Result<Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("an odd process id"))
}

/// A field of `/proc/PID/status`, in bytes.
fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
    number.unwrap_or(0) * 1024
}

/// The middle value.
pub(crate) fn median<T: Ord + Copy + Default>(values: &mut [T]) -> T {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

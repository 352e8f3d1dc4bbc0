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

/// What one run took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    /// From the start to the end.
    pub(crate) wall: Duration,
    /// Processor time (user and system) of the process itself, in all its threads, to 20 ms (the kernel's ticks, cut off).
    pub(crate) own: Duration,
    /// That of the processes it has started.
    pub(crate) children: Duration,
}

/// Runs `command` to its end.
pub(crate) fn run(command: &mut Command) -> io::Result<Run> {
    let begun = Instant::now();
    let child = start(command)?;
    let pid = pid(&child)?;
    // The process has ended but can still be asked.
    waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )?;
    let wall = begun.elapsed();
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
    Ok(Run {
        wall,
        own: ticks(user + system),
        children: ticks(children_user + children_system),
    })
}

/// Several runs of the same command. The least wall time is what it takes when nothing else runs; processor time is hardly
/// touched by what else runs, so that a mean is best against the coarse ticks.
#[derive(Debug, Default)]
pub(crate) struct Runs(Vec<Run>);

impl Runs {
    pub(crate) fn add(&mut self, run: Run) {
        self.0.push(run);
    }

    /// The least wall time.
    pub(crate) fn wall(&self) -> Duration {
        self.0.iter().map(|run| run.wall).min().unwrap_or_default()
    }

    /// The mean processor time of the process itself.
    pub(crate) fn own(&self) -> Duration {
        self.mean(|run| run.own)
    }

    /// The mean processor time of what it has started.
    pub(crate) fn children(&self) -> Duration {
        self.mean(|run| run.children)
    }

    fn mean(&self, of: impl Fn(&Run) -> Duration) -> Duration {
        let count = u32::try_from(self.0.len()).unwrap_or(1).max(1);
        self.0.iter().map(of).sum::<Duration>() / count
    }
}

/// Processes that wanted to run in the last minute, on average, these benches included.
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let word = load.split(' ').next().unwrap_or_default();
    word.to_owned()
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

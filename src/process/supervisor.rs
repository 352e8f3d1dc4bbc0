//! The process between ecr and each child, on Linux.
//!
//! `Command` forks once; the fork forks again. The grandchild becomes the program, the one in between
//! stays as its supervisor: orphans of the child come to it (it is a subreaper), so that nothing the child
//! starts can leave its reach by `setsid` or by forking twice, and it reads a pipe whose other end only ecr
//! holds. A byte there asks the child to end; the pipe's end, which also comes when ecr is killed, kills
//! everything below. When the child ends by itself, what it left running is killed too, and the supervisor
//! ends the way the child did.
//!
//! The supervisor is a fork of a process with threads: it may neither allocate nor take a lock. rustix's
//! calls are bare system calls; the rest is libc's async-signal-safe part.
//!
//! @ref LLP 0011#a-supervisor-under-each-child — nothing gets away

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, RawDir, open, openat};
use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus,
    getpid, getppid, kill_process, kill_process_group, pidfd_open, set_child_subreaper,
    set_dumpable_behavior, set_parent_process_death_signal, setsid, wait, waitid,
};

/// ecr's end of the pipe. Dropping it kills the child and everything it has started.
pub(super) struct Leash(Option<OwnedFd>);

impl Leash {
    /// Makes `command` start under a supervisor; `last_steps` run in the child right before the program. They
    /// must keep to the module's rule.
    pub(super) fn attach(
        command: &mut Command,
        mut last_steps: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        let step = move || {
            let supervisor = split(&theirs)?;
            last_steps()?;
            // Last, because a change of credentials undoes it.
            die_with(supervisor)
        };
        // SAFETY: the steps do what may be done between fork and exec, see the module's words.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(step);
        }
        Ok(Self(Some(ours)))
    }

    /// The supervisor runs; it needs nothing more.
    #[allow(clippy::unused_self, clippy::needless_pass_by_ref_mut)] // the other platform's uses both
    pub(super) fn started(&mut self, _supervisor: Option<u32>) {}

    /// Asks the child's group to end.
    pub(super) fn terminate(&self) {
        if let Some(pipe) = &self.0 {
            // A supervisor that is gone has nothing left to end.
            let _ = rustix::io::write(pipe, b"T");
        }
    }

    /// Kills the child and everything it has started.
    pub(super) fn kill(&mut self) {
        self.0 = None;
    }

    /// The supervisor was reaped: there is nothing left to hold.
    pub(super) fn release(&mut self) {
        self.0 = None;
    }
}

/// Forks; supervises in the parent, and returns in the child with the supervisor's id.
fn split(leash: &OwnedFd) -> io::Result<Pid> {
    let supervisor = getpid();
    set_child_subreaper(Some(supervisor))?;
    let mask = block_signals();
    // SAFETY: this process has one thread (it is a fork), and neither side needs more than the module allows.
    #[allow(unsafe_code)]
    let forked = unsafe { libc::fork() };
    match Pid::from_raw(forked) {
        None => {
            restore_signals(&mask);
            // A session of its own: no terminal to ask for a password or to type into.
            setsid()?;
            Ok(supervisor)
        }
        Some(_) if forked < 0 => Err(io::Error::last_os_error()),
        Some(child) => {
            let status = supervise(leash.as_raw_fd(), child);
            end_like(status);
        }
    }
}

/// Ties the calling child to its supervisor.
fn die_with(supervisor: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have died before the line above.
    if getppid() == Some(supervisor) {
        Ok(())
    } else {
        Err(Errno::SRCH.into())
    }
}

fn supervise(leash: RawFd, child: Pid) -> Option<WaitStatus> {
    close_all_but(leash);
    // It is a copy of ecr, credentials and all: nobody with the same user id may look into it.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // SAFETY: `close_all_but` left exactly this descriptor open, and it is never closed.
    #[allow(unsafe_code)]
    let leash = unsafe { BorrowedFd::borrow_raw(leash) };
    watch(leash, child);
    end_all(child)
}

/// Until the child has ended or ecr wants it dead.
fn watch(leash: BorrowedFd<'_>, child: Pid) {
    let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let ended = pidfd_open(child, PidfdFlags::empty());
    // Without pidfds (before Linux 5.3) it has to look from time to time.
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    loop {
        if !matches!(waitid(WaitId::Pid(child), peek), Ok(None)) {
            return;
        }
        let mut both;
        let mut one;
        let (fds, timeout): (&mut [PollFd<'_>], _) = if let Ok(pidfd) = &ended {
            both = [
                PollFd::from_borrowed_fd(leash, PollFlags::IN),
                PollFd::new(pidfd, PollFlags::IN),
            ];
            (&mut both, None)
        } else {
            one = [PollFd::from_borrowed_fd(leash, PollFlags::IN)];
            (&mut one, Some(&pause))
        };
        if poll(fds, timeout).is_err() || fds[0].revents().is_empty() {
            continue;
        }
        match read(leash, &mut [0_u8; 1]) {
            Ok(1) => {
                // Its group does not exist yet if it has only just been forked.
                if kill_process_group(child, Signal::TERM).is_err() {
                    let _ = kill_process(child, Signal::TERM);
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            _ => return,
        }
    }
}

/// Kills and reaps until there is no descendant left; gives how the child ended.
fn end_all(child: Pid) -> Option<WaitStatus> {
    let _ = kill_process_group(child, Signal::KILL);
    let _ = kill_process(child, Signal::KILL);
    let mut status = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, ended))) => {
                if pid == child {
                    status = Some(ended);
                }
            }
            Ok(None) => {
                pause_briefly();
                kill_children();
            }
            Err(Errno::INTR) => {}
            Err(_) => return status,
        }
    }
}

fn pause_briefly() {
    let pause = Timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    let _ = poll(&mut [], Some(&pause));
}

/// Kills every process whose parent this is. As they die their own children come to this one.
fn kill_children() {
    let me = getpid();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = openat(CWD, c"/proc", flags, Mode::empty()) else {
        return;
    };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&proc, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_bytes();
        if let Some(pid) = number(name).and_then(Pid::from_raw)
            && parent_of(name) == Some(me)
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The parent of the process with the folder `/proc/NAME`.
fn parent_of(name: &[u8]) -> Option<Pid> {
    let mut path = [0_u8; 32];
    let parts: [&[u8]; 3] = [b"/proc/", name, b"/stat\0"];
    let mut end = 0;
    for part in parts {
        path.get_mut(end..end + part.len())?.copy_from_slice(part);
        end += part.len();
    }
    let path = CStr::from_bytes_with_nul(path.get(..end)?).ok()?;
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0_u8; 256];
    let length = read(&file, &mut text).ok()?;
    parent_in(text.get(..length)?)
}

/// The fourth field of `/proc/PID/stat`. The second, the name, may hold anything, and ends at the last `)`.
fn parent_in(stat: &[u8]) -> Option<Pid> {
    let name_end = stat.iter().rposition(|&b| b == b')')?;
    let parent = stat.get(name_end + 1..)?.split(|&b| b == b' ').nth(2)?;
    Pid::from_raw(number(parent)?)
}

fn number(digits: &[u8]) -> Option<i32> {
    if digits.is_empty() || digits.len() > 9 {
        return None;
    }
    digits.iter().try_fold(0_i32, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + i32::from(digit - b'0'))
    })
}

/// Ends this process with the child's exit status or by the child's signal.
fn end_like(status: Option<WaitStatus>) -> ! {
    let code = status.and_then(WaitStatus::exit_status).unwrap_or(1);
    if let Some(signal) = status.and_then(WaitStatus::terminating_signal) {
        // SAFETY: plain calls on a local set. No core is written: the process is not dumpable.
        #[allow(unsafe_code)]
        unsafe {
            let mut set = MaybeUninit::uninit();
            libc::sigemptyset(set.as_mut_ptr());
            libc::signal(signal, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
            libc::raise(signal);
        }
    }
    // SAFETY: ends the process; nothing of it is needed again, and no destructor of ecr's may run here.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(code)
    }
}

/// Blocks every signal (ecr's handlers are not for this process) and gives the mask from before.
fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    let mut old = MaybeUninit::uninit();
    // SAFETY: both sets are initialised by the calls before they are read; an ignored SIGCHLD would make the
    // kernel reap the child itself.
    #[allow(unsafe_code)]
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigfillset(all.as_mut_ptr());
        libc::sigemptyset(old.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
        old.assume_init()
    }
}

fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` is a valid set.
    #[allow(unsafe_code)]
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
    }
}

/// Closes every descriptor but one: the supervisor must hold no end of the child's pipes, nor of a socket of ecr's.
fn close_all_but(kept: RawFd) {
    let Ok(kept) = u32::try_from(kept) else {
        return;
    };
    for (first, last) in [(0, kept.wrapping_sub(1)), (kept + 1, u32::MAX)] {
        if first > last || (kept == 0 && first == 0) {
            continue;
        }
        if close_range(first, last, 0).is_err() {
            // Before Linux 5.9, or forbidden: one by one.
            for fd in first..=last.min(OLD_KERNEL_DESCRIPTORS) {
                // SAFETY: none of them is used by this process again.
                #[allow(unsafe_code)]
                unsafe {
                    libc::close(fd.cast_signed());
                }
            }
        }
    }
}

/// How far descriptors are closed one by one where `close_range` is missing.
const OLD_KERNEL_DESCRIPTORS: u32 = 65_536;

/// Makes every descriptor from 3 on close at `exec`, but the `kept` ones, which stay open.
pub(super) fn pass_only(kept: &[RawFd]) -> io::Result<()> {
    // An error is no reason to fail: everything of Rust's is close-on-exec from the start.
    let _ = close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    for &fd in kept {
        // SAFETY: the caller keeps these open until the exec.
        #[allow(unsafe_code)]
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
    }
    Ok(())
}

fn close_range(first: u32, last: u32, flags: u32) -> io::Result<()> {
    // SAFETY: takes three numbers; which descriptors may go is the callers' affair.
    #[allow(unsafe_code)]
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_any_name() {
        let parent = |text: &str| parent_in(text.as_bytes()).map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(parent("12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a) S 9 (b) R 8 1"), Some(8));
        assert_eq!(parent("12 () ) ) S 31 1"), Some(31));
        for broken in ["", "12 (sh)", "12 (sh) S", "12 (sh) S x 1", "12 sh S 7"] {
            assert_eq!(parent(broken), None, "{broken}");
        }
    }

    #[test]
    fn numbers_are_small_and_plain() {
        assert_eq!(number(b"4194304"), Some(4_194_304));
        for other in [&b""[..], b"self", b"-1", b"99999999999"] {
            assert_eq!(number(other), None);
        }
    }

    #[test]
    fn it_finds_its_own_parent() {
        let name = getpid().as_raw_nonzero().to_string();
        assert_eq!(parent_of(name.as_bytes()), getppid());
    }
}

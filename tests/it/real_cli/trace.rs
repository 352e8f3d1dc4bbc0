//! What a trace of system calls says.

#![cfg(target_os = "linux")]

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// What a trace says about the processes and threads that run `program`.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Started programs, the first of each process left out.
    pub(super) started: Vec<String>,
    /// Successful opens.
    pub(super) opened: BTreeSet<PathBuf>,
    /// Connections that were asked for and not refused by the jar.
    pub(super) connected: Vec<String>,
    /// Sockets that could be reached.
    pub(super) bound: Vec<String>,
    /// How many processes ran the program.
    pub(super) processes: usize,
    pub(super) pids: HashSet<String>,
}

impl Seen {
    pub(super) fn read(trace: &str, program: &Path) -> Self {
        let begins = format!("execve(\"{}\"", program.display());
        let mut seen = Self::default();
        for line in trace.lines() {
            let Some((pid, call)) = line.split_once(char::is_whitespace) else {
                continue;
            };
            let call = call.trim_start();
            if !seen.pids.contains(pid) {
                if call.starts_with(&begins) && !call.contains("= -1") {
                    seen.pids.insert(pid.to_owned());
                    seen.processes += 1;
                }
                continue;
            }
            let is = |name: &str| {
                call.starts_with(&format!("{name}("))
                    || call.starts_with(&format!("<... {name} resumed"))
            };
            let result = call.rsplit_once(" = ").map_or("", |(_, result)| result);
            if is("clone") || is("fork") || is("vfork") {
                seen.pids.insert(result.to_owned());
            } else if is("execve") || is("execveat") {
                seen.started.push(call.to_owned());
            } else if is("open") || is("openat") {
                // Such a descriptor can only be asked for what `stat` says.
                if let (Some((_, path)), false) = (result.split_once('<'), call.contains("O_PATH"))
                {
                    seen.opened.insert(path.trim_end_matches('>').into());
                }
            } else if call.starts_with("connect(") && !call.contains("= -1 EPERM") {
                // The address stands where the call begins, whether it had to wait or not.
                seen.connected.push(call.to_owned());
            } else if (is("bind") || is("listen") || is("accept4")) && !result.starts_with('-') {
                seen.bound.push(call.to_owned());
            }
        }
        seen
    }
}

#[test]
fn a_trace_is_read() {
    let trace = "\
1 execve(\"/bin/opencode\", [], 0x1) = 0
1 openat(AT_FDCWD</x>, \"/etc/passwd\", O_RDONLY) = 3</etc/passwd>
1 openat(AT_FDCWD</x>, \"/\", O_RDONLY|O_PATH) = 4</>
1 clone(child_stack=0) = 2
2 connect(5, {sa_family=AF_INET, sin_addr=inet_addr(\"10.0.0.1\")}, 16) = -1 EINPROGRESS (Operation now in progress)
2 openat(AT_FDCWD</x>, \"/a\", O_RDONLY <unfinished ...>
2 <... openat resumed>)       = 6</a>
2 execve(\"/bin/sh\", [], 0x1) = 0
2 listen(5, 1) = 0
3 execve(\"/bin/sh\", [], 0x1) = 0
3 openat(AT_FDCWD</x>, \"/b\", O_RDONLY) = 3</b>";
    let seen = Seen::read(trace, Path::new("/bin/opencode"));
    let opened: Vec<_> = seen
        .opened
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    assert_eq!(opened, ["/a", "/etc/passwd"]);
    assert_eq!(
        (seen.started.len(), seen.connected.len(), seen.bound.len()),
        (1, 1, 1)
    );
    assert_eq!(seen.processes, 1);
}

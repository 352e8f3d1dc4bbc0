//! Nothing gets out: every attempt of the probe that works outside fails inside.

#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use ecr::process::End;
use ecr::process::sandbox::{Level, PrivateNet, probe};

use super::probe::{Probe, Surroundings, inside, is_root, results};

/// What need not work outside, and why that says nothing about the probe: errnos of parts that a kernel was built
/// without, or that this user may not use anyway.
fn is_absent_here(name: &str, errno: i32) -> bool {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    const EACCES: i32 = 13;
    const ENOSYS: i32 = 38;
    const EPROTONOSUPPORT: i32 = 93;
    const ESOCKTNOSUPPORT: i32 = 94;
    const EOPNOTSUPP: i32 = 95;
    const EAFNOSUPPORT: i32 = 97;
    const ECANCELED: i32 = 125;
    match name {
        "sctp-socket"
        | "smc-socket"
        | "mptcp-other-port"
        | "vsock"
        | "alg"
        | "packet"
        | "tcp-other-port-by-ipv6"
        | "udp-ipv6" => [
            EPROTONOSUPPORT,
            ESOCKTNOSUPPORT,
            EAFNOSUPPORT,
            ENOENT,
            EPERM,
        ]
        .contains(&errno),
        "x32" | "i386" => [ENOSYS, ECANCELED].contains(&errno),
        "io-uring" | "bpf" | "userfaultfd" | "perf-event" | "keyctl" | "add-key" | "kcmp"
        | "clone3-user" | "pidfd-getfd" | "fsopen" => {
            [ENOSYS, EPERM, EACCES, EOPNOTSUPP, ENOENT].contains(&errno)
        }
        "setxattr" | "handle" => errno == EOPNOTSUPP,
        // What takes a capability, or a setting, that not every user has.
        "raw" | "ping" | "chroot" | "setns" | "settimeofday" | "unshare-mount"
        | "unshare-user-net" | "clone-user" | "proc-1" | "process-vm-readv" | "ptrace"
        | "proc-target-mem" | "core-dump" => [EPERM, EACCES, 255].contains(&errno),
        "read /etc/hostname" => errno == ENOENT,
        _ => false,
    }
}

/// What may work inside all the same.
fn is_harmless(name: &str) -> bool {
    // Without an address family of its own it cannot be told from TCP; its port is checked like any other.
    name == "end"
}

async fn everything_fails_inside(net: Option<Arc<PrivateNet>>) {
    let Some(probe) = Probe::build() else {
        return;
    };
    let outside = Surroundings::new(&probe, None).try_outside(&probe);
    let absent: Vec<_> = outside.iter().filter(|(_, errno)| **errno != 0).collect();
    for (name, errno) in &absent {
        assert!(
            is_absent_here(name, **errno),
            "the probe itself fails at {name}: errno {errno}"
        );
        crate::support::skip::skipped(&format!(
            "{name} does not work outside either (errno {errno})"
        ));
    }
    assert!(outside.len() - absent.len() > 50, "{outside:?}");
    assert!(outside.contains_key("end"));

    let surroundings = Surroundings::new(&probe, net.as_deref());
    let before = surroundings.state();
    let capture = inside(&probe, &surroundings, net.clone(), "try").await;
    let words = String::from_utf8_lossy(&capture.stderr);
    let tried = results(&capture.stdout);
    assert!(tried.contains_key("end"), "{capture:?} {words}");
    let escaped: Vec<_> = tried
        .iter()
        .filter(|(name, errno)| **errno == 0 && !is_harmless(name))
        .collect();
    assert!(escaped.is_empty(), "{escaped:?}");
    for name in outside.keys() {
        assert!(tried.contains_key(name), "{name} was not tried inside");
    }
    assert_eq!(surroundings.state(), before);
    assert!(!surroundings.was_reached());

    let capture = inside(&probe, &surroundings, net, "good").await;
    assert_eq!(
        String::from_utf8_lossy(&capture.stdout),
        "tcp-good-port\t0\n",
        "{capture:?}"
    );
    assert!(matches!(capture.end, End::Exited(status) if status.success()));
}

/// False, loudly, where the kernel cannot do it.
fn is_full() -> bool {
    let support = probe();
    if let Err(refusal) = support.require(Level::Full) {
        crate::support::skip::skipped(&format!("{refusal}"));
        return false;
    }
    true
}

#[tokio::test]
async fn with_landlock_and_seccomp_alone() {
    if is_full() {
        everything_fails_inside(None).await;
    }
}

#[tokio::test]
async fn with_a_private_network_too() {
    if !is_full() {
        return;
    }
    match PrivateNet::open() {
        Ok(net) => everything_fails_inside(Some(Arc::new(net))).await,
        Err(error) => eprintln!("SKIPPED: no private network here: {error}"),
    }
}

/// The tests of this folder once more, without root's rights.
#[test]
fn unprivileged() {
    if !is_root() {
        crate::support::skip::skipped(
            "only root can become somebody else, and these tests ran unprivileged already",
        );
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["jail::", "--skip", "jail::escape::unprivileged"])
        .env("TMPDIR", dir.path())
        .env("RUST_BACKTRACE", "0")
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            crate::support::skip::skipped(&format!(
                "the tests are out of reach of another user: {error}"
            ));
            return;
        }
    };
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{words}");
    assert!(words.contains("with_landlock_and_seccomp_alone"), "{words}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

//! seccomp: what Landlock leaves open.
//!
//! Landlock's rules are for TCP proper. Seen on real kernels to go past them: MPTCP and SMC sockets, data sent with
//! the opening packet (TCP Fast Open), listening without `bind`, and every other kind of socket. A socket pair of
//! datagrams is a way to any UNIX socket too: each of its ends may send to an address. Files without a file system
//! (`memfd_create`) are exempt from Landlock and could be executed.
//!
//! @ref LLP 0011#what-the-system-enforces — what each means stops

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::PlanError;

/// One program for the kernel.
pub(super) type Filter = BpfProgram;

/// Refused whatever the arguments: EPERM.
const DENIED: &[i64] = &[
    // Being reached, rather than reaching out.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Kernel interfaces that have been a way in.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // What Landlock does not handle, and no engine needs.
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_mknodat,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// As if the kernel did not have them: ENOSYS, which runtimes take as the sign to do without.
const UNKNOWN: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Its flags are in memory, where a filter cannot look: libraries fall back to `clone`.
    libc::SYS_clone3,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
];

const MSG_FASTOPEN: u64 = libc::MSG_FASTOPEN as u64;
/// The bits of a socket's type that are no flags.
const TYPE_MASK: u64 = 0xf;
/// From here on the numbers are those of the x32 ABI.
const X32_BIT: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The filters, made once. Several are all asked, and the strictest answer counts.
pub(super) fn filters() -> Result<&'static [Filter], PlanError> {
    static MADE: OnceLock<Result<Vec<Filter>, String>> = OnceLock::new();
    match MADE.get_or_init(|| make().map_err(|error| error.to_string())) {
        Ok(filters) => Ok(filters),
        Err(error) => Err(PlanError::Kernel(error.clone())),
    }
}

/// Whether this kernel takes filters, and one can be made for this machine.
pub(super) fn is_available() -> bool {
    let action = libc::SECCOMP_RET_KILL_PROCESS;
    // SAFETY: the kernel reads one number and changes nothing.
    #[allow(unsafe_code)]
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0_u32,
            &raw const action,
        )
    };
    answer == 0 && filters().is_ok()
}

/// Puts `filters` in force for the calling process. Runs between fork and exec.
pub(super) fn install(filters: &[Filter]) -> io::Result<()> {
    for filter in filters {
        apply_filter(filter).map_err(|error| match error {
            seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
            _ => io::ErrorKind::Other.into(),
        })?;
    }
    Ok(())
}

fn make() -> Result<Vec<Filter>, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = |errno: i32| SeccompAction::Errno(errno.cast_unsigned());
    let unknown = UNKNOWN.iter().map(|&call| (call, Vec::new())).collect();
    let mut filters = Vec::new();
    for (rules, action) in [
        (denied()?, errno(libc::EPERM)),
        (unknown, errno(libc::ENOSYS)),
    ] {
        // Calls of another ABI of the same machine end the process.
        filters.push(SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()?);
    }
    if arch == TargetArch::x86_64 {
        filters.push(no_x32());
    }
    Ok(filters)
}

fn denied() -> Result<Rules, BackendError> {
    let mut rules: Rules = DENIED.iter().map(|&call| (call, Vec::new())).collect();

    // socket: TCP over IPv4 or IPv6, nothing else.
    let mut socket = vec![
        rule(&[ne(0, libc::AF_INET as u64), ne(0, libc::AF_INET6 as u64)])?,
        rule(&[ne(2, 0), ne(2, libc::IPPROTO_TCP as u64)])?,
    ];
    socket.extend(types_but(&[libc::SOCK_STREAM])?);
    rules.insert(libc::SYS_socket, socket);

    // socketpair: connected for good, so that it leads nowhere else.
    let mut pair = vec![rule(&[ne(0, libc::AF_UNIX as u64)])?];
    pair.extend(types_but(&[libc::SOCK_STREAM, libc::SOCK_SEQPACKET])?);
    rules.insert(libc::SYS_socketpair, pair);

    // TCP Fast Open, and what replaces the protocol of a socket.
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        rules.insert(call, vec![rule(&[has(flags, MSG_FASTOPEN)])?]);
    }
    let tcp = eq(1, libc::IPPROTO_TCP as u64);
    let options = [
        libc::TCP_FASTOPEN,
        libc::TCP_FASTOPEN_CONNECT,
        libc::TCP_ULP,
        libc::TCP_REPAIR,
    ];
    let options: Result<Vec<_>, _> = options
        .iter()
        .map(|&option| rule(&[tcp, eq(2, u64::from(option.cast_unsigned()))]))
        .collect();
    rules.insert(libc::SYS_setsockopt, options?);

    // clone: processes and threads, no namespaces.
    let namespaces = [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ];
    let namespaces: Result<Vec<_>, _> = namespaces
        .iter()
        .map(|&flag| rule(&[has(0, u64::from(flag.cast_unsigned()))]))
        .collect();
    rules.insert(libc::SYS_clone, namespaces?);

    // Typing into a terminal that is still open somewhere.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX];
    let typing: Result<Vec<_>, _> = typing.iter().map(|&call| rule(&[eq(1, call)])).collect();
    rules.insert(libc::SYS_ioctl, typing?);
    Ok(rules)
}

/// One condition: argument, operator, value. Only the lower half of an argument is compared, as the kernel does
/// with these calls.
#[derive(Clone, Copy)]
struct Condition(u8, Operator, u64);

#[derive(Clone, Copy)]
enum Operator {
    Equals,
    Differs,
    Has(u64),
}

const fn eq(argument: u8, value: u64) -> Condition {
    Condition(argument, Operator::Equals, value)
}

const fn ne(argument: u8, value: u64) -> Condition {
    Condition(argument, Operator::Differs, value)
}

const fn has(argument: u8, bits: u64) -> Condition {
    Condition(argument, Operator::Has(bits), bits)
}

/// Matches when all conditions hold.
fn rule(conditions: &[Condition]) -> Result<SeccompRule, BackendError> {
    let conditions: Result<Vec<_>, _> = conditions
        .iter()
        .map(|&Condition(argument, operator, value)| {
            let operator = match operator {
                Operator::Equals => SeccompCmpOp::Eq,
                Operator::Differs => SeccompCmpOp::Ne,
                Operator::Has(mask) => SeccompCmpOp::MaskedEq(mask),
            };
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
        })
        .collect();
    SeccompRule::new(conditions?)
}

/// Rules for every socket type but those named; there is no operator for "differs under a mask".
fn types_but(allowed: &[i32]) -> Result<Vec<SeccompRule>, BackendError> {
    (0..=TYPE_MASK)
        .filter(|kind| {
            !allowed
                .iter()
                .any(|&allowed| u64::from(allowed.cast_unsigned()) == *kind)
        })
        .map(|kind| rule(&[Condition(1, Operator::Has(TYPE_MASK), kind)]))
        .collect()
}

/// Ends the process at a call of the x32 ABI: its numbers pass as unknown ones of x86-64.
fn no_x32() -> Filter {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    vec![
        // The number of the call is the first word.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        instruction(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_KILL_PROCESS,
        ),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_made_and_small_enough_for_the_kernel() {
        let filters = filters().unwrap();
        assert!(filters.len() >= 2);
        for filter in filters {
            assert!((1..=4096).contains(&filter.len()), "{}", filter.len());
        }
    }

    #[test]
    fn no_call_is_in_two_lists() {
        let mut calls: Vec<i64> = DENIED.iter().chain(UNKNOWN).copied().collect();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(calls.len(), DENIED.len() + UNKNOWN.len());
        for call in denied().unwrap().keys() {
            assert!(!UNKNOWN.contains(call), "{call}");
        }
    }
}

//! Landlock: which files, which port.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::{PlanError, SandboxPlan};

/// The newest ABI whose rights were thought through here.
const NEWEST: u32 = 10;

/// The kernel's ABI; 0 when there is no Landlock, or when we are not let at it.
pub(super) fn abi() -> u32 {
    // SAFETY: with this flag the call takes no attributes and changes nothing.
    #[allow(unsafe_code)]
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            1_u32, // LANDLOCK_CREATE_RULESET_VERSION
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// The rules of `plan`, not in force yet. Everything that the ABI can restrict is restricted.
pub(super) fn ruleset(plan: &SandboxPlan, abi: u32) -> Result<OwnedFd, PlanError> {
    let abi = ABI::from(abi.min(NEWEST).cast_signed());
    let kernel = |error: RulesetError| PlanError::Kernel(error.to_string());
    let mut ruleset = restricted(abi).map_err(kernel)?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let write = AccessFs::from_all(abi)
        & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock)
        & if abi >= ABI::V5 {
            !BitFlags::from(AccessFs::IoctlDev)
        } else {
            BitFlags::all()
        }
        & if abi >= ABI::V9 {
            !BitFlags::from(AccessFs::ResolveUnix)
        } else {
            BitFlags::all()
        };
    for (paths, access) in [
        (&plan.read, read),
        (&plan.exec, read | AccessFs::Execute),
        (&plan.write, write),
    ] {
        for path in paths {
            ruleset = allow(ruleset, path, access, abi)?;
        }
    }
    if let Some(port) = plan.port
        && abi >= ABI::V4
    {
        ruleset = ruleset
            .add_rule(NetPort::new(port, AccessNet::ConnectTcp))
            .map_err(kernel)?;
    }
    Option::<OwnedFd>::from(ruleset)
        .ok_or_else(|| PlanError::Kernel("Landlock is not available".to_owned()))
}

fn restricted(abi: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    ruleset.create()
}

fn allow(
    ruleset: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
    abi: ABI,
) -> Result<RulesetCreated, PlanError> {
    let resolved = SandboxPlan::check(path)?;
    let kernel =
        |error: &dyn std::error::Error| PlanError::Kernel(format!("{}: {error}", path.display()));
    let fd = PathFd::new(&resolved).map_err(|error| kernel(&error))?;
    let access = if resolved.is_dir() {
        access
    } else {
        access & AccessFs::from_file(abi)
    };
    ruleset
        .add_rule(PathBeneath::new(fd, access))
        .map_err(|error| kernel(&error))
}

/// Lets the calling process read its own folder of `/proc`. Runs between fork and exec.
pub(super) fn allow_own_proc(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    /// `struct landlock_path_beneath_attr`
    #[repr(C, packed)]
    struct PathBeneathAttr {
        allowed_access: u64,
        parent_fd: i32,
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let own = openat(CWD, c"/proc/self", flags, Mode::empty())?;
    let attr = PathBeneathAttr {
        allowed_access: AccessFs::ReadFile as u64 | AccessFs::ReadDir as u64,
        parent_fd: own.as_raw_fd(),
    };
    // SAFETY: the kernel reads `attr`, which has the layout that it expects for this kind of rule.
    #[allow(unsafe_code)]
    let done = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            1_u32, // LANDLOCK_RULE_PATH_BENEATH
            &raw const attr,
            0_u32,
        )
    };
    outcome(done)
}

/// Puts the rules in force for the calling process. Runs between fork and exec; needs `no_new_privs`.
pub(super) fn restrict_self(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes two numbers.
    #[allow(unsafe_code)]
    let done =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0_u32) };
    outcome(done)
}

fn outcome(done: libc::c_long) -> io::Result<()> {
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

//! What the child does to itself before its program starts.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

use super::{Limits, PlanError, PrivateNet, SandboxPlan, Support, landlock, seccomp};

/// A plan made ready by the parent. Entering it allocates nothing.
pub(in crate::process) struct Inside {
    ruleset: Option<OwnedFd>,
    proc_self: bool,
    net: Option<Arc<PrivateNet>>,
    filters: &'static [seccomp::Filter],
    limits: Limits,
}

impl Inside {
    /// As much of `plan` as `support` can enforce.
    pub(super) fn new(plan: &SandboxPlan, support: &Support) -> Result<Self, PlanError> {
        Ok(Self {
            ruleset: match support.landlock_abi {
                0 => None,
                abi => Some(landlock::ruleset(plan, abi)?),
            },
            proc_self: plan.proc_self,
            net: plan.net.clone(),
            filters: if support.seccomp {
                seccomp::filters()?
            } else {
                &[]
            },
            limits: plan.limits,
        })
    }

    /// Enters the sandbox; what cannot be entered must not start. Runs between fork and exec.
    pub(in crate::process) fn enter(&self) -> io::Result<()> {
        if let Some(net) = &self.net {
            net.enter()?;
        }
        self.limit()?;
        set_no_new_privs(true)?;
        if let Some(ruleset) = &self.ruleset {
            if self.proc_self {
                landlock::allow_own_proc(ruleset.as_fd())?;
            }
            landlock::restrict_self(ruleset.as_fd())?;
        }
        drop_capabilities()?;
        seccomp::install(self.filters)
    }

    fn limit(&self) -> io::Result<()> {
        lower(Resource::Core, 0)?;
        lower(Resource::Fsize, self.limits.file_size)?;
        lower(Resource::Nofile, self.limits.open_files)?;
        if self.net.is_some() {
            lower(Resource::Nproc, self.limits.processes)?;
        }
        Ok(())
    }
}

/// Lowers a limit; one that is lower already stays.
fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let least = |limit: Option<u64>| Some(limit.map_or(to, |limit| limit.min(to)));
    setrlimit(
        resource,
        Rlimit {
            current: least(now.current),
            maximum: least(now.maximum),
        },
    )?;
    Ok(())
}

/// Root without them is a user like any other; with `no_new_privs` they do not come back.
fn drop_capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    Ok(())
}

//! What the operating system can be made to enforce on a child.
//!
//! On Linux: Landlock for files and for the one TCP port, seccomp for what Landlock leaves open, rlimits, no
//! capabilities, and, where it is allowed, a network of its own with nothing in it but our listener.

#[cfg(target_os = "linux")]
mod inside;
#[cfg(target_os = "linux")]
mod landlock;
mod plan;
#[cfg(target_os = "linux")]
mod private_net;
#[cfg(not(target_os = "linux"))]
#[path = "private_net_none.rs"]
mod private_net;
#[cfg(any(target_os = "macos", test))]
pub(super) mod seatbelt;
#[cfg(target_os = "linux")]
mod seccomp;
mod support;

pub use plan::{Limits, PlanError, SandboxPlan};
pub use private_net::PrivateNet;
pub use support::{Level, Missing, Refusal, Support, probe};

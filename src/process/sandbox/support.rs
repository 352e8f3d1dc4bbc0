//! What this machine can enforce, found by trying.
//!
//! @ref LLP 0011#levels — what is needed when

use std::fmt;
use std::sync::OnceLock;

/// How far a child can be contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing is enforced.
    None,
    /// Files are; the network is not, or not completely.
    Files,
    /// Files and the network: one TCP port, nothing else.
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Files => "files",
            Self::Full => "full",
        })
    }
}

/// Something that this machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// No way at all to contain a process is known here.
    Platform,
    /// No Landlock.
    Landlock,
    /// Landlock without rules for TCP (ABI 4).
    LandlockTcp {
        /// The ABI it has.
        abi: u32,
    },
    /// Landlock that does not keep signals and abstract sockets inside (ABI 6).
    LandlockScopes {
        /// The ABI it has.
        abi: u32,
    },
    /// No seccomp filters.
    Seccomp,
    /// No network of the child's own.
    PrivateNet {
        /// What the system said.
        why: String,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Platform => f.write_str("no sandbox of this operating system is supported"),
            Self::Landlock => f.write_str(
                "Landlock is not available (Linux 5.13 or later with `landlock` among its security modules)",
            ),
            Self::LandlockTcp { abi } => write!(
                f,
                "Landlock has no rules for TCP (its ABI is {abi}; 4 comes with Linux 6.7)"
            ),
            Self::LandlockScopes { abi } => write!(
                f,
                "Landlock does not confine signals (its ABI is {abi}; 6 comes with Linux 6.12)"
            ),
            Self::Seccomp => f.write_str(
                "seccomp filters are not available (they are on every Linux of x86-64 and aarch64 that allows them)",
            ),
            Self::PrivateNet { why } => {
                write!(f, "no private network: user namespaces are refused here ({why})")
            }
        }
    }
}

/// What this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Support {
    /// The kernel's Landlock ABI; 0 is none.
    pub landlock_abi: u32,
    /// Seccomp filters can be installed.
    pub seccomp: bool,
    /// A child can have a network of its own.
    pub private_net: bool,
    /// The level of these together.
    pub level: Level,
    /// What is not there, also what `level` does not need.
    pub missing: Vec<Missing>,
}

/// The level that a run needs is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "engine processes cannot be contained well enough here: `{needed}` is required, `{reached}` is possible. {}. \
     Use the `api` engine, which starts no process, or another machine; \
     `sandbox.require: \"{reached}\"` goes on all the same",
    words(missing)
)]
pub struct Refusal {
    /// What is required.
    pub needed: Level,
    /// What is possible.
    pub reached: Level,
    /// What is not there.
    pub missing: Vec<Missing>,
}

fn words(missing: &[Missing]) -> String {
    let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
    words.join("; ")
}

impl Support {
    /// What these three make together.
    pub(super) fn new(landlock_abi: u32, seccomp: bool, private_net: Result<(), String>) -> Self {
        let mut missing = Vec::new();
        if landlock_abi == 0 {
            missing.push(Missing::Landlock);
        } else if landlock_abi < 4 {
            missing.push(Missing::LandlockTcp { abi: landlock_abi });
        }
        if !seccomp {
            missing.push(Missing::Seccomp);
        }
        if (1..6).contains(&landlock_abi) {
            missing.push(Missing::LandlockScopes { abi: landlock_abi });
        }
        let has_net = private_net.is_ok();
        if let Err(why) = private_net {
            missing.push(Missing::PrivateNet { why });
        }
        Self {
            landlock_abi,
            seccomp,
            private_net: has_net,
            level: match landlock_abi {
                0 => Level::None,
                4.. if seccomp => Level::Full,
                _ => Level::Files,
            },
            missing,
        }
    }

    /// Refuses what does not reach `needed`.
    pub fn require(&self, needed: Level) -> Result<(), Refusal> {
        if self.level >= needed {
            return Ok(());
        }
        let needed_for_it = |missing: &&Missing| {
            !matches!(
                missing,
                Missing::PrivateNet { .. } | Missing::LandlockScopes { .. }
            )
        };
        Err(Refusal {
            needed,
            reached: self.level,
            missing: self.missing.iter().filter(needed_for_it).cloned().collect(),
        })
    }
}

/// What this machine can enforce. The first call tries it out (a few milliseconds), the others remember.
pub fn probe() -> &'static Support {
    static FOUND: OnceLock<Support> = OnceLock::new();
    FOUND.get_or_init(look)
}

#[cfg(target_os = "linux")]
fn look() -> Support {
    let net = super::PrivateNet::open().map(drop);
    Support::new(
        super::landlock::abi(),
        super::seccomp::is_available(),
        net.map_err(|error| error.to_string()),
    )
}

#[cfg(target_os = "macos")]
fn look() -> Support {
    Support {
        landlock_abi: 0,
        seccomp: false,
        private_net: false,
        level: if super::seatbelt::is_available() {
            Level::Full
        } else {
            Level::None
        },
        missing: Vec::new(),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn look() -> Support {
    Support {
        landlock_abi: 0,
        seccomp: false,
        private_net: false,
        level: Level::None,
        missing: vec![Missing::Platform],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(abi: u32, seccomp: bool) -> Level {
        Support::new(abi, seccomp, Ok(())).level
    }

    #[test]
    fn the_level_is_that_of_the_weakest_part() {
        assert_eq!(level(7, true), Level::Full);
        assert_eq!(level(4, true), Level::Full);
        assert_eq!(level(3, true), Level::Files);
        assert_eq!(level(7, false), Level::Files);
        assert_eq!(level(0, true), Level::None);
    }

    #[test]
    fn everything_missing_is_named() {
        let support = Support::new(3, false, Err("EPERM".to_owned()));
        assert_eq!(
            support.missing,
            [
                Missing::LandlockTcp { abi: 3 },
                Missing::Seccomp,
                Missing::LandlockScopes { abi: 3 },
                Missing::PrivateNet {
                    why: "EPERM".to_owned()
                },
            ]
        );
        assert!(Support::new(7, true, Ok(())).missing.is_empty());
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let support = Support::new(3, true, Err("EPERM".to_owned()));
        assert_eq!(support.require(Level::Files), Ok(()));
        let refusal = support.require(Level::Full).unwrap_err();
        assert_eq!(refusal.missing, [Missing::LandlockTcp { abi: 3 }]);
        let words = refusal.to_string();
        for part in [
            "`full` is required",
            "`files` is possible",
            "Linux 6.7",
            "`api` engine",
            "sandbox.require",
        ] {
            assert!(words.contains(part), "{words}");
        }
    }

    #[test]
    fn the_probe_remembers() {
        assert!(std::ptr::eq(probe(), probe()));
    }
}

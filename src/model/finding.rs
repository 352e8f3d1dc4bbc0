//! Findings: what a reviewer says, and what became of it.

use std::fmt;
use std::str::FromStr;

use super::{AgentId, Fingerprint, RepoPath, RuleId, ScopeName};

/// A word that none of the known values spells.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {word:?}")]
pub struct ParseWordError {
    /// What was being read (`severity`, …).
    pub what: &'static str,
    /// The word that was given.
    pub word: String,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl $name {
            /// All values, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The word used in every output and configuration.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(self.as_str()) }
        }
        impl FromStr for $name {
            type Err = ParseWordError;
            fn from_str(word: &str) -> Result<Self, ParseWordError> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(ParseWordError { what: $what, word: word.to_owned() }),
                }
            }
        }
    };
}
pub(crate) use words;

words!(
    /// How much a finding matters; ordered, so that `Critical` is the greatest.
    Severity, "severity" {
        /// Worth knowing; hidden unless asked for.
        Suggestion = "suggestion",
        /// A real problem that does not block.
        Warning = "warning",
        /// Must be fixed before merging.
        Critical = "critical",
    }
);
words!(
    /// What kind of problem it is.
    Category, "category" {
        /// The code does something else than it should.
        Correctness = "correctness",
        /// The code is harder to keep right than it needs to be.
        Quality = "quality",
        /// The code can be abused.
        Security = "security",
        /// A credential is in the code.
        Secrets = "secrets",
    }
);
words!(
    /// Which version of a file a line number counts in.
    Side, "side" {
        /// The version before the change.
        Old = "old",
        /// The version after the change.
        New = "new",
    }
);
words!(
    /// Whether a finding counts towards the decision.
    FindingStatus, "status" {
        /// It stands.
        Open = "open",
        /// Refuted twice but too grave to disappear: listed, not deciding.
        Disputed = "disputed",
    }
);
words!(
    /// How far a finding has been checked.
    VerificationStatus, "verification status" {
        /// Its location and evidence were found mechanically.
        Grounded = "grounded",
        /// A second look at the source confirmed it.
        Verified = "verified",
        /// A second look could not tell.
        Uncertain = "uncertain",
        /// Nothing checked it.
        Unverified = "unverified",
    }
);
words!(
    /// The stage at which a finding was dropped.
    DropStage, "drop stage" {
        /// Its location does not exist.
        Grounding = "grounding",
        /// The reviewer took it back.
        Retracted = "retracted",
        /// Another finding says the same.
        Dedupe = "dedupe",
        /// The coordinator dropped it.
        Coordination = "coordination",
        /// The verifier refuted it.
        Verification = "verification",
        /// The configuration hides it.
        Policy = "policy",
        /// Over the configured number of findings.
        Cap = "cap",
        /// An ignore directive in the code, or a baseline.
        Suppression = "suppression",
    }
);

/// A place in one version of one file. Lines are 1-based; `None` means the whole file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The file (for [`Side::Old`] the path before a rename).
    pub file: RepoPath,
    /// First line, 1-based.
    pub line: Option<u32>,
    /// Last line, 1-based, not before `line`.
    pub end_line: Option<u32>,
    /// Which version `line` counts in.
    pub side: Side,
    /// What to point at within line `line`: byte offsets, 0-based, half-open; where it is known.
    pub columns: Option<(u32, u32)>,
}

/// The source around a finding, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// Number of the first line, 1-based, on the finding's side.
    pub first_line: u32,
    /// The lines without their ends; invalid UTF-8 replaced, over-long lines cut at a window around
    /// the columns. Untrusted text.
    pub lines: Vec<String>,
    /// Which line of `lines` is the finding's and what to point at in it, in bytes of that (cut) line.
    pub highlight: Option<(usize, std::ops::Range<usize>)>,
}

/// A finding as an engine reports it, before grounding. Every text is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingReport {
    /// How much it matters.
    pub severity: Severity,
    /// What kind of problem it is.
    pub category: Category,
    /// Where it is claimed to be.
    pub location: Location,
    /// One line that says what is wrong.
    pub title: String,
    /// What breaks, for whom, when.
    pub rationale: String,
    /// What to do instead, where the reporter knows it for certain.
    pub suggestion: Option<String>,
    /// One verbatim line of the file; it is also the key of the identity.
    pub evidence: Option<String>,
    /// The deterministic rule that matched, for the built-in checks.
    pub rule: Option<RuleId>,
}

/// How far a finding has been checked, and why it stopped there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The state reached.
    pub status: VerificationStatus,
    /// Why, where it is not plain.
    pub reason: Option<String>,
}

/// A grounded finding. Identity, file, category and evidence are frozen from here on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The identity that dismissals refer to.
    pub id: Fingerprint,
    /// How much it matters.
    pub severity: Severity,
    /// What kind of problem it is.
    pub category: Category,
    /// Where it is.
    pub location: Location,
    /// True when the lines are part of the diff (added, removed or context).
    pub in_diff: bool,
    /// One line that says what is wrong.
    pub title: String,
    /// What breaks, for whom, when.
    pub rationale: String,
    /// What to do instead.
    pub suggestion: Option<String>,
    /// One verbatim line of the file (a credential in it is masked on output).
    pub evidence: Option<String>,
    /// Who reported it, without duplicates, in order.
    pub agents: Vec<AgentId>,
    /// The scope that reported it, in a monorepo.
    pub scope: Option<ScopeName>,
    /// The deterministic rule that matched.
    pub rule: Option<RuleId>,
    /// The source around it, where it is known.
    pub excerpt: Option<Excerpt>,
    /// Whether it counts towards the decision.
    pub status: FindingStatus,
    /// How far it has been checked.
    pub verification: Verification,
}

/// A finding that is not in the list of findings, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedFinding {
    /// The finding as it stood.
    pub finding: Finding,
    /// Where it was dropped.
    pub stage: DropStage,
    /// Why, for a person.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_severity_is_ordered() {
        for severity in Severity::ALL {
            assert_eq!(severity.as_str().parse::<Severity>(), Ok(*severity));
        }
        assert!(Severity::Critical > Severity::Warning);
        assert!("Critical".parse::<Severity>().is_err());
    }
}

//! Newtypes for everything that names something.

use std::fmt;

/// Why a text is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {text:?}: {problem}")]
pub struct IdError {
    /// Which kind of id was expected.
    pub what: &'static str,
    /// The text that was given.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);
        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

text_id!(
    /// A full commit id: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
    CommitId
);
text_id!(
    /// A full object id of a blob or tree: 40 or 64 lower-case hexadecimal digits.
    ObjectId
);
text_id!(
    /// A finding's identity: 12 lower-case hexadecimal digits (@ref LLP 0006#identity — how they are made).
    Fingerprint
);
text_id!(
    /// A model id as configured, `provider/name` or a bare name.
    ModelId
);
text_id!(
    /// A reviewer's id: the file name of its Markdown file without `.md`, or an engine role.
    AgentId
);
text_id!(
    /// A scope's name in a monorepo: `[a-z0-9][a-z0-9-]*`.
    ScopeName
);
text_id!(
    /// The id of a built-in or repository rule: `[a-z0-9][a-z0-9-]*`.
    RuleId
);
text_id!(
    /// One pass of a run, unique within it (`correctness/1`, `checks`).
    PassId
);
text_id!(
    /// The name of an engine (`builtin`, `api`, `claude`, …).
    EngineName
);

macro_rules! object_id_new {
    ($name:ident, $what:literal) => {
        impl $name {
            /// Takes 40 or 64 hexadecimal digits; upper case is folded.
            pub fn new(text: &str) -> Result<Self, IdError> {
                let lower = text.to_ascii_lowercase();
                if matches!(lower.len(), 40 | 64) && is_hex(&lower) {
                    return Ok(Self(lower));
                }
                Err(IdError {
                    what: $what,
                    text: text.to_owned(),
                    problem: "expected 40 or 64 hexadecimal digits",
                })
            }

            /// The first 12 digits, for people.
            pub fn short(&self) -> &str {
                &self.0[..12]
            }

            /// True for the all-zero id that git uses for "no object".
            pub fn is_zero(&self) -> bool {
                self.0.bytes().all(|b| b == b'0')
            }
        }
    };
}
object_id_new!(CommitId, "commit id");
object_id_new!(ObjectId, "object id");

impl Fingerprint {
    /// Number of hexadecimal digits in a fingerprint.
    pub const LEN: usize = 12;

    /// Takes exactly 12 lower-case hexadecimal digits.
    pub fn new(text: &str) -> Result<Self, IdError> {
        if text.len() == Self::LEN && is_hex(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(IdError {
            what: "finding id",
            text: text.to_owned(),
            problem: "expected 12 lower-case hexadecimal digits",
        })
    }

    /// Takes digits that were just made; the caller guarantees their number and alphabet.
    pub(crate) fn from_digits(digits: String) -> Self {
        debug_assert!(Self::new(&digits).is_ok());
        Self(digits)
    }
}

fn checked(
    what: &'static str,
    text: &str,
    problem: &'static str,
    ok: impl Fn(&str) -> bool,
) -> Result<String, IdError> {
    if ok(text) {
        Ok(text.to_owned())
    } else {
        Err(IdError {
            what,
            text: text.to_owned(),
            problem,
        })
    }
}

fn is_kebab(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes[0] != b'-'
        && bytes
            .iter()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

impl ModelId {
    /// Takes any non-empty text without control characters or white space.
    pub fn new(text: &str) -> Result<Self, IdError> {
        checked(
            "model id",
            text,
            "expected `provider/name` without white space",
            |t| !t.is_empty() && !t.chars().any(|c| c.is_control() || c.is_whitespace()),
        )
        .map(Self)
    }

    /// The part before the first `/`, or the whole id.
    pub fn provider(&self) -> &str {
        self.0
            .split_once('/')
            .map_or(&self.0, |(provider, _)| provider)
    }

    /// The part after the first `/`, or the whole id.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }
}

impl AgentId {
    /// Takes `[A-Za-z0-9][A-Za-z0-9._-]*`.
    pub fn new(text: &str) -> Result<Self, IdError> {
        checked(
            "agent id",
            text,
            "expected letters, digits, `.`, `_` and `-`",
            |t| {
                t.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && t.bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            },
        )
        .map(Self)
    }
}

impl ScopeName {
    /// Takes `[a-z0-9][a-z0-9-]*`.
    pub fn new(text: &str) -> Result<Self, IdError> {
        checked(
            "scope name",
            text,
            "expected lower-case letters, digits and `-`",
            is_kebab,
        )
        .map(Self)
    }
}

impl RuleId {
    /// Takes `[a-z0-9][a-z0-9-]*`.
    pub fn new(text: &str) -> Result<Self, IdError> {
        checked(
            "rule id",
            text,
            "expected lower-case letters, digits and `-`",
            is_kebab,
        )
        .map(Self)
    }
}

impl PassId {
    /// Names a pass; the caller keeps it unique within the run.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl EngineName {
    /// Names an engine.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_ids_are_full_hex_only() {
        assert!(CommitId::new(&"a".repeat(40)).is_ok());
        assert!(CommitId::new(&"A".repeat(64)).is_ok());
        for bad in [
            "",
            "main",
            "--upload-pack=x",
            &"a".repeat(39),
            &"g".repeat(40),
        ] {
            assert!(CommitId::new(bad).is_err(), "{bad}");
        }
        assert!(ObjectId::new(&"0".repeat(40)).unwrap().is_zero());
    }

    #[test]
    fn names() {
        assert!(Fingerprint::new("06fea94e7c30").is_ok());
        assert!(Fingerprint::new("06FEA94E7C30").is_err());
        assert!(ScopeName::new("server-www").is_ok() && ScopeName::new("-x").is_err());
        assert!(AgentId::new("a b").is_err() && AgentId::new("../x").is_err());
        let model = ModelId::new("openai/gpt/5").unwrap();
        assert_eq!((model.provider(), model.name()), ("openai", "gpt/5"));
    }
}

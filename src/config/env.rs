//! The environment variables that ecr itself defines, as data. Reading them is for the caller.

/// An environment variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvVar {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
}

/// The model for every agent.
pub const REVIEWER_MODEL: EnvVar = EnvVar {
    name: "REVIEWER_MODEL",
    help: "The model for every agent and the coordinator, as `provider/model`; blank means unset. `--model` wins over it.",
};
/// The setup folder.
pub const ECR_CONFIG_DIR: EnvVar = EnvVar {
    name: "ECR_CONFIG_DIR",
    help: "The setup folder: relative to the root of the repository, or absolute. `--config-dir` wins over it.",
};
/// The credential names that a setup must declare.
pub const ECR_EXPECTED_TOKEN_ENV: EnvVar = EnvVar {
    name: "ECR_EXPECTED_TOKEN_ENV",
    help: "The credentials that the setup must declare, no more and no less, as NAME or NAME@host, separated by commas; otherwise nothing runs.",
};
/// More progress on stderr.
pub const ECR_VERBOSE: EnvVar = EnvVar {
    name: "ECR_VERBOSE",
    help: "Says more on stderr, as `-v` does, unless it is empty, 0, false, no or off.",
};

/// All of them.
pub const ALL: &[EnvVar] = &[
    REVIEWER_MODEL,
    ECR_CONFIG_DIR,
    ECR_EXPECTED_TOKEN_ENV,
    ECR_VERBOSE,
];

/// Whether the value of a switch means on.
pub fn is_on(value: Option<&str>) -> bool {
    value.is_some_and(|value| {
        !matches!(
            value.trim().to_ascii_lowercase().as_str(),
            "" | "0" | "false" | "no" | "off"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches() {
        for off in [
            None,
            Some(""),
            Some("0"),
            Some("False"),
            Some("no"),
            Some(" OFF "),
        ] {
            assert!(!is_on(off), "{off:?}");
        }
        assert!(is_on(Some("1")) && is_on(Some("yes")));
    }
}

//! Versions of command-line tools.

use std::fmt;

/// A released version: three numbers, compared in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The first `N.N.N` in what a tool says of itself (`2.1.332 (Claude Code)`, `codex-cli 0.171.0`).
    /// A pre-release is the version that it is for.
    pub fn find(text: &str) -> Option<Self> {
        text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
            .find_map(|word| {
                let mut numbers = word.split('.').map(str::parse::<u32>);
                match (
                    numbers.next(),
                    numbers.next(),
                    numbers.next(),
                    numbers.next(),
                ) {
                    (Some(Ok(a)), Some(Ok(b)), Some(Ok(c)), None) => Some(Self(a, b, c)),
                    _ => None,
                }
            })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_say_of_themselves() {
        for (text, expected) in [
            ("2.1.332 (Claude Code)\n", Some(Version(2, 1, 332))),
            ("codex-cli 0.171.0", Some(Version(0, 171, 0))),
            ("1.18.33\n", Some(Version(1, 18, 33))),
            ("v1.2.3-beta.4", Some(Version(1, 2, 3))),
            ("warning 1.2, then 3.4.5", Some(Version(3, 4, 5))),
            ("1.2", None),
            ("1.2.3.4", None),
            ("99999999999.1.1", None),
            ("", None),
        ] {
            assert_eq!(Version::find(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        assert!(Version(2, 1, 332) > Version(2, 1, 99));
        assert!(Version(2, 0, 0) > Version(1, 99, 99));
    }
}

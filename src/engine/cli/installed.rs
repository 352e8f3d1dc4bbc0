//! The installed tool: its program, its version, and whether that version may be started.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::jar::Jar;
use super::outcome::complaint;
use super::{CliFacts, Launch, Version, shown};
use crate::process::{Binary, run, runtime_files};

/// How long it may take to say its version or its flags.
const ANSWER: Duration = Duration::from_secs(20);

/// How a version stands to those that were tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Within the tested range.
    Tested,
    /// Not tested, and it has every flag that is needed.
    Untested,
}

/// A tool that can be started.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Its program.
    pub binary: Binary,
    /// The files that it is loaded with.
    pub libraries: Vec<PathBuf>,
    /// Its version.
    pub version: Version,
    /// How that stands to the tested ones.
    pub standing: Standing,
}

impl Installed {
    /// Asks `binary` for its version, in a jar without a network, and refuses one that cannot work: too old, or
    /// not tested and without a flag that confines it. The error is for people.
    pub async fn ask(facts: &CliFacts, binary: Binary) -> Result<Self, String> {
        let libraries = runtime_files(binary.target())
            .map_err(|error| format!("{}: {error}", binary.target().display()))?;
        let said = answer(facts, &binary, &libraries, &["--version"]).await?;
        let version = Version::find(&said).ok_or_else(|| {
            format!(
                "{} says {:?} when it is asked for its version: {}",
                facts.title,
                shown(&said),
                advice(facts)
            )
        })?;
        let standing = match standing(facts, version)? {
            Standing::Tested => Standing::Tested,
            Standing::Untested => {
                let help = answer(facts, &binary, &libraries, facts.help).await?;
                if let Some(missing) = missing_flags(facts, &help) {
                    return Err(format!(
                        "{} {version} was not tested with ecr and does not know {missing}: {}",
                        facts.title,
                        advice(facts)
                    ));
                }
                Standing::Untested
            }
        };
        Ok(Self {
            binary,
            libraries,
            version,
            standing,
        })
    }
}

/// What to do about a tool that cannot be used.
pub(super) fn advice(facts: &CliFacts) -> String {
    format!("run `{}`", facts.install)
}

fn standing(facts: &CliFacts, version: Version) -> Result<Standing, String> {
    let (least, why) = facts.least;
    if version < least {
        return Err(format!(
            "{} {version} is too old, {least} is the least ({why}): {}",
            facts.title,
            advice(facts)
        ));
    }
    let (first, last) = facts.tested;
    Ok(if (first..=last).contains(&version) {
        Standing::Tested
    } else {
        Standing::Untested
    })
}

/// The needed flags that a help text does not name.
fn missing_flags(facts: &CliFacts, help: &str) -> Option<String> {
    let words: Vec<&str> = help
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '[' | ']' | '<' | '|'))
        .collect();
    let missing: Vec<&str> = facts
        .flags
        .iter()
        .filter(|flag| !words.contains(*flag))
        .copied()
        .collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// What the program prints for `args`.
async fn answer(
    facts: &CliFacts,
    binary: &Binary,
    libraries: &[PathBuf],
    args: &[&str],
) -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!(
            "{} cannot be started ({}): {error}",
            facts.title,
            binary.target().display()
        )
    };
    let jar = Jar::without_doors().map_err(|error| failed(&error))?;
    let launch = Launch {
        args: args.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), "/nonexistent".into())],
        read: vec!["/dev/urandom".into()],
        proc_self: true,
        ..Launch::default()
    };
    let mut spec = jar
        .spec(binary, libraries, launch)
        .map_err(|error| failed(&error))?;
    spec.deadline = Some(ANSWER);
    spec.stdout_limit = 1024 * 1024;
    let output = run(spec, &CancellationToken::new())
        .await
        .map_err(|error| failed(&error))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let words = complaint(&stderr).unwrap_or_else(|| output.status.to_string());
        return Err(failed(&format!("`{}` failed: {words}", args.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claude::FACTS;

    #[test]
    fn versions_stand_by_the_range() {
        let (first, last) = FACTS.tested;
        assert_eq!(standing(&FACTS, first), Ok(Standing::Tested));
        assert_eq!(standing(&FACTS, last), Ok(Standing::Tested));
        let newer = Version(last.0, last.1, last.2 + 1);
        assert_eq!(standing(&FACTS, newer), Ok(Standing::Untested));
        let words = standing(&FACTS, Version(0, 9, 9)).unwrap_err();
        for part in ["0.9.9", "too old", FACTS.least.1, FACTS.install] {
            assert!(words.contains(part), "{words}");
        }
    }

    #[test]
    fn flags_are_whole_words_of_the_help() {
        let all = FACTS.flags.join(" <x>\n  ");
        assert_eq!(missing_flags(&FACTS, &all), None);
        let first = FACTS.flags[0];
        let longer = all.replace(first, &format!("{first}-other"));
        assert_eq!(missing_flags(&FACTS, &longer).as_deref(), Some(first));
        assert!(missing_flags(&FACTS, "").is_some());
    }
}

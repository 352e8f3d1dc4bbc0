//! The installed tool: its program, its version, and whether that version may be started.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::jar::Jar;
use super::outcome::complaint;
use super::rehearsal::rehearsed;
use super::{CliDialect, CliFacts, CliSettings, Launch, Version, locate, shown};
use crate::process::sandbox::probe;
use crate::process::{Binary, run, runtime_files};

/// How long it may take to say its version or its flags.
const ANSWER: Duration = Duration::from_secs(20);

/// How a version stands to those that were tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Within the tested range.
    Tested,
    /// Not tested; it has every flag that is needed, and the self-test of the jar held.
    Rehearsed,
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

/// Why a tool is not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}: {next}")]
pub struct Refused {
    /// Its program, where there is one.
    pub path: Option<PathBuf>,
    /// The SHA-256 of the program, where it was looked at.
    pub sha256: Option<[u8; 32]>,
    /// Its version, where it said one.
    pub version: Option<Version>,
    /// Why, in a sentence for people.
    pub why: String,
    /// What to do about it.
    pub next: String,
}

impl Refused {
    pub(super) fn new(facts: &CliFacts, why: String) -> Self {
        Self {
            path: None,
            sha256: None,
            version: None,
            why,
            next: advice(facts),
        }
    }
}

/// Looks at the tool: finds its program, hashes it, asks it for its version, and holds a rehearsal of one that was not
/// tested. A machine-wide policy, which the jar would hide from it, is a reason not to start it.
pub async fn examine(
    dialect: &Arc<dyn CliDialect>,
    settings: &CliSettings,
) -> Result<Installed, Refused> {
    let facts = dialect.facts();
    let CliSettings {
        search, reviewed, ..
    } = settings.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let reviewed: Vec<&Path> = reviewed.iter().map(PathBuf::as_path).collect();
        locate(facts, &search, &reviewed)
    });
    let located = looked
        .await
        .map_err(|error| Refused::new(facts, error.to_string()))?;
    let binary = located.map_err(|error| Refused {
        path: error.path().map(Path::to_owned),
        ..Refused::new(facts, format!("{} cannot be used: {error}", facts.title))
    })?;
    let (path, sha256) = (binary.target().to_owned(), binary.sha256());
    let known = |refused: Refused| Refused {
        path: Some(path.clone()),
        sha256: Some(sha256),
        ..refused
    };
    if let Some(place) = policy_files(facts).first() {
        return Err(known(Refused {
            next: "serve its models with ecr's own engine (`api`)".to_owned(),
            ..Refused::new(facts, policy_words(facts, place))
        }));
    }
    let installed = Installed::ask(facts, binary).await.map_err(known)?;
    if installed.standing == Standing::Rehearsed {
        probe()
            .require(settings.require)
            .map_err(|refusal| known(Refused::new(facts, refusal.to_string())))?;
        rehearsed(dialect, settings, &installed)
            .await
            .map_err(known)?;
    }
    Ok(installed)
}

/// Bytes as lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The folders of a machine-wide policy of this tool that hold something.
pub fn policy_files(facts: &CliFacts) -> Vec<PathBuf> {
    let there = |place: &&&str| match std::fs::read_dir(place) {
        Ok(mut entries) => entries.next().is_some(),
        // What cannot be looked into may hold one.
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    facts
        .policy
        .iter()
        .filter(there)
        .map(PathBuf::from)
        .collect()
}

/// Why a tool with such a policy is not started.
pub fn policy_words(facts: &CliFacts, place: &Path) -> String {
    format!(
        "this machine has a policy for {} ({}), and in the jar it would not be in force",
        facts.title,
        place.display()
    )
}

impl Installed {
    /// Asks `binary` for its version, in a jar without a network, and refuses one that cannot work: too old, or
    /// not tested and without a flag that confines it. One that was not tested is not rehearsed here yet.
    async fn ask(facts: &CliFacts, binary: Binary) -> Result<Self, Refused> {
        let refused = |why: String| Refused::new(facts, why);
        let libraries = runtime_files(binary.target())
            .map_err(|error| refused(format!("{}: {error}", binary.target().display())))?;
        let said = answer(facts, &binary, &libraries, &["--version"]);
        let said = said.await.map_err(refused)?;
        let version = Version::find(&said).ok_or_else(|| {
            refused(format!(
                "{} says {:?} when it is asked for its version",
                facts.title,
                shown(&said),
            ))
        })?;
        let refused = |why: String| Refused {
            version: Some(version),
            ..refused(why)
        };
        let standing = standing(facts, version).map_err(refused)?;
        if standing == Standing::Rehearsed {
            let help = answer(facts, &binary, &libraries, facts.help);
            let help = help.await.map_err(refused)?;
            if let Some(missing) = missing_flags(facts, &help) {
                return Err(refused(format!(
                    "{} {version} was not tested with ecr and does not know {missing}",
                    facts.title,
                )));
            }
        }
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
            "{} {version} is too old, {least} is the least ({why})",
            facts.title,
        ));
    }
    let (first, last) = facts.tested;
    Ok(if (first..=last).contains(&version) {
        Standing::Tested
    } else {
        Standing::Rehearsed
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

/// What the program prints for `args`, on stdout and then on stderr.
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
    // Some print their help as if it were a complaint.
    let both = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&both).into_owned())
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
        assert_eq!(standing(&FACTS, newer), Ok(Standing::Rehearsed));
        let words = standing(&FACTS, Version(0, 9, 9)).unwrap_err();
        for part in ["0.9.9", "too old", FACTS.least.1] {
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

//! What one command-line tool does differently from the others: data and pure functions, no I/O.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{RehearsalFacts, Version};
use crate::gateway::{FinalStyle, PassLimits, Upstream};
use crate::model::{ModelId, Secret, printable};
use crate::port::EngineError;

/// One line for a person who follows the run.
pub type Activity = String;

/// Characters of somebody's message that are kept.
const WORDS: usize = 200;

/// Text of a tool or a provider in one short line that is safe to show.
pub fn shown(text: &str) -> String {
    let line = text.trim().replace(['\n', '\r', '\t'], " ");
    let mut short: String = line.chars().take(WORDS).collect();
    if line.chars().nth(WORDS).is_some() {
        short.push('…');
    }
    printable(&short).into_owned()
}

/// What is always the same for a tool.
#[derive(Debug, Clone, Copy)]
pub struct CliFacts {
    /// The engine's name in the configuration and on every pass: `claude`.
    pub name: &'static str,
    /// The tool's name for people: `Claude Code`.
    pub title: &'static str,
    /// What its program is called on `PATH`.
    pub program: &'static str,
    /// How it is installed, in the version that was tested last: a command for people.
    pub install: &'static str,
    /// Where npm's launcher finds the program of this machine, below a `node_modules` folder, the best first.
    pub packages: &'static [&'static str],
    /// Versions that the tests were run with: first and last.
    pub tested: (Version, Version),
    /// The oldest version that can work at all, and why.
    pub least: (Version, &'static str),
    /// The arguments that make it print its flags.
    pub help: &'static [&'static str],
    /// Flags that its help has to name before a version that was not tested is started.
    pub flags: &'static [&'static str],
    /// How the model door words a final error for it.
    pub style: FinalStyle,
    /// How a tool of the tool door is called in its model requests.
    pub spelling: fn(&str) -> String,
    /// Tools that it may offer besides those of the tool door.
    pub also_offered: &'static [&'static str],
    /// The same for a pass that answers by a schema.
    pub also_offered_with_schema: &'static [&'static str],
    /// What a rehearsal tries with it.
    pub rehearsal: RehearsalFacts,
    /// Passes at the same time.
    pub at_once: usize,
    /// Whether it holds its model to a JSON schema by itself.
    pub structured_output: bool,
    /// Folders of a machine-wide policy that it would follow whatever its flags say.
    pub policy: &'static [&'static str],
    /// Whether it takes the token of a plan of this provider.
    pub plan: Option<&'static str>,
}

/// What a dialect may know of a pass.
pub struct PassFacts<'a> {
    /// The model asked for.
    pub model: &'a ModelId,
    /// Where it is; the credential's kind matters, its value goes nowhere near the child.
    pub upstream: &'a Upstream,
    /// The system prompt.
    pub system: &'a str,
    /// The task.
    pub task: &'a str,
    /// The schema of the reply, for a pass without tools.
    pub schema: Option<&'a Value>,
    /// The tools of the tool door, by their plain names; empty for a pass with a schema.
    pub tools: &'a [String],
    /// Where both doors are: `http://ADDRESS` (model) and `http://ADDRESS/mcp`.
    pub doors: SocketAddr,
    /// Takes the place of a key at the model door and of the bearer token at the tool door.
    pub placeholder: &'a Secret<String>,
    /// The pass's own folder. In it: `cwd` (empty, not writable), `home`, `config`, `cache`, `data`, `state`,
    /// `tmp`.
    pub root: &'a Path,
    /// The caps of the pass.
    pub limits: &'a PassLimits,
    /// Time left.
    pub time: Duration,
}

/// A file that is made, mode 0600, before the tool starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFile {
    /// Below [`PassFacts::root`]; its folders are made too, mode 0700.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// How the tool is started for a pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Its arguments. No secret, and nothing that a stranger wrote: they are seen by every user.
    pub args: Vec<OsString>,
    /// Its variables besides those that name the private folders (HOME, XDG_*, TMPDIR); a name given here wins.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads from stdin.
    pub stdin: Vec<u8>,
    /// Files it needs. It may read those that are not in a folder it may write.
    pub files: Vec<LaunchFile>,
    /// Where it starts, below the root; `cwd` when there is none.
    pub cwd: Option<PathBuf>,
    /// What it may read besides, absolute; what is not there is left out.
    pub read: Vec<PathBuf>,
    /// Names of the private folders that it may not write although they are there for that.
    pub locked: &'static [&'static str],
    /// Programs of its own that it starts, absolute.
    pub exec: Vec<PathBuf>,
    /// It has to read its own `/proc/self`.
    pub proc_self: bool,
}

/// How the process ended.
#[derive(Debug, Clone, Copy)]
pub struct Exit<'a> {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// The kept part of stderr.
    pub stderr: &'a str,
}

/// What a turn came to, by the tool's own account.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// The model said its last word: this text, or the structured answer as JSON text.
    Text(String),
    /// Its last answer was cut; the text before the cut, and by what.
    Cut(String, &'static str),
    /// The tool says that it failed.
    Failed(EngineError),
    /// Nothing that ends a turn was read.
    Nothing,
}

/// Reads the lines of one pass.
pub trait EventReader: Send {
    /// Takes a line of stdout (`cut` when it was too long); gives what there is to tell.
    fn line(&mut self, line: &[u8], cut: bool) -> Option<Activity>;

    /// What the turn came to. The doors were asked first: this decides only what they did not see.
    fn said(&mut self, exit: Exit<'_>) -> Said;
}

/// A command-line tool as an engine.
pub trait CliDialect: Send + Sync + 'static {
    /// What is always the same.
    fn facts(&self) -> &'static CliFacts;

    /// How it is started for a pass; an error says why this pass cannot be run with it.
    fn launch(&self, pass: &PassFacts<'_>) -> Result<Launch, EngineError>;

    /// A reader for the lines of that pass.
    fn reader(&self, pass: &PassFacts<'_>) -> Box<dyn EventReader>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_short_safe_line() {
        assert_eq!(shown(" a\nb\u{1b}[1m "), "a b\\u{1b}[1m");
        assert_eq!(shown(&"x".repeat(300)).chars().count(), WORDS + 1);
    }
}

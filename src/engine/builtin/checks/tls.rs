//! Commands and variables that switch certificate checks off.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::added::{AddedText, line_hit};
use super::path::{holds_commands, is_doc, is_fixture};
use crate::engine::builtin::{CheckedFile, Hit};

/// The structural rules have the same one for calls and their arguments; its entry stands in their table.
const ID: &str = "tls-verification-off";

/// In scripts, container files and CI.
static COMMANDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u)(?:",
        r"\bcurl\b[^|;&\n]*?\s(-[a-zA-Z]*k[a-zA-Z]*|--insecure)(?:\s|$)",
        r"|\bwget\b[^|;&\n]*?\s(--no-check-certificate)\b",
        r"|\bgit\b[^|;&\n]*?\s(http\.sslVerify[= ]+(?:false|0))\b",
        r"|\b(npm|yarn|pnpm)\s+config\s+set\s+strict-ssl[= ]+false\b",
        r")"
    ))
    .ok()
});

/// Anywhere but in prose.
static VARIABLES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u)(?:",
        r#"\b(NODE_TLS_REJECT_UNAUTHORIZED\b["'\]]{0,2}\s*[=:]\s*["']?0)(?:["'\s;,&]|$)"#,
        r#"|\b(GIT_SSL_NO_VERIFY\b["'\]]{0,2}\s*[=:]\s*["']?(?:1|true))\b"#,
        r#"|\b(PYTHONHTTPSVERIFY\b["'\]]{0,2}\s*[=:]\s*["']?0)(?:["'\s;,&]|$)"#,
        r")"
    ))
    .ok()
});

/// What every match of [`VARIABLES`] holds.
const VARIABLE_WORDS: &[&[u8]] = &[
    b"_REJECT_UNAUTHORIZED",
    b"GIT_SSL_NO_VERIFY",
    b"PYTHONHTTPSVERIFY",
];
/// What every match of [`COMMANDS`] holds.
const COMMAND_WORDS: &[&[u8]] = &[b"curl", b"wget", b"sslVerify", b"strict-ssl"];

/// Reports each line that switches verification off for a host other than this machine.
pub(super) fn check(file: &CheckedFile<'_>, added: &AddedText<'_>, report: &mut dyn FnMut(Hit)) {
    let variables = mentions(&added.text, VARIABLE_WORDS);
    let commands = holds_commands(file.path) && mentions(&added.text, COMMAND_WORDS);
    if !(variables || commands) || is_doc(file.path) || is_fixture(file.path) {
        return;
    }
    for (number, line) in added.lines() {
        // A line this long is data or generated.
        if line.len() > 2000 || is_comment(line) || names_this_machine(line) {
            continue;
        }
        let by_variable = if variables {
            first_group(&VARIABLES, line)
        } else {
            None
        };
        let by_command = if commands {
            first_group(&COMMANDS, line)
        } else {
            None
        };
        if let Some(range) = by_variable.or(by_command) {
            report(line_hit(ID, number, line, Some(range)));
        }
    }
}

fn mentions(text: &[u8], words: &[&[u8]]) -> bool {
    words
        .iter()
        .any(|word| memchr::memmem::find(text, word).is_some())
}

/// The range of the first group that took part.
fn first_group(regex: &LazyLock<Option<Regex>>, line: &[u8]) -> Option<Range<usize>> {
    let groups = regex.as_ref()?.captures(line)?;
    groups.iter().skip(1).flatten().next().map(|m| m.range())
}

fn is_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    [&b"#"[..], b"//", b"*", b"/*", b"<!--", b"echo "]
        .iter()
        .any(|mark| line.starts_with(mark))
}

/// A self-signed certificate of one's own machine cannot be verified, and nobody stands in between.
fn names_this_machine(line: &[u8]) -> bool {
    [
        &b"localhost"[..],
        b"127.0.0.1",
        b"0.0.0.0",
        b"[::1]",
        b"169.254.169.254",
        b"kubernetes.default",
    ]
    .iter()
    .any(|host| memchr::memmem::find(line, host).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expressions_build() {
        assert!(COMMANDS.is_some() && VARIABLES.is_some());
    }
}

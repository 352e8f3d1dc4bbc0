//! Commands and variables that switch certificate checks off.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::added::line_hit;
use super::path::{holds_commands, is_doc, is_fixture};
use super::{CheckedFile, Hit, Rule, rule};
use crate::model::{Category, Severity};

const ID: &str = "tls-verification-off";

/// The table.
pub(super) static RULES: &[Rule] = &[rule(
    ID,
    Severity::Warning,
    Category::Security,
    [
        "Certificate verification is switched off",
        "Anyone on the path can answer in the server's place: what is downloaded can be replaced and what is sent, read.",
        "Remove the switch; for a private authority, trust its certificate instead.",
    ],
)];

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

/// Reports each line that switches verification off for a host other than this machine.
pub(super) fn check(file: &CheckedFile<'_>, report: &mut dyn FnMut(Hit)) {
    if is_doc(file.path) || is_fixture(file.path) {
        return;
    }
    let commands = holds_commands(file.path);
    for &(number, line) in &file.added {
        // A line this long is data or generated.
        if line.len() > 2000 || is_comment(line) {
            continue;
        }
        let found = first_group(&VARIABLES, line, |l| {
            memchr::memmem::find(l, b"_REJECT_UNAUTHORIZED").is_some() || has_verify(l)
        })
        .or_else(|| {
            if commands {
                first_group(&COMMANDS, line, names_a_command)
            } else {
                None
            }
        });
        if let Some(range) = found
            && !names_this_machine(line)
        {
            report(line_hit(ID, number, line, Some(range)));
        }
    }
}

fn has_verify(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"GIT_SSL_NO_VERIFY").is_some()
        || memchr::memmem::find(line, b"PYTHONHTTPSVERIFY").is_some()
}

fn names_a_command(line: &[u8]) -> bool {
    [&b"curl"[..], b"wget", b"sslVerify", b"strict-ssl"]
        .iter()
        .any(|word| memchr::memmem::find(line, word).is_some())
}

/// The range of the first group that took part, when the cheap test lets the expression run.
fn first_group(
    regex: &LazyLock<Option<Regex>>,
    line: &[u8],
    worth_it: impl Fn(&[u8]) -> bool,
) -> Option<Range<usize>> {
    if !worth_it(line) {
        return None;
    }
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

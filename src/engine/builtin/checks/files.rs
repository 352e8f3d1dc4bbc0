//! Files that do not belong into a repository.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::added::line_hit;
use super::all::rule;
use super::path::is_fixture;
use crate::detect::is_placeholder;
use crate::engine::builtin::{CheckedFile, Hit, Rule};
use crate::model::{Category, ChangeStatus, RepoPath, Severity};

const ENV_FILE: &str = "env-file-with-secrets";
const CREDENTIAL: &str = "credential-file";
const KEY_STORE: &str = "key-store-file";
const STATE: &str = "terraform-state";
const LARGE: &str = "large-file";
const LARGE_BIN: &str = "large-binary";
const JUNK: &str = "generated-folder";

/// From this size on (bytes) a new text file is called large.
const LARGE_TEXT: u64 = 1024 * 1024;
/// From this size on (bytes) a new binary file is called large.
pub(in crate::engine::builtin) const LARGE_BINARY: u64 = 5 * 1024 * 1024;

/// The table.
pub(super) static RULES: &[Rule] = &[
    rule(
        ENV_FILE,
        Severity::Warning,
        Category::Secrets,
        [
            "Environment file with secrets",
            "Everyone who can read the repository gets these values, and they stay in the history.",
            "Commit a file of names without values, ignore this one, and change the values.",
        ],
    ),
    rule(
        CREDENTIAL,
        Severity::Critical,
        Category::Secrets,
        [
            "A tool's stored login is committed",
            "Everyone who can read the repository can log in with it.",
            "Revoke it, remove the file and ignore it; let CI write it from a secret.",
        ],
    ),
    rule(
        KEY_STORE,
        Severity::Warning,
        Category::Secrets,
        [
            "A key store is committed",
            "Private keys in the repository are protected by one password at best, for ever.",
            "Remove it, replace the keys, and provide it at build time.",
        ],
    ),
    rule(
        STATE,
        Severity::Warning,
        Category::Secrets,
        [
            "Terraform state is committed",
            "State holds passwords and keys in the clear, and two people's copies overwrite each other's infrastructure.",
            "Use a remote backend, remove the file and change what it holds.",
        ],
    ),
    rule(
        LARGE,
        Severity::Suggestion,
        Category::Quality,
        [
            "Large text file",
            "Every clone carries it for ever, even after it is deleted.",
            "Generate or download it at build time, or use large-file storage.",
        ],
    ),
    rule(
        LARGE_BIN,
        Severity::Warning,
        Category::Quality,
        [
            "Large binary file",
            "Every clone carries each of its versions for ever, even after it is deleted.",
            "Store it elsewhere or use large-file storage.",
        ],
    ),
    rule(
        JUNK,
        Severity::Warning,
        Category::Quality,
        [
            "Generated files are committed",
            "They go stale, hide real changes in reviews and differ between machines.",
            "Remove them and add the folder to `.gitignore`.",
        ],
    ),
];

/// What the rules about files need to know.
#[derive(Debug)]
pub(in crate::engine::builtin) struct FileFacts<'a> {
    /// Its path after the change.
    pub(in crate::engine::builtin) path: &'a RepoPath,
    /// What happened to it.
    pub(in crate::engine::builtin) status: ChangeStatus,
    /// True when git shows no text for it.
    pub(in crate::engine::builtin) binary: bool,
    /// Its size in bytes, where known.
    pub(in crate::engine::builtin) size: Option<u64>,
    /// True when it is the first of the diff under its [`junk_root`].
    pub(in crate::engine::builtin) first_of_junk: bool,
}

fn whole_file(rule: &str, title: Option<String>) -> Hit {
    Hit {
        rule: rule.to_owned(),
        line: 1,
        end_line: 1,
        columns: None,
        evidence: None,
        title,
    }
}

/// The folder (or file) that tools make and nobody writes, when `path` lies in one.
pub(in crate::engine::builtin) fn junk_root(path: &RepoPath) -> Option<&[u8]> {
    let bytes = path.as_bytes();
    let mut start = 0;
    for part in bytes.split(|b| *b == b'/') {
        let end = start + part.len();
        let is_folder = end < bytes.len();
        let made = if is_folder {
            matches!(
                part,
                b"node_modules"
                    | b"__pycache__"
                    | b".venv"
                    | b".pytest_cache"
                    | b".mypy_cache"
                    | b".tox"
                    | b".gradle"
                    | b".terraform"
            )
        } else {
            matches!(part, b".DS_Store" | b"Thumbs.db" | b"desktop.ini")
        };
        if made {
            return Some(&bytes[..end]);
        }
        start = end + 1;
    }
    None
}

/// Rules about the file itself: where it lies, its name and its size.
pub(super) fn check_file(facts: &FileFacts<'_>, report: &mut dyn FnMut(Hit)) {
    if !matches!(
        facts.status,
        ChangeStatus::Added | ChangeStatus::Copied | ChangeStatus::Renamed
    ) {
        return;
    }
    if facts.first_of_junk
        && let Some(root) = junk_root(facts.path)
        && !is_fixture_folder(root, facts.path)
    {
        let title = format!("`{}` is committed", String::from_utf8_lossy(root));
        report(whole_file(JUNK, (title.len() <= 120).then_some(title)));
    }
    if facts.status != ChangeStatus::Added {
        return;
    }
    if facts.binary && is_key_store(facts.path) && !is_fixture(facts.path) {
        report(whole_file(KEY_STORE, None));
    }
    let Some(size) = facts.size else {
        return;
    };
    let megabytes = size as f64 / (1024.0 * 1024.0);
    if facts.binary && size > LARGE_BINARY {
        report(whole_file(
            LARGE_BIN,
            Some(format!("Large binary file ({megabytes:.1} MB)")),
        ));
    } else if !facts.binary && size > LARGE_TEXT {
        report(whole_file(
            LARGE,
            Some(format!("Large text file ({megabytes:.1} MB)")),
        ));
    }
}

/// Tests of package managers and bundlers keep such folders on purpose.
fn is_fixture_folder(root: &[u8], path: &RepoPath) -> bool {
    RepoPath::new(root).map_or_else(|_| is_fixture(path), |root| is_fixture(&root))
}

fn is_key_store(path: &RepoPath) -> bool {
    let name = String::from_utf8_lossy(path.file_name()).to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
    // Android's debug key is the same everywhere by design; trust stores hold certificates only.
    matches!(
        extension,
        "p12" | "pfx" | "jks" | "keystore" | "kdbx" | "ppk"
    ) && name != "debug.keystore"
        && !name.contains("trust")
        && !name.contains("cacert")
}

/// Rules about well-known files that hold logins, from their added lines.
pub(super) fn check_text(file: &CheckedFile<'_>, report: &mut dyn FnMut(Hit)) {
    let name = file.path.file_name();
    if is_fixture(file.path) {
        return;
    }
    if is_env_file(name) {
        env_file(file, report);
    }
    if name.ends_with(b".tfstate")
        && file.status == ChangeStatus::Added
        && mentions(file, b"\"terraform_version\"")
    {
        report(whole_file(STATE, None));
    }
    if let Some(is_login) = login_line(file.path)
        && let Some(&(number, line)) = file
            .added
            .iter()
            .find(|(_, line)| line.len() < 20_000 && is_login(line))
    {
        report(line_hit(CREDENTIAL, number, line, None));
    }
}

fn mentions(file: &CheckedFile<'_>, needle: &[u8]) -> bool {
    file.added
        .iter()
        .any(|(_, line)| memchr::memmem::find(line, needle).is_some())
}

/// `.env` and its variants for an environment, but no template.
fn is_env_file(name: &[u8]) -> bool {
    match name.strip_prefix(b".env") {
        Some(b"") => true,
        Some(rest) => matches!(
            rest,
            b".local"
                | b".production"
                | b".prod"
                | b".staging"
                | b".development"
                | b".dev"
                | b".production.local"
                | b".development.local"
        ),
        None => false,
    }
}

/// One hit for the file, at its first value that must be secret.
fn env_file(file: &CheckedFile<'_>, report: &mut dyn FnMut(Hit)) {
    for &(number, line) in &file.added {
        let Some(at) = line.iter().position(|b| *b == b'=') else {
            continue;
        };
        let key = String::from_utf8_lossy(&line[..at])
            .trim()
            .trim_start_matches("export ")
            .to_ascii_uppercase();
        let secret_named = [
            "SECRET",
            "PASSWORD",
            "PASSWD",
            "TOKEN",
            "PRIVATE_KEY",
            "API_KEY",
            "APIKEY",
            "ACCESS_KEY",
            "CREDENTIAL",
        ]
        .iter()
        .any(|word| key.contains(word));
        // These prefixes put the value into the page that every visitor downloads.
        let public = ["PUBLIC", "VITE_", "REACT_APP_", "EXPO_"]
            .iter()
            .any(|word| key.contains(word));
        let value = line[at + 1..].trim_ascii();
        let value = value
            .strip_prefix(b"\"")
            .or_else(|| value.strip_prefix(b"'"))
            .unwrap_or(value);
        let value = value
            .strip_suffix(b"\"")
            .or_else(|| value.strip_suffix(b"'"))
            .unwrap_or(value);
        if key.starts_with('#') || !secret_named || public || !is_real_value(value) {
            continue;
        }
        report(line_hit(ENV_FILE, number, line, Some(0..at)));
        return;
    }
}

/// A value of some length with a digit among its letters that is no placeholder, word or reference.
fn is_real_value(value: &[u8]) -> bool {
    value.len() >= 12
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && !is_placeholder(value)
        && !value.starts_with(b"http")
        && !value.contains(&b'/')
}

/// How a stored login looks in a well-known file.
fn login_line(path: &RepoPath) -> Option<fn(&[u8]) -> bool> {
    let parent = path.parent();
    let parent_name = parent.rsplit(|b| *b == b'/').next().unwrap_or_default();
    match (parent_name, path.file_name()) {
        (_, b".npmrc" | b".yarnrc") => Some(|line| {
            ["_authToken", "_auth", "_password"]
                .iter()
                .any(|key| value_after(line, key, b"=").is_some_and(is_real_token))
        }),
        (_, b".yarnrc.yml") => {
            Some(|line| value_after(line, "npmAuthToken", b":").is_some_and(is_real_token))
        }
        (_, b".pypirc") => {
            Some(|line| value_after(line, "password", b"=:").is_some_and(is_real_token))
        }
        (_, b".netrc" | b"_netrc") => {
            Some(|line| value_after(line, "password", b" \t").is_some_and(is_real_token))
        }
        (_, b".git-credentials") => Some(|line| {
            line.starts_with(b"https://")
                && line.contains(&b'@')
                && memchr::memchr_iter(b':', line).count() >= 2
        }),
        (b".docker", b"config.json") | (_, b".dockerconfigjson" | b".dockercfg") => Some(|line| {
            quoted_after(line, b"\"auth\"")
                .is_some_and(|v| STANDARD.decode(v).is_ok_and(|raw| raw.contains(&b':')))
        }),
        (b".kube", b"config") | (_, b"kubeconfig" | b"kubeconfig.yaml" | b"kubeconfig.yml") => {
            Some(|line| {
                value_after(line, "client-key-data", b":").is_some_and(|v| {
                    STANDARD
                        .decode(v)
                        .is_ok_and(|raw| raw.starts_with(b"-----BEGIN"))
                })
            })
        }
        (b".cargo", b"credentials" | b"credentials.toml") => {
            Some(|line| value_after(line, "token", b"=").is_some_and(is_real_token))
        }
        (b".gem", b"credentials") => {
            Some(|line| value_after(line, ":rubygems_api_key", b":").is_some_and(is_real_token))
        }
        _ => None,
    }
}

/// The value behind `key` and one of `signs`, without quotes; `None` in a comment.
fn value_after<'a>(line: &'a [u8], key: &str, signs: &[u8]) -> Option<&'a [u8]> {
    let trimmed = line.trim_ascii();
    if trimmed.starts_with(b"#") || trimmed.starts_with(b";") {
        return None;
    }
    let at = memchr::memmem::find(trimmed, key.as_bytes())? + key.len();
    let rest = trimmed[at..].trim_ascii_start();
    let rest = if signs.contains(&b' ') {
        rest
    } else {
        rest.strip_prefix(signs.get(..1)?)
            .or_else(|| rest.strip_prefix(signs.get(1..)?))?
    };
    let rest = rest.trim_ascii();
    let rest = rest
        .strip_prefix(b"\"")
        .or_else(|| rest.strip_prefix(b"'"))
        .unwrap_or(rest);
    let end = rest
        .iter()
        .position(|b| matches!(b, b'"' | b'\'' | b' ' | b'\t'))
        .unwrap_or(rest.len());
    Some(&rest[..end])
}

fn quoted_after<'a>(line: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(line, key)? + key.len();
    let open = at + line[at..].iter().position(|b| *b == b'"')? + 1;
    let len = line[open..].iter().position(|b| *b == b'"')?;
    Some(&line[open..open + len])
}

fn is_real_token(value: &[u8]) -> bool {
    value.len() >= 12 && !is_placeholder(value) && value.iter().any(u8::is_ascii_digit)
}

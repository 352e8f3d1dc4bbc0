//! Paths as models write and read them, and which of them are never served.

use std::sync::Arc;

use super::arguments::echo;
use crate::diff::glob::Glob;
use crate::model::RepoPath;

/// Bytes that a path may have.
pub(super) const LONGEST: usize = 4096;

/// Says of a path whether its content is held back.
pub type HeldBack = dyn Fn(&RepoPath) -> bool + Send + Sync;

/// Files whose content is never served, whoever asks.
#[derive(Clone, Default)]
pub struct Withheld {
    /// What the configuration says (`send.never`).
    pub never: Vec<Glob>,
    /// What else is held back: untracked credential files of one's own work.
    pub also: Option<Arc<HeldBack>>,
}

impl Withheld {
    /// True when the content of `path` is not served.
    pub(super) fn holds(&self, path: &RepoPath) -> bool {
        self.never.iter().any(|glob| glob.matches(path.as_bytes()))
            || self.also.as_ref().is_some_and(|also| also(path))
    }
}

/// A path for the model: as it is where it is one clean line of text, else percent-escaped.
pub(super) fn shown(path: &RepoPath) -> String {
    match path.as_str() {
        Some(text) if !text.chars().any(breaks_the_line) => text.to_owned(),
        _ => path.percent_escaped(),
    }
}

/// Controls and what reorders or breaks a line.
fn breaks_the_line(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What a model may mean by a path.
pub(super) struct Meant {
    /// The path as it is written.
    pub(super) path: RepoPath,
    /// The path whose escaped form this is, if there is one.
    pub(super) unescaped: Option<RepoPath>,
}

/// Reads a path. Whoever looks it up decides between a name that looks escaped and one that is.
pub(super) fn parse(text: &str) -> Result<Meant, String> {
    let bare = text.strip_prefix("./").unwrap_or(text);
    if bare.len() > LONGEST {
        return Err(format!("path: send at most {LONGEST} bytes"));
    }
    let windows = bare.contains('\\') || bare.as_bytes().get(1) == Some(&b':');
    let path = RepoPath::new(bare).map_err(|problem| {
        let hint = "send a path relative to the repository's root, like src/main.rs";
        format!("{} is refused ({problem}): {hint}", echo(text))
    });
    let path = match path {
        Ok(path) => path,
        Err(words) if windows => return Err(format!("{words} (with / between folders)")),
        Err(words) => return Err(words),
    };
    let unescaped = unescape(bare)
        .and_then(|bytes| RepoPath::new(bytes).ok())
        // Only what would be shown like this is meant by it: `%2e%2e` names nothing but itself.
        .filter(|other| *other != path && shown(other) == bare);
    Ok(Meant { path, unescaped })
}

/// Undoes the percent-escaping; `None` where there is nothing to undo.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    let mut found = false;
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        out.push(u8::try_from(high * 16 + low).ok()?);
        found = true;
    }
    found.then_some(out)
}

/// `n thing` or `n things`.
pub(super) fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Result<String, String> {
        parse(text).map(|meant| meant.path.to_lossy())
    }

    #[test]
    fn nothing_leaves_the_repository() {
        for bad in [
            "",
            "/",
            ".",
            "./",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "a/./b",
            "a//b",
            "a/",
            "/etc/passwd",
            "a\0b",
            ".git",
            ".git/config",
            "a/.GIT/hooks",
            "./../a",
            "././a",
        ] {
            let words = literal(bad).expect_err(bad);
            assert!(
                words.contains("relative to the repository's root"),
                "{words}"
            );
        }
        assert!(
            literal(&"a/".repeat(9_000))
                .unwrap_err()
                .contains("at most 4096")
        );
    }

    #[test]
    fn what_only_looks_dangerous_names_itself() {
        for odd in [
            "%2e%2e/etc",
            "..%2fetc",
            "C:\\x",
            "a\\..\\b",
            "~/x",
            "$HOME",
            "..a",
            "file:x",
        ] {
            let meant = parse(odd).unwrap();
            assert_eq!(meant.path.to_lossy(), odd);
            assert!(meant.unescaped.is_none(), "{odd}");
        }
        assert_eq!(literal("./a/b"), Ok("a/b".into()));
        let words = literal("..\\/..\\a/../b").unwrap_err();
        assert!(words.contains("with / between"), "{words}");
    }

    #[test]
    fn odd_names_are_shown_and_understood_escaped() {
        for name in [
            &b"a\xff%b"[..],
            b"a\nb",
            b"x\x1b[1m",
            "a\u{202e}b".as_bytes(),
        ] {
            let path = RepoPath::new(name).unwrap();
            let text = shown(&path);
            assert!(!text.contains(['\n', '\x1b', '\u{202e}']), "{text}");
            assert_eq!(parse(&text).unwrap().unescaped, Some(path));
        }
        let plain = RepoPath::new("é%0A").unwrap();
        assert_eq!(shown(&plain), "é%0A");
    }

    #[test]
    fn held_back_by_glob_or_by_predicate() {
        let withheld = Withheld {
            never: vec![Glob::new("secret/**").unwrap()],
            also: Some(Arc::new(|path| path.file_name() == b".env")),
        };
        let holds = |path: &str| withheld.holds(&RepoPath::new(path).unwrap());
        assert!(holds("secret/a") && holds("x/.env") && !holds("src/a"));
        assert!(!Withheld::default().holds(&RepoPath::new("a").unwrap()));
    }
}

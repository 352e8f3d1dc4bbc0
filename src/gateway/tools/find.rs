//! `glob` and `list`: which files there are.

use globset::GlobBuilder;
use regex::bytes::{Regex, RegexBuilder};

use super::arguments::{Arguments, echo};
use super::page::{Page, Pushed};
use super::path::{LONGEST, counted, shown};
use super::session::{Outcome, Shared};
use super::specs::MAX_PATTERN;
use crate::tree::{EntryKind, TreeEntry};

/// What a compiled pattern may take in memory.
const MATCHER_SIZE: usize = 1 << 20;

/// A pattern of the tools: `*`, `**`, `?`, `[ab]`, `{a,b}`; without `/` it is for the file's name alone. These are
/// the words that models know; the configuration has a dialect of its own. Matching is linear.
pub(super) fn matcher(pattern: &str) -> Result<Regex, String> {
    let bare = pattern.strip_prefix("./").unwrap_or(pattern);
    let bare = bare.strip_prefix('/').unwrap_or(bare);
    let anywhere = if bare.contains('/') || bare == "**" {
        bare.to_owned()
    } else {
        format!("**/{bare}")
    };
    let refused = |problem: &str| format!("pattern {} is refused: {problem}", echo(pattern));
    if bare.trim().is_empty() {
        return Err(refused("it is empty"));
    }
    let glob = GlobBuilder::new(&anywhere)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| refused(&error.kind().to_string()))?;
    RegexBuilder::new(glob.regex())
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(MATCHER_SIZE)
        .build()
        .map_err(|_| refused("it is too complex"))
}

/// An entry as a line: folders end in `/`, what is no file says so.
fn line(shared: &Shared, entry: &TreeEntry) -> String {
    let mut text = shown(&entry.path);
    match entry.kind {
        EntryKind::Folder => text.push('/'),
        EntryKind::Symlink => text.push_str(" (link)"),
        EntryKind::Submodule => text.push_str(" (submodule)"),
        EntryKind::File | EntryKind::Executable => {}
    }
    if entry.kind != EntryKind::Folder && shared.settings.withheld.holds(&entry.path) {
        text.push_str(" (held back)");
    }
    text
}

/// As many lines as fit.
fn page_of<'a>(
    shared: &Shared,
    entries: impl Iterator<Item = &'a TreeEntry>,
    none: &str,
) -> String {
    let mut page = Page::default();
    let mut more = 0;
    for entry in entries {
        if more > 0 || page.push("", &line(shared, entry)) != Pushed::Whole {
            more += 1;
        }
    }
    if more > 0 {
        page.say(&format!(
            "[{} more: narrow it with glob]",
            counted(more, "path")
        ));
    } else if page.is_empty() {
        page.say(none);
    }
    page.finish()
}

/// Serves `glob`.
pub(super) fn glob(shared: &Shared, arguments: &mut Arguments) -> Outcome {
    let matcher = matcher(&arguments.words("pattern", MAX_PATTERN)?)?;
    let files = shared.tree()?.files().map_err(|error| error.to_string())?;
    let found = files
        .iter()
        .filter(|entry| matcher.is_match(entry.path.as_bytes()));
    Ok(page_of(shared, found, "[no file matches]"))
}

/// Serves `list`.
pub(super) fn list(shared: &Shared, arguments: &mut Arguments) -> Outcome {
    let text = arguments.text("path", LONGEST)?;
    let bare = text.trim_end_matches('/');
    let folder = match bare {
        "" | "." => None,
        _ => Some(shared.path(bare)?),
    };
    let tree = shared.tree()?;
    if let Some(folder) = &folder {
        match tree.kind(folder).map_err(|error| error.to_string())? {
            Some(EntryKind::Folder) => {}
            Some(_) => return Err("that is no folder: use read".to_owned()),
            None => return Err("no such folder".to_owned()),
        }
    }
    let entries = tree
        .list(folder.as_ref())
        .map_err(|error| error.to_string())?;
    Ok(page_of(shared, entries.iter(), "[no files]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_models_mean() {
        for (pattern, path, expected) in [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("*.{rs,toml}", "x/Cargo.toml", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("./src/**", "src/a/b", true),
            ("/src/**", "src/a/b", true),
            ("**", "a/b", true),
            ("a?c", "abc", true),
            ("[ab].rs", "b.rs", true),
            ("src/main.rs", "src/main.rs", true),
            ("src/main.rs", "x/src/main.rs", false),
            ("\u{e9}*", "\u{e9}t", true),
        ] {
            let matches = matcher(pattern).unwrap().is_match(path.as_bytes());
            assert_eq!(matches, expected, "{pattern} {path}");
        }
        assert!(matcher("x/**").unwrap().is_match(b"x/\xff\n"));
    }

    #[test]
    fn bad_patterns_are_refused_in_words() {
        for bad in [
            "",
            "/",
            "[",
            "{a",
            "a{b,{c,d}",
            &"{".repeat(900),
            &"[a-z]{a,b}".repeat(90).replace('a', "{*,?}"),
        ] {
            match matcher(bad) {
                Err(words) => assert!(words.len() < 300 && words.contains("refused"), "{words}"),
                Ok(_) => assert!(bad.len() > 100, "{bad}"),
            }
        }
    }
}

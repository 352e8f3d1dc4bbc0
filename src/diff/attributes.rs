//! `.gitattributes`, as far as the noise filter needs them: `linguist-generated` and `diff`.

use std::collections::HashMap;
use std::rc::Rc;

use regex::bytes::Regex;

use super::glob::{push_literal, whole_match};
use super::name::unquote;
use crate::model::RepoPath;
use crate::tree::{EntryKind, Tree};

/// Larger attribute files are ignored.
const LONGEST_FILE: u64 = 1 << 20;
/// git ignores longer lines, too.
const LONGEST_LINE: usize = 2048;

/// What a path's attributes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PathAttributes {
    /// `linguist-generated`: set, unset (or `false`), or not mentioned.
    pub(super) generated: Option<bool>,
    /// `-diff`, also through `binary`.
    pub(super) no_diff: bool,
}

/// The state an attribute is given on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Set,
    Unset,
    /// `!name`: as if nobody had mentioned it.
    Unspecified,
    Value(Box<[u8]>),
}

type Assignment = (Rc<[u8]>, State);

struct Rule {
    /// Matches the last component only.
    base_name: bool,
    matcher: Regex,
    assignments: Vec<Assignment>,
}

/// Looks attributes up in one tree; every file is read and compiled once.
pub(super) struct Attributes<'a> {
    tree: &'a dyn Tree,
    macros: HashMap<Rc<[u8]>, Vec<Assignment>>,
    folders: HashMap<Vec<u8>, Rc<[Rule]>>,
}

impl<'a> Attributes<'a> {
    pub(super) fn new(tree: &'a dyn Tree) -> Self {
        let binary = [&b"diff"[..], b"merge", b"text"].map(|name| (Rc::from(name), State::Unset));
        let mut attributes = Self {
            tree,
            macros: HashMap::from([(Rc::from(&b"binary"[..]), binary.to_vec())]),
            folders: HashMap::new(),
        };
        // Macros may be defined at the root only.
        if let Some(text) = attributes.read(b"") {
            for line in lines(&text) {
                let Some(rest) = line.strip_prefix(b"[attr]") else {
                    continue;
                };
                let mut words = words(rest);
                if let Some(name) = words.next() {
                    let assignments = words.filter_map(assignment).collect();
                    attributes.macros.insert(Rc::from(name), assignments);
                }
            }
        }
        attributes
    }

    fn read(&self, folder: &[u8]) -> Option<std::sync::Arc<[u8]>> {
        let mut name = folder.to_vec();
        if !folder.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(b".gitattributes");
        let path = RepoPath::new(name).ok()?;
        // What cannot be read hides nothing. git does not follow a link here either.
        let text = self.tree.read(&path, LONGEST_FILE).ok()??;
        match self.tree.kind(&path) {
            Ok(Some(EntryKind::File | EntryKind::Executable)) => Some(text),
            _ => None,
        }
    }

    fn rules(&mut self, folder: &[u8]) -> Rc<[Rule]> {
        if let Some(rules) = self.folders.get(folder) {
            return Rc::clone(rules);
        }
        let text = self.read(folder);
        let rules: Rc<[Rule]> = text
            .iter()
            .flat_map(|text| lines(text))
            .filter_map(|line| self.rule(line))
            .collect();
        self.folders.insert(folder.to_vec(), Rc::clone(&rules));
        rules
    }

    /// Compiles a line, unless it says nothing about the attributes that count here.
    fn rule(&self, line: &[u8]) -> Option<Rule> {
        if line.starts_with(b"[attr]") {
            return None;
        }
        let quoted;
        let (pattern, rest) = if line.starts_with(b"\"") {
            let (pattern, rest) = unquote(line)?;
            quoted = pattern;
            (&quoted[..], rest)
        } else {
            let end = line.iter().position(u8::is_ascii_whitespace)?;
            line.split_at(end)
        };
        let assignments: Vec<Assignment> = words(rest)
            .filter_map(assignment)
            .filter(|(name, _)| {
                matches!(&**name, b"linguist-generated" | b"diff") || self.macros.contains_key(name)
            })
            .collect();
        if assignments.is_empty() {
            return None;
        }
        // Negative patterns are forbidden, and one with a trailing slash is for folders only.
        if pattern.is_empty() || pattern.starts_with(b"!") || pattern.ends_with(b"/") {
            return None;
        }
        let base_name = !pattern.contains(&b'/');
        let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
        Some(Rule {
            base_name,
            matcher: whole_match(&translate(pattern)?)?,
            assignments,
        })
    }

    /// The attributes of a path: nearer folders and later lines win, as in git.
    pub(super) fn of(&mut self, path: &RepoPath) -> PathAttributes {
        let mut states: HashMap<Rc<[u8]>, State> = HashMap::new();
        let mut folder = path.parent();
        loop {
            let skip = if folder.is_empty() {
                0
            } else {
                folder.len() + 1
            };
            let relative = &path.as_bytes()[skip..];
            let rules = self.rules(folder);
            for rule in rules.iter().rev() {
                let subject = if rule.base_name {
                    path.file_name()
                } else {
                    relative
                };
                if rule.matcher.is_match(subject) {
                    self.fill(&mut states, &rule.assignments, 0);
                }
            }
            if folder.is_empty() {
                break;
            }
            let end = folder.iter().rposition(|b| *b == b'/').unwrap_or(0);
            folder = &folder[..end];
        }
        let state = |name: &[u8]| states.get(name);
        PathAttributes {
            generated: match state(b"linguist-generated") {
                Some(State::Set) => Some(true),
                Some(State::Unset) => Some(false),
                Some(State::Value(value)) => match &**value {
                    b"true" => Some(true),
                    b"false" => Some(false),
                    _ => None,
                },
                Some(State::Unspecified) | None => None,
            },
            no_diff: state(b"diff") == Some(&State::Unset),
        }
    }

    /// Takes what a line says about attributes that no stronger line mentions; a macro that is
    /// set brings its own with it.
    fn fill(&self, states: &mut HashMap<Rc<[u8]>, State>, from: &[Assignment], depth: usize) {
        for (name, state) in from.iter().rev() {
            if states.contains_key(name) {
                continue;
            }
            states.insert(Rc::clone(name), state.clone());
            if *state == State::Set
                && depth < 8
                && let Some(inner) = self.macros.get(name)
            {
                self.fill(states, inner, depth + 1);
            }
        }
    }
}

/// The lines that say something: no comments, no leading blanks, none that git would ignore for its length.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|b| *b == b'\n')
        .filter(|line| line.len() <= LONGEST_LINE)
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

fn assignment(word: &[u8]) -> Option<Assignment> {
    let (name, state) = match word {
        [b'-', name @ ..] => (name, State::Unset),
        [b'!', name @ ..] => (name, State::Unspecified),
        _ => match memchr::memchr(b'=', word) {
            Some(at) => (&word[..at], State::Value(word[at + 1..].into())),
            None => (word, State::Set),
        },
    };
    (!name.is_empty()).then(|| (Rc::from(name), state))
}

/// git's wildmatch (with path separators) as a regex; `None` when it can match nothing.
fn translate(pattern: &[u8]) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut at = 0;
    while let Some(&b) = pattern.get(at) {
        match b {
            b'?' => out.push_str("[^/]"),
            b'\\' => {
                at += 1;
                push_literal(&mut out, *pattern.get(at)?);
            }
            b'[' => {
                let (set, next) = class(pattern, at + 1)?;
                push_set(&mut out, &set)?;
                at = next;
                continue;
            }
            b'*' => {
                let stars = pattern[at..].iter().take_while(|b| **b == b'*').count();
                let whole_component = stars >= 2 && (at == 0 || pattern[at - 1] == b'/');
                match pattern.get(at + stars) {
                    Some(b'/') if whole_component => {
                        out.push_str("(?:.*/)?");
                        at += 1;
                    }
                    None if whole_component => out.push_str(".*"),
                    _ => out.push_str("[^/]*"),
                }
                at += stars;
                continue;
            }
            b => push_literal(&mut out, b),
        }
        at += 1;
    }
    Some(out)
}

/// Reads a bracket expression that starts behind its `[`; gives the bytes it matches and the offset behind `]`.
fn class(pattern: &[u8], mut at: usize) -> Option<([bool; 256], usize)> {
    let negated = matches!(pattern.get(at)?, b'!' | b'^');
    at += usize::from(negated);
    let mut set = [false; 256];
    let first = at;
    loop {
        let mut low = *pattern.get(at)?;
        if low == b']' && at > first {
            break;
        }
        if low == b'[' && pattern.get(at + 1) == Some(&b':') {
            let end = at + 2 + memchr::memmem::find(&pattern[at + 2..], b":]")?;
            let member = posix(&pattern[at + 2..end])?;
            for b in 0..=u8::MAX {
                set[usize::from(b)] |= member(&b);
            }
            at = end + 2;
            continue;
        }
        if low == b'\\' {
            at += 1;
            low = *pattern.get(at)?;
        }
        at += 1;
        let mut high = low;
        if pattern.get(at) == Some(&b'-') && pattern.get(at + 1).is_some_and(|b| *b != b']') {
            at += 1;
            if pattern[at] == b'\\' {
                at += 1;
            }
            high = *pattern.get(at)?;
            at += 1;
        }
        for b in low..=high {
            set[usize::from(b)] = true;
        }
    }
    if negated {
        set = set.map(|member| !member);
    }
    set[usize::from(b'/')] = false;
    Some((set, at + 1))
}

fn posix(name: &[u8]) -> Option<fn(&u8) -> bool> {
    Some(match name {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |b| matches!(b, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |b| matches!(b, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |b| matches!(b, b' ' | 9..=13),
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    })
}

fn push_set(out: &mut String, set: &[bool; 256]) -> Option<()> {
    let mut any = false;
    out.push('[');
    for b in 0..=u8::MAX {
        if set[usize::from(b)] {
            any = true;
            push_literal(out, b);
        }
    }
    out.push(']');
    any.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::MemoryTree;

    fn tree(files: &[(&str, &str)]) -> MemoryTree {
        let mut tree = MemoryTree::new();
        for (path, text) in files {
            tree.insert(RepoPath::new(path).unwrap(), text.as_bytes());
        }
        tree
    }

    fn generated(text: &str, path: &str) -> Option<bool> {
        let tree = tree(&[(".gitattributes", text)]);
        let mut attributes = Attributes::new(&tree);
        attributes.of(&RepoPath::new(path).unwrap()).generated
    }

    #[test]
    fn patterns() {
        for (pattern, path, expected) in [
            ("*.pb.go", "a/b/x.pb.go", true),
            ("/*.go", "a/x.go", false),
            ("/*.go", "x.go", true),
            ("gen/*", "gen/x", true),
            ("gen/*", "gen/a/x", false),
            ("gen/**", "gen/a/x", true),
            ("gen/**", "x/gen/a", false),
            ("**/gen/*.ts", "gen/a.ts", true),
            ("**/gen/*.ts", "x/y/gen/a.ts", true),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("***/b", "b", true),
            ("a**b/c", "axb/c", true),
            ("a**b/c", "ax/b/c", false),
            ("gen/", "gen/x", false),
            ("gen", "gen/x", false),
            ("[a-c]?[!x-z]", "bqa", true),
            ("[a-c]?[!x-z]", "bqy", false),
            ("[[:digit:]]", "7", true),
            ("[]x]", "]", true),
            ("[abc", "a", false),
            (r"\*", "*", true),
            (r"\*", "x", false),
            ("\"a b\\t\"", "a b\t", true),
            ("!x", "x", false),
            ("a.c", "abc", false),
        ] {
            let found = generated(&format!("{pattern} linguist-generated\n"), path);
            assert_eq!(found.is_some(), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn states_and_order() {
        assert_eq!(generated("* linguist-generated=true", "x"), Some(true));
        assert_eq!(generated("* linguist-generated=false", "x"), Some(false));
        assert_eq!(generated("* -linguist-generated", "x"), Some(false));
        assert_eq!(generated("* linguist-generated=maybe", "x"), None);
        assert_eq!(
            generated("* linguist-generated\nx !linguist-generated\n", "x"),
            None
        );
        assert_eq!(
            generated("x -linguist-generated\n* linguist-generated\n", "x"),
            Some(true)
        );
        assert_eq!(generated("# * linguist-generated\n", "x"), None);
        assert_eq!(
            generated(
                "[attr]gen linguist-generated -diff\n*.x gen\ny.x -gen\n",
                "a.x"
            ),
            Some(true)
        );
        assert_eq!(
            generated(
                "[attr]gen linguist-generated -diff\n*.x gen\ny.x -gen\n",
                "y.x"
            ),
            None
        );
    }

    #[test]
    fn nearer_files_win_and_links_do_not_count() {
        let mut tree = tree(&[
            (".gitattributes", "* linguist-generated\n*.bin binary\n"),
            ("a/.gitattributes", "/x -linguist-generated\nz.bin diff\n"),
        ]);
        let link = RepoPath::new("b/.gitattributes").unwrap();
        tree.insert_as(link, EntryKind::Symlink, &b"* -linguist-generated\n"[..]);
        let mut attributes = Attributes::new(&tree);
        let mut of = |path: &str| attributes.of(&RepoPath::new(path).unwrap());
        assert_eq!(of("a/x").generated, Some(false));
        assert_eq!(of("a/b/x").generated, Some(true));
        assert_eq!(of("b/x").generated, Some(true));
        assert!(of("a/y.bin").no_diff && !of("a/z.bin").no_diff);
    }
}

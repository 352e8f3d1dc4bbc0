//! One changed file: what of it the rules see, and what they find.
//!
//! @ref LLP 0005#what-could-not-be-examined — a file that was not looked at is named

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::checks::{self, FileFacts, LARGE_BINARY};
use super::{CheckSettings, CheckedFile, Content, Hit, structural};
use crate::diff::{Diff, FileDiff, FileMode, hidden_text};
use crate::model::{ChangeStatus, RepoPath};
use crate::tree::{Tree, TreeError};

/// The most bytes read of a file for rules that need all of it.
const MAX_CONTENT: u64 = 8 * 1024 * 1024;
/// Findings of one rule in one file; a file with more is machine-made or hostile.
const MAX_HITS: usize = 100;

/// What became of a file.
#[derive(Debug, Default)]
pub(super) struct Examined {
    /// By line, then rule.
    pub(super) hits: Vec<Hit>,
    /// What could not be examined, and why.
    pub(super) gaps: Vec<String>,
}

/// Runs every rule on a file of the diff.
pub(super) fn examine(
    diff: &Diff,
    file: &FileDiff,
    tree: Option<&dyn Tree>,
    first_of_junk: bool,
    settings: &CheckSettings,
) -> Examined {
    let mut examined = Examined::default();
    if file.status == ChangeStatus::Deleted || file.new_mode == FileMode::SUBMODULE {
        return examined;
    }
    let mut kept = Kept {
        lines: BTreeMap::new(),
        hits: Vec::new(),
        settings,
    };
    let gaps = RefCell::new(Vec::new());
    let read = |limit| tree.and_then(|tree| whole_content(tree, file, limit, &gaps));
    let whole = file
        .binary
        .then(|| read(LARGE_BINARY.min(MAX_CONTENT)))
        .flatten();
    let hidden = whole.as_deref().and_then(hidden_text);
    let added = if file.binary {
        numbered(hidden.as_deref().unwrap_or_default())
    } else {
        added_lines(diff, file)
    };
    let stripped = without_nuls(&added);
    let added = match &stripped {
        Some(lines) => lines.iter().map(|(n, line)| (*n, &line[..])).collect(),
        None => added,
    };
    let size = match (&whole, file.binary) {
        (Some(content), true) => Some(content.len() as u64),
        (None, true) => tree.and_then(|tree| size_of(tree, &file.path)),
        _ => Some(added.iter().map(|(_, line)| line.len() as u64 + 1).sum()),
    };
    let facts = FileFacts {
        path: &file.path,
        status: file.status,
        binary: file.binary,
        size,
        first_of_junk,
    };
    checks::check_file(&facts, &mut |hit| kept.take(hit));
    // A symbolic link has a target, not a text.
    if !added.is_empty() && file.new_mode != FileMode::SYMLINK {
        let wanted = wants_content(&file.path, settings);
        let content = match hidden.as_deref().or(whole.as_deref()) {
            Some(known) => Content::known(known),
            // A new file's added lines are all of it.
            None if wanted && !file.binary && file.status == ChangeStatus::Added => {
                let lines = added.clone();
                Content::lazy(move || Some(Box::new(join(&lines)) as _))
            }
            None if wanted && !file.binary => {
                Content::lazy(|| read(MAX_CONTENT).map(|content| Box::new(content) as _))
            }
            None => Content::unknown(),
        };
        let checked = CheckedFile {
            path: &file.path,
            status: file.status,
            mode: file.new_mode,
            content,
            added,
        };
        let reasons = check_text(&checked, &mut kept);
        gaps.borrow_mut().extend(reasons);
    }
    examined.gaps = gaps.into_inner();
    for (rule, lines) in &kept.lines {
        if lines.len() > MAX_HITS {
            examined.gaps.push(format!(
                "{} more findings of {rule} are not listed",
                lines.len() - MAX_HITS
            ));
        }
    }
    kept.hits
        .sort_by(|a, b| (a.line, &a.rule, a.end_line).cmp(&(b.line, &b.rule, b.end_line)));
    examined.hits = kept.hits;
    examined
}

/// Takes hits of rules that are switched on, up to the cap.
struct Kept<'s> {
    /// The lines a rule has hit. A text rule and a structural one may share an id and see the same fault.
    lines: BTreeMap<String, BTreeSet<u32>>,
    hits: Vec<Hit>,
    settings: &'s CheckSettings,
}

impl Kept<'_> {
    fn take(&mut self, hit: Hit) {
        if self.settings.text_of(&hit.rule).is_none() {
            return;
        }
        let lines = self.lines.entry(hit.rule.clone()).or_default();
        if lines.insert(hit.line) && lines.len() <= MAX_HITS {
            self.hits.push(hit);
        }
    }
}

/// Gives what could not be examined.
fn check_text(file: &CheckedFile<'_>, kept: &mut Kept<'_>) -> Vec<String> {
    let mut gaps = Vec::new();
    checks::check_text(file, &mut |hit| kept.take(hit));
    if kept.settings.any_structural()
        && let Err(error) = structural::check(file, &mut |hit| kept.take(hit))
    {
        gaps.push(format!("not parsed: {error}"));
    }
    if let Some(repository) = kept.settings.repository.clone()
        && let Err(error) = repository.check(file, &mut |hit| kept.take(hit))
    {
        gaps.push(error);
    }
    gaps
}

fn join(added: &[(u32, &[u8])]) -> Vec<u8> {
    let mut content = Vec::with_capacity(added.iter().map(|(_, line)| line.len() + 1).sum());
    for (_, line) in added {
        content.extend_from_slice(line);
        content.push(b'\n');
    }
    content
}

/// The added lines as the patch has them. The parser has checked the hunks against their counts.
fn added_lines<'d>(diff: &'d Diff, file: &FileDiff) -> Vec<(u32, &'d [u8])> {
    let mut added = Vec::with_capacity(file.added as usize);
    for hunk in &file.hunks {
        let body = diff.patch.get(hunk.body.clone()).unwrap_or_default();
        let mut number = hunk.new_start;
        for line in body
            .strip_suffix(b"\n")
            .unwrap_or(body)
            .split(|b| *b == b'\n')
        {
            match line.first() {
                Some(b'+') => added.push((number, &line[1..])),
                Some(b'-' | b'\\') => continue,
                _ => {}
            }
            number = number.saturating_add(1);
        }
    }
    added
}

/// The lines without their NULs, where there are any: shells pass over them, and so must the rules.
fn without_nuls(lines: &[(u32, &[u8])]) -> Option<Vec<(u32, Vec<u8>)>> {
    let has_nul = |(_, line): &(u32, &[u8])| memchr::memchr(0, line).is_some();
    let strip = |line: &[u8]| line.iter().copied().filter(|b| *b != 0).collect();
    lines
        .iter()
        .any(has_nul)
        .then(|| lines.iter().map(|(n, line)| (*n, strip(line))).collect())
}

/// The lines of the text in a file that git shows as binary.
fn numbered(text: &[u8]) -> Vec<(u32, &[u8])> {
    if text.is_empty() {
        return Vec::new();
    }
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    (1..).zip(body.split(|b| *b == b'\n')).collect()
}

/// The whole new content from the tree; why it cannot be read goes to `gaps`.
fn whole_content(
    tree: &dyn Tree,
    file: &FileDiff,
    limit: u64,
    gaps: &RefCell<Vec<String>>,
) -> Option<Arc<[u8]>> {
    match tree.read(&file.path, limit) {
        Ok(content) => content,
        Err(TreeError::TooLarge { .. }) if file.binary => None,
        Err(error) => {
            gaps.borrow_mut().push(error.to_string());
            None
        }
    }
}

/// The size of a file without reading it: a tree tells it when asked for no byte at all.
fn size_of(tree: &dyn Tree, path: &RepoPath) -> Option<u64> {
    match tree.read(path, 0) {
        Err(TreeError::TooLarge { size, .. }) => Some(size),
        Ok(Some(content)) => Some(content.len() as u64),
        Ok(None) | Err(_) => None,
    }
}

/// True when some rule looks beyond the added lines of such a file: a workflow, a language that is parsed, a script without extension.
fn wants_content(path: &RepoPath, settings: &CheckSettings) -> bool {
    const PARSED: &[&[u8]] = &[
        b"sh", b"bash", b"go", b"java", b"js", b"cjs", b"mjs", b"jsx", b"py", b"pyi", b"rs",
        b"tsx", b"ts", b"cts", b"mts",
    ];
    let repository = settings.repository.is_some();
    let parsed = path.extension().is_none_or(|e| PARSED.contains(&e));
    checks::wants_content(path)
        || (parsed && (repository || settings.any_structural()))
        || (repository && matches!(path.extension(), Some(b"yml" | b"yaml")))
}

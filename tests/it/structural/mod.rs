//! The structural rules: what they find, and the look-alikes that they must leave alone.

mod bash;
mod go;
mod java;
mod javascript;
mod limits;
mod python;
mod repository;
mod rust;

use ecr::diff::FileMode;
use ecr::engine::builtin::structural::{Unparsed, check};
use ecr::engine::builtin::{CheckedFile, Content, Hit};
use ecr::model::{ChangeStatus, RepoPath};

/// A file as rules see it, with the lines in `added` (1-based; all when `None`) added.
pub(crate) fn with_file<T>(
    path: &str,
    source: &[u8],
    added: Option<&[u32]>,
    look: impl FnOnce(&CheckedFile<'_>) -> T,
) -> T {
    let path = RepoPath::new(path).unwrap();
    let mut lines: Vec<&[u8]> = source.split(|b| *b == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let added: Vec<(u32, &[u8])> = (1..)
        .zip(lines)
        .filter(|(number, _)| added.is_none_or(|added| added.contains(number)))
        .collect();
    let file = CheckedFile {
        path: &path,
        status: ChangeStatus::Added,
        mode: FileMode(0o100_644),
        content: Content::known(source),
        added,
    };
    look(&file)
}

/// Checks a wholly new file.
pub(crate) fn check_new(path: &str, source: &[u8]) -> (Vec<Hit>, Result<(), Unparsed>) {
    with_file(path, source, None, |file| {
        let mut hits = Vec::new();
        let outcome = check(file, &mut |hit| hits.push(hit));
        (hits, outcome)
    })
}

fn rules_in(path: &str, source: &str) -> Vec<String> {
    let (hits, outcome) = check_new(path, source.as_bytes());
    assert_eq!(outcome, Ok(()), "{source}");
    hits.into_iter().map(|hit| hit.rule).collect()
}

/// Every one of `positives` gives `rule` exactly once and nothing else; none of `look_alikes` gives anything at all.
pub(crate) fn table(path: &str, rule: &str, positives: &[&str], look_alikes: &[&str]) {
    for source in positives {
        assert_eq!(
            rules_in(path, source),
            [rule],
            "missed in {path}:\n{source}"
        );
    }
    for source in look_alikes {
        assert_eq!(
            rules_in(path, source),
            [""; 0],
            "false alarm in {path}:\n{source}"
        );
    }
}

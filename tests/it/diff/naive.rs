//! Slow, plain versions of what the diff module does, to compare with.

use ecr::diff::{Diff, FileDiff, LineIndex, LineKind};
use ecr::model::{ChangeStatus, Side};

use crate::support::repo::TestRepo;

/// One run of git as production makes it.
pub(crate) fn git_diff(repo: &TestRepo, args: &[&str]) -> Vec<u8> {
    let mut all = vec![
        "-c",
        "core.quotePath=true",
        "-c",
        "diff.noprefix=false",
        "-c",
        "diff.mnemonicPrefix=false",
        "diff",
        "--raw",
        "--numstat",
        "-p",
        "-z",
        "-M",
        "--no-abbrev",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ];
    all.extend(args);
    repo.git(&all)
}

/// `line 1` to `line <count>`.
pub(crate) fn numbered(count: u32) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for n in 1..=count {
        writeln!(text, "line {n}").expect("writes");
    }
    text
}

/// The lines of a content with their line ends.
pub(crate) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|b| *b == b'\n').collect()
}

/// Applies a file's hunks to the old content. Fails the test when a context or removed line differs.
pub(crate) fn apply(file: &FileDiff, patch: &[u8], old: &[u8]) -> Vec<u8> {
    let old = lines(old);
    let mut out = Vec::new();
    let mut at = 0;
    for hunk in &file.hunks {
        let start = hunk.old_start as usize - usize::from(hunk.old_len > 0);
        for line in &old[at..start] {
            out.extend_from_slice(line);
        }
        at = start;
        for line in hunk.lines(patch) {
            let mut text = line.content.to_vec();
            if line.newline {
                text.push(b'\n');
            }
            if line.kind != LineKind::Added {
                assert_eq!(old[at], text, "{:?}", file.path);
                at += 1;
            }
            if line.kind != LineKind::Removed {
                out.extend_from_slice(&text);
            }
        }
    }
    for line in &old[at..] {
        out.extend_from_slice(line);
    }
    out
}

/// Compares the index with a line table made by walking the hunks over the whole old content.
pub(crate) fn check_index(file: &FileDiff, patch: &[u8], old: &[u8], new: &[u8]) {
    let index = LineIndex::new(file, patch);
    let (old_count, new_count) = (lines(old).len() as u32, lines(new).len() as u32);
    // (kind, old number, new number, shown) of every line of both sides.
    let mut table = Vec::new();
    let (mut o, mut n) = (1, 1);
    for hunk in &file.hunks {
        let start = hunk.old_start + u32::from(hunk.old_len == 0);
        while o < start {
            table.push((LineKind::Context, o, n, false));
            (o, n) = (o + 1, n + 1);
        }
        for line in hunk.lines(patch) {
            table.push((line.kind, o, n, true));
            o += u32::from(line.kind != LineKind::Added);
            n += u32::from(line.kind != LineKind::Removed);
        }
    }
    while o <= old_count {
        table.push((LineKind::Context, o, n, false));
        (o, n) = (o + 1, n + 1);
    }
    assert_eq!((o, n), (old_count + 1, new_count + 1), "{:?}", file.path);
    for (kind, o, n, shown) in table {
        let context = kind == LineKind::Context;
        if kind != LineKind::Added {
            assert_eq!(index.kind(Side::Old, o), shown.then_some(kind));
            assert_eq!(index.map(Side::Old, o), context.then_some(n));
            assert_eq!(index.in_diff(Side::Old, o), shown);
        }
        if kind != LineKind::Removed {
            assert_eq!(index.kind(Side::New, n), shown.then_some(kind));
            assert_eq!(index.map(Side::New, n), context.then_some(o));
            assert_eq!(index.is_changed(Side::New, n), !context);
        }
    }
}

/// A blob of a commit, empty when it is not there.
pub(crate) fn blob(repo: &TestRepo, commit: &str, path: &[u8]) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut spec = format!("{commit}:").into_bytes();
    spec.extend_from_slice(path);
    let output = repo
        .command("git")
        .args(["cat-file", "blob"])
        .arg(std::ffi::OsStr::from_bytes(&spec))
        .output()
        .expect("git starts");
    if output.status.success() {
        output.stdout
    } else {
        Vec::new()
    }
}

/// Re-applies every text file's hunks and checks its line index, between two commits.
pub(crate) fn check_content(repo: &TestRepo, diff: &Diff, base: &str, head: &str) {
    for file in &diff.files {
        let gitlink = [file.old_mode.0, file.new_mode.0].contains(&0o160_000);
        if file.binary || gitlink || file.status == ChangeStatus::TypeChanged {
            continue;
        }
        let old_path = file.old_path.as_ref().unwrap_or(&file.path);
        let (mut old, mut new) = (
            blob(repo, base, old_path.as_bytes()),
            blob(repo, head, file.path.as_bytes()),
        );
        if file.old_mode.is_absent() {
            old.clear();
        }
        if file.new_mode.is_absent() {
            new.clear();
        }
        assert_eq!(apply(file, &diff.patch, &old), new, "{:?}", file.path);
        check_index(file, &diff.patch, &old, &new);
    }
}

/// Added and deleted lines of the hunks, counted by looking at each line of the text.
pub(crate) fn count(diff: &Diff, file: &FileDiff) -> (u32, u32) {
    let mut counts = (0, 0);
    for hunk in &file.hunks {
        for line in diff.patch[hunk.body.clone()].split_inclusive(|b| *b == b'\n') {
            counts.0 += u32::from(line[0] == b'+');
            counts.1 += u32::from(line[0] == b'-');
        }
    }
    counts
}

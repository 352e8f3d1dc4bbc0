//! Random repositories: our census is git's, and hunks and line index are right.

use std::collections::BTreeMap;
use std::sync::Arc;

use ecr::diff::{parse_combined, parse_patch};
use proptest::prelude::*;

use super::naive::{check_content, count, git_diff};
use crate::support::repo::TestRepo;

#[derive(Debug, Clone)]
enum Edit {
    Write(usize, Vec<u8>),
    Change(usize, usize, Vec<u8>),
    Delete(usize),
    Move(usize, usize),
    Mode(usize),
}

const NAMES: [&str; 8] = [
    "a",
    "b/a",
    "x b/y",
    "t\tt",
    "n\nn",
    "\u{e9} \u{e9}",
    "q\"q",
    "b/c/d.rs",
];

/// Lines that like to be taken for something else.
fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"same\n".to_vec()),
        Just(b"-- a/x\n".to_vec()),
        Just(b"++ b/x\n".to_vec()),
        Just(b"@@ -1 +1 @@\n".to_vec()),
        Just(b"diff --git a/a b/a\n".to_vec()),
        Just(b"\\ No newline at end of file\n".to_vec()),
        Just(b"cr\r\n".to_vec()),
        Just(b"lone\rcr \xff\n".to_vec()),
        "[a-e]{1,3}\n".prop_map(String::into_bytes),
    ]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(line(), 0..40), any::<bool>()).prop_map(|(lines, cut)| {
        let mut text = lines.concat();
        if cut {
            text.pop();
        }
        text
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    let name = 0..NAMES.len();
    prop_oneof![
        2 => (name.clone(), content()).prop_map(|(n, c)| Edit::Write(n, c)),
        6 => (name.clone(), 0..40usize, line()).prop_map(|(n, at, l)| Edit::Change(n, at, l)),
        1 => name.clone().prop_map(Edit::Delete),
        2 => (name.clone(), name.clone()).prop_map(|(a, b)| Edit::Move(a, b)),
        1 => name.prop_map(Edit::Mode),
    ]
}

type Files = BTreeMap<usize, (Vec<u8>, bool)>;

fn apply(files: &mut Files, edit: Edit) {
    match edit {
        Edit::Write(name, content) => {
            files.insert(name, (content, false));
        }
        Edit::Change(name, at, line) => {
            if let Some((content, _)) = files.get_mut(&name) {
                let mut lines: Vec<Vec<u8>> = content
                    .split_inclusive(|b| *b == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect();
                let at = at.min(lines.len());
                if at < lines.len() && line.len() % 2 == 0 {
                    lines[at] = line;
                } else {
                    lines.insert(at, line);
                }
                *content = lines.concat();
            }
        }
        Edit::Delete(name) => {
            files.remove(&name);
        }
        Edit::Move(from, to) => {
            if let Some(file) = files.remove(&from) {
                files.insert(to, file);
            }
        }
        Edit::Mode(name) => {
            if let Some((_, executable)) = files.get_mut(&name) {
                *executable = !*executable;
            }
        }
    }
}

fn commit(repo: &TestRepo, files: &Files) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    for entry in std::fs::read_dir(repo.root()).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_dir() && !path.ends_with(".git") {
            std::fs::remove_dir_all(path).expect("rm");
        } else if path.is_file() {
            std::fs::remove_file(path).expect("rm");
        }
    }
    for (name, (content, executable)) in files {
        repo.write(NAMES[*name], content);
        let mode = if *executable { 0o755 } else { 0o644 };
        let path = repo.root().join(NAMES[*name]);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    }
    repo.commit_all("x")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn census_and_index(
        start in prop::collection::btree_map(0..NAMES.len(), (content(), any::<bool>()), 1..7),
        edits in prop::collection::vec(edit(), 1..14),
        context in 0..6u8,
    ) {
        let repo = TestRepo::init();
        let mut files: Files = start;
        let base = commit(&repo, &files);
        for edit in edits {
            apply(&mut files, edit);
        }
        let head = commit(&repo, &files);
        let unified = format!("-U{context}");
        let output = git_diff(&repo, &[&unified, "-C", "--find-copies-harder", &base, &head]);
        let diff = parse_combined(&output).expect("parses");
        check_content(&repo, &diff, &base, &head);

        // The census as git's own text listings give it, read in another way than production does.
        let listing = |args: &[&str]| {
            let mut all = vec!["diff", "-M", "-C", "--find-copies-harder", "-z"];
            all.extend(args);
            all.extend([base.as_str(), head.as_str()]);
            repo.git(&all)
        };
        let (stat, status) = (listing(&["--numstat"]), listing(&["--name-status"]));
        let mut stat = stat.split(|b| *b == 0);
        let mut status = status.split(|b| *b == 0);
        for file in &diff.files {
            let letter = status.next().expect("a letter")[0];
            let expected = match file.status.as_str() {
                "added" => b'A',
                "modified" => b'M',
                "deleted" => b'D',
                "renamed" => b'R',
                "copied" => b'C',
                other => panic!("{other}"),
            };
            prop_assert_eq!(letter, expected);
            if let Some(old) = &file.old_path {
                prop_assert_eq!(status.next().expect("old"), old.as_bytes());
            }
            prop_assert_eq!(status.next().expect("path"), file.path.as_bytes());
            let counts = stat.next().expect("counts");
            let prefix = format!("{}\t{}\t", file.added, file.deleted);
            prop_assert!(counts.starts_with(prefix.as_bytes()));
            if file.old_path.is_some() {
                stat.next();
                stat.next();
            }
            prop_assert_eq!(count(&diff, file), (file.added, file.deleted));
        }
        prop_assert_eq!(status.next(), Some(&b""[..]));

        // The patch alone says the same.
        let alone = parse_patch(Arc::from(&diff.patch[..])).expect("parses");
        prop_assert_eq!(alone.files.len(), diff.files.len());
        for (alone, file) in alone.files.iter().zip(&diff.files) {
            prop_assert_eq!(&alone.path, &file.path);
            prop_assert_eq!(&alone.old_path, &file.old_path);
            prop_assert_eq!(alone.status, file.status);
            prop_assert_eq!(&alone.hunks, &file.hunks);
        }
        diffy_agrees(&diff.patch, &diff);
    }
}

/// diffy as a second opinion on the hunks (it takes an empty diff for an error).
fn diffy_agrees(patch: &[u8], diff: &ecr::diff::Diff) {
    use diffy::patch_set::{ParseOptions, PatchSet};
    if diff.files.is_empty() {
        return;
    }
    let set = PatchSet::parse_bytes(patch, ParseOptions::gitdiff());
    let parsed: Vec<_> = set.map(|file| file.expect("diffy parses")).collect();
    assert_eq!(parsed.len(), diff.files.len());
    for (theirs, ours) in parsed.iter().zip(&diff.files) {
        let hunks = theirs
            .patch()
            .as_text()
            .map_or(&[][..], |text| text.hunks());
        let ranges = |hunk: &diffy::Hunk<'_, [u8]>| {
            let (old, new) = (hunk.old_range(), hunk.new_range());
            (old.start(), old.len(), new.start(), new.len())
        };
        let theirs: Vec<_> = hunks.iter().map(ranges).collect();
        let ours: Vec<_> = ours
            .hunks
            .iter()
            .map(|h| {
                (
                    h.old_start as usize,
                    h.old_len as usize,
                    h.new_start as usize,
                    h.new_len as usize,
                )
            })
            .collect();
        assert_eq!(theirs, ours);
    }
}

//! Broken input: never a panic, and never a diff whose counts are not those of its text.

use std::sync::{Arc, LazyLock};

use ecr::diff::{Diff, LineIndex, parse_combined, parse_git, parse_patch, split_combined};
use ecr::model::{ChangeStatus, Side};
use proptest::prelude::*;

use super::naive::{count, git_diff};
use crate::support::repo::TestRepo;

/// One output with edits, an addition, a deletion, a rename, a binary file, a type change and odd names.
static SAMPLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let repo = TestRepo::init();
    let text = super::naive::numbered(60);
    for name in ["edit", "move b/x", "gone", "type", "n\nl"] {
        repo.write(name, &text);
    }
    repo.write("bin", b"\0\x01");
    repo.commit_all("one");
    repo.write(
        "edit",
        text.replace("line 3\n", "-- x\n++ y\n")
            .replace("line 50\n", "")
            + "end",
    );
    repo.write("n\nl", text.replace("line 9\n", "nine\n"));
    repo.git(&["mv", "move b/x", "moved"]);
    repo.write("moved", text.replace("line 7\n", "seven\n"));
    for name in ["gone", "type"] {
        std::fs::remove_file(repo.root().join(name)).expect("rm");
    }
    std::os::unix::fs::symlink("edit", repo.root().join("type")).expect("link");
    repo.write("new", "a\nb\n");
    repo.write("bin", b"\0\x02");
    repo.commit_all("two");
    git_diff(&repo, &["--binary", "HEAD~1", "HEAD"])
});

#[derive(Debug, Clone)]
enum Mutation {
    Flip(usize, u8),
    Cut(usize),
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    Insert(usize, Vec<u8>),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<usize>();
    prop_oneof![
        (at, any::<u8>()).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        at.prop_map(Mutation::Cut),
        at.prop_map(Mutation::Drop),
        at.prop_map(Mutation::Double),
        (at, at).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (
            at,
            prop::sample::select(vec![
                &b"+evil\n"[..],
                b"-gone\n",
                b"@@ -1 +1 @@\n",
                b"@@ -4294967295,4294967295 +0,0 @@\n",
                b"diff --git a/x b/x\n",
                b"diff --git \"a/\\\n",
                b"\\ No newline at end of file\n",
                b"GIT binary patch\n",
                b"--- a/x\n+++ b/x\n",
                b"\0",
                b"rename from x\nrename to y\n",
            ])
        )
            .prop_map(|(at, text)| Mutation::Insert(at, text.to_vec())),
    ]
}

fn mutate(mut text: Vec<u8>, mutation: &Mutation) -> Vec<u8> {
    if text.is_empty() {
        return text;
    }
    let mut lines: Vec<Vec<u8>> = text
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let count = lines.len();
    match mutation {
        Mutation::Flip(at, bits) => {
            let at = at % text.len();
            text[at] ^= bits;
            return text;
        }
        Mutation::Cut(at) => {
            text.truncate(at % text.len());
            return text;
        }
        Mutation::Drop(at) => {
            lines.remove(at % count);
        }
        Mutation::Double(at) => lines.insert(at % count, lines[at % count].clone()),
        Mutation::Swap(a, b) => lines.swap(a % count, b % count),
        Mutation::Insert(at, line) => lines.insert(at % count, line.clone()),
    }
    lines.concat()
}

/// What has to hold for every diff that is accepted, however it came about.
fn check(diff: &Diff) {
    for file in &diff.files {
        if file.status != ChangeStatus::TypeChanged {
            assert_eq!(
                count(diff, file),
                (file.added, file.deleted),
                "{:?}",
                file.path
            );
        }
        let index = LineIndex::new(file, &diff.patch);
        let lines = |side| {
            index
                .changed(side)
                .map(|(a, b)| u64::from(b - a) + 1)
                .sum::<u64>()
        };
        let counted = count(diff, file);
        assert_eq!(
            (lines(Side::New), lines(Side::Old)),
            (u64::from(counted.0), u64::from(counted.1))
        );
        for line in [0, 1, 5, 60, u32::MAX] {
            index.map(Side::Old, line);
            index.map(Side::New, line);
        }
    }
    // No added or removed line of the text is outside all hunks, but for headers and mail text.
    let hunks: Vec<_> = diff
        .files
        .iter()
        .flat_map(|f| &f.hunks)
        .map(|h| h.body.clone())
        .collect();
    let mut at = 0;
    for line in diff.patch.split_inclusive(|b| *b == b'\n') {
        let inside = hunks.iter().any(|body| body.contains(&at));
        assert!(
            inside || !line.starts_with(b"+evil"),
            "a hidden line at {at}"
        );
        at += line.len();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_patches(mutations in prop::collection::vec(mutation(), 1..4)) {
        let (_, _, patch) = split_combined(&SAMPLE).expect("splits");
        let patch = mutations.iter().fold(SAMPLE[patch].to_vec(), mutate);
        if let Ok(diff) = parse_patch(Arc::from(patch)) {
            check(&diff);
        }
    }

    #[test]
    fn mutated_git_output(mutations in prop::collection::vec(mutation(), 1..4)) {
        let (raw, numstat, patch) = split_combined(&SAMPLE).expect("splits");
        let broken = mutations.iter().fold(SAMPLE[patch.clone()].to_vec(), mutate);
        if let Ok(diff) = parse_git(&SAMPLE[raw], &SAMPLE[numstat], broken.into()) {
            check(&diff);
            // Listing and counts are intact, so the census has to be as well.
            let intact = parse_combined(&SAMPLE).expect("parses");
            for (file, intact) in diff.files.iter().zip(&intact.files) {
                prop_assert_eq!((&file.path, file.added, file.deleted), (&intact.path, intact.added, intact.deleted));
            }
            prop_assert_eq!(diff.files.len(), intact.files.len());
        }
        let whole = mutations.iter().fold(SAMPLE.clone(), mutate);
        if let Ok(diff) = parse_combined(&whole) {
            check(&diff);
        }
    }

    #[test]
    fn noise(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_patch(Arc::from(&text[..]));
        let _ = parse_combined(&text);
        let _ = parse_git(&text, &text, text.clone().into());
    }
}

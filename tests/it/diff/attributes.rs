//! The matching of `.gitattributes` against `git check-attr`.

use std::sync::Arc;

use ecr::diff::noise::{FilterReason, NoiseSettings, filter};
use ecr::diff::parse_patch;
use ecr::model::RepoPath;
use ecr::tree::MemoryTree;

use crate::support::repo::TestRepo;

const PATHS: [&str; 14] = [
    "a",
    "x.go",
    "gen/a",
    "gen/b/a",
    "gen/b/c/x.go",
    "b/gen/a",
    "a/b",
    "a-b",
    "[a]",
    "a*",
    "src/a b",
    "A",
    "gen.go/x",
    ".hidden",
];

/// Attribute files; `G` stands for the attribute's name.
const FILES: [&str; 36] = [
    "a G",
    "/a G",
    "*.go G",
    "/*.go G",
    "gen G",
    "gen/ G",
    "gen/* G",
    "gen/** G",
    "gen/**/a G",
    "**/a G",
    "**/gen/a G",
    "**gen/a G",
    "gen** G",
    "gen/**a G",
    "* G",
    "** G",
    "*/a G",
    "*/*/a G",
    "? G",
    "[ab] G",
    "[!a] G",
    "[^a-c]* G",
    "[[:upper:]] G",
    "[]a] G",
    "\\[a\\] G",
    "a\\* G",
    "\"src/a b\" G",
    "\"a\\052\" G",
    ".* G",
    "!a G",
    "[a G",
    "a G -G",
    "* G\na !G",
    "* G\n/gen/* -G",
    "[attr]m G\n*.go m\ngen/**/x.go -m",
    "***/a G",
];

#[test]
fn same_as_git() {
    let repo = TestRepo::init();
    let settings = NoiseSettings::new(&[], &[]).expect("compiles");
    for file in FILES {
        let file = file.replace('G', "linguist-generated");
        repo.write(".gitattributes", &file);
        let mut args = vec!["check-attr", "-z", "linguist-generated", "--"];
        args.extend(PATHS);
        let output = repo.git(&args);
        let fields: Vec<&[u8]> = output.split(|b| *b == 0).collect();
        let mut tree = MemoryTree::new();
        let path = RepoPath::new(".gitattributes").expect("path");
        tree.insert(path, file.as_bytes());
        for (path, answer) in PATHS.into_iter().zip(fields.chunks(3)) {
            let patch = format!(
                "diff --git a/{path} b/{path}\n--- a/{path}\t\n+++ b/{path}\t\n@@ -1 +1 @@\n-a\n+b\n"
            );
            let diff = parse_patch(Arc::from(patch.as_bytes())).expect("parses");
            let reason = filter(&diff, Some(&tree), None, &settings).remove(0);
            assert_eq!(
                reason == Some(FilterReason::GeneratedAttribute),
                answer[2] == b"set",
                "{file:?} {path:?}"
            );
        }
    }
}

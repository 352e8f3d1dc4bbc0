//! Every odd diff that git can make, made by git.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;

use ecr::diff::{
    Diff, DiffError, FileDiff, FileMode, LineKind, parse_combined, parse_git, parse_patch,
};
use ecr::model::ChangeStatus::{Added, Copied, Deleted, Modified, Renamed, TypeChanged, Unmerged};
use ecr::model::{ChangeStatus, RepoPath};

use super::naive::{check_content, git_diff, numbered};
use crate::support::repo::TestRepo;

/// Commits `before` and `after` (each a closure over the work tree) and gives the checked diff.
fn commits(before: impl FnOnce(&TestRepo), after: impl FnOnce(&TestRepo)) -> (TestRepo, Diff) {
    let repo = TestRepo::init();
    before(&repo);
    let base = repo.commit_all("before");
    after(&repo);
    let head = repo.commit_all("after");
    let diff = parse_combined(&git_diff(&repo, &[&base, &head])).expect("parses");
    check_content(&repo, &diff, &base, &head);
    same_without_listing(&repo, &diff, &[&base, &head]);
    (repo, diff)
}

/// The patch alone gives the same census, whatever the prefixes.
fn same_without_listing(repo: &TestRepo, diff: &Diff, range: &[&str]) {
    let full = |file: &FileDiff| {
        // Of a pure rename the patch does not say that it is binary.
        let binary = file.binary && file.score != Some(100);
        let counts = if file.status == TypeChanged {
            (0, 0)
        } else {
            (file.added, file.deleted)
        };
        (
            file.path.clone(),
            file.old_path.clone(),
            file.status,
            file.score,
            counts,
            binary,
        )
    };
    let expected: Vec<_> = diff.files.iter().map(full).collect();
    for options in [
        &["--full-index"][..],
        &["--no-prefix"],
        &["--src-prefix=old/", "--dst-prefix=new/"],
        &["--binary", "--src-prefix=i/", "--dst-prefix=w/"],
    ] {
        let mut args = vec!["-c", "core.quotePath=false", "diff", "-M", "--no-color"];
        args.extend(options);
        args.extend(range);
        let patch = repo.git(&args);
        let parsed = parse_patch(Arc::from(patch)).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        let files: Vec<_> = parsed.files.iter().map(full).collect();
        assert_eq!(files, expected, "{options:?}");
    }
}

fn named(diff: &Diff, path: impl AsRef<[u8]>) -> &FileDiff {
    let path = RepoPath::new(path).expect("path");
    diff.files
        .iter()
        .find(|file| file.path == path)
        .unwrap_or_else(|| panic!("{path:?} is missing"))
}

fn census(file: &FileDiff) -> (ChangeStatus, u32, u32, bool) {
    (file.status, file.added, file.deleted, file.binary)
}

#[test]
fn names() {
    let names: [&[u8]; 13] = [
        b"plain",
        b"with space",
        b"x b/y",
        b"a/x b/x",
        b"b/a/c",
        b"tab\there",
        b"new\nline",
        b"q\"uote\\",
        "d\u{e9}j\u{e0}".as_bytes(),
        b"not-utf8-\xff\xfe",
        b"diff --git a/x b/x",
        b" lead and trail ",
        b"cr\r",
    ];
    let write = |repo: &TestRepo, text: &str| {
        for name in names {
            repo.write(std::ffi::OsStr::from_bytes(name), text);
        }
    };
    let (_, diff) = commits(|repo| write(repo, "a\nb\n"), |repo| write(repo, "a\nc\n"));
    assert_eq!(diff.files.len(), names.len());
    for name in names {
        assert_eq!(census(named(&diff, name)), (Modified, 1, 1, false));
    }
}

#[test]
fn names_without_any_hunk() {
    let names: [&[u8]; 5] = [b"x b/y", b"tab\t", b"n\nl", b"e\xff", b"x x"];
    let chmod = |repo: &TestRepo, name: &[u8], mode: u32| {
        let path = repo.root().join(std::ffi::OsStr::from_bytes(name));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    };
    let (_, diff) = commits(
        |repo| {
            for name in names {
                repo.write(std::ffi::OsStr::from_bytes(name), "text\n");
            }
        },
        |repo| {
            for name in names {
                chmod(repo, name, 0o755);
            }
            repo.write("empty b/new", "");
            repo.write("bin b/new", b"\0\x01");
        },
    );
    for name in names {
        let file = named(&diff, name);
        assert_eq!(census(file), (Modified, 0, 0, false));
        assert_eq!(
            (file.old_mode, file.new_mode),
            (FileMode(0o100_644), FileMode(0o100_755))
        );
    }
    assert_eq!(census(named(&diff, "empty b/new")), (Added, 0, 0, false));
    assert_eq!(census(named(&diff, "bin b/new")), (Added, 0, 0, true));
}

#[test]
fn renames_copies_and_deletions() {
    let text = numbered(40);
    let (repo, diff) = commits(
        |repo| {
            repo.write("old dir/pure", &text);
            repo.write("edited", text.replace("line 1\n", "x\n"));
            repo.write("bin", [b"\0".as_slice(), &[7; 999]].concat());
            repo.write("gone", "a\nb");
            repo.write("empty", "");
        },
        |repo| {
            std::fs::create_dir(repo.root().join("new b")).expect("folder");
            repo.git(&["mv", "old dir/pure", "new b/pure"]);
            repo.git(&["mv", "edited", "ed\tited"]);
            repo.write("ed\tited", text.replace("line 1\n", "y\n") + "last");
            repo.git(&["mv", "bin", "bin2"]);
            std::fs::remove_file(repo.root().join("gone")).expect("rm");
            std::fs::remove_file(repo.root().join("empty")).expect("rm");
        },
    );
    let pure = named(&diff, "new b/pure");
    assert_eq!(census(pure), (Renamed, 0, 0, false));
    assert_eq!(pure.score, Some(100));
    assert_eq!(
        pure.old_path.as_ref().map(RepoPath::as_bytes),
        Some(&b"old dir/pure"[..])
    );
    assert_eq!(census(named(&diff, "ed\tited")), (Renamed, 2, 1, false));
    assert_eq!(named(&diff, "bin2").status, Renamed);
    assert_eq!(census(named(&diff, "gone")), (Deleted, 0, 2, false));
    assert_eq!(census(named(&diff, "empty")), (Deleted, 0, 0, false));

    repo.write("copy", text + "more\n");
    let head = repo.commit_all("copy");
    let output = git_diff(&repo, &["-C", "--find-copies-harder", "HEAD~1", "HEAD"]);
    let diff = parse_combined(&output).expect("parses");
    assert_eq!(census(named(&diff, "copy")), (Copied, 1, 0, false));
    check_content(&repo, &diff, "HEAD~1", &head);
}

#[test]
fn type_changes_links_and_submodules() {
    let repo = TestRepo::init();
    repo.write("to-link", "l1\nother\n");
    repo.write("bin-to-link", b"\0\0");
    symlink("target", repo.root().join("to-file")).expect("link");
    symlink("one", repo.root().join("link")).expect("link");
    let first = repo.commit_all("one");
    let gitlink = |id: &str| {
        repo.git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{id},sub"),
        ]);
    };
    gitlink(&first);
    repo.git(&["commit", "-qm", "two"]);
    let second = repo.head();
    for name in ["to-link", "bin-to-link", "to-file", "link"] {
        std::fs::remove_file(repo.root().join(name)).expect("rm");
    }
    symlink("l1\nl2", repo.root().join("to-link")).expect("link");
    symlink("x", repo.root().join("bin-to-link")).expect("link");
    symlink("/etc/passwd", repo.root().join("link")).expect("link");
    repo.write("to-file", "content\n");
    repo.git(&["add", "to-link", "bin-to-link", "to-file", "link"]);
    gitlink(&second);
    repo.git(&["commit", "-qm", "three"]);
    let diff = parse_combined(&git_diff(&repo, &[&second, "HEAD"])).expect("parses");
    assert_eq!(diff.files.len(), 5);
    let file = named(&diff, "to-link");
    // numstat sees `l1` on both sides; the patch rewrites all of it.
    assert_eq!(census(file), (TypeChanged, 1, 1, false));
    assert_eq!(file.hunks.len(), 2);
    let last = file.hunks[1].lines(&diff.patch).last().expect("a line");
    assert_eq!(
        (last.content, last.newline, last.new_no),
        (&b"l2"[..], false, Some(2))
    );
    let binary = named(&diff, "bin-to-link");
    assert_eq!(
        (binary.status, binary.binary, binary.hunks.len()),
        (TypeChanged, false, 1)
    );
    assert_eq!(census(named(&diff, "to-file")).0, TypeChanged);
    let link = named(&diff, "link");
    assert_eq!(
        (census(link), link.new_mode),
        ((Modified, 1, 1, false), FileMode::SYMLINK)
    );
    let sub = named(&diff, "sub");
    assert_eq!(
        (census(sub), sub.new_mode),
        ((Modified, 1, 1, false), FileMode::SUBMODULE)
    );
    same_without_listing_but_links(&repo, &diff, &second);
}

/// Without numstat a type change counts what the patch shows, and a binary half shows no text.
fn same_without_listing_but_links(repo: &TestRepo, diff: &Diff, base: &str) {
    let patch = repo.git(&["diff", "-M", base, "HEAD"]);
    let parsed = parse_patch(Arc::from(patch)).expect("parses");
    let statuses = |diff: &Diff| -> Vec<_> {
        diff.files
            .iter()
            .map(|f| (f.path.clone(), f.status))
            .collect()
    };
    assert_eq!(statuses(&parsed), statuses(diff));
}

#[test]
fn dirty_submodule() {
    let inner = TestRepo::init();
    inner.write("f", "1\n");
    inner.commit_all("inner");
    let repo = TestRepo::init();
    let url = inner.root().to_str().expect("text").to_owned();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        &url,
        "sub",
    ]);
    repo.commit_all("sub");
    repo.write("sub/f", "2\n");
    let diff = parse_combined(&git_diff(&repo, &["HEAD"])).expect("parses");
    assert_eq!(census(named(&diff, "sub")), (Modified, 0, 0, false));
}

#[test]
fn binary_and_nul() {
    let (repo, diff) = commits(
        |repo| {
            repo.write("bin", b"\0\x01\x02");
            repo.write("late-nul", "text\n".repeat(3000) + "a\0b\n");
            repo.write("nul", "a\0b\n");
            repo.write("after", "1\n");
        },
        |repo| {
            repo.write("bin", b"\0\x01\x02\x03");
            repo.write("late-nul", "text\n".repeat(3000) + "a\0c\n");
            repo.write("nul", "a\0c\n");
            repo.write("after", "2\n");
        },
    );
    assert_eq!(census(named(&diff, "bin")), (Modified, 0, 0, true));
    assert_eq!(census(named(&diff, "late-nul")), (Modified, 1, 1, false));
    assert_eq!(census(named(&diff, "nul")), (Modified, 0, 0, true));
    let output = git_diff(&repo, &["--binary", "HEAD~1", "HEAD"]);
    assert!(memchr::memmem::find(&output, b"GIT binary patch").is_some());
    let with_data = parse_combined(&output).expect("parses");
    assert_eq!(
        with_data.files.iter().map(census).collect::<Vec<_>>(),
        diff.files.iter().map(census).collect::<Vec<_>>()
    );
    // numstat does not heed `--text`: the two disagree, and that is said.
    let text = parse_combined(&git_diff(&repo, &["--text", "HEAD~1", "HEAD"]));
    assert!(matches!(text, Err(DiffError::Census { .. })));
}

#[test]
fn line_ends_and_long_lines() {
    let long = "x".repeat(3 << 20);
    let (_, diff) = commits(
        |repo| {
            repo.write("crlf", "a\r\nb\r\n");
            repo.write("cr", "a\rb\rc\n");
            repo.write("cut", "a");
            repo.write("uncut", "a\nb");
            repo.write("long", &long);
            repo.write("blank", "\n\n\na\n\n");
        },
        |repo| {
            repo.write("crlf", "a\r\nc\r\n");
            repo.write("cr", "a\rb\rd\n");
            repo.write("cut", "a\n");
            repo.write("uncut", "c\nb");
            repo.write("long", format!("{long}y\n+z"));
            repo.write("blank", "\n\n\nb\n\n");
        },
    );
    let crlf = named(&diff, "crlf");
    let contents: Vec<_> = crlf.hunks[0]
        .lines(&diff.patch)
        .map(|l| l.content)
        .collect();
    assert_eq!(contents, [&b"a\r"[..], b"b\r", b"c\r"]);
    assert_eq!(census(named(&diff, "cr")), (Modified, 1, 1, false));
    assert_eq!(census(named(&diff, "cut")), (Modified, 1, 1, false));
    assert_eq!(census(named(&diff, "long")), (Modified, 2, 1, false));
}

#[test]
fn blank_context_without_its_blank() {
    let (repo, diff) = commits(
        |repo| repo.write("f", "\n\na\n\n\n"),
        |repo| repo.write("f", "\n\nb\n\n\n"),
    );
    repo.git(&["config", "diff.suppressBlankEmpty", "true"]);
    let bare = parse_combined(&git_diff(&repo, &["HEAD~1", "HEAD"])).expect("parses");
    assert!(bare.patch.len() < diff.patch.len());
    check_content(&repo, &bare, "HEAD~1", "HEAD");
}

#[test]
fn content_that_looks_like_a_patch() {
    let hostile = "-- a/x\n++ b/x\n@@ -1 +1 @@\ndiff --git a/evil b/evil\n\\ No newline at end of file\n--- a/y\n+++ b/y\nBinary files a/z and b/z differ\nGIT binary patch\n";
    let (_, diff) = commits(
        |repo| {
            repo.write("a", hostile.to_owned() + "end\n");
            repo.write("b", "1\n");
        },
        |repo| {
            repo.write("a", hostile.replace('\n', "!\n") + "++i;\n--j;\nend\n");
            repo.write("b", "2\n");
        },
    );
    assert_eq!(diff.files.len(), 2);
    assert_eq!(census(named(&diff, "a")), (Modified, 11, 9, false));
    let added = named(&diff, "a").hunks[0].lines(&diff.patch);
    assert!(
        added
            .filter(|l| l.kind == LineKind::Added)
            .any(|l| l.content == b"++i;")
    );
}

#[test]
fn many_hunks_and_no_context() {
    let text = numbered(500);
    let (repo, diff) = commits(
        |repo| repo.write("f", &text),
        |repo| {
            let edited = text
                .replace("line 1\n", "")
                .replace("line 100\n", "line 100\nnew\n")
                .replace("line 300\n", "other\n")
                .replace("line 500\n", "line 500");
            repo.write("f", edited);
        },
    );
    assert_eq!(named(&diff, "f").hunks.len(), 4);
    let bare = parse_combined(&git_diff(&repo, &["-U0", "HEAD~1", "HEAD"])).expect("parses");
    check_content(&repo, &bare, "HEAD~1", "HEAD");
}

/// A repository with a conflict in `f`, one where both sides deleted, and a change beside them.
fn conflict(name: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write(name, numbered(20));
    repo.write("z", "1\n");
    repo.write("both", numbered(30));
    repo.commit_all("one");
    repo.git(&["checkout", "-q", "-b", "other"]);
    repo.write(name, "theirs\n");
    repo.git(&["mv", "both", "both-theirs"]);
    repo.commit_all("theirs");
    repo.git(&["checkout", "-q", "main"]);
    repo.write(name, "ours\n");
    repo.git(&["mv", "both", "both-ours"]);
    repo.commit_all("ours");
    let merge = repo
        .command("git")
        .args(["merge", "-q", "other"])
        .output()
        .expect("git");
    assert!(!merge.status.success());
    repo.write("z", "2\n");
    repo
}

#[test]
fn conflicts() {
    // The unquoted name in "* Unmerged path" tries to pass for a section.
    for name in ["f", "f\ndiff --git a/z b/z"] {
        let repo = conflict(name);
        let staged = parse_combined(&git_diff(&repo, &["--cached"])).expect("parses");
        assert_eq!(census(named(&staged, name)), (Unmerged, 0, 0, false));
        assert_eq!(named(&staged, "both").status, Unmerged);
        let work = parse_combined(&git_diff(&repo, &[])).expect("parses");
        assert_eq!(named(&work, name).status, Unmerged);
        assert_eq!(census(named(&work, "z")), (Modified, 1, 1, false));
        let ours = parse_combined(&git_diff(&repo, &["--ours"])).expect("parses");
        assert_eq!(census(named(&ours, name)), (Unmerged, 4, 0, false));
        assert_eq!(
            ours.files
                .iter()
                .filter(|f| f.path.as_bytes() == name.as_bytes())
                .count(),
            1
        );
        let head = parse_combined(&git_diff(&repo, &["HEAD"])).expect("parses");
        assert_eq!(census(named(&head, name)), (Modified, 4, 0, false));
        // The combined form is refused by name, alone and with listings.
        let combined = repo.git(&["diff"]);
        assert!(matches!(
            parse_patch(Arc::from(combined.clone())),
            Err(DiffError::Combined { .. })
        ));
        let (raw, stat) = (
            repo.git(&["diff", "--raw", "-z", "--no-abbrev"]),
            repo.git(&["diff", "--numstat", "-z"]),
        );
        assert!(parse_git(&raw, &stat, combined.into()).is_err());
    }
}

#[test]
fn merge_commits_are_refused() {
    let repo = conflict("f");
    repo.write("f", "merged\n");
    repo.commit_all("merge");
    let shown = repo.git(&["show", "HEAD"]);
    assert!(matches!(
        parse_patch(Arc::from(shown)),
        Err(DiffError::Combined { .. })
    ));
    let shown = repo.git(&[
        "show",
        "--format=",
        "-c",
        "--raw",
        "-p",
        "--numstat",
        "-z",
        "--no-abbrev",
        "HEAD",
    ]);
    assert!(parse_combined(&shown).is_err());
}

#[test]
fn intent_to_add_and_files_outside_the_index() {
    let repo = TestRepo::init();
    repo.commit_all("empty");
    repo.write("ita", "new\n");
    repo.git(&["add", "-N", "ita"]);
    let diff = parse_combined(&git_diff(&repo, &[])).expect("parses");
    assert_eq!(census(named(&diff, "ita")), (Added, 1, 0, false));
    assert_eq!(named(&diff, "ita").new_id, None);
    let output = repo
        .command("git")
        .args([
            "diff",
            "--no-index",
            "--raw",
            "--numstat",
            "-p",
            "-z",
            "--no-abbrev",
            "/dev/null",
            "ita",
        ])
        .output()
        .expect("git");
    let diff = parse_combined(&output.stdout).expect("parses");
    assert_eq!(census(named(&diff, "ita")), (Added, 1, 0, false));
}

#[test]
fn a_file_that_is_only_touched() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.write("b", "1\n");
    repo.commit_all("one");
    repo.git(&["config", "diff.autoRefreshIndex", "false"]);
    let touched = std::fs::File::open(repo.root().join("a")).expect("open");
    touched.set_modified(std::time::UNIX_EPOCH).expect("touch");
    repo.write("b", "2\n");
    let diff = parse_combined(&git_diff(&repo, &[])).expect("parses");
    assert_eq!(census(named(&diff, "b")), (Modified, 1, 1, false));
    assert_eq!(census(named(&diff, "a")), (Modified, 0, 0, false));
}

#[test]
fn sha256() {
    let repo = TestRepo::init_with(&["--object-format=sha256"]);
    repo.write("f", "1\n");
    let base = repo.commit_all("one");
    repo.write("f", "2\n");
    let head = repo.commit_all("two");
    let diff = parse_combined(&git_diff(&repo, &[&base, &head])).expect("parses");
    check_content(&repo, &diff, &base, &head);
    let id = diff.files[0].new_id.as_ref().expect("known");
    assert_eq!(id.as_str().len(), 64);
}

#[test]
fn empty_diff_and_folder_against_file() {
    let (repo, diff) = commits(
        |repo| repo.write("x/a", "1\n"),
        |repo| {
            std::fs::remove_dir_all(repo.root().join("x")).expect("rm");
            repo.write("x", "file\n");
        },
    );
    assert_eq!(diff.files.len(), 2);
    assert_eq!(
        parse_combined(&git_diff(&repo, &["HEAD", "HEAD"]))
            .expect("parses")
            .files,
        []
    );
}

#[test]
fn mails_and_shown_commits() {
    let repo = TestRepo::init();
    repo.write("f", "a\n-- \n");
    repo.commit_all("one");
    repo.write("f", "a\n");
    repo.write("g b/g", "+\n");
    repo.commit_all("subject\n\n- a list\n+ in the body\n--- a/f\n+++ b/f\n");
    for args in [
        &["format-patch", "--stdout", "-1"][..],
        &["show", "HEAD"],
        &["log", "-p", "-1", "--format=email"],
    ] {
        let diff =
            parse_patch(Arc::from(repo.git(args))).unwrap_or_else(|e| panic!("{args:?}: {e}"));
        let files: Vec<_> = diff.files.iter().map(census).collect();
        assert_eq!(
            files,
            [(Modified, 0, 1, false), (Added, 1, 0, false)],
            "{args:?}"
        );
    }
    // Two commits to one file have no common line numbers.
    repo.write("f", "b\n");
    repo.commit_all("three");
    let series = repo.git(&["format-patch", "--stdout", "-2"]);
    assert!(matches!(
        parse_patch(Arc::from(series)),
        Err(DiffError::Repeated { .. })
    ));
}

#[test]
fn gnu_diff() {
    let repo = TestRepo::init();
    repo.write("n1/a b", "a\n");
    repo.write("n2/a b", "b\n");
    repo.write("n2/new", "n\n");
    repo.write("n1/bin", b"a\0");
    repo.write("n2/bin", b"b\0");
    let run = |args: &[&str]| match repo.command("diff").args(args).output() {
        Ok(output) => Some(output.stdout),
        Err(_) => None, // not installed
    };
    let Some(patch) = run(&["-ruN", "n1", "n2"]) else {
        return;
    };
    let diff = parse_patch(Arc::from(patch)).expect("parses");
    assert_eq!(census(named(&diff, "a b")), (Modified, 1, 1, false));
    assert_eq!(census(named(&diff, "new")), (Added, 1, 0, false));
    assert_eq!(census(named(&diff, "bin")), (Modified, 0, 0, true));
    let without = run(&["-ru", "n1", "n2"]).expect("diff");
    assert!(parse_patch(Arc::from(without)).is_err());
}

#[test]
fn whatever_does_not_add_up_is_an_error_that_names_the_file() {
    let (repo, diff) = commits(
        |repo| {
            repo.write("one", "1\n");
            repo.write("two", "1\n");
        },
        |repo| {
            repo.write("one", "2\n");
            repo.write("two", "2\n3\n");
        },
    );
    let raw = repo.git(&["diff", "--raw", "-z", "--no-abbrev", "HEAD~1", "HEAD"]);
    let stat = repo.git(&["diff", "--numstat", "-z", "HEAD~1", "HEAD"]);
    let parse = |raw: &[u8], stat: &[u8], patch: &[u8]| parse_git(raw, stat, patch.to_vec().into());
    assert_eq!(parse(&raw, &stat, &diff.patch), Ok(diff.clone()));
    let half = &diff.files[0].section;
    let half_raw = raw.len() / 2;
    let text = String::from_utf8(diff.patch.to_vec()).expect("text");
    for (what, result) in [
        ("one", parse(&raw, b"2\t1\tone\x002\t1\ttwo\0", &diff.patch)),
        ("one", parse(&raw, b"-\t-\tone\x002\t1\ttwo\0", &diff.patch)),
        ("two", parse(&raw, b"1\t1\tone\0", &diff.patch)),
        ("two", parse(&raw, &stat, &diff.patch[half.clone()])),
        ("two", parse(&raw[..half_raw], &stat, &diff.patch)),
        ("one", parse(&raw, b"2\t1\ttwo\x001\t1\tone\0", &diff.patch)),
        (
            "goes on",
            parse(&raw[..half_raw], b"1\t1\tone\0", &diff.patch),
        ),
        ("goes on", parse(b"", b"", &diff.patch)),
        (
            "one",
            parse(
                &raw,
                &stat,
                text.replace("+2\ndiff", "+2\n+9\ndiff").as_bytes(),
            ),
        ),
        (
            "one",
            parse(
                &raw,
                &stat,
                text.replace("+++ b/one", "+++ b/two").as_bytes(),
            ),
        ),
        (
            "one",
            parse(
                &raw,
                &stat,
                text.replace("a/one b/one", "a/one b/onE").as_bytes(),
            ),
        ),
        (
            "cut",
            parse(&raw, &stat, &diff.patch[..diff.patch.len() - 1]),
        ),
    ] {
        let error = result.expect_err(what).to_string();
        assert!(
            error.contains(what) || what == "one" && error.contains("two"),
            "{what}: {error}"
        );
    }
}

//! The receipt accounts for every changed line that git counts.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::harness::{ecr, started};
use crate::support::repo::TestRepo;

/// `(files, added + deleted)` as `git diff --numstat` counts them.
fn numstat(repo: &TestRepo, range: &[&str]) -> (u64, u64) {
    let mut args = vec!["diff", "--numstat", "-M", "--no-ext-diff"];
    args.extend(range);
    let text = repo.git(&args);
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().map(|line| {
        let mut fields = line.split('\t');
        let mut number = || {
            fields
                .next()
                .and_then(|f| f.parse::<u64>().ok())
                .unwrap_or(0)
        };
        number() + number()
    });
    (text.lines().count() as u64, lines.sum())
}

fn sum(files: &[Value], name: &str) -> u64 {
    files
        .iter()
        .map(|file| file[name].as_u64().expect("a count"))
        .sum()
}

/// Reviews the last commit and compares the receipt with git's own counts.
#[track_caller]
fn adds_up(repo: &TestRepo) -> Value {
    let range = ["--base", "HEAD~1", "--head", "HEAD"];
    let ran = ecr(repo, &[&range[..], &["--json", "--no-fail"]].concat()).exits(0);
    let report = ran.json();
    let (files, lines) = numstat(repo, &["HEAD~1", "HEAD"]);
    let totals = &report["coverage"]["totals"];
    assert_eq!(totals["files"], files, "{report:#}");
    assert_eq!(totals["changedLines"], lines, "{report:#}");
    let listed = report["coverage"]["files"].as_array().expect("files");
    assert_eq!(listed.len() as u64, files);
    assert_eq!(
        sum(listed, "added") + sum(listed, "deleted"),
        lines,
        "{report:#}"
    );
    for file in listed {
        let outcome = file["outcome"].as_str().expect("an outcome");
        assert!(
            ["reviewed", "partial", "filtered", "missed"].contains(&outcome),
            "{file}"
        );
        assert_eq!(outcome != "reviewed", file["reason"].is_string(), "{file}");
    }
    report
}

/// `word 0`, `word 1`, … on lines of their own.
fn numbered(word: &str, count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "{word} {n}");
        text
    })
}

/// The one entry for a path.
fn entry<'a>(report: &'a Value, path: &str) -> &'a Value {
    let files = report["coverage"]["files"].as_array().expect("files");
    let found = files.iter().find(|file| file["path"] == path);
    found.unwrap_or_else(|| panic!("no {path}: {report:#}"))
}

#[test]
fn one_commit_with_everything_odd() {
    let repo = started();
    let text = numbered("line", 40);
    repo.write("old name.txt", &text);
    repo.write("crlf.txt", "a\r\nb\r\n");
    repo.write("run.sh", "echo hi\n");
    repo.write("gone.txt", "a\nb\nc\n");
    repo.write("bin.dat", b"\0\x01\x02");
    repo.write("type", "a file\n");
    repo.write("no-newline", "a");
    repo.commit_all("before");

    repo.git(&["mv", "old name.txt", "new name.txt"]);
    repo.write("new name.txt", text.replace("line 7\n", "line seven\n"));
    repo.write("crlf.txt", "a\r\nc\r\nd\r\n");
    std::fs::set_permissions(
        repo.root().join("run.sh"),
        std::fs::Permissions::from_mode(0o755),
    )
    .expect("mode");
    std::fs::remove_file(repo.root().join("gone.txt")).expect("remove");
    repo.write("bin.dat", b"\0\x01\x03\x04");
    std::fs::remove_file(repo.root().join("type")).expect("remove");
    std::os::unix::fs::symlink("/etc/passwd", repo.root().join("type")).expect("link");
    repo.write("no-newline", "a\nb");
    repo.write("empty.txt", "");
    repo.write("lone-cr.txt", "a\rb\rc\n");
    repo.write(" b/tab\tquote\".txt", "x\n");
    repo.write(
        "looks.txt",
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n",
    );
    repo.write(OsStr::from_bytes(b"caf\xe9.txt"), "1\n2\n");
    let lock = numbered("package", 500);
    repo.write("yarn.lock", format!("# yarn lockfile v1\n{lock}"));
    repo.write("wide.txt", "x".repeat(3_000_000) + "\ny\n");
    repo.commit_all("after");

    let report = adds_up(&repo);
    assert_eq!(entry(&report, "new name.txt")["oldPath"], "old name.txt");
    assert_eq!(entry(&report, "caf%E9.txt")["pathEncoding"], "bytes");
    assert_eq!(entry(&report, "yarn.lock")["outcome"], "filtered");
    assert_eq!(entry(&report, "gone.txt")["deleted"], 3);
    assert_eq!(entry(&report, "looks.txt")["added"], 6);
    assert_eq!(entry(&report, "lone-cr.txt")["added"], 1);
    assert_eq!(entry(&report, "run.sh")["added"], 0);
    assert!(
        !report.to_string().contains("root:x:0"),
        "a link is never followed"
    );
    // The terminal says the same numbers.
    let totals = &report["coverage"]["totals"];
    let ran = ecr(
        &repo,
        &["--base", "HEAD~1", "--head", "HEAD", "--no-fail", "-q"],
    );
    let words = format!("of {} files", totals["files"]);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&words), "{words}: {text}");
}

#[test]
fn a_submodule_bump() {
    let repo = started();
    let other = started();
    repo.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{},lib", other.head()),
    ]);
    repo.git(&["commit", "-q", "-m", "a module"]);
    other.write("more", "x\n");
    other.commit_all("more");
    repo.git(&[
        "update-index",
        "--cacheinfo",
        &format!("160000,{},lib", other.head()),
    ]);
    repo.git(&["commit", "-q", "-m", "bump"]);
    let report = adds_up(&repo);
    assert_eq!(entry(&report, "lib")["added"], 1);
}

#[test]
fn the_users_configuration_changes_no_number() {
    let repo = started();
    let text = numbered("line", 30);
    repo.write("one.txt", &text);
    repo.commit_all("before");
    repo.git(&["mv", "one.txt", "two.txt"]);
    repo.write("two.txt", text.replace("line 3\n", "LINE 3\n"));
    repo.write(".gitattributes", "*.txt diff=odd -diff\n*.py -text\n");
    repo.commit_all("after");
    let args = ["--base", "HEAD~1", "--head", "HEAD", "--json"];
    let plain = ecr(&repo, &args).exits(0).json();
    for (key, value) in [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.renames", "false"),
        ("diff.external", "false"),
        ("diff.odd.textconv", "false"),
        ("diff.odd.command", "false"),
        ("diff.context", "0"),
        ("diff.algorithm", "patience"),
        ("color.ui", "always"),
        ("core.quotePath", "false"),
        ("core.pager", "false"),
        ("diff.orderFile", "/nonsense"),
    ] {
        repo.git(&["config", key, value]);
    }
    let configured = ecr(&repo, &args).exits(0).json();
    assert_eq!(plain["coverage"], configured["coverage"]);
    assert_eq!(plain["findings"], configured["findings"]);
}

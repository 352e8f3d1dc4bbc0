//! `--diff`: patches from files and standard input.

use super::harness::{ECR, WARNING, ecr, ecr_in, ecr_stdin, run, started, warned};

#[test]
fn a_piped_diff_is_reviewed_without_a_tree() {
    let repo = started();
    repo.write("fetch.py", WARNING);
    repo.git(&["add", "-A"]);
    let patch = repo.git(&["diff", "--cached"]);
    let ran = ecr_stdin(&repo, &patch, &["review", "--diff", "-", "--json"]).exits(0);
    let report = ran.json();
    assert_eq!(report["input"]["kind"], "patch");
    assert_eq!(report["findings"][0]["line"], 4);
    assert_eq!(report["coverage"]["totals"]["changedLines"], 4);
    // The very pipe of the README, and with no repository around.
    let script = format!("git diff --cached | '{ECR}' review --diff - -q");
    run(repo.command("bash").args(["-c", &script]))
        .exits(0)
        .says("fetch.py:4");
    let file = repo.home().join("change.patch");
    std::fs::write(&file, &patch).expect("write");
    ecr_in(&repo, repo.home(), &["--diff", "change.patch", "-q"])
        .exits(0)
        .says("fetch.py:4");
    let absolute = file.to_str().expect("UTF-8");
    ecr(&repo, &["--diff", absolute])
        .exits(0)
        .says("the code around it was not to be seen");
}

#[test]
fn a_mailed_patch() {
    let repo = warned();
    repo.commit_all("Fetch things\n\nA body with --- and\n+++ in it.");
    let mail = repo.git(&["format-patch", "-1", "--stdout"]);
    let report = ecr_stdin(&repo, &mail, &["--diff", "-", "--json"])
        .exits(0)
        .json();
    assert_eq!(report["coverage"]["totals"]["files"], 1);
    assert_eq!(report["coverage"]["totals"]["changedLines"], 4);
    assert_eq!(report["findings"][0]["file"], "fetch.py");
}

#[test]
fn no_patch_is_no_clean_review() {
    let repo = started();
    let ran = ecr_stdin(&repo, b"", &["--diff", "-"]).exits(0);
    let ran = ran
        .says("Nothing to review")
        .says("standard input is empty");
    assert!(!ran.out.to_lowercase().contains("approve"));
    ecr_stdin(&repo, b"hello\n", &["--diff", "-"]).refused("no patch found", "git diff");
    ecr_stdin(&repo, b"\x00\xff\xfe", &["--diff", "-"]).refused("standard input", "next: ");
    let cut = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,4 @@\n a\n+b\n";
    ecr_stdin(&repo, cut, &["--diff", "-"]).refused("standard input", "next: ");
    ecr(&repo, &["--diff", "gone.patch"]).refused("gone.patch", "next: give a file");
    ecr(&repo, &["--diff", "."]).refused("cannot read the patch", "next: ");
}

#[test]
fn a_patch_names_paths_but_never_files_of_ours() {
    let repo = started();
    for path in ["../../etc/passwd", "/etc/passwd", ".git/config"] {
        let patch = format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -0,0 +1 @@\n+x = 1\n"
        );
        let ran = ecr_stdin(&repo, patch.as_bytes(), &["--diff", "-", "--json"]);
        assert!(matches!(ran.code, Some(0 | 2)), "{ran:#?}");
        assert!(!ran.out.contains("root:"), "{ran:#?}");
    }
}

//! Real git hooks that call ecr.

use std::os::unix::fs::PermissionsExt as _;

use super::harness::{ECR, WARNING, dangerous_workflow, started};
use crate::support::repo::TestRepo;

fn hook(repo: &TestRepo, name: &str, args: &str) {
    let path = repo.root().join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("folder");
    let script = format!("#!/bin/sh\nexec '{ECR}' review {args} >>\"$HOME/hook.log\" 2>&1\n");
    std::fs::write(&path, script).expect("write");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
}

/// What the hook printed since the last call.
fn log(repo: &TestRepo) -> String {
    let path = repo.home().join("hook.log");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    text
}

/// Whether git let it pass.
fn git(repo: &TestRepo, args: &[&str]) -> bool {
    let output = repo.command("git").args(args).output().expect("git starts");
    output.status.success()
}

#[test]
fn a_pre_commit_hook_sees_what_is_about_to_be_committed() {
    let repo = started();
    hook(
        &repo,
        "pre-commit",
        "--staged --fail-on request_changes --quiet",
    );
    // `commit -a` and `commit path` use an index of their own, named by GIT_INDEX_FILE.
    repo.write("app.py", WARNING);
    assert!(git(&repo, &["commit", "-q", "-a", "-m", "all"]));
    let text = log(&repo);
    assert!(text.contains("warning: app.py:4"), "{text}");

    repo.write("app.py", "import requests\n");
    repo.write("other.py", WARNING);
    repo.git(&["add", "other.py"]);
    assert!(git(&repo, &["commit", "-q", "app.py", "-m", "one path"]));
    let text = log(&repo);
    assert!(
        text.contains("1 of 1 file") && !text.contains("other.py"),
        "{text}"
    );

    repo.write(".github/workflows/label.yml", dangerous_workflow());
    repo.git(&["add", "-A"]);
    let before = repo.head();
    assert!(!git(&repo, &["commit", "-q", "-m", "blocked"]));
    assert_eq!(repo.head(), before);
    assert!(log(&repo).contains("critical: .github/workflows/label.yml"));
    assert!(git(&repo, &["commit", "-q", "--no-verify", "-m", "forced"]));
}

#[test]
fn a_pre_push_hook_as_in_the_readme() {
    let repo = started();
    let remote = repo.home().join("remote.git");
    let remote = remote.to_str().expect("UTF-8");
    repo.git(&["init", "-q", "--bare", "-b", "main", remote]);
    repo.git(&["remote", "add", "origin", remote]);
    repo.git(&["push", "-q", "origin", "main"]);
    hook(&repo, "pre-push", "--fail-on request_changes --quiet");

    repo.write("fetch.py", WARNING);
    repo.commit_all("a warning");
    assert!(git(&repo, &["push", "-q", "origin", "main"]));
    assert!(log(&repo).contains("warning: fetch.py:4"));

    repo.write(".github/workflows/label.yml", dangerous_workflow());
    repo.commit_all("a critical finding");
    assert!(!git(&repo, &["push", "-q", "origin", "main"]));
    assert!(log(&repo).contains("Changes requested"));

    // Nothing to review lets the push through.
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert!(git(&repo, &["push", "-q", "origin", "main:again"]));
}

//! No configuration changes a byte of the diff, and nothing that a repository names is run.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::{diff, host_with, names, open, work_diff};
use crate::support::repo::TestRepo;
use ecr::git::Repository;
use tokio_util::sync::CancellationToken;

/// A repository with a change of every kind that settings are known to touch; gives base and head.
fn sample(repo: &TestRepo) -> (String, String) {
    let lines = |edit: &str| -> String {
        (0..60)
            .map(|n| {
                if n % 20 == 7 {
                    format!("{edit} {n}\n")
                } else {
                    format!("fn f{n}() {{}}\n\n")
                }
            })
            .collect()
    };
    repo.write("code.rs", lines("old"));
    repo.write("moved.rs", lines("same"));
    repo.write("b\u{e9}ta \"q\".txt", "one\n\ntwo  \n");
    repo.write("empty", "");
    let base = repo.commit_all("base");
    repo.write("code.rs", lines("new"));
    repo.git(&["mv", "moved.rs", "there.rs"]);
    repo.write("b\u{e9}ta \"q\".txt", "one\n\n\ntwo\t\n");
    repo.write("blob.bin", b"a\0b");
    let head = repo.commit_all("head");
    (base, head)
}

/// A program that leaves a trace when it is run.
fn canary(repo: &TestRepo) -> (PathBuf, String) {
    let script = repo.home().join("canary.sh");
    let trace = repo.home().join("it-ran");
    std::fs::write(
        &script,
        format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", trace.display()),
    )
    .expect("script");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let command = script.to_str().expect("utf-8").to_owned();
    (trace, command)
}

/// Every setting known to change a diff or to start a program.
fn hostile(command: &str, order: &str, attributes: &str) -> Vec<(String, String)> {
    let fixed = [
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.srcPrefix", "x/"),
        ("diff.dstPrefix", "y/"),
        ("diff.renames", "false"),
        ("diff.renameLimit", "1"),
        ("diff.context", "0"),
        ("diff.interHunkContext", "40"),
        ("diff.algorithm", "patience"),
        ("diff.indentHeuristic", "false"),
        ("diff.wsErrorHighlight", "all"),
        ("diff.suppressBlankEmpty", "true"),
        ("diff.relative", "true"),
        ("diff.ignoreSubmodules", "all"),
        ("diff.submodule", "log"),
        ("diff.wordRegex", "."),
        ("diff.colorMoved", "zebra"),
        ("diff.statGraphWidth", "3"),
        ("diff.tool", "evil"),
        ("color.ui", "always"),
        ("color.diff", "always"),
        ("core.quotePath", "false"),
        ("core.abbrev", "5"),
        ("core.whitespace", "cr-at-eol,trailing-space"),
        ("core.bigFileThreshold", "10"),
        ("core.fsmonitor", command),
        ("core.hooksPath", "HOOKS"),
        ("core.pager", command),
        ("pager.diff", command),
        ("pager.diff-tree", command),
        ("core.editor", command),
        ("core.sshCommand", command),
        ("core.askPass", command),
        ("credential.helper", command),
        ("diff.external", command),
        ("diff.evil.command", command),
        ("diff.evil.textconv", command),
        ("diff.evil.binary", "true"),
        ("diff.evil.xfuncname", "^nothing"),
        ("filter.evil.clean", command),
        ("filter.evil.smudge", command),
        ("filter.evil.required", "true"),
        ("filter.proc.process", command),
        ("filter.proc.required", "true"),
        ("filter.a=b.c.clean", command),
        ("core.splitIndex", "true"),
        ("core.untrackedCache", "true"),
        ("core.safecrlf", "true"),
        ("log.showSignature", "true"),
        ("gpg.program", command),
        ("submodule.recurse", "true"),
    ];
    let mut all: Vec<_> = fixed
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    all.push(("diff.orderFile".into(), order.into()));
    all.push(("core.attributesFile".into(), attributes.into()));
    all
}

const ATTRIBUTES: &str = "*.rs diff=evil filter=evil -text\n*.txt filter=proc diff=evil working-tree-encoding=UTF-16\n*.bin -diff filter=a=b.c\n* -diff\n";

/// Writes every hostile setting into the user's file or the repository's own, with hooks and attribute files.
fn poison(repo: &TestRepo, scope: &str) -> PathBuf {
    let (trace, command) = canary(repo);
    let order = repo.home().join("order");
    std::fs::write(&order, "*.txt\n*.rs\n*\n").expect("order file");
    let attributes = repo.home().join("attributes");
    std::fs::write(&attributes, ATTRIBUTES).expect("attributes");
    let hooks = repo.home().join("hooks");
    std::fs::create_dir_all(&hooks).expect("hooks");
    for hook in ["post-index-change", "pre-commit", "fsmonitor-watchman"] {
        std::fs::copy(&command, hooks.join(hook)).expect("hook");
        std::fs::create_dir_all(repo.root().join(".git/hooks")).expect("hooks");
        std::fs::copy(&command, repo.root().join(".git/hooks").join(hook)).expect("hook");
    }
    let file = match scope {
        "user" => repo.home().join(".gitconfig"),
        _ => repo.root().join(".git/config"),
    };
    let all = hostile(
        &command,
        order.to_str().expect("utf-8"),
        attributes.to_str().expect("utf-8"),
    );
    for (key, value) in all {
        let value = if value == "HOOKS" {
            hooks.to_str().expect("utf-8").to_owned()
        } else {
            value
        };
        let done = repo
            .command("git")
            .args(["config", "--file"])
            .arg(&file)
            .args([&key, &value])
            .status()
            .expect("git");
        assert!(done.success(), "{key}");
    }
    if scope == "repository" {
        std::fs::create_dir_all(repo.root().join(".git/info")).expect("info");
        std::fs::write(repo.root().join(".git/info/attributes"), ATTRIBUTES).expect("attributes");
    }
    trace
}

#[tokio::test]
async fn a_range_is_the_same_under_every_configuration() {
    for scope in ["user", "repository"] {
        let repo = TestRepo::init();
        let (base, head) = sample(&repo);
        let clean = diff(&open(&repo).await, &base, &head).await;
        assert!(String::from_utf8_lossy(&clean.patch).contains("\n+++ b/code.rs\n"));
        assert!(names(&clean).contains(&"R moved.rs -> there.rs".to_owned()));
        let trace = poison(&repo, scope);
        // An attribute file under review must not hide its neighbours either.
        repo.write(".gitattributes", ATTRIBUTES);
        let poisoned = diff(&open(&repo).await, &base, &head).await;
        assert!(poisoned == clean, "{scope}: the diff changed");
        assert!(
            !trace.exists(),
            "{scope}: {:?}",
            std::fs::read_to_string(&trace)
        );
    }
}

#[tokio::test]
async fn the_canary_would_sing() {
    let repo = TestRepo::init();
    let (base, head) = sample(&repo);
    let trace = poison(&repo, "repository");
    let _ = repo.command("git").args(["diff", &base, &head]).output();
    assert!(
        trace.exists(),
        "plain git runs what the configuration names"
    );
}

#[tokio::test]
async fn the_work_tree_is_the_same_under_every_configuration() {
    for scope in ["user", "repository"] {
        let repo = TestRepo::init();
        let (_, head) = sample(&repo);
        repo.write("code.rs", "changed\r\nmixed\n");
        repo.write("new.txt", "untracked  \n");
        std::fs::remove_file(repo.root().join("empty")).expect("remove");
        let clean = work_diff(&open(&repo).await, &head).await;
        assert_eq!(names(&clean), ["M code.rs", "D empty", "A new.txt"]);
        let trace = poison(&repo, scope);
        let repository = open(&repo).await;
        if scope == "user" {
            assert!(work_diff(&repository, &head).await == clean, "{scope}");
        } else {
            // The repository's own attributes decide about line ends and encodings, but run nothing and hide nothing.
            std::fs::write(
                repo.root().join(".git/info/attributes"),
                "* filter=evil diff=evil -diff\n*.txt filter=proc\n*.bin filter=a=b.c\n",
            )
            .expect("attributes");
            assert!(work_diff(&repository, &head).await == clean, "{scope}");
        }
        assert!(
            !trace.exists(),
            "{scope}: {:?}",
            std::fs::read_to_string(&trace)
        );
    }
}

#[tokio::test]
async fn unfiltered_files_are_named() {
    let repo = TestRepo::init();
    repo.write(".gitattributes", "*.big filter=lfs\n");
    let base = repo.commit_all("base");
    repo.write("a.big", "content\n");
    repo.write("b.txt", "content\n");
    repo.git(&["config", "filter.lfs.clean", "false"]);
    let repository = open(&repo).await;
    let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
    let unfiltered: Vec<_> = snapshot
        .unfiltered
        .iter()
        .map(|(path, filter)| (path.to_lossy(), filter.as_str()))
        .collect();
    assert_eq!(unfiltered, [("a.big".to_owned(), "lfs")]);
    let raw = diff(&repository, &base, snapshot.tree.as_str()).await;
    assert!(String::from_utf8_lossy(&raw.patch).contains("+content"));
}

#[tokio::test]
async fn a_submodule_is_not_entered() {
    let inner = TestRepo::init();
    inner.write("x", "1\n");
    inner.commit_all("inner");
    let repo = TestRepo::init();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        inner.root().to_str().expect("utf-8"),
        "sub",
    ]);
    let base = repo.commit_all("with submodule");
    let (trace, command) = canary(&repo);
    let sub = repo.root().join("sub");
    let in_sub = |args: &[&str]| {
        let done = repo.command("git").current_dir(&sub).args(args).output();
        assert!(done.expect("git").status.success(), "{args:?}");
    };
    std::fs::write(sub.join("x"), "dirty\n").expect("write");
    in_sub(&["config", "core.fsmonitor", &command]);
    assert_eq!(names(&work_diff(&open(&repo).await, &base).await), [""; 0]);
    assert!(!trace.exists(), "{:?}", std::fs::read_to_string(&trace));
    in_sub(&["-c", "core.fsmonitor=false", "commit", "-qam", "bump"]);
    let raw = work_diff(&open(&repo).await, &base).await;
    assert_eq!(names(&raw), ["M sub"]);
    assert!(String::from_utf8_lossy(&raw.patch).contains("+Subproject commit "));
}

#[tokio::test]
async fn gits_own_variables_are_ignored() {
    let repo = TestRepo::init();
    let (base, head) = sample(&repo);
    let other = TestRepo::init();
    other.write("other", "x\n");
    other.commit_all("other");
    let git_dir = other.root().join(".git");
    let git_dir = git_dir.to_str().expect("utf-8");
    let host = host_with(
        &repo,
        &[
            ("GIT_DIR", git_dir),
            ("GIT_WORK_TREE", "/"),
            ("GIT_OBJECT_DIRECTORY", "/nonexistent"),
            ("GIT_CEILING_DIRECTORIES", "/"),
            ("GIT_EXTERNAL_DIFF", "/bin/false"),
            ("GIT_DIFF_OPTS", "--unified=0"),
            ("GIT_CONFIG_PARAMETERS", "'diff.noprefix=true'"),
            ("GIT_CONFIG_GLOBAL", "/nonexistent/x"),
            ("GIT_ATTR_SOURCE", &base),
        ],
    );
    let repository = Repository::discover(&host, repo.root(), CancellationToken::new())
        .await
        .expect("a repository");
    assert_eq!(repository.work_tree(), Some(repo.root()));
    assert!(diff(&repository, &base, &head).await == diff(&open(&repo).await, &base, &head).await);
}

#[tokio::test]
async fn a_git_inside_the_reviewed_tree_is_not_run() {
    let repo = TestRepo::init();
    sample(&repo);
    let (trace, command) = canary(&repo);
    let bin = repo.root().join("bin");
    std::fs::create_dir_all(&bin).expect("folder");
    std::fs::copy(command, bin.join("git")).expect("copy");
    let path = std::env::var("PATH").expect("PATH");
    let sub = repo.root().join("bin");
    for path in [
        format!("{}:{path}", bin.display()),
        format!(":.:bin:{path}"),
    ] {
        let host = host_with(&repo, &[("PATH", &path)]);
        Repository::discover(&host, &sub, CancellationToken::new())
            .await
            .expect("the other git");
    }
    let only = host_with(&repo, &[("PATH", bin.to_str().expect("utf-8"))]);
    let error = Repository::discover(&only, repo.root(), CancellationToken::new()).await;
    assert!(error.is_err_and(|e| e.to_string().contains("inside the tree under review")));
    assert!(!trace.exists());
}

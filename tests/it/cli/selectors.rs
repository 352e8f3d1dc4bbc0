//! What is reviewed: every selector, its conflicts, and the places to be in.

use super::harness::{Ran, WARNING, clean, ecr, ecr_env, ecr_in, started, warned};
use crate::support::repo::TestRepo;

fn files(ran: &Ran) -> Vec<String> {
    let report = ran.json();
    let files = report["coverage"]["files"]
        .as_array()
        .expect("files")
        .clone();
    files
        .iter()
        .map(|file| file["path"].as_str().expect("a path").to_owned())
        .collect()
}

#[test]
fn each_selector_takes_its_own_changes() {
    let repo = started();
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.write("committed.py", "a = 1\n");
    repo.commit_all("work");
    repo.write("staged.py", "b = 1\n");
    repo.git(&["add", "staged.py"]);
    repo.write("untracked.py", "c = 1\n");
    let all = ["committed.py", "staged.py", "untracked.py"];
    assert_eq!(files(&ecr(&repo, &["--json"]).exits(0)), all);
    assert_eq!(files(&ecr(&repo, &["review", "--json"]).exits(0)), all);
    assert_eq!(files(&ecr(&repo, &["--base", "main", "--json"])), all);
    assert_eq!(files(&ecr(&repo, &["--staged", "--json"])), ["staged.py"]);
    assert_eq!(
        files(&ecr(
            &repo,
            &["--base", "main", "--head", "feature", "--json"]
        )),
        ["committed.py"]
    );
    let report = ecr(&repo, &["--base", "main", "--head", "feature", "--json"]).json();
    assert_eq!(report["input"]["kind"], "range");
    assert_eq!(report["input"]["head"], repo.head());
    ecr(&repo, &[]).talks("3 changed files against main (");
    ecr(&repo, &["--staged"]).talks("1 changed file against HEAD (");
}

#[test]
fn two_selectors_are_refused() {
    let repo = warned();
    for args in [
        &["--staged", "--base", "main"][..],
        &["--staged", "--diff", "-"],
        &["--base", "main", "--diff", "-"],
        &["--base", "main", "--head", "HEAD", "--diff", "x"],
        &["--staged", "--base", "main", "--head", "HEAD"],
    ] {
        ecr(&repo, args).refused("cannot be used with", "--help");
    }
    ecr(&repo, &["--head", "main"]).refused("--base <REF>", "--help");
    ecr(&repo, &["--base"]).refused("--base", "--help");
}

#[test]
fn refs_that_name_nothing() {
    let repo = warned();
    ecr(&repo, &["--base", "nope"]).refused("\"nope\" names no commit", "next: check the spelling");
    ecr(&repo, &["--base", "main", "--head", "nope"]).refused("\"nope\"", "next: ");
    ecr(&repo, &["--base", ""]).refused("it is empty", "next: ");
    ecr(&repo, &["--base", "main..HEAD"]).refused("main..HEAD", "next: ");
    for option in ["--output=x", "-x", "--upload-pack=touch x"] {
        ecr(&repo, &[&format!("--base={option}")]).refused("starts with `-`", "next: ");
        ecr(&repo, &["--base", "main", &format!("--head={option}")])
            .refused("starts with `-`", "next: ");
    }
    assert!(!repo.root().join("x").exists());
}

#[test]
fn an_empty_range_is_no_clean_review() {
    let repo = started();
    repo.git(&["checkout", "-q", "-b", "ahead"]);
    repo.write("more.py", "a = 1\n");
    repo.commit_all("more");
    for (args, words) in [
        (["--base", "ahead", "--head", "main"], "the range is empty"),
        (["--base", "main", "--head", "main"], "are the same commit"),
    ] {
        ecr(&repo, &args)
            .exits(0)
            .says("Nothing to review")
            .says(words);
    }
    repo.git(&["revert", "--no-edit", "HEAD"]);
    ecr(&repo, &["--base", "main", "--head", "ahead"])
        .exits(0)
        .says("change no file");
}

#[test]
fn places_in_a_repository() {
    let repo = warned();
    let expected = ecr(&repo, &["-q"]).exits(0).out;
    repo.write("deep/er/x.py", "x = 1\n");
    repo.git(&["add", "deep"]);
    repo.git(&["commit", "-q", "-m", "deep"]);
    // Paths are relative to the root wherever one stands.
    let inside = repo.root().join("deep/er");
    ecr_in(&repo, &inside, &["-q"])
        .exits(0)
        .says("warning: fetch.py:4");
    repo.git(&["checkout", "-q", "--detach"]);
    ecr(&repo, &["-q"]).exits(0).says("warning: fetch.py:4");
    assert!(expected.contains("warning: fetch.py:4"));

    let linked = repo.home().join("linked");
    let path = linked.to_str().expect("UTF-8");
    repo.git(&["worktree", "add", "-q", "-b", "other", path]);
    ecr_in(&repo, &linked, &[])
        .exits(0)
        .says("Nothing to review");
    std::fs::write(linked.join("there.py"), WARNING).expect("write");
    let ran = ecr_in(&repo, &linked, &["-q"])
        .exits(0)
        .says("warning: there.py:4");
    assert!(!ran.out.contains("fetch.py"), "{ran:#?}");
}

#[test]
fn places_without_a_work_tree() {
    let repo = warned();
    ecr_in(&repo, repo.home(), &[]).refused("is not inside a git repository", "`--diff FILE`");
    ecr_in(&repo, repo.home(), &["--staged"]).refused("is not inside a git repository", "next: ");
    ecr_in(&repo, &repo.root().join(".git"), &[]).refused("no work tree", "--base REF --head REF");
    repo.commit_all("second");
    let bare = repo.home().join("bare.git");
    repo.git(&["clone", "-q", "--bare", ".", bare.to_str().expect("UTF-8")]);
    ecr_in(&repo, &bare, &[]).refused("no work tree", "--base REF --head REF");
    ecr_in(&repo, &bare, &["--base", "HEAD~1", "--head", "HEAD", "-q"])
        .exits(0)
        .says("warning: fetch.py:4");
}

#[test]
fn before_the_first_commit() {
    let repo = TestRepo::init();
    for args in [&[][..], &["--staged"]] {
        ecr(&repo, args)
            .exits(0)
            .says("Nothing to review")
            .says("there is no commit yet");
    }
    repo.write("fetch.py", WARNING);
    ecr(&repo, &["--staged"]).exits(0).says("Nothing to review");
    ecr(&repo, &[])
        .exits(0)
        .says("there is no commit yet")
        .says("fetch.py:4");
    repo.git(&["add", "-A"]);
    ecr(&repo, &["--staged"]).exits(0).says("fetch.py:4");
    ecr(&repo, &["--base", "HEAD"]).refused("\"HEAD\" names no commit", "next: ");
}

#[test]
fn gits_own_variables_are_ignored() {
    let repo = warned();
    let env = [
        ("GIT_DIR", "/nonsense"),
        ("GIT_WORK_TREE", "/nonsense"),
        ("GIT_OBJECT_DIRECTORY", "/nonsense"),
        ("GIT_NAMESPACE", "x"),
        ("GIT_EXTERNAL_DIFF", "false"),
        ("GIT_PAGER", "false"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "diff.noprefix"),
        ("GIT_CONFIG_VALUE_0", "true"),
    ];
    ecr_env(&repo, &env, &["-q"])
        .exits(0)
        .says("warning: fetch.py:4");
}

#[test]
fn a_shallow_clone_without_the_merge_base() {
    let repo = started();
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.write("a.py", "a = 1\n");
    repo.commit_all("work");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("b.py", "b = 1\n");
    repo.commit_all("main goes on");
    let clone = repo.home().join("clone");
    let url = format!("file://{}", repo.root().display());
    let clone_path = clone.to_str().expect("UTF-8");
    let args = [
        "clone",
        "-q",
        "--depth",
        "1",
        "--no-single-branch",
        "-b",
        "feature",
    ];
    let mut args = args.to_vec();
    args.extend([url.as_str(), clone_path]);
    repo.git(&args);
    ecr_in(&repo, &clone, &[]).refused("no common ancestor in this clone", "fetch-depth: 0");
    ecr_in(&repo, &clone, &["--base", "origin/main", "--head", "HEAD"])
        .refused("no common ancestor", "git fetch --unshallow");
}

#[test]
fn unrelated_histories() {
    let repo = started();
    repo.git(&["checkout", "-q", "--orphan", "alone"]);
    repo.commit_all("unrelated");
    ecr(&repo, &[]).refused("main and HEAD have no common ancestor", "next: ");
}

#[test]
fn the_base_is_the_remotes_default_branch() {
    let repo = started();
    let clone = repo.home().join("clone");
    let clone_path = clone.to_str().expect("UTF-8");
    repo.git(&["clone", "-q", ".", clone_path]);
    std::fs::write(clone.join("fetch.py"), WARNING).expect("write");
    ecr_in(&repo, &clone, &[])
        .exits(0)
        .talks("1 changed file against origin/main (");
}

#[test]
fn the_plan_calls_nothing() {
    let repo = warned();
    repo.write("Cargo.lock", "# generated\n");
    let ran = ecr(&repo, &["--plan"])
        .exits(0)
        .says("fetch.py")
        .says("lockfile")
        .says("Passes");
    assert!(!ran.err.contains("started"), "{ran:#?}");
    let ran = ecr(&repo, &["--plan", "--json"]).exits(0);
    let plan = ran.json();
    assert_eq!(plan["schemaVersion"], 1);
    assert_eq!(plan["files"].as_array().map(Vec::len), Some(2));
    assert_eq!(plan["files"][0]["kept"], false);
    assert_eq!(plan["passes"][0]["engine"], "builtin");
    assert!(!repo.home().join("state").exists(), "a plan is no run");
    ecr(&repo, &["--plan", "--format", "sarif"]).refused("as sarif", "--format json");
    ecr(&repo, &["--plan", "--format", "json=p.json"]).refused("printed", "> plan.json");
    assert!(!repo.root().join("p.json").exists());
    // A critical finding is for the review to find.
    let repo = super::harness::critical();
    ecr(&repo, &["--plan"]).exits(0);
    ecr(&started(), &["--plan"])
        .exits(0)
        .says("Nothing to review");
}

#[test]
fn agents() {
    let repo = clean();
    ecr(&repo, &["--agents", "checks"]).exits(0);
    ecr(&repo, &["--agents", "nobody"]).refused("no reviewer `nobody`", "security");
    ecr(&repo, &["--agents", "checks,nobody"]).refused("no reviewer `nobody`", "next: ");
    ecr(&repo, &["--agents", "checks,"]).refused("no reviewer ``", "next: ");
    ecr(&repo, &["--agents", "security"]).refused("no model is named", "`checks`");
}

//! Work trees that are not what they seem.

use crate::support::repo::TestRepo;

#[test]
fn a_nested_repository_alone_is_named() {
    let repo = TestRepo::init();
    repo.write("a.py", "x = 1\n");
    repo.commit_all("base");
    repo.write("sub/n.py", "eval(x)\n");
    repo.git(&["init", "-q", "sub"]);
    let output = repo.ecr(&["review"]);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
    assert!(text.contains("repository of its own"), "{text}");
    assert!(text.contains("sub"), "{text}");
}

#[test]
fn a_work_tree_elsewhere_is_said_to_be_none() {
    let repo = TestRepo::init();
    repo.write("a.py", "x = 1\n");
    repo.commit_all("base");
    let elsewhere = repo.home().to_str().expect("UTF-8");
    repo.git(&["config", "core.worktree", elsewhere]);
    let output = repo.ecr(&["review"]);
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(!words.contains("line break"), "{words}");
}

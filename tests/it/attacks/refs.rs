//! Names that mean two things.

use crate::support::repo::TestRepo;

#[test]
fn a_tag_named_like_the_base_branch_empties_no_range() {
    let repo = TestRepo::init();
    repo.write("a.py", "x = 1\n");
    repo.commit_all("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.write("a.py", "x = 2\n");
    repo.commit_all("change");
    repo.git(&["tag", "main", "HEAD"]);
    // git prefers the tag, with which nothing would be left to review.
    repo.git(&["config", "core.warnAmbiguousRefs", "false"]);
    for args in [
        &["--base", "main"][..],
        &["--base", "main", "--head", "topic"],
    ] {
        let output = repo.ecr(&[&["review"], args].concat());
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains("it is ambiguous"), "{words}");
    }
    for args in [&[][..], &["--base", "refs/heads/main"]] {
        let output = repo.ecr(&[&["review"], args].concat());
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains("1 changed file"), "{words}");
    }
    // A ref cannot take the place of `HEAD`.
    repo.git(&["update-ref", "refs/tags/HEAD", "refs/heads/main"]);
    let output = repo.ecr(&["review", "--base", "refs/heads/main", "--head", "HEAD"]);
    assert_eq!(output.status.code(), Some(0));
}

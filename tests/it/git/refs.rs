//! What refs mean, and what is said when they mean nothing.

use super::{commit, host_with, open, try_open};
use crate::support::repo::TestRepo;
use ecr::git::{GitError, Repository};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_ref_never_becomes_an_option() {
    let repo = TestRepo::init();
    let head = repo.commit_all("one");
    let repository = open(&repo).await;
    for bad in [
        "--output=x",
        "-h",
        "",
        "a\nb",
        "--upload-pack=touch x",
        "^main",
    ] {
        let error = repository.resolve(bad).await.expect_err(bad);
        assert!(matches!(error, GitError::BadRef { .. }), "{bad:?}: {error}");
    }
    for unknown in ["nope", "main..main", "main:file", "HEAD~9", "a b", "@{u}"] {
        let error = repository.resolve(unknown).await.expect_err(unknown);
        assert!(
            matches!(error, GitError::UnknownRef { .. }),
            "{unknown:?}: {error}"
        );
    }
    for good in ["main", "HEAD", "refs/heads/main", &head, &head[..8]] {
        assert_eq!(repository.resolve(good).await.expect(good).as_str(), head);
    }
    assert!(!repo.root().join("x").exists());
}

#[tokio::test]
async fn the_default_branch_prefers_the_remote() {
    let repo = TestRepo::init();
    assert_eq!(
        open(&repo).await.default_branch().await.expect("asked"),
        None
    );
    let old = repo.commit_all("old");
    let name = |branch: Option<ecr::git::DefaultBranch>| branch.map(|b| (b.name, b.commit));
    let asked = async || name(open(&repo).await.default_branch().await.expect("asked"));
    assert_eq!(asked().await, Some(("main".into(), commit(&old))));
    let new = repo.commit_all("new");
    repo.git(&["update-ref", "refs/heads/main", &old]);
    repo.git(&["update-ref", "refs/remotes/origin/master", &old]);
    assert_eq!(asked().await, Some(("origin/master".into(), commit(&old))));
    repo.git(&["update-ref", "refs/remotes/origin/main", &new]);
    assert_eq!(asked().await, Some(("origin/main".into(), commit(&new))));
    // A tag or branch of the same name changes nothing.
    repo.git(&["update-ref", "refs/tags/origin/main", &old]);
    assert_eq!(asked().await, Some(("origin/main".into(), commit(&new))));
    repo.git(&["update-ref", "refs/remotes/origin/trunk", &old]);
    repo.git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/trunk",
    ]);
    assert_eq!(asked().await, Some(("origin/trunk".into(), commit(&old))));
    // A remote HEAD that leads nowhere is passed over.
    repo.git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/gone",
    ]);
    assert_eq!(asked().await, Some(("origin/main".into(), commit(&new))));
}

#[tokio::test]
async fn histories_that_do_not_meet() {
    let repo = TestRepo::init();
    let one = repo.commit_all("one");
    repo.git(&["checkout", "-q", "--orphan", "other"]);
    let other = repo.commit_all("two");
    let error = open(&repo)
        .await
        .merge_base(&commit(&one), &commit(&other))
        .await
        .expect_err("no ancestor");
    assert!(
        matches!(error, GitError::NoMergeBase { shallow: false, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn places_without_a_repository_have_their_own_words() {
    let repo = TestRepo::init();
    let outside = try_open(&repo, repo.home()).await;
    assert!(matches!(outside, Err(GitError::NotARepository { .. })));
    let gone = try_open(&repo, &repo.root().join("gone")).await;
    assert!(matches!(gone, Err(GitError::NoFolder { .. })));
    let empty = host_with(&repo, &[("PATH", "/nonexistent")]);
    let none = Repository::discover(&empty, repo.root(), CancellationToken::new()).await;
    assert!(matches!(none, Err(GitError::Tool(_))));
    let bare = repo.home().join("bare.git");
    repo.git(&["init", "-q", "--bare", bare.to_str().expect("utf-8")]);
    let repository = try_open(&repo, &bare).await.expect("a bare repository");
    assert_eq!(repository.work_tree(), None);
    assert!(matches!(
        repository.work_tree_snapshot().await,
        Err(GitError::NoWorkTree)
    ));
    let inside = try_open(&repo, &repo.root().join(".git")).await;
    assert_eq!(inside.expect("a repository").work_tree(), None);
}

#[tokio::test]
async fn somebody_elses_repository_is_named_as_such() {
    let repo = TestRepo::init();
    repo.commit_all("one");
    for path in [repo.root().to_owned(), repo.root().join(".git")] {
        // Only root may give files away; elsewhere the unit test of the wording has to do.
        if std::os::unix::fs::chown(path, Some(12345), Some(12345)).is_err() {
            return;
        }
    }
    let refused = try_open(&repo, repo.root()).await;
    assert!(matches!(refused, Err(GitError::DubiousOwnership { .. })));
    let trusted = format!("[safe]\n\tdirectory = {}\n", repo.root().display());
    std::fs::write(repo.home().join(".gitconfig"), trusted).expect("config");
    let repository = try_open(&repo, repo.root()).await.expect("trusted now");
    assert!(repository.head().await.expect("asked").is_some());
}

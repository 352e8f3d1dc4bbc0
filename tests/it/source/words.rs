//! Every way of having nothing to review has its own words, and none looks like a clean review.

use ecr::port::{ReviewSource, SourceError};
use ecr::source::{LocalSource, Selection};
use tokio_util::sync::CancellationToken;

use super::local::{load, range, source_at};
use crate::support::repo::TestRepo;

fn invalid<T>(result: Result<T, SourceError>, message: &str, hint: &str) {
    match result {
        Err(SourceError::Invalid {
            message: m,
            hint: h,
        }) => {
            assert!(m.contains(message), "{m:?} lacks {message:?}");
            assert!(h.contains(hint), "{h:?} lacks {hint:?}");
            assert!(!m.contains('\n') && !h.contains('\n'));
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it looked like something to review"),
    }
}

fn nothing<T>(result: Result<T, SourceError>, words: &str) {
    match result {
        Err(SourceError::Nothing { reason, info }) => {
            assert!(reason.contains(words), "{reason:?} lacks {words:?}");
            assert!(info.base_name.is_some());
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it looked like something to review"),
    }
}

#[tokio::test]
async fn empty_selections() {
    let repo = TestRepo::init();
    nothing(load(&repo, Selection::WorkTree).await, "no commit yet");
    nothing(load(&repo, Selection::Staged).await, "nothing is staged");
    repo.write("a", "1\n");
    let first = repo.commit_all("first");
    nothing(
        load(&repo, Selection::WorkTree).await,
        "equals the base main",
    );
    nothing(load(&repo, Selection::Staged).await, "nothing is staged");
    nothing(
        load(&repo, range("main", Some("HEAD"))).await,
        "main and HEAD are the same commit",
    );
    nothing(
        load(&repo, range("main", None)).await,
        "equals the base main",
    );
    repo.commit_all("nothing in it");
    nothing(
        load(&repo, range(&first, Some("main"))).await,
        "change no file",
    );
    nothing(
        load(&repo, range("main", Some(&first))).await,
        "is already in main",
    );
}

#[tokio::test]
async fn wrong_selections() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("first");
    invalid(
        load(&repo, range("nope", None)).await,
        "\"nope\" names no commit",
        "fetch",
    );
    invalid(
        load(&repo, range("main", Some("nope"))).await,
        "\"nope\" names no commit",
        "spelling",
    );
    invalid(
        load(&repo, range("--output=x", None)).await,
        "starts with `-`",
        "branch",
    );
    invalid(
        load(&repo, range("main", Some("--output=x"))).await,
        "starts with `-`",
        "branch",
    );
    assert!(!repo.root().join("x").exists());
    repo.git(&["checkout", "-q", "--orphan", "alone"]);
    repo.commit_all("unrelated");
    invalid(
        load(&repo, Selection::WorkTree).await,
        "main and HEAD have no common ancestor",
        "unrelated",
    );
    invalid(
        load(&repo, range("main", Some("alone"))).await,
        "main and alone have no common ancestor",
        "unrelated",
    );
}

#[tokio::test]
async fn wrong_places() {
    let repo = TestRepo::init();
    repo.commit_all("first");
    let at = async |folder: &std::path::Path, selection| {
        source_at(&repo, folder, selection).load().await
    };
    invalid(
        at(repo.home(), Selection::WorkTree).await,
        "not inside a git repository",
        "--diff",
    );
    invalid(
        at(&repo.root().join("gone"), Selection::WorkTree).await,
        "No such file",
        "exists",
    );
    let bare = repo.home().join("bare.git");
    repo.git(&["clone", "-q", "--bare", ".", bare.to_str().expect("utf-8")]);
    invalid(
        at(&bare, Selection::WorkTree).await,
        "no work tree",
        "--base REF --head REF",
    );
    nothing(at(&bare, range("main", Some("HEAD"))).await, "same commit");
}

#[tokio::test]
async fn a_shallow_clone_is_told_how_to_deepen() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("first");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("b", "1\n");
    repo.commit_all("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("c", "1\n");
    repo.commit_all("main");
    let clone = repo.home().join("shallow");
    let url = format!("file://{}", repo.root().display());
    repo.git(&[
        "clone",
        "-q",
        "--depth=1",
        "--no-single-branch",
        "--branch=side",
        &url,
        clone.to_str().expect("utf-8"),
    ]);
    let result = source_at(&repo, &clone, Selection::WorkTree).load().await;
    invalid(
        result,
        "origin/main and HEAD have no common ancestor",
        "--unshallow",
    );
}

#[tokio::test]
async fn a_conflict_cannot_be_staged() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a", "side\n");
    repo.commit_all("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a", "main\n");
    repo.commit_all("main");
    let merge = repo
        .command("git")
        .args(["merge", "-q", "side"])
        .output()
        .expect("git");
    assert!(!merge.status.success());
    invalid(
        load(&repo, Selection::Staged).await,
        "in conflict",
        "git add",
    );
}

#[tokio::test]
async fn a_broken_repository_is_a_failure() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("base");
    repo.write("a", "2\n");
    std::fs::write(repo.root().join(".git/index"), "garbage").expect("write");
    for selection in [Selection::WorkTree, Selection::Staged] {
        let result = load(&repo, selection).await;
        assert!(
            matches!(result, Err(SourceError::Failed { .. })),
            "{:?}",
            result.err()
        );
    }
    std::fs::write(repo.root().join(".git/config"), "[broken").expect("write");
    let result = load(&repo, Selection::WorkTree).await;
    assert!(
        matches!(result, Err(SourceError::Failed { .. })),
        "{:?}",
        result.err()
    );
}

#[tokio::test]
async fn a_cancelled_run_is_a_failure() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("base");
    repo.write("b", "2\n");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (host, folder) = (crate::git::host(&repo), repo.root().to_owned());
    let source = LocalSource::new(host, folder, Selection::WorkTree, cancel);
    let result = source.load().await;
    assert!(
        matches!(&result, Err(SourceError::Failed { message, .. }) if message == "cancelled"),
        "{:?}",
        result.err()
    );
}

#[tokio::test]
async fn an_unreadable_file_is_a_failure_not_an_omission() {
    use std::os::unix::fs::PermissionsExt;
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("base");
    repo.write("b", "2\n");
    let locked = repo.root().join("b");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).expect("mode");
    let result = load(&repo, Selection::WorkTree).await;
    // Root reads everything.
    if std::fs::read(&locked).is_ok() {
        assert_eq!(result.expect("changes").diff.files.len(), 1);
    } else {
        assert!(matches!(result, Err(SourceError::Failed { .. })));
    }
}

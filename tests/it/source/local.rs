//! What each selection compares, and what the diff then holds.

use std::path::Path;

use ecr::model::{ChangeStatus, InputKind, NoteKind, RepoPath};
use ecr::port::{ReviewSource, SourceError, SourceInput, TreeUnderReview};
use ecr::source::{LocalSource, Selection};
use tokio_util::sync::CancellationToken;

use crate::git::{host, host_with};
use crate::support::repo::TestRepo;

pub(super) fn range(base: &str, head: Option<&str>) -> Selection {
    Selection::Range {
        base: base.to_owned(),
        head: head.map(str::to_owned),
    }
}

pub(super) fn source_at(repo: &TestRepo, folder: &Path, selection: Selection) -> LocalSource {
    LocalSource::new(
        host(repo),
        folder.to_owned(),
        selection,
        CancellationToken::new(),
    )
}

pub(super) fn source(repo: &TestRepo, selection: Selection) -> LocalSource {
    source_at(repo, repo.root(), selection)
}

pub(super) async fn load(
    repo: &TestRepo,
    selection: Selection,
) -> Result<SourceInput, SourceError> {
    source(repo, selection).load().await
}

fn files(input: &SourceInput) -> Vec<(String, ChangeStatus, u32, u32)> {
    let files = input.diff.files.iter();
    files
        .map(|f| (f.path.to_lossy(), f.status, f.added, f.deleted))
        .collect()
}

fn added(path: &str, lines: u32) -> (String, ChangeStatus, u32, u32) {
    (path.to_owned(), ChangeStatus::Added, lines, 0)
}

/// `origin/main` is ahead of the stale local `main`; the branch `work` starts at the former.
fn branched(repo: &TestRepo) -> (String, String) {
    repo.write("a", "1\n");
    let stale = repo.commit_all("stale");
    repo.git(&["checkout", "-q", "-b", "work"]);
    repo.write("b", "merged by others\n");
    let fresh = repo.commit_all("fresh");
    repo.git(&["update-ref", "refs/remotes/origin/main", &fresh]);
    repo.write("c", "committed\n");
    repo.commit_all("mine");
    (stale, fresh)
}

#[tokio::test]
async fn the_default_is_everything_since_the_remote_default_branch() {
    let repo = TestRepo::init();
    let (_, fresh) = branched(&repo);
    repo.write("d", "staged\n");
    repo.git(&["add", "d"]);
    repo.write("e", "untracked\n");
    let source = source(&repo, Selection::WorkTree);
    let input = source.load().await.expect("changes");
    assert_eq!(files(&input), [added("c", 1), added("d", 1), added("e", 1)]);
    assert_eq!(input.info.kind, InputKind::WorkingTree);
    assert_eq!(input.info.base_name.as_deref(), Some("origin/main"));
    assert_eq!(
        input.info.base.as_ref().map(ToString::to_string),
        Some(fresh)
    );
    assert_eq!(input.info.head, None);
    assert!(input.own_work && input.notes.is_empty());
}

#[tokio::test]
async fn the_tree_is_what_the_diff_was_made_from() {
    let repo = TestRepo::init();
    branched(&repo);
    repo.write("a", "before\n");
    let source = source(&repo, Selection::WorkTree);
    let input = source.load().await.expect("changes");
    repo.write("a", "after\n");
    let a = RepoPath::new("a").expect("a path");
    let read = |tree: TreeUnderReview| {
        let TreeUnderReview::Tree(tree) = tree else {
            panic!("a repository has a tree");
        };
        let bytes = tree.read(&a, 100).expect("readable").expect("there");
        String::from_utf8(bytes.to_vec()).expect("utf-8")
    };
    assert_eq!(read(source.tree().await.expect("a tree")), "before\n");
    assert_eq!(read(source.base_tree().await.expect("a tree")), "1\n");
    let file = input.diff.files.iter().find(|f| f.path == a).expect("a");
    let lines: Vec<_> = file.hunks[0]
        .lines(&input.diff.patch)
        .map(|l| l.content)
        .collect();
    assert_eq!(lines, [&b"1"[..], b"before"]);
}

#[tokio::test]
async fn a_range_with_a_head_is_what_the_head_adds() {
    let repo = TestRepo::init();
    let (stale, fresh) = branched(&repo);
    repo.git(&["checkout", "-q", "-b", "trunk", &stale]);
    repo.write("trunk-only", "x\n");
    repo.commit_all("trunk moves on");
    repo.write("uncommitted", "x\n");
    let input = load(&repo, range("trunk", Some("work")))
        .await
        .expect("changes");
    assert_eq!(files(&input), [added("b", 1), added("c", 1)]);
    assert_eq!(input.info.kind, InputKind::Range);
    assert_eq!(
        input.info.base.as_ref().map(ToString::to_string),
        Some(stale)
    );
    let work = String::from_utf8(repo.git(&["rev-parse", "work"])).expect("ascii");
    assert_eq!(
        input.info.head.as_ref().map(ToString::to_string),
        Some(work.trim().to_owned())
    );
    let input = load(&repo, range(&fresh[..10], Some("work")))
        .await
        .expect("changes");
    assert_eq!(files(&input), [added("c", 1)]);
}

#[tokio::test]
async fn a_range_without_a_head_ends_in_the_work_tree() {
    let repo = TestRepo::init();
    let (stale, _) = branched(&repo);
    repo.write("d", "untracked\n");
    let input = load(&repo, range(&stale, None)).await.expect("changes");
    assert_eq!(files(&input), [added("b", 1), added("c", 1), added("d", 1)]);
    assert_eq!(input.info.head, None);
    assert!(input.notes.is_empty());
    repo.git(&["checkout", "-q", "-b", "behind", &stale]);
    let input = load(&repo, range("work", None)).await.expect("changes");
    assert_eq!(files(&input).len(), 3);
    assert!(input.notes[0].text.contains("show up reversed"));
}

#[tokio::test]
async fn staged_in_a_hook_takes_the_index_of_the_hook() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("base");
    repo.write("a", "2\n");
    let other = repo.root().join(".git/next-index");
    let done = repo
        .command("git")
        .env("GIT_INDEX_FILE", &other)
        .args(["add", "-A"])
        .status();
    assert!(done.expect("git").success());
    let host = host_with(
        &repo,
        &[("GIT_INDEX_FILE", ".git/next-index"), ("GIT_DIR", ".git")],
    );
    let folder = repo.root().to_owned();
    let source = LocalSource::new(host, folder, Selection::Staged, CancellationToken::new());
    let input = source.load().await.expect("changes");
    assert_eq!(
        files(&input),
        [("a".to_owned(), ChangeStatus::Modified, 1, 1)]
    );
    assert_eq!(input.info.kind, InputKind::Staged);
    let plain = load(&repo, Selection::Staged).await;
    assert!(matches!(plain, Err(SourceError::Nothing { .. })));
}

#[tokio::test]
async fn a_fresh_repository_is_compared_with_nothing() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.write("b", "1\n2\n");
    repo.git(&["add", "b"]);
    let input = load(&repo, Selection::WorkTree).await.expect("changes");
    assert_eq!(files(&input), [added("a", 1), added("b", 2)]);
    assert_eq!(input.info.base, None);
    assert!(input.notes[0].text.contains("no commit yet"));
    let input = load(&repo, Selection::Staged).await.expect("changes");
    assert_eq!(files(&input), [added("b", 2)]);
}

#[tokio::test]
async fn without_a_default_branch_only_what_is_not_committed_counts() {
    let repo = TestRepo::init();
    repo.git(&["symbolic-ref", "HEAD", "refs/heads/odd"]);
    repo.write("a", "1\n");
    let head = repo.commit_all("base");
    repo.write("a", "2\n");
    let input = load(&repo, Selection::WorkTree).await.expect("changes");
    assert_eq!(files(&input).len(), 1);
    assert_eq!(input.info.base_name.as_deref(), Some("HEAD"));
    assert_eq!(
        input.info.base.as_ref().map(ToString::to_string),
        Some(head)
    );
    assert!(input.notes[0].text.contains("no default branch was found"));
}

#[tokio::test]
async fn on_the_default_branch_itself_only_what_is_not_pushed_counts() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.commit_all("base");
    repo.write("b", "1\n");
    let input = load(&repo, Selection::WorkTree).await.expect("changes");
    assert_eq!(files(&input), [added("b", 1)]);
    assert_eq!(input.info.base_name.as_deref(), Some("main"));
}

#[tokio::test]
async fn conflicts_and_nested_repositories_are_said() {
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
    let nested = repo.root().join("nested");
    std::fs::create_dir(&nested).expect("folder");
    let done = repo
        .command("git")
        .current_dir(&nested)
        .args(["init", "-q"])
        .status();
    assert!(done.expect("git").success());
    repo.write("nested/x", "1\n");
    let input = load(&repo, Selection::WorkTree).await.expect("changes");
    let notes: Vec<_> = input
        .notes
        .iter()
        .map(|n| (n.kind, n.text.as_str()))
        .collect();
    assert_eq!(
        notes,
        [
            (
                NoteKind::Setup,
                "1 file is in conflict, reviewed as in the working tree: a"
            ),
            (
                NoteKind::Missed,
                "1 untracked folder is a repository of its own and was not reviewed: nested"
            ),
        ]
    );
}

//! Repositories that git2 refuses, and other unusual ones: all of them work alike.

use super::{commit, diff, id, names, open, try_open, work_diff};
use crate::support::repo::TestRepo;
use ecr::git::{GitError, Repository};
use ecr::model::RepoPath;
use ecr::tree::{EntryKind, Tree};

/// Two commits and a dirty work tree, reviewed and read in full.
async fn works(repo: &TestRepo, repository: &Repository, base: &str, head: &str) {
    let raw = diff(repository, base, head).await;
    assert_eq!(names(&raw), ["M src/a", "A src/b"]);
    assert!(String::from_utf8_lossy(&raw.patch).contains("+two\n"));
    repo.write("src/c", "three\n");
    let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
    let raw = diff(repository, head, snapshot.tree.as_str()).await;
    assert_eq!(names(&raw), ["A src/c"]);
    for (id, path, content) in [
        (id(base), "src/a", &b"one\n"[..]),
        (id(head), "src/b", b"new\n"),
        (snapshot.tree, "src/c", b"three\n"),
    ] {
        let tree = repository.tree(&id);
        let path = RepoPath::new(path).expect("a path");
        let read = tree.read(&path, 100).expect("readable").expect("there");
        assert_eq!(&*read, content);
        assert_eq!(tree.kind(&path).expect("known"), Some(EntryKind::File));
    }
    assert_eq!(
        repository
            .merge_base(&commit(base), &commit(head))
            .await
            .expect("common")
            .as_str(),
        base
    );
}

fn two_commits(repo: &TestRepo) -> (String, String) {
    repo.write("src/a", "one\n");
    let base = repo.commit_all("base");
    repo.write("src/a", "two\n");
    repo.write("src/b", "new\n");
    let head = repo.commit_all("head");
    (base, head)
}

#[tokio::test]
async fn plain() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    works(&repo, &open(&repo).await, &base, &head).await;
}

#[tokio::test]
async fn sha256() {
    let repo = TestRepo::init_with(&["--object-format=sha256"]);
    let (base, head) = two_commits(&repo);
    assert_eq!(base.len(), 64);
    works(&repo, &open(&repo).await, &base, &head).await;
}

#[tokio::test]
async fn reftable() {
    let probe = TestRepo::init();
    let init = probe
        .command("git")
        .args(["init", "-q", "--ref-format=reftable", "x"])
        .output();
    if !init.expect("git").status.success() {
        return; // git before 2.45 cannot make one
    }
    let repo = TestRepo::init_with(&["--ref-format=reftable"]);
    let (base, head) = two_commits(&repo);
    let repository = open(&repo).await;
    works(&repo, &repository, &base, &head).await;
    assert_eq!(
        repository.resolve("main").await.expect("main").as_str(),
        head
    );
    let branch = repository
        .default_branch()
        .await
        .expect("asked")
        .expect("one");
    assert_eq!(branch.name, "main");
}

#[tokio::test]
async fn sparse_index() {
    let repo = TestRepo::init();
    repo.write("far/x", "far\n");
    repo.write("far/away/y", "away\n");
    let (base, head) = two_commits(&repo);
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    assert!(!repo.root().join("far/x").exists());
    let repository = open(&repo).await;
    works(&repo, &repository, &base, &head).await;
    // What was never checked out was not deleted.
    assert_eq!(names(&work_diff(&repository, &head).await), ["A src/c"]);
}

#[tokio::test]
async fn split_index_and_linked_work_tree() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    let linked = repo.home().join("linked");
    repo.git(&["config", "core.splitIndex", "true"]);
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        linked.to_str().expect("utf-8"),
        &head,
    ]);
    std::fs::write(linked.join("src/a"), "linked\n").expect("write");
    repo.write("src/a", "main\n");
    let repository = try_open(&repo, &linked.join("src"))
        .await
        .expect("a repository");
    assert_eq!(
        repository.work_tree(),
        Some(linked.canonicalize().expect("path").as_path())
    );
    let raw = work_diff(&repository, &base).await;
    assert_eq!(names(&raw), ["M src/a", "A src/b"]);
    assert!(String::from_utf8_lossy(&raw.patch).contains("+linked\n"));
    assert_eq!(
        repository
            .head()
            .await
            .expect("asked")
            .expect("detached")
            .as_str(),
        head
    );
}

#[tokio::test]
async fn bare() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    let bare = repo.home().join("bare.git");
    repo.git(&["clone", "-q", "--bare", ".", bare.to_str().expect("utf-8")]);
    let repository = try_open(&repo, &bare).await.expect("a repository");
    assert_eq!(
        names(&diff(&repository, &base, &head).await),
        ["M src/a", "A src/b"]
    );
    assert_eq!(
        repository.resolve("main").await.expect("main").as_str(),
        head
    );
}

#[tokio::test]
async fn shallow() {
    let repo = TestRepo::init();
    let (base, _) = two_commits(&repo);
    repo.git(&["checkout", "-q", "-b", "side", &base]);
    repo.write("side", "s\n");
    repo.commit_all("side");
    let clone = repo.home().join("shallow");
    let url = format!("file://{}", repo.root().display());
    repo.git(&[
        "clone",
        "-q",
        "--depth=1",
        "--no-single-branch",
        &url,
        clone.to_str().expect("utf-8"),
    ]);
    let repository = try_open(&repo, &clone).await.expect("a repository");
    assert!(repository.is_shallow());
    let one = repository.resolve("origin/main").await.expect("main");
    let other = repository.resolve("origin/side").await.expect("side");
    let error = repository
        .merge_base(&one, &other)
        .await
        .expect_err("cut off");
    assert!(
        matches!(error, GitError::NoMergeBase { shallow: true, .. }),
        "{error}"
    );
    // Two commits that are here can be compared all the same.
    let raw = diff(&repository, other.as_str(), one.as_str()).await;
    assert_eq!(names(&raw), ["D side", "M src/a", "A src/b"]);
}

#[tokio::test]
async fn blobless() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let clone = repo.home().join("blobless");
    let url = format!("file://{}", repo.root().display());
    repo.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        &url,
        clone.to_str().expect("utf-8"),
    ]);
    let missing = repo
        .command("git")
        .current_dir(&clone)
        .env("GIT_NO_LAZY_FETCH", "1")
        .args(["cat-file", "-e", &format!("{base}:src/a")])
        .status();
    assert!(
        !missing.expect("git").success(),
        "the old blob is not here yet"
    );
    let repository = try_open(&repo, &clone).await.expect("a repository");
    let raw = diff(&repository, &base, &head).await;
    assert_eq!(names(&raw), ["M src/a", "A src/b"]);
    assert!(String::from_utf8_lossy(&raw.patch).contains("-one\n"));
    let tree = repository.tree(&id(&base));
    let path = RepoPath::new("src/a").expect("a path");
    assert_eq!(
        &*tree.read(&path, 100).expect("fetched").expect("there"),
        b"one\n"
    );
    std::fs::write(clone.join("src/c"), "three\n").expect("write");
    assert_eq!(names(&work_diff(&repository, &head).await), ["A src/c"]);
}

#[tokio::test]
async fn odd_folder_names() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    for name in [
        "quo\"te",
        "co:lon",
        "back\\slash",
        " space ",
        "ünï",
        "#hash;",
    ] {
        let clone = repo.home().join(name);
        repo.git(&["clone", "-q", ".", clone.to_str().expect("utf-8")]);
        let repository = try_open(&repo, &clone).await.expect(name);
        let raw = diff(&repository, &base, &head).await;
        assert_eq!(names(&raw), ["M src/a", "A src/b"], "{name}");
        let tree = repository.tree(&id(&base));
        let path = RepoPath::new("src/a").expect("a path");
        assert!(tree.read(&path, 100).expect(name).is_some());
        std::fs::write(clone.join("new"), "n\n").expect("write");
        assert_eq!(names(&work_diff(&repository, &head).await), ["A new"]);
    }
    let broken = repo.home().join("line\nbreak");
    repo.git(&["clone", "-q", ".", broken.to_str().expect("utf-8")]);
    let refused = try_open(&repo, &broken).await;
    assert!(matches!(refused, Err(GitError::Protocol { .. })));
}

#[tokio::test]
async fn blobless_from_a_relative_path() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let clone = repo.home().join("blobless");
    let url = format!("file://{}", repo.root().display());
    repo.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        &url,
        clone.to_str().expect("utf-8"),
    ]);
    let moved = repo
        .command("git")
        .current_dir(&clone)
        .args(["config", "remote.origin.url", "../../repo"])
        .status();
    assert!(moved.expect("git").success());
    let repository = try_open(&repo, &clone).await.expect("a repository");
    assert_eq!(
        names(&diff(&repository, &base, &head).await),
        ["M src/a", "A src/b"]
    );
}

#[tokio::test]
async fn blobless_with_a_hostile_remote_configuration_runs_nothing() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let clone = repo.home().join("blobless");
    let url = format!("file://{}", repo.root().display());
    repo.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        &url,
        clone.to_str().expect("utf-8"),
    ]);
    let trace = repo.home().join("it-ran");
    let touch = format!("touch {};", trace.display());
    let set = |key: &str, value: &str| {
        let done = repo
            .command("git")
            .current_dir(&clone)
            .args(["config", key, value])
            .status();
        assert!(done.expect("git").success());
    };
    set("remote.origin.uploadpack", &touch);
    set("core.sshCommand", &touch);
    let repository = try_open(&repo, &clone).await.expect("a repository");
    assert_eq!(names(&diff(&repository, &base, &head).await).len(), 2);
    assert!(!trace.exists());
    set("remote.origin.url", &format!("ext::sh -c '{touch}'"));
    let other = try_open(&repo, &clone).await.expect("a repository");
    let refused = other.diff(&id(&base), &id(&head)).await;
    assert!(matches!(refused, Err(GitError::Failed { .. })));
    assert!(!trace.exists());
}

#[tokio::test]
async fn a_missing_object_is_an_error() {
    let repo = TestRepo::init();
    let (base, head) = two_commits(&repo);
    let blob = repo.git(&["rev-parse", &format!("{base}:src/a")]);
    let blob = String::from_utf8(blob).expect("ascii");
    let file = repo
        .root()
        .join(".git/objects")
        .join(&blob[..2])
        .join(blob[2..].trim());
    std::fs::remove_file(file).expect("remove");
    let repository = open(&repo).await;
    assert!(repository.diff(&id(&base), &id(&head)).await.is_err());
    let tree = repository.tree(&id(&base));
    let read = tree.read(&RepoPath::new("src/a").expect("a path"), 100);
    assert!(matches!(read, Err(ecr::tree::TreeError::Missing { .. })));
}

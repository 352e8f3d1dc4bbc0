//! Snapshots of the index and the work tree.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{diff, id, names, open, try_open, work_diff};
use crate::support::repo::TestRepo;
use ecr::git::GitError;

/// What plain git says after staging everything in an index of its own.
fn expected(repo: &TestRepo, base: &str) -> Vec<u8> {
    let index = repo.home().join("expected-index");
    let run = |args: &[&str]| {
        let out = repo
            .command("git")
            .env("GIT_INDEX_FILE", &index)
            .args(args)
            .output()
            .expect("git");
        assert!(
            out.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        out.stdout
    };
    // Without times, so that git compares every file by content.
    run(&["read-tree", base]);
    run(&["add", "-A"]);
    run(&["diff", "--cached", "-M", "--numstat", "-z", base])
}

#[tokio::test]
async fn everything_that_can_happen_to_a_file() {
    let repo = TestRepo::init();
    repo.write("kept", "1\n");
    repo.write("edited", "1\n2\n3\n");
    repo.write("gone", "x\n");
    repo.write("mode.sh", "echo\n");
    repo.write("file-to-folder", "x\n");
    repo.write("folder-to-file/a", "x\n");
    repo.write("folder-to-link/a", "linked\n");
    repo.write("moved", "a line that is long enough\n".repeat(40));
    symlink("kept", repo.root().join("link")).expect("link");
    symlink("kept", repo.root().join("link-to-file")).expect("link");
    repo.write(".gitignore", "*.log\n");
    let base = repo.commit_all("base");
    let root = repo.root();
    let remove = |name: &str| std::fs::remove_file(root.join(name)).expect("remove");
    repo.write("edited", "1\nx\n3\n");
    remove("gone");
    std::fs::set_permissions(root.join("mode.sh"), std::fs::Permissions::from_mode(0o755))
        .expect("mode");
    remove("file-to-folder");
    repo.write("file-to-folder/inner", "y\n");
    std::fs::remove_dir_all(root.join("folder-to-file")).expect("remove");
    repo.write("folder-to-file", "y\n");
    // The link leads to a folder with a file of the same name and content: it must not pass as unchanged.
    let elsewhere = repo.home().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).expect("folder");
    std::fs::rename(root.join("folder-to-link/a"), elsewhere.join("a")).expect("move");
    std::fs::remove_dir(root.join("folder-to-link")).expect("remove");
    symlink(&elsewhere, root.join("folder-to-link")).expect("link");
    std::fs::rename(root.join("moved"), root.join("renamed")).expect("move");
    remove("link");
    symlink("/etc/passwd", root.join("link")).expect("link");
    remove("link-to-file");
    repo.write("link-to-file", "now text\n");
    repo.write("ignored.log", "x\n");
    repo.write("new empty", "");
    repo.write("new.bin", b"\0\x01");
    for name in [
        &b"tab\there"[..],
        b"line\nbreak",
        b"quo\"te",
        b"-dash",
        b"a b/c",
        b"\xff\xfe",
        b":(glob)*",
        b"*",
    ] {
        repo.write(Path::new(std::ffi::OsStr::from_bytes(name)), "odd\n");
    }
    repo.write("huge", vec![b'x'; 3 << 20]);
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::Mode::from(0o600),
    )
    .expect("fifo");
    let index = std::fs::read(root.join(".git/index")).expect("index");

    let repository = open(&repo).await;
    let objects = repo.git(&["count-objects"]);
    let raw = work_diff(&repository, &base).await;
    assert_eq!(
        repo.git(&["count-objects"]),
        objects,
        "the user's objects are untouched"
    );
    assert_eq!(
        String::from_utf8_lossy(&raw.numstat_z),
        String::from_utf8_lossy(&expected(&repo, &base))
    );
    let all = names(&raw);
    for name in [
        "D file-to-folder",
        "A file-to-folder/inner",
        "D folder-to-file/a",
        "A folder-to-file",
        "D folder-to-link/a",
        "A folder-to-link",
        "R moved -> renamed",
        "M link",
        "T link-to-file",
        "M mode.sh",
        "A new empty",
        "A line\nbreak",
    ] {
        assert!(all.contains(&name.to_owned()), "{name} in {all:?}");
    }
    assert!(
        !all.iter()
            .any(|n| n.contains("ignored") || n.contains("pipe") || n.contains("kept"))
    );
    assert!(
        String::from_utf8_lossy(&raw.patch).contains("+/etc/passwd\n"),
        "the link's text, not its target"
    );
    assert!(!String::from_utf8_lossy(&raw.patch).contains("root:"));
    assert_eq!(
        std::fs::read(root.join(".git/index")).expect("index"),
        index,
        "the user's index is untouched"
    );
}

#[tokio::test]
async fn the_folder_it_began_in_does_not_matter() {
    let repo = TestRepo::init();
    repo.write("a/deep/x", "1\n");
    repo.write("b", "1\n");
    let base = repo.commit_all("base");
    repo.write("b", "2\n");
    repo.write("a/new", "n\n");
    let here = try_open(&repo, &repo.root().join("a/deep"))
        .await
        .expect("a repository");
    assert_eq!(here.work_tree(), Some(repo.root()));
    assert!(work_diff(&here, &base).await == work_diff(&open(&repo).await, &base).await);
}

#[tokio::test]
async fn a_change_of_the_same_size_in_the_same_instant_is_seen() {
    let repo = TestRepo::init();
    // The change time gives it away on most systems, but not on all.
    repo.git(&["config", "core.trustctime", "false"]);
    let instant = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let at_instant = |path: &str| {
        let path = repo.root().join(path);
        let open = std::fs::File::options().write(true).open(path);
        open.and_then(|f| f.set_modified(instant)).expect("a time");
    };
    repo.write("x", "aaaa\n");
    at_instant("x");
    let base = repo.commit_all("base");
    repo.write("x", "bbbb\n");
    at_instant("x");
    at_instant(".git/index");
    assert_eq!(names(&work_diff(&open(&repo).await, &base).await), ["M x"]);
}

#[tokio::test]
async fn staged_is_the_index_and_nothing_else() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    let base = repo.commit_all("base");
    repo.write("a", "2\n");
    repo.git(&["add", "a"]);
    repo.write("a", "3\n");
    repo.write("intended", "x\n");
    repo.git(&["add", "-N", "intended"]);
    repo.write("untracked", "x\n");
    let repository = open(&repo).await;
    let staged = repository.staged(None).await.expect("a snapshot");
    let raw = diff(&repository, &base, staged.tree.as_str()).await;
    assert_eq!(names(&raw), ["M a"]);
    assert!(String::from_utf8_lossy(&raw.patch).contains("+2\n"));
    let raw = work_diff(&repository, &base).await;
    assert_eq!(names(&raw), ["M a", "A intended", "A untracked"]);
    // Another index, as in a hook of `git commit -a`.
    let other = repo.home().join("other-index");
    let copied = repo
        .command("git")
        .env("GIT_INDEX_FILE", &other)
        .args(["add", "-A"])
        .status();
    assert!(copied.expect("git").success());
    let staged = repository.staged(Some(&other)).await.expect("a snapshot");
    let raw = diff(&repository, &base, staged.tree.as_str()).await;
    assert_eq!(names(&raw), ["M a", "A intended", "A untracked"]);
}

#[tokio::test]
async fn conflicts_are_refused_when_staged_and_shown_in_the_work_tree() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    repo.write("both-gone", "1\n");
    repo.commit_all("base");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a", "side\n");
    repo.commit_all("side");
    repo.git(&["checkout", "-q", "main"]);
    repo.write("a", "main\n");
    let base = repo.commit_all("main");
    let merge = repo
        .command("git")
        .args(["merge", "-q", "side"])
        .output()
        .expect("git");
    assert!(!merge.status.success());
    let repository = open(&repo).await;
    let Err(GitError::Unmerged { paths }) = repository.staged(None).await else {
        panic!("a conflict is no snapshot");
    };
    assert_eq!(paths, ["a"]);
    let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
    assert_eq!(snapshot.unmerged.len(), 1);
    let raw = diff(&repository, &base, snapshot.tree.as_str()).await;
    assert_eq!(names(&raw), ["M a"]);
    assert!(String::from_utf8_lossy(&raw.patch).contains("+<<<<<<< HEAD"));
    // Settled by deleting the file: it is gone, not in conflict.
    std::fs::remove_file(repo.root().join("a")).expect("remove");
    let raw = work_diff(&repository, &base).await;
    assert_eq!(names(&raw), ["D a"]);
}

#[tokio::test]
async fn a_nested_repository_is_named_not_read() {
    let repo = TestRepo::init();
    let base = repo.commit_all("base");
    repo.write("nested/x", "1\n");
    let nested = repo.root().join("nested");
    for args in [&["init", "-q"][..], &["add", "x"], &["commit", "-qm", "n"]] {
        let done = repo.command("git").current_dir(&nested).args(args).status();
        assert!(done.expect("git").success());
    }
    let repository = open(&repo).await;
    let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
    assert_eq!(snapshot.nested.len(), 1);
    assert_eq!(snapshot.nested[0].to_lossy(), "nested");
    assert!(names(&diff(&repository, &base, snapshot.tree.as_str()).await).is_empty());
}

#[tokio::test]
async fn before_the_first_commit() {
    let repo = TestRepo::init();
    repo.write("a", "1\n");
    let repository = open(&repo).await;
    assert_eq!(repository.head().await.expect("asked"), None);
    let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
    let empty = repository.empty_tree().expect("an id");
    let raw = repository
        .diff(&empty, &snapshot.tree)
        .await
        .expect("a diff");
    assert_eq!(names(&raw), ["A a"]);
    assert_eq!(snapshot.untracked, 1);
    let staged = repository.staged(None).await.expect("a snapshot");
    assert_eq!(staged.tree, empty);
    assert_eq!(id("4b825dc642cb6eb9a060e54bf8d69288fbee4904"), empty);
}

#[tokio::test]
async fn line_ends_follow_the_checkout() {
    let repo = TestRepo::init();
    repo.write("a.txt", "1\n2\n");
    let base = repo.commit_all("base");
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.write("a.txt", "1\r\n2\r\n");
    assert!(names(&work_diff(&open(&repo).await, &base).await).is_empty());
    repo.git(&["config", "core.autocrlf", "false"]);
    assert_eq!(
        names(&work_diff(&open(&repo).await, &base).await),
        ["M a.txt"]
    );
}

//! Trees of commits and of the work tree.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::{id, open};
use crate::support::repo::TestRepo;
use ecr::model::RepoPath;
use ecr::tree::{EntryKind, Tree, TreeError};

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

fn shown(tree: &dyn Tree) -> Vec<(String, EntryKind)> {
    let walked = tree.walk().expect("a walk");
    walked
        .into_iter()
        .map(|e| (e.path.to_lossy(), e.kind))
        .collect()
}

fn sample(repo: &TestRepo) {
    repo.write("a.txt", "text\n");
    repo.write("run.sh", "echo\n");
    std::fs::set_permissions(
        repo.root().join("run.sh"),
        std::fs::Permissions::from_mode(0o755),
    )
    .expect("mode");
    repo.write("a/b/c", "deep\n");
    repo.write("a-b", "sorts between\n");
    repo.write(".gitignore", "*.log\n");
    symlink("/etc/passwd", repo.root().join("link")).expect("link");
}

const EXPECTED: [(&str, EntryKind); 6] = [
    (".gitignore", EntryKind::File),
    ("a-b", EntryKind::File),
    ("a.txt", EntryKind::File),
    ("a/b/c", EntryKind::File),
    ("link", EntryKind::Symlink),
    ("run.sh", EntryKind::Executable),
];

fn check(tree: &dyn Tree) {
    assert_eq!(shown(tree), EXPECTED.map(|(p, k)| (p.to_owned(), k)));
    let read = |p: &str| {
        tree.read(&path(p), 1000)
            .expect("readable")
            .map(|b| b.to_vec())
    };
    assert_eq!(read("a/b/c").as_deref(), Some(&b"deep\n"[..]));
    assert_eq!(
        read("link").as_deref(),
        Some(&b"/etc/passwd"[..]),
        "never followed"
    );
    for absent in ["a", "a/b", "nope", "a.txt/x", "link/x", "a/b/c/d", "A.txt"] {
        assert_eq!(read(absent), None, "{absent}");
    }
    let kind = |p: &str| tree.kind(&path(p)).expect("known");
    assert_eq!(kind("a"), Some(EntryKind::Folder));
    assert_eq!(kind("a/b/c"), Some(EntryKind::File));
    assert_eq!(kind("run.sh"), Some(EntryKind::Executable));
    assert_eq!(kind("nope"), None);
    let list = |p: Option<&str>| -> Vec<String> {
        let p = p.map(path);
        let listed = tree.list(p.as_ref()).expect("listed");
        listed.into_iter().map(|e| e.path.to_lossy()).collect()
    };
    assert_eq!(
        list(None),
        [".gitignore", "a", "a-b", "a.txt", "link", "run.sh"]
    );
    assert_eq!(list(Some("a")), ["a/b"]);
    assert!(
        list(Some("nope")).is_empty()
            && list(Some("a.txt")).is_empty()
            && list(Some("link")).is_empty()
    );
    assert!(matches!(
        tree.read(&path("a/b/c"), 4),
        Err(TreeError::TooLarge {
            size: 5,
            limit: 4,
            ..
        })
    ));
    assert_eq!(
        tree.read(&path("a/b/c"), 5)
            .expect("fits")
            .expect("there")
            .len(),
        5
    );
}

#[tokio::test]
async fn a_commit_a_snapshot_and_the_disk_look_alike() {
    for format in ["sha1", "sha256"] {
        let repo = TestRepo::init_with(&[&format!("--object-format={format}")]);
        sample(&repo);
        let repository = open(&repo).await;
        let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
        check(&repository.tree(&snapshot.tree));
        check(&repository.work_tree_view().await.expect("a view"));
        let head = repo.commit_all("one");
        check(&repository.tree(&id(head)));
        let staged = repository.staged(None).await.expect("a snapshot");
        check(&repository.tree(&staged.tree));
    }
}

#[tokio::test]
async fn a_tree_outlives_its_repository() {
    let repo = TestRepo::init();
    sample(&repo);
    let repository = open(&repo).await;
    let snapshot = repository.work_tree_snapshot().await.expect("a snapshot");
    let tree = repository.tree(&snapshot.tree);
    drop(repository);
    check(&tree);
}

#[tokio::test]
async fn many_readers_of_the_command_get_their_own_answers() {
    let repo = TestRepo::init_with(&["--object-format=sha256"]);
    for n in 0..50 {
        repo.write(format!("f{n}"), format!("{n}\n").repeat(n));
    }
    let head = repo.commit_all("one");
    let tree = open(&repo).await.tree(&id(head));
    std::thread::scope(|scope| {
        for start in 0..4 {
            let tree = &tree;
            scope.spawn(move || {
                for n in (0..50).map(|n| (n + start * 13) % 50) {
                    let file = path(&format!("f{n}"));
                    let limit = if n % 7 == 3 { 2 } else { 1000 };
                    match tree.read(&file, limit) {
                        Ok(read) => {
                            let expected = format!("{n}\n").len() * n;
                            assert_eq!(read.expect("there").len(), expected);
                        }
                        Err(TreeError::TooLarge { .. }) => assert_eq!(limit, 2),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
}

#[tokio::test]
async fn the_view_of_the_disk_cannot_be_led_astray() {
    let repo = TestRepo::init();
    sample(&repo);
    repo.write("secret.log", "ignored\n");
    repo.commit_all("one");
    let outside = repo.home().join("outside");
    std::fs::create_dir_all(outside.join("b")).expect("folder");
    std::fs::write(outside.join("b/c"), "outside\n").expect("write");
    let view = open(&repo).await.work_tree_view().await.expect("a view");
    assert_eq!(
        view.read(&path("secret.log"), 100).expect("asked"),
        None,
        "ignored files are not served"
    );
    // After the view was made, a folder and a file become links out of the tree, and a file a pipe.
    std::fs::remove_dir_all(repo.root().join("a")).expect("remove");
    symlink(&outside, repo.root().join("a")).expect("link");
    std::fs::remove_file(repo.root().join("a.txt")).expect("remove");
    symlink(outside.join("b/c"), repo.root().join("a.txt")).expect("link");
    std::fs::remove_file(repo.root().join("a-b")).expect("remove");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        repo.root().join("a-b"),
        rustix::fs::Mode::from(0o600),
    )
    .expect("fifo");
    assert_eq!(view.read(&path("a/b/c"), 100).expect("asked"), None);
    assert_eq!(view.kind(&path("a/b/c")).expect("asked"), None);
    let link = view
        .read(&path("a.txt"), 1000)
        .expect("asked")
        .expect("a link");
    assert!(link.ends_with(b"outside/b/c"), "the text of the link");
    assert_eq!(
        view.read(&path("a-b"), 100).expect("asked"),
        None,
        "and nobody waits for a pipe"
    );
}

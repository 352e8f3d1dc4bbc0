//! `grep`, `glob`, `list`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ecr::gateway::ToolSession;
use ecr::gateway::tools::{Session, TreeCache};
use ecr::model::RepoPath;
use ecr::tree::{EntryKind, MemoryTree, Tree, TreeEntry, TreeError};
use serde_json::json;

use super::harness::{ok, path, refused, session, settings, tree_of};

#[tokio::test]
async fn hits_come_in_order_with_their_context() {
    let session = session(&[
        ("b/two.txt", b"x\nneedle\ny\n"),
        (
            "a/one.rs",
            b"1\n2\nneedle 3\n4\nneedle 5\n6\n7\n8\n9\nneedle 10\n",
        ),
        ("c.md", b"nothing\n"),
    ]);
    let answer = ok(&session, "grep", json!({"pattern": "needle"})).await;
    assert_eq!(
        answer,
        "a/one.rs\n3:\tneedle 3\n5:\tneedle 5\n10:\tneedle 10\nb/two.txt\n2:\tneedle"
    );
    let answer = ok(
        &session,
        "grep",
        json!({"pattern": "needle", "glob": "*.rs", "context": 1}),
    )
    .await;
    let expected =
        "a/one.rs\n2-\t2\n3:\tneedle 3\n4-\t4\n5:\tneedle 5\n6-\t6\n--\n9-\t9\n10:\tneedle 10";
    assert_eq!(answer, expected);
    assert_eq!(session.record().seen[&path("a/one.rs")], [2..=6, 9..=10]);
    assert_eq!(
        ok(&session, "grep", json!({"pattern": "absent"})).await,
        "[no line matches]"
    );
    assert_eq!(
        ok(
            &session,
            "grep",
            json!({"pattern": "needle", "glob": "*.py"})
        )
        .await,
        "[no line matches]"
    );
}

#[tokio::test]
async fn a_pattern_is_for_a_line() {
    let session = session(&[("f", b"foo\r\nbar\r\n\r\nfoo bar\r\n"), ("g", b"alpha")]);
    for (pattern, hits) in [
        (r"foo\s+bar", "f\n4:\tfoo bar"),
        ("^foo$", "f\n1:\tfoo"),
        ("(?-m)^bar$", "f\n2:\tbar"),
        (r"\Abar\z", "f\n2:\tbar"),
        ("^$", "f\n3:\t"),
        ("(?i)ALPHA", "g\n1:\talpha"),
        (r"(?s)foo.*bar", "f\n4:\tfoo bar"),
        ("[^x]*lpha", "g\n1:\talpha"),
    ] {
        assert_eq!(
            ok(&session, "grep", json!({"pattern": pattern})).await,
            hits,
            "{pattern}"
        );
    }
}

#[tokio::test]
async fn too_many_hits_are_counted_and_named() {
    let text = "hit\n".repeat(70);
    let names: Vec<_> = (0..30).map(|n| format!("f{n:02}")).collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), text.as_bytes()))
        .collect();
    let session = session(&files);
    let answer = ok(&session, "grep", json!({"pattern": "hit"})).await;
    assert_eq!(answer.matches(":\thit").count(), 300);
    let last = answer.lines().last().unwrap();
    assert!(
        last.starts_with("[1800 more in 30 files: f00 20, f01 20,"),
        "{last}"
    );
    assert!(last.contains("f06 70") && last.ends_with(", …]"), "{last}");
    // Long lines are cut around the hit, and what is cut was not seen.
    let line = format!("{}needle{}", "a".repeat(5_000), "b".repeat(5_000));
    let session = super::harness::session(&[("min.js", line.as_bytes())]);
    let answer = ok(&session, "grep", json!({"pattern": "needle"})).await;
    assert!(answer.contains("needle") && answer.len() < 400, "{answer}");
    assert!(session.record().seen.is_empty());
}

#[tokio::test]
async fn a_page_of_hits_has_room_for_what_is_left() {
    let line = format!("hit {}\n", "x".repeat(280));
    let text = line.repeat(200);
    let names: Vec<_> = (0..9)
        .map(|n| format!("{}{n}", "long name ".repeat(20)))
        .collect();
    let files: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), text.as_bytes()))
        .collect();
    let session = session(&files);
    let answer = ok(&session, "grep", json!({"pattern": "hit", "context": 10})).await;
    let shown = answer.matches(":\thit").count();
    assert!(
        answer
            .lines()
            .last()
            .unwrap()
            .starts_with(&format!("[{} more", 1_800 - shown))
    );
}

#[tokio::test]
async fn hostile_patterns_end() {
    let text = "a".repeat(20_000) + "\n" + &"ab".repeat(500_000);
    let session = session(&[("f", text.as_bytes())]);
    for pattern in [
        "(a+)+$",
        "(a|aa)+b$",
        "(.*)*x",
        "((a*)*)*c",
        "(?:a?){50}a{50}",
        r"(\w+\s?)*z",
        ".*.*.*=.*",
        "(x+x+)+y",
    ] {
        ok(&session, "grep", json!({"pattern": pattern})).await;
    }
    for (pattern, words) in [
        (r"(\w{1,300}){300}", "too complex"),
        (&"(".repeat(900), "refused"),
        ("a(?=b)", "look-around"),
        (r"(a)\1", "backreferences"),
        ("[", "unclosed"),
        ("", "empty"),
        (&"a".repeat(1_001), "at most 1000"),
    ] {
        let refusal = refused(&session, "grep", json!({"pattern": pattern})).await;
        assert!(refusal.contains(words), "{refusal}");
    }
    let refusal = refused(&session, "grep", json!({"pattern": "a", "context": 11})).await;
    assert_eq!(refusal, "context has to be a whole number from 0 to 10");
    let refusal = refused(&session, "grep", json!({"pattern": "a", "glob": "["})).await;
    assert!(refusal.contains("refused"), "{refusal}");
}

/// Counts how often it is read.
struct Counting {
    inner: MemoryTree,
    reads: Arc<AtomicUsize>,
    missing: bool,
}

impl Tree for Counting {
    fn read(&self, path: &RepoPath, limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.missing {
            return Err(TreeError::Missing {
                path: path.to_lossy(),
                hint: "clone without --filter".into(),
            });
        }
        self.inner.read(path, limit)
    }
    fn kind(&self, path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        self.inner.kind(path)
    }
    fn list(&self, folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        self.inner.list(folder)
    }
    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
        self.inner.walk()
    }
}

fn counting(missing: bool) -> (Counting, Arc<AtomicUsize>) {
    let mut inner = MemoryTree::new();
    for at in 0..500 {
        inner.insert(path(&format!("f{at}")), *b"text\n");
    }
    let reads = Arc::<AtomicUsize>::default();
    let tree = Counting {
        inner,
        reads: Arc::clone(&reads),
        missing,
    };
    (tree, reads)
}

#[tokio::test]
async fn sessions_of_a_run_read_each_file_once() {
    let (tree, reads) = counting(false);
    let cache = Arc::new(TreeCache::new(Arc::new(tree)));
    let open = || {
        let mut settings = settings(MemoryTree::new());
        settings.tree = Some(Arc::clone(&cache));
        Session::new(settings)
    };
    let (one, two) = (open(), open());
    let search = json!({"pattern": "text"});
    let (a, b) = tokio::join!(one.call("grep", search.clone()), two.call("grep", search));
    assert_eq!(a, b);
    ok(&one, "read", json!({"path": "f7"})).await;
    assert_eq!(reads.load(Ordering::SeqCst), 500);
}

#[tokio::test]
async fn a_clone_without_content_is_not_searched_file_by_file() {
    let (tree, reads) = counting(true);
    let session = Session::new(settings(tree));
    let words = refused(&session, "grep", json!({"pattern": "text"})).await;
    assert!(
        words.contains("not in this clone (clone without --filter)"),
        "{words}"
    );
    assert!(reads.load(Ordering::SeqCst) <= 8, "one a thread at most");
}

#[tokio::test]
async fn folders_and_names() {
    let mut tree = tree_of(&[
        ("src/main.rs", b""),
        ("src/deep/lib.rs", b""),
        ("README.md", b""),
    ]);
    tree.insert_as(path("link"), EntryKind::Symlink, *b"src");
    tree.insert_as(path("vendor"), EntryKind::Submodule, *b"");
    tree.insert(RepoPath::new(b"odd\n\xff").unwrap(), *b"odd\n");
    let session = Session::new(settings(tree));
    let root = "README.md\nlink (link)\nodd%0A%FF\nsrc/\nvendor (submodule)";
    for name in ["", ".", "/"] {
        assert_eq!(
            ok(&session, "list", json!({"path": name})).await,
            root,
            "{name:?}"
        );
    }
    assert_eq!(
        ok(&session, "list", json!({"path": "src/"})).await,
        "src/deep/\nsrc/main.rs"
    );
    assert_eq!(
        ok(&session, "glob", json!({"pattern": "*.rs"})).await,
        "src/deep/lib.rs\nsrc/main.rs"
    );
    assert_eq!(
        ok(&session, "glob", json!({"pattern": "*.py"})).await,
        "[no file matches]"
    );
    assert_eq!(
        ok(&session, "read", json!({"path": "odd%0A%FF"})).await,
        "1\todd"
    );
    assert_eq!(
        refused(&session, "list", json!({"path": "nope"})).await,
        "no such folder"
    );
    assert_eq!(
        refused(&session, "list", json!({"path": "README.md"})).await,
        "that is no folder: use read"
    );
    assert_eq!(
        refused(&session, "list", json!({})).await,
        "path is missing: send a string"
    );
}

#[tokio::test]
async fn long_listings_end_with_a_count() {
    let names: Vec<_> = (0..5_000).map(|n| format!("dir/file-{n:05}")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let session = session(&files);
    for (tool, ask) in [
        ("glob", json!({"pattern": "**"})),
        ("list", json!({"path": "dir"})),
    ] {
        let answer = ok(&session, tool, ask).await;
        let shown = answer.lines().count() - 1;
        let last = answer.lines().last().unwrap();
        assert_eq!(
            last,
            format!("[{} paths more: narrow it with glob]", 5_000 - shown)
        );
    }
}

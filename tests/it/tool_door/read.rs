//! `read` and `diff`: paging, masking, odd files, and the record.

use std::sync::Arc;

use ecr::diff::glob::Glob;
use ecr::gateway::ToolSession;
use ecr::gateway::tools::{Session, Withheld};
use ecr::model::RepoPath;
use ecr::tree::{EntryKind, MemoryTree, Tree, TreeEntry, TreeError};
use serde_json::{Value, json};

use super::harness::{numbered, ok, patch, path, refused, session, settings, tree_of};

/// Splits an answer into its rows and the words at its end.
fn rows(answer: &str) -> (Vec<(u32, String)>, Option<String>) {
    let mut rows = Vec::new();
    for line in answer.lines() {
        if line.starts_with('[') {
            return (rows, Some(line.to_owned()));
        }
        let (number, text) = line.split_once('\t').expect("a numbered line");
        rows.push((number.parse().expect("a number"), text.to_owned()));
    }
    (rows, None)
}

/// `from` and `column` of the words that say how to go on.
fn next(words: &str) -> Option<Value> {
    let rest = words.strip_prefix("[goes on: from=")?;
    let number = |text: &str| -> u32 {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    };
    let mut next = json!({"from": number(rest)});
    if let Some((_, column)) = rest.split_once("column=") {
        next["column"] = number(column).into();
    }
    Some(next)
}

/// Reads a file page by page and puts it together again.
async fn read_all(session: &Session, name: &str) -> (String, usize) {
    let mut whole = String::new();
    let mut pages = 0;
    let mut ask = json!({});
    let mut last = 0;
    loop {
        ask["path"] = name.into();
        let (rows, words) = rows(&ok(session, "read", ask).await);
        pages += 1;
        for (number, text) in rows {
            if number != last && last != 0 {
                whole.push('\n');
            }
            last = number;
            whole.push_str(&text);
        }
        match words.as_deref().and_then(next) {
            Some(next) => ask = next,
            None => return (whole, pages),
        }
    }
}

#[tokio::test]
async fn pages_cover_every_byte_exactly_once() {
    let long = "é0123456789 ".repeat(20_000);
    let files = [
        (
            "many",
            (1..=9_000)
                .map(|n| format!("line {n}"))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        (
            "wide",
            (1..=300)
                .map(|n| "word ".repeat(n))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        ("long", format!("first\n{long}\nmiddle\n{long}\n\nlast")),
        ("one", long.clone()),
        ("empty lines", "\n".repeat(5_000) + "end"),
    ];
    for (name, text) in files {
        let session = session(&[(name, text.as_bytes())]);
        let (whole, pages) = read_all(&session, name).await;
        assert!(whole == text, "{name} differs after {pages} pages");
        assert!(pages > 1, "{name}");
        let lines = u32::try_from(text.split('\n').count()).unwrap();
        let record = session.record();
        assert_eq!(record.seen[&path(name)], [1..=lines], "{name}");
    }
}

#[tokio::test]
async fn a_part_of_a_file_says_where_it_ends() {
    let text = numbered(50, |n| format!("l{n}\r"));
    let session = session(&[("f", text.as_bytes())]);
    let answer = ok(&session, "read", json!({"path": "f", "from": 3, "to": 4})).await;
    assert_eq!(answer, "3\tl3\n4\tl4\n[to 4 of 50]");
    let answer = ok(
        &session,
        "read",
        json!({"path": "./f", "from": 50, "to": 60}),
    )
    .await;
    assert_eq!(answer, "50\tl50");
    assert_eq!(session.record().seen[&path("f")], [3..=4, 50..=50]);
    assert_eq!(session.record().calls, 2);
    for (ask, words) in [
        (
            json!({"path": "f", "from": 51}),
            "line 51 is not there: the file has 50",
        ),
        (
            json!({"path": "f", "from": 5, "to": 4}),
            "to (4) is before from (5)",
        ),
        (json!({"path": "f", "column": 4}), "column needs from"),
        (
            json!({"path": "f", "from": 1, "column": 99}),
            "column: line 1 has 2 bytes",
        ),
        (
            json!({"path": "f", "from": 0}),
            "from has to be a whole number of 1 or more",
        ),
        (
            json!({"path": "f", "from": "1"}),
            "from has to be a whole number of 1 or more",
        ),
        (json!({"path": 5}), "path is a number: send a string"),
        (json!({}), "path is missing: send a string"),
        (
            json!({"path": "f", "offset": 1}),
            "unknown field \"offset\": read takes path, from, to, column",
        ),
    ] {
        assert_eq!(refused(&session, "read", ask).await, words);
    }
}

#[tokio::test]
async fn a_line_counts_as_seen_with_its_end() {
    let long = "x".repeat(50_000);
    let session = session(&[("f", long.as_bytes())]);
    ok(&session, "read", json!({"path": "f"})).await;
    assert!(
        session.record().seen.is_empty(),
        "only a part of it was shown"
    );
    ok(
        &session,
        "read",
        json!({"path": "f", "from": 1, "column": 30_000}),
    )
    .await;
    assert_eq!(session.record().seen[&path("f")], [1..=1]);
}

#[tokio::test]
async fn odd_files_are_told_in_words() {
    let mut tree = tree_of(&[
        ("bin", b"\x7fELF\0\0"),
        ("empty", b""),
        ("latin", b"caf\xe9\nna\xefve\n"),
        ("wide", b"\xff\xfeh\0i\0\n\0"),
    ]);
    tree.insert_as(path("link"), EntryKind::Symlink, *b"/etc/passwd\nx");
    tree.insert_as(path("sub"), EntryKind::Submodule, *b"");
    tree.insert(path("big"), vec![b'a'; (8 << 20) + 1]);
    tree.insert(path("dir/main.rs"), *b"x");
    let session = Session::new(settings(tree));
    for (name, expected) in [
        ("bin", "[a binary file of 6 bytes]"),
        ("empty", "[the file is empty]"),
        ("latin", "1\tcaf\u{fffd}\n2\tna\u{fffd}ve"),
        ("wide", "1\thi"),
        ("link", "[a symbolic link to /etc/passwd]"),
        ("sub", "[a submodule: its files are not here]"),
        (
            "big",
            "[a file of 8388609 bytes: over 8388608 none is served; its change is in diff]",
        ),
    ] {
        assert_eq!(ok(&session, "read", json!({"path": name})).await, expected);
    }
    assert_eq!(
        refused(&session, "read", json!({"path": "dir"})).await,
        "that is a folder: use list"
    );
    let words = refused(&session, "read", json!({"path": "src/main.rs"})).await;
    assert_eq!(words, "no such file; of that name: dir/main.rs");
    assert_eq!(
        session.record().seen.len(),
        2,
        "what was told in words was not read"
    );
}

/// A tree whose one file claims any size and would be read whole by whoever trusted it.
struct Endless;

impl Tree for Endless {
    fn read(&self, path: &RepoPath, limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
        assert!(limit <= 16 << 20, "nobody may ask for a gigabyte");
        Err(TreeError::TooLarge {
            path: path.to_lossy(),
            size: 1 << 30,
            limit,
        })
    }
    fn kind(&self, _path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        Ok(Some(EntryKind::File))
    }
    fn list(&self, _folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        self.walk()
    }
    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
        Ok(vec![TreeEntry {
            path: path("line"),
            kind: EntryKind::File,
            id: None,
        }])
    }
}

#[tokio::test]
async fn a_line_of_a_gigabyte_is_never_in_memory() {
    let session = Session::new(settings(Endless));
    let answer = ok(&session, "read", json!({"path": "line"})).await;
    assert!(
        answer.starts_with("[a file of 1073741824 bytes"),
        "{answer}"
    );
    let answer = ok(&session, "grep", json!({"pattern": "x"})).await;
    assert!(
        answer.contains("[1 file over 8388608 bytes not searched]"),
        "{answer}"
    );
    // The longest line that is served at all, in the middle.
    let line = "ab ".repeat((8 << 20) / 3);
    let session = super::harness::session(&[("f", line.as_bytes())]);
    let answer = ok(
        &session,
        "read",
        json!({"path": "f", "from": 1, "column": 4_000_000}),
    )
    .await;
    assert!(
        answer.contains("[goes on: from=1, column=40"),
        "{}",
        &answer[answer.len() - 100..]
    );
}

#[tokio::test]
async fn credentials_are_masked_everywhere() {
    let token = ["gh", "p_", "16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let key = [
        "-----BEGIN RSA PRIV",
        "ATE KEY-----\nMIIEowIBAAKCAQEA7bq1\nabcdEFGH12345678\n-----END RSA PRIV",
        "ATE KEY-----\n",
    ]
    .concat();
    let file = format!("one\nlet t = \"{token}\";\n{key}after\n");
    let added: String = file.lines().flat_map(|line| ["+", line, "\n"]).collect();
    let count = file.lines().count();
    let text = format!(
        "diff --git a/new.rs b/new.rs\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/new.rs\n@@ -0,0 +1,{count} @@\n{added}"
    );
    let mut settings = settings(tree_of(&[("new.rs", file.as_bytes()), (&token, b"x\n")]));
    settings.diff = patch(&text);
    let session = Session::new(settings);
    let mut answers = Vec::new();
    for (tool, ask) in [
        ("read", json!({"path": "new.rs"})),
        ("diff", json!({"path": "new.rs"})),
        (
            "grep",
            json!({"pattern": "let|MIIE|abcd|after", "context": 3}),
        ),
        ("grep", json!({"pattern": &token[..20]})),
        ("glob", json!({"pattern": "**"})),
        ("list", json!({"path": ""})),
    ] {
        answers.push(ok(&session, tool, ask).await);
    }
    answers.push(refused(&session, "read", json!({"path": format!("{token}/x")})).await);
    for answer in &answers {
        assert!(!answer.contains(&token[4..]), "{answer}");
        assert!(
            !answer.contains("MIIE") && !answer.contains("abcdEFGH"),
            "{answer}"
        );
    }
    assert!(
        answers[0].contains("2\tlet t = \"ghp_…\";"),
        "{}",
        answers[0]
    );
    assert!(
        answers[0].ends_with("7\tafter"),
        "the numbers stay: {}",
        answers[0]
    );
    assert!(answers[1].contains("+7\tafter"), "{}", answers[1]);
    assert!(
        answers[3].contains("no line matches"),
        "no oracle: {}",
        answers[3]
    );
}

#[tokio::test]
async fn what_is_hidden_cannot_be_guessed_by_searching() {
    let secret = ["sk_li", "ve_", "4eC39HqLyjWDarjtT1zdp7dc"].concat();
    let session = session(&[("f", format!("key = {secret}\n").as_bytes())]);
    for guess in [
        &secret[..12],
        "key = sk_live_(4|…)",
        "key = sk_live_[0-9]",
        "key = .{20}",
    ] {
        let answer = ok(&session, "grep", json!({"pattern": guess})).await;
        let visible = answer.contains("key = ");
        // Only what matches the shown text matches at all, whatever the secret is.
        assert_eq!(visible, guess.contains('…'), "{guess}: {answer}");
    }
}

#[tokio::test]
async fn a_tree_that_cannot_answer_says_so() {
    struct Broken;
    impl Tree for Broken {
        fn read(&self, path: &RepoPath, _limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
            Err(TreeError::Missing {
                path: path.to_lossy(),
                hint: "fetch it".into(),
            })
        }
        fn kind(&self, _path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
            Ok(Some(EntryKind::File))
        }
        fn list(&self, _folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
            Err(TreeError::Read {
                path: "the root".into(),
                message: "broken".into(),
            })
        }
        fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
            self.list(None)
        }
    }
    let session = Session::new(settings(Broken));
    let words = refused(&session, "read", json!({"path": "a"})).await;
    assert_eq!(words, "a: the object is not in this clone (fetch it)");
    for (tool, ask) in [
        ("list", json!({"path": ""})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "a"})),
    ] {
        assert_eq!(refused(&session, tool, ask).await, "the root: broken");
    }
}

const CHANGE: &str = "\
diff --git a/src/a.rs b/src/a.rs
index 1111111..2222222 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,3 +1,4 @@ fn main
 one
-two
+zwei
+drei
 three
@@ -10,2 +11,1 @@
 ten
-eleven
diff --git a/old.rs b/new.rs
similarity index 90%
rename from old.rs
rename to new.rs
index 1111111..2222222 100644
--- a/old.rs
+++ b/new.rs
@@ -1 +1 @@
-a
+b
\\ No newline at end of file
diff --git a/gone.rs b/gone.rs
deleted file mode 100644
index 1111111..0000000
--- a/gone.rs
+++ /dev/null
@@ -1,2 +0,0 @@
-x
-y
";

#[tokio::test]
async fn the_change_of_a_file_with_the_numbers_of_both_sides() {
    let mut settings = settings(tree_of(&[("src/a.rs", b"one\n"), ("same.rs", b"s\n")]));
    settings.diff = patch(CHANGE);
    let session = Session::new(settings);
    let answer = ok(&session, "diff", json!({"path": "src/a.rs"})).await;
    let expected = "modified src/a.rs, +2 -2\n@@ -1,3 +1,4 @@ fn main\n 1\tone\n-2\ttwo\n+2\tzwei\n+3\tdrei\n 4\tthree\n\
                    @@ -10,2 +11,1 @@\n 11\tten\n-11\televen";
    assert_eq!(answer, expected);
    for name in ["old.rs", "new.rs"] {
        let answer = ok(&session, "diff", json!({"path": name})).await;
        assert!(
            answer.starts_with("renamed new.rs (was old.rs), +1 -1\n"),
            "{answer}"
        );
        assert!(
            answer.ends_with("+1\tb\n\\ no newline at the end"),
            "{answer}"
        );
    }
    let answer = ok(
        &session,
        "diff",
        json!({"path": "gone.rs", "from": 2, "to": 2}),
    )
    .await;
    assert_eq!(answer, "-1\tx\n[to 2 of 3]");
    let seen = session.record().seen;
    assert_eq!(seen[&path("src/a.rs")], [1..=4, 11..=11]);
    assert_eq!(seen[&path("new.rs")], [1..=1]);
    assert_eq!(
        seen[&path("gone.rs")],
        [1..=1],
        "a deleted file has only old lines"
    );

    assert_eq!(
        refused(&session, "diff", json!({"path": "same.rs"})).await,
        "this file is not changed: use read"
    );
    assert_eq!(
        refused(&session, "read", json!({"path": "gone.rs"})).await,
        "this change deletes it: use diff"
    );
    assert_eq!(
        refused(&session, "read", json!({"path": "old.rs"})).await,
        "this change renames it to new.rs"
    );
}

#[tokio::test]
async fn a_long_change_is_paged() {
    let body = numbered(4_000, |n| format!("+row {n}"));
    let text = format!(
        "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,4000 @@\n{body}"
    );
    let mut settings = settings(MemoryTree::new());
    settings.tree = None;
    settings.diff = patch(&text);
    let session = Session::new(settings);
    let mut rows = Vec::new();
    let mut ask = json!({"path": "n"});
    loop {
        let answer = ok(&session, "diff", ask).await;
        rows.extend(
            answer
                .lines()
                .filter(|line| line.starts_with('+'))
                .map(str::to_owned),
        );
        match answer.lines().last().and_then(next) {
            Some(next) => ask = next,
            None => break,
        }
        ask["path"] = "n".into();
    }
    let expected: Vec<_> = (1..=4_000).map(|n| format!("+{n}\trow {n}")).collect();
    assert_eq!(rows, expected);
    assert_eq!(session.record().seen[&path("n")], [1..=4_000]);
}

#[tokio::test]
async fn without_a_tree_only_the_change_is_offered() {
    let mut settings = settings(MemoryTree::new());
    settings.tree = None;
    let session = Session::new(settings);
    let names: Vec<_> = session.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["diff", "report", "retract", "finish"]);
    let words = refused(&session, "read", json!({"path": "a"})).await;
    assert_eq!(
        words,
        "no tool \"read\": there is diff, report, retract, finish"
    );
}

#[tokio::test]
async fn held_back_files_are_never_served() {
    let hidden = "hidden-content-of-the-file";
    let mut settings = settings(tree_of(&[
        ("send/never.txt", hidden.as_bytes()),
        (".env", hidden.as_bytes()),
        ("open.txt", b"open\n"),
    ]));
    settings.withheld = Arc::new(Withheld {
        never: vec![Glob::new("send/**").unwrap()],
        also: Some(Arc::new(|path| path.file_name() == b".env")),
    });
    settings.diff = patch(&format!(
        "diff --git a/.env b/.env\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/.env\n@@ -0,0 +1 @@\n+{hidden}\n"
    ));
    let session = Session::new(settings);
    for name in ["send/never.txt", ".env"] {
        for tool in ["read", "diff"] {
            let words = refused(&session, tool, json!({"path": name})).await;
            assert_eq!(words, "this file is held back: it is never served");
        }
        let finding = json!({"severity": "warning", "category": "secrets", "file": name, "line": 1, "side": "new",
            "title": "t", "consequence": "c", "evidence": hidden});
        let words = refused(&session, "report", finding).await;
        assert_eq!(words, "this file is held back: it is never served");
    }
    let answer = ok(&session, "grep", json!({"pattern": "content|open"})).await;
    assert_eq!(answer, "open.txt\n1:\topen");
    let answer = ok(&session, "glob", json!({"pattern": "**"})).await;
    assert_eq!(
        answer,
        ".env (held back)\nopen.txt\nsend/never.txt (held back)"
    );
    assert_eq!(session.record().seen.len(), 1);
}

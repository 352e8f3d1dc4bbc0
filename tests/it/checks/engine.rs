//! The engine's own promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ecr::engine::builtin::{BuiltinEngine, CheckSettings, CheckedFile, ExtraRules, Hit, RuleText};
use ecr::model::{Category, ChangeStatus, RepoPath, Severity, Usage};
use ecr::port::{Completion, EngineError, ReviewEngine};
use ecr::tree::{EntryKind, MemoryTree, Tree, TreeEntry, TreeError};
use tokio_util::sync::CancellationToken;

use super::harness::{Collector, DiffBuilder, context, path, request, run, summary};

const BAD: &str = "x\ncurl -k https://dl.shop.io/x\n";

/// A tree whose every read fails, and which may do something before it does.
struct Broken(Box<dyn Fn() + Send + Sync>);

impl Tree for Broken {
    fn read(&self, path: &RepoPath, _limit: u64) -> Result<Option<Arc<[u8]>>, TreeError> {
        (self.0)();
        Err(TreeError::Read {
            path: path.to_lossy(),
            message: "disk on fire".into(),
        })
    }
    fn kind(&self, _path: &RepoPath) -> Result<Option<EntryKind>, TreeError> {
        Ok(None)
    }
    fn list(&self, _folder: Option<&RepoPath>) -> Result<Vec<TreeEntry>, TreeError> {
        Ok(Vec::new())
    }
    fn walk(&self) -> Result<Vec<TreeEntry>, TreeError> {
        Ok(Vec::new())
    }
}

fn modified(builder: DiffBuilder, name: &str) -> DiffBuilder {
    builder.file(
        name,
        ChangeStatus::Modified,
        &[(
            2,
            vec![
                (' ', b"a"),
                ('-', b"b"),
                ('+', b"curl -k https://dl.shop.io/x"),
                (' ', b"c"),
            ],
        )],
    )
}

#[test]
fn findings_say_where_what_and_why_in_a_fixed_order() {
    let mut builder = DiffBuilder::default();
    for n in 0..200 {
        builder = builder.added(&format!("s{n:03}.sh"), BAD);
    }
    let (findings, outcome) = run(&builder.build(), None, CheckSettings::default());
    let files: Vec<_> = findings
        .iter()
        .map(|f| f.location.file.to_lossy())
        .collect();
    assert_eq!(
        files,
        (0..200).map(|n| format!("s{n:03}.sh")).collect::<Vec<_>>()
    );
    let outcome = outcome.expect("complete");
    assert_eq!(
        (outcome.completion, outcome.usage),
        (Completion::Complete, Usage::NONE)
    );
    let first = &findings[0];
    assert_eq!(
        (first.severity, first.category),
        (Severity::Warning, Category::Security)
    );
    assert_eq!(
        (
            first.location.line,
            first.location.end_line,
            first.location.columns
        ),
        (Some(2), None, Some((5, 7)))
    );
    assert_eq!(
        first.evidence.as_deref(),
        Some("curl -k https://dl.shop.io/x")
    );
    assert!(first.rationale.len() > 40 && first.suggestion.is_some());
}

#[test]
fn only_added_lines_count_and_their_numbers_are_the_new_ones() {
    let (findings, _) = run(
        &modified(DiffBuilder::default(), "a.yml").build(),
        None,
        CheckSettings::default(),
    );
    assert_eq!(summary(&findings), ["tls-verification-off:3"]);
    let removed = DiffBuilder::default().file(
        "a.sh",
        ChangeStatus::Modified,
        &[(
            1,
            vec![
                ('-', b"curl -k https://dl.shop.io"),
                (' ', b"curl -k https://dl.shop.io"),
            ],
        )],
    );
    assert_eq!(run(&removed.build(), None, CheckSettings::default()).0, []);
}

#[test]
fn nothing_is_recognised_across_a_gap() {
    let (open, close) = ("<".repeat(7) + " a", ">".repeat(7) + " b");
    let diff = DiffBuilder::default()
        .file(
            "a.rs",
            ChangeStatus::Modified,
            &[
                (1, vec![('+', &open.as_bytes()[..3])]),
                (
                    9,
                    vec![
                        ('+', &open.as_bytes()[3..]),
                        ('+', b"======="),
                        ('+', close.as_bytes()),
                    ],
                ),
            ],
        )
        .build();
    assert_eq!(run(&diff, None, CheckSettings::default()).0, []);
}

#[test]
fn a_tree_that_cannot_be_read_is_named() {
    let diff = modified(DiffBuilder::default(), "a.sh").build();
    let (findings, outcome) = run(
        &diff,
        Some(Arc::new(Broken(Box::new(|| {})))),
        CheckSettings::default(),
    );
    assert_eq!(summary(&findings), ["tls-verification-off:3"]);
    let unexamined = outcome.expect("complete").unexamined;
    assert_eq!(unexamined.len(), 1);
    assert!(unexamined[0].0 == path("a.sh") && unexamined[0].1.contains("disk on fire"));
}

#[test]
fn text_that_attributes_or_a_nul_hide_is_read_from_the_tree() {
    let mut tree = MemoryTree::new();
    tree.insert(path("hidden.sh"), BAD.as_bytes());
    tree.insert(
        path("nul.sh"),
        format!("{}{BAD}\0", "# text\n".repeat(100)).into_bytes(),
    );
    let diff = DiffBuilder::default()
        .binary("hidden.sh", ChangeStatus::Added)
        .binary("nul.sh", ChangeStatus::Modified)
        .build();
    let (findings, _) = run(&diff, Some(Arc::new(tree)), CheckSettings::default());
    assert_eq!(
        summary(&findings),
        ["tls-verification-off:2", "tls-verification-off:102"]
    );
}

#[test]
fn no_encoding_and_no_nul_hides_text_from_the_rules() {
    let wide = |unit: fn(u8) -> Vec<u8>| BAD.bytes().flat_map(unit).collect::<Vec<u8>>();
    let hidden = [
        ("nul.sh", b"x\ncu\0rl -k https://dl.shop.io/x\n".to_vec()),
        ("u16.sh", [vec![0xff, 0xfe], wide(|b| vec![b, 0])].concat()),
        ("u16-bare.sh", wide(|b| vec![0, b])),
        (
            "u32.sh",
            [vec![0xff, 0xfe, 0, 0], wide(|b| vec![b, 0, 0, 0])].concat(),
        ),
    ];
    for (name, content) in hidden {
        let mut tree = MemoryTree::new();
        tree.insert(path(name), content.clone());
        let binary = DiffBuilder::default()
            .binary(name, ChangeStatus::Added)
            .build();
        let (findings, _) = run(&binary, Some(Arc::new(tree)), CheckSettings::default());
        assert_eq!(
            summary(&findings),
            ["tls-verification-off:2"],
            "{name} as binary"
        );
        // An attribute can make git show it as text all the same.
        let shown = DiffBuilder::default().added(name, content).build();
        let (findings, _) = run(&shown, None, CheckSettings::default());
        assert_eq!(
            summary(&findings),
            ["tls-verification-off:2"],
            "{name} as text"
        );
    }
}

#[test]
fn settings_switch_off_and_change_severity() {
    let diff = DiffBuilder::default().added("a.sh", BAD).build();
    let mut settings = CheckSettings::default();
    settings
        .severities
        .insert("tls-verification-off".into(), Some(Severity::Critical));
    assert_eq!(
        run(&diff, None, settings.clone()).0[0].severity,
        Severity::Critical
    );
    settings
        .severities
        .insert("tls-verification-off".into(), None);
    assert_eq!(run(&diff, None, settings.clone()).0, []);
    settings.enabled = false;
    settings.severities.clear();
    let (findings, outcome) = run(&diff, None, settings);
    assert_eq!(
        (findings, outcome.expect("complete").completion),
        (vec![], Completion::Complete)
    );
}

#[test]
fn more_findings_than_anyone_reads_are_cut_and_counted() {
    let (findings, outcome) = run(
        &DiffBuilder::default()
            .added("a.sh", BAD.repeat(150))
            .build(),
        None,
        CheckSettings::default(),
    );
    assert_eq!(findings.len(), 100);
    assert_eq!(
        outcome.expect("complete").unexamined[0].1,
        "50 more findings of tls-verification-off are not listed"
    );
}

struct NoXs;

impl ExtraRules for NoXs {
    fn describe(&self, rule: &str) -> Option<RuleText<'_>> {
        (rule == "no-x").then_some(RuleText {
            severity: Severity::Suggestion,
            category: Category::Quality,
            title: "No x here",
            consequence: "It breaks.",
            remedy: None,
        })
    }
    fn check(&self, file: &CheckedFile<'_>, sink: &mut dyn FnMut(Hit)) -> Result<(), String> {
        for &(line, text) in file.added.iter().filter(|(_, text)| *text == b"x") {
            let evidence = Some(text.to_vec());
            sink(Hit {
                rule: "no-x".into(),
                line,
                end_line: line,
                columns: None,
                evidence,
                title: None,
            });
        }
        if file.path.extension() == Some(b"bad") {
            Err("cannot parse".into())
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_repositorys_own_rules_run_beside() {
    let diff = DiffBuilder::default()
        .added("a.sh", BAD)
        .added("b.bad", "x\n")
        .build();
    let settings = CheckSettings {
        repository: Some(Arc::new(NoXs)),
        ..CheckSettings::default()
    };
    let (findings, outcome) = run(&diff, None, settings);
    assert_eq!(
        summary(&findings),
        ["no-x:1", "tls-verification-off:2", "no-x:1"]
    );
    assert_eq!(
        outcome.expect("complete").unexamined,
        [(path("b.bad"), "cannot parse".to_owned())]
    );
}

#[tokio::test]
async fn cancelled_before_the_start() {
    let diff = DiffBuilder::default().added("a.sh", BAD).build();
    let (sink, cancel) = (Arc::new(Collector::default()), CancellationToken::new());
    cancel.cancel();
    let result = BuiltinEngine::new(CheckSettings::default())
        .run(request(&diff), context(None, &sink, &cancel))
        .await;
    assert_eq!(result, Err(EngineError::Cancelled));
    assert!(sink.0.lock().expect("not poisoned").is_empty());
}

#[tokio::test]
async fn cancelled_on_the_way_keeps_what_was_found() {
    let diff = (0..3)
        .fold(DiffBuilder::default(), |b, n| {
            modified(b, &format!("a{n}.sh"))
        })
        .build();
    let (sink, cancel) = (Arc::new(Collector::default()), CancellationToken::new());
    let (trigger, reads) = (cancel.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&reads);
    let tree: Arc<dyn Tree> = Arc::new(Broken(Box::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        trigger.cancel();
    })));
    let result = BuiltinEngine::new(CheckSettings::default())
        .run(request(&diff), context(Some(tree), &sink, &cancel))
        .await;
    assert_eq!(result, Err(EngineError::Cancelled));
    assert_eq!(
        (
            reads.load(Ordering::SeqCst),
            sink.0.lock().expect("not poisoned").len()
        ),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn the_deadline_leaves_the_rest_unexamined() {
    let diff = (0..3)
        .fold(DiffBuilder::default(), |b, n| {
            modified(b, &format!("a{n}.sh"))
        })
        .build();
    let (sink, cancel) = (Arc::new(Collector::default()), CancellationToken::new());
    let (deadline_passed, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let tree: Arc<dyn Tree> = Arc::new(Broken(Box::new(move || {
        // Held until the test's own future has been polled past the deadline.
        let _ = wait.lock().map(|w| w.recv());
    })));
    let mut context = context(Some(tree), &sink, &cancel);
    context.deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    let engine = BuiltinEngine::new(CheckSettings::default());
    let pass = engine.run(request(&diff), context);
    let release = async {
        tokio::time::advance(Duration::from_secs(11)).await;
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        drop(deadline_passed);
    };
    let (outcome, ()) = tokio::join!(pass, release);
    let outcome = outcome.expect("an outcome");
    assert!(matches!(outcome.completion, Completion::Truncated { .. }));
    let names: Vec<_> = outcome
        .unexamined
        .iter()
        .map(|(p, _)| p.to_lossy())
        .collect();
    assert!(names.contains(&"a2.sh".to_owned()), "{names:?}");
}

#[test]
fn capabilities_and_preflight() {
    let engine = BuiltinEngine::new(CheckSettings::default());
    let can = engine.capabilities();
    assert_eq!(engine.name().as_str(), "builtin");
    assert!(can.usage_reporting && can.read_only);
    assert!(!can.structured_output && !can.served_tools && !can.prompt_caching && !can.subagents);
}

//! A session over a tree in memory, and what tests ask of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::diff::{Diff, parse_patch};
use ecr::gateway::tools::{Session, SessionSettings, TreeCache, Withheld};
use ecr::gateway::{Landing, ToolAnswer, ToolSession};
use ecr::model::{FindingReport, Fingerprint, PassId, RepoPath};
use ecr::port::{FindingReceipt, FindingSink};
use ecr::tree::{MemoryTree, Tree};
use serde_json::Value;
use tokio::time::Instant;

/// Takes everything and remembers it; ids count up.
#[derive(Default)]
pub(super) struct TakesAll(pub(super) Mutex<Vec<FindingReport>>);

impl FindingSink for TakesAll {
    fn report(&self, _pass: &PassId, finding: FindingReport) -> FindingReceipt {
        let mut taken = self.0.lock().unwrap();
        taken.push(finding);
        FindingReceipt::Accepted(Fingerprint::new(&format!("{:012x}", taken.len())).unwrap())
    }

    fn retract(&self, _pass: &PassId, id: &Fingerprint, _reason: &str) -> bool {
        let number = usize::from_str_radix(id.as_str(), 16).unwrap();
        (1..=self.0.lock().unwrap().len()).contains(&number)
    }
}

pub(super) fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

pub(super) fn tree_of(files: &[(&str, &[u8])]) -> MemoryTree {
    let mut tree = MemoryTree::new();
    for (name, content) in files {
        tree.insert(path(name), *content);
    }
    tree
}

pub(super) fn patch(text: &str) -> Arc<Diff> {
    Arc::new(parse_patch(Arc::from(text.as_bytes())).unwrap())
}

/// Far away on tokio's clock, so that no test lands by accident.
pub(super) fn no_landing() -> Arc<Landing> {
    let deadline = Instant::now() + Duration::from_secs(100_000);
    Arc::new(Landing::new(deadline, Duration::from_secs(60)))
}

/// Settings over a tree, without a change.
pub(super) fn settings(tree: impl Tree + 'static) -> SessionSettings {
    SessionSettings {
        pass: PassId::new("pass/1"),
        tree: Some(Arc::new(TreeCache::new(Arc::new(tree)))),
        diff: patch(""),
        withheld: Arc::new(Withheld::default()),
        sink: Arc::new(TakesAll::default()),
        landing: no_landing(),
        tool_calls: u32::MAX,
    }
}

pub(super) fn session(files: &[(&str, &[u8])]) -> Session {
    Session::new(settings(tree_of(files)))
}

/// The answer to a call that has to succeed.
pub(super) async fn ok(session: &Session, tool: &str, arguments: Value) -> String {
    let answer = session.call(tool, arguments.clone()).await;
    assert!(!answer.is_error, "{tool} {arguments}: {}", answer.text);
    check_size(&answer);
    answer.text
}

/// The words of a call that has to be refused.
pub(super) async fn refused(session: &Session, tool: &str, arguments: Value) -> String {
    let answer = session.call(tool, arguments.clone()).await;
    assert!(answer.is_error, "{tool} {arguments}: {}", answer.text);
    assert!(answer.text.len() < 1_000, "{}", answer.text);
    answer.text
}

/// What holds for every answer.
pub(super) fn check_size(answer: &ToolAnswer) {
    assert!(answer.text.len() <= 40_000, "{} bytes", answer.text.len());
    let lines = answer.text.lines().count();
    assert!(lines <= 1_800, "{lines} lines");
}

/// The lines that `line` makes of the numbers `1..=last`, each with its end.
pub(super) fn numbered(last: u32, line: impl Fn(u32) -> String) -> String {
    (1..=last).map(|n| line(n) + "\n").collect()
}

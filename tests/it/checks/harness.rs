//! Runs the built-in engine over files made up on the spot.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::diff::{Diff, FileDiff, FileMode, Hunk};
use ecr::engine::builtin::{BuiltinEngine, CheckSettings};
use ecr::model::{
    AgentId, ChangeStatus, FindingReport, Fingerprint, PassId, PassKind, RepoPath, Usage,
};
use ecr::port::{
    EngineError, FindingReceipt, FindingSink, Meter, PassContext, PassOutcome, PassRequest,
    Progress, ProgressEvent, ReviewEngine,
};
use ecr::tree::Tree;
use tokio_util::sync::CancellationToken;

pub(super) fn path(text: &str) -> RepoPath {
    RepoPath::new(text).expect("a path")
}

/// A hunk: its first new line, then the kind and the content of each line.
pub(super) type RawHunk<'a> = (u32, Vec<(char, &'a [u8])>);

/// A diff in the making.
#[derive(Default)]
pub(super) struct DiffBuilder {
    patch: Vec<u8>,
    files: Vec<FileDiff>,
}

impl DiffBuilder {
    /// A new file with this content.
    pub(super) fn added(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let content = content.as_ref();
        let body = content.strip_suffix(b"\n").unwrap_or(content);
        let lines: Vec<&[u8]> = if content.is_empty() {
            Vec::new()
        } else {
            body.split(|b| *b == b'\n').collect()
        };
        let hunk: Vec<(char, &[u8])> = lines.into_iter().map(|line| ('+', line)).collect();
        self.file(name, ChangeStatus::Added, &[(1, hunk)])
    }

    /// A file with hunks: first new line, then kind and content of each line.
    pub(super) fn file(mut self, name: &str, status: ChangeStatus, hunks: &[RawHunk<'_>]) -> Self {
        let section_start = self.patch.len();
        let mut out = Vec::new();
        let mut counts = (0, 0);
        for (new_start, lines) in hunks {
            let start = self.patch.len();
            for (kind, line) in lines {
                self.patch.push(*kind as u8);
                self.patch.extend_from_slice(line);
                self.patch.push(b'\n');
                counts.0 += u32::from(*kind == '+');
                counts.1 += u32::from(*kind == '-');
            }
            let of = |kinds: &str| lines.iter().filter(|(k, _)| kinds.contains(*k)).count() as u32;
            out.push(Hunk {
                old_start: *new_start,
                old_len: of("- "),
                new_start: *new_start,
                new_len: of("+ "),
                heading: start..start,
                body: start..self.patch.len(),
            });
        }
        self.files.push(FileDiff {
            path: path(name),
            old_path: None,
            status,
            score: None,
            old_mode: FileMode(if status == ChangeStatus::Added {
                0
            } else {
                0o100_644
            }),
            new_mode: FileMode(0o100_644),
            old_id: None,
            new_id: None,
            added: counts.0,
            deleted: counts.1,
            binary: false,
            section: section_start..self.patch.len(),
            hunks: out,
        });
        self
    }

    /// A file that git shows no text for.
    pub(super) fn binary(self, name: &str, status: ChangeStatus) -> Self {
        let mut builder = self.file(name, status, &[]);
        if let Some(file) = builder.files.last_mut() {
            file.binary = true;
        }
        builder
    }

    pub(super) fn build(self) -> Arc<Diff> {
        Arc::new(Diff {
            patch: self.patch.into(),
            files: self.files,
        })
    }
}

/// Keeps what is reported.
#[derive(Default)]
pub(super) struct Collector(pub(super) Mutex<Vec<FindingReport>>);

impl FindingSink for Collector {
    fn report(&self, _pass: &PassId, finding: FindingReport) -> FindingReceipt {
        self.0.lock().expect("not poisoned").push(finding);
        FindingReceipt::Accepted(Fingerprint::new("0123456789ab").expect("an id"))
    }

    fn retract(&self, _pass: &PassId, _id: &Fingerprint, _reason: &str) -> bool {
        false
    }
}

pub(super) struct Quiet;

impl Progress for Quiet {
    fn event(&self, _event: ProgressEvent) {}
}

impl Meter for Quiet {
    fn add(&self, _pass: &PassId, _usage: Usage) {}
}

pub(super) fn request(diff: &Arc<Diff>) -> PassRequest {
    PassRequest {
        id: PassId::new("checks"),
        kind: PassKind::Checks,
        agent: AgentId::new("checks").expect("an id"),
        model: None,
        files: (0..diff.files.len()).collect(),
        diff: Arc::clone(diff),
        system: "".into(),
        task: "".into(),
        schema: None,
    }
}

pub(super) fn context(
    tree: Option<Arc<dyn Tree>>,
    sink: &Arc<Collector>,
    cancel: &CancellationToken,
) -> PassContext {
    PassContext {
        tree,
        sink: Arc::clone(sink) as Arc<dyn FindingSink>,
        meter: Arc::new(Quiet),
        progress: Arc::new(Quiet),
        cancel: cancel.clone(),
        deadline: tokio::time::Instant::now() + Duration::from_secs(600),
    }
}

/// What a run over `diff` reports, and how it ends.
pub(super) fn run(
    diff: &Arc<Diff>,
    tree: Option<Arc<dyn Tree>>,
    settings: CheckSettings,
) -> (Vec<FindingReport>, Result<PassOutcome, EngineError>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let sink = Arc::new(Collector::default());
    let outcome = runtime.block_on(async {
        let context = context(tree, &sink, &CancellationToken::new());
        BuiltinEngine::new(settings)
            .run(request(diff), context)
            .await
    });
    let findings = sink.0.lock().expect("not poisoned").clone();
    (findings, outcome)
}

/// What the checks say of one new file, as `rule:line` (`rule` for the whole file), in order.
pub(super) fn check_new(name: &str, content: impl AsRef<[u8]>) -> Vec<String> {
    let (findings, outcome) = run(
        &DiffBuilder::default().added(name, content).build(),
        None,
        CheckSettings::default(),
    );
    assert_eq!(outcome.expect("a complete pass").unexamined, [], "{name}");
    summary(&findings)
}

pub(super) fn summary(findings: &[FindingReport]) -> Vec<String> {
    findings
        .iter()
        .map(|f| {
            let rule = f.rule.as_ref().map_or("", |r| r.as_str());
            f.location
                .line
                .map_or_else(|| rule.to_owned(), |line| format!("{rule}:{line}"))
        })
        .collect()
}

/// Asserts that each file breaks exactly the named rules.
pub(super) fn expect(cases: &[(&str, &str, &[&str])]) {
    for (name, content, expected) in cases {
        assert_eq!(check_new(name, content), *expected, "{name}\n{content}");
    }
}

/// Asserts that none of the files breaks any rule.
pub(super) fn expect_clean(cases: &[(&str, &str)]) {
    for (name, content) in cases {
        assert_eq!(
            check_new(name, content),
            [] as [&str; 0],
            "{name}\n{content}"
        );
    }
}

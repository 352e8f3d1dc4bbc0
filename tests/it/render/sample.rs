//! Reviews to render.

use ecr::model::{
    AgentId, Category, ChangeStatus, CommitId, Cost, CoverageNote, CoverageReceipt, Decision,
    DismissedFinding, DropStage, DroppedFinding, EngineName, Excerpt, FileCoverage, FileOutcome,
    Finding, FindingStatus, Fingerprint, InputInfo, InputKind, Location, ModelId, NoteKind, PassId,
    PassKind, PassOutcomeKind, PassRecord, RepoPath, Review, RuleId, SandboxInfo, Severity, Side,
    Timing, TokenCounts, Usage, Verification, VerificationStatus,
};
use ecr::render::{Format, RenderContext, TerminalOptions, render};

pub(super) fn path(bytes: impl AsRef<[u8]>) -> RepoPath {
    RepoPath::new(bytes).expect("a repository path")
}

/// `render` with the given terminal options and a fixed version.
pub(super) fn rendered(format: Format, review: &Review, options: TerminalOptions) -> String {
    let mut context = RenderContext::new(options);
    "0.0.0".clone_into(&mut context.tool.version);
    render(format, review, &context)
}

/// A finding with every text given by the caller.
pub(super) fn finding(n: u32, severity: Severity, title: &str, why: &str, line: &str) -> Finding {
    let end = line.len() as u32;
    Finding {
        id: Fingerprint::new(&format!("{n:012x}")).expect("an id"),
        severity,
        category: Category::Security,
        location: Location {
            file: path("src/deploy.rs"),
            line: Some(41),
            end_line: Some(41),
            side: Side::New,
            columns: Some((0, end)),
        },
        in_diff: true,
        title: title.to_owned(),
        rationale: why.to_owned(),
        suggestion: Some(why.to_owned()),
        evidence: Some(line.to_owned()),
        agents: vec![AgentId::new("security").expect("an id")],
        scope: None,
        rule: None,
        excerpt: Some(Excerpt {
            first_line: 40,
            lines: vec!["fn main() {".to_owned(), line.to_owned(), "}".to_owned()],
            highlight: Some((1, 0..line.len())),
        }),
        status: FindingStatus::Open,
        verification: Verification {
            status: VerificationStatus::Grounded,
            reason: None,
        },
    }
}

fn covered(name: &str, outcome: FileOutcome, reason: Option<&str>) -> FileCoverage {
    FileCoverage {
        path: path(name),
        old_path: None,
        status: ChangeStatus::Modified,
        added: 30,
        deleted: 10,
        binary: false,
        outcome,
        reason: reason.map(str::to_owned),
        reviewed_lines: if outcome == FileOutcome::Reviewed {
            40
        } else {
            0
        },
        lines_read: None,
    }
}

/// A complete review with findings, filtered files, dropped and dismissed findings.
pub(super) fn review() -> Review {
    let mut secret = finding(
        0xa11,
        Severity::Critical,
        "A private key is committed",
        "Anyone who can read the repository can log in as the deploy user, and removing the line does not take the key out of the history.",
        "    let key = \"not-a-known-shape-but-secret-8271\";",
    );
    secret.category = Category::Secrets;
    secret.rule = Some(RuleId::new("private-key").expect("an id"));
    secret.suggestion = Some("Revoke the key, then load it from the environment.".to_owned());
    secret.location.columns = Some((15, 48));
    if let Some(excerpt) = &mut secret.excerpt {
        excerpt.highlight = Some((1, 15..48));
    }
    let mut warning = finding(
        0xb22,
        Severity::Warning,
        "The retry loop never gives up",
        "When the host is down every worker spins for ever and the queue stops.",
        "\tloop { connect(\"日本\"); }",
    );
    warning.category = Category::Correctness;
    warning.location.file = path("src/retry.rs");
    warning.location.columns = Some((8, 25));
    warning.suggestion = None;
    warning.verification = Verification {
        status: VerificationStatus::Uncertain,
        reason: Some("the caller may set a limit".to_owned()),
    };
    if let Some(excerpt) = &mut warning.excerpt {
        excerpt.highlight = Some((1, 8..25));
    }
    let mut disputed = finding(
        0xc33,
        Severity::Critical,
        "The token is logged",
        "It ends in the log file.",
        "log(token)",
    );
    disputed.status = FindingStatus::Disputed;
    disputed.excerpt = None;
    let dropped = finding(
        0xd44,
        Severity::Warning,
        "The loop has no end",
        "It spins.",
        "loop {}",
    );
    let dismissed = finding(
        0xe55,
        Severity::Suggestion,
        "The name misleads",
        "Readers stumble.",
        "let a = 1;",
    );
    Review {
        input: InputInfo {
            kind: InputKind::WorkingTree,
            base: Some(CommitId::new(&"1a2b".repeat(10)).expect("an id")),
            head: None,
            base_name: Some("origin/main".to_owned()),
            repo: None,
            pr: None,
        },
        sandbox: SandboxInfo {
            level: "full".to_owned(),
            missing: Vec::new(),
        },
        decision: Decision::RequestChanges,
        complete: true,
        summary: "The deploy script gains a retry loop and a key.".to_owned(),
        findings: vec![secret, warning, disputed],
        dismissed: vec![DismissedFinding {
            finding: dismissed,
            by: Some("octocat".to_owned()),
            reason: Some("a matter of taste".to_owned()),
        }],
        dropped: vec![DroppedFinding {
            finding: dropped,
            stage: DropStage::Dedupe,
            reason: "says the same as 000000000b22".to_owned(),
        }],
        coverage: CoverageReceipt {
            files: vec![
                covered("src/deploy.rs", FileOutcome::Reviewed, None),
                covered("src/retry.rs", FileOutcome::Reviewed, None),
                covered("Cargo.lock", FileOutcome::Filtered, Some("lockfile")),
            ],
        },
        notes: vec![CoverageNote {
            kind: NoteKind::Setup,
            text: "the setup folder has no shared.md".to_owned(),
        }],
        passes: vec![PassRecord {
            id: PassId::new("security/1"),
            kind: PassKind::Review,
            agent: AgentId::new("security").expect("an id"),
            files: vec![path("src/deploy.rs"), path("src/retry.rs")],
            engine: EngineName::new("api"),
            model_configured: Some(ModelId::new("acme/large").expect("an id")),
            model_answered: Some(ModelId::new("acme/large-2").expect("an id")),
            outcome: PassOutcomeKind::Complete,
            reason: None,
            attempts: 1,
            tool_calls: 7,
            duration_ms: 4210,
            usage: Usage::Exact(
                TokenCounts {
                    input: 12_000,
                    output: 800,
                    ..TokenCounts::default()
                },
                Some(Cost(48_000)),
            ),
        }],
        usage: Usage::Exact(
            TokenCounts {
                input: 12_000,
                output: 800,
                ..TokenCounts::default()
            },
            Some(Cost(48_000)),
        ),
        timing: Timing {
            total_ms: 5000,
            overhead_ms: 300,
        },
    }
}

/// The same run with `decision`, no findings, and nothing else to tell.
pub(super) fn quiet(decision: Decision) -> Review {
    Review {
        decision,
        summary: String::new(),
        findings: Vec::new(),
        dismissed: Vec::new(),
        dropped: Vec::new(),
        notes: Vec::new(),
        ..review()
    }
}

/// A run that models only half finished, whatever it claims to have decided.
pub(super) fn with_gaps(decision: Decision) -> Review {
    let mut review = quiet(decision);
    review.coverage.files.push(covered(
        "src/late.rs",
        FileOutcome::Missed,
        Some("the time limit was reached"),
    ));
    review.notes.push(CoverageNote {
        kind: NoteKind::Budget,
        text: "the time limit of 10 minutes was reached".to_owned(),
    });
    review
}

/// Only the checks ran and found nothing.
pub(super) fn checks_only() -> Review {
    let mut review = quiet(Decision::ChecksOnly);
    review.usage = Usage::NONE;
    review.passes.clear();
    review.notes.push(CoverageNote {
        kind: NoteKind::ChecksOnly,
        text: "no model is configured".to_owned(),
    });
    review
}

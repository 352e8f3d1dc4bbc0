//! The machine output, version 1 (`--format json`), as structs of its own.
//!
//! The doc comments are the published schema's descriptions. Fields may be added within version 1, so
//! readers must ignore those they do not know; removing or changing one is a new version.
//!
//! @ref LLP 0006#outputs — versioned, published, additive

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use crate::model::{self, RepoPath, Review, Usage};

/// The version of this format.
pub const SCHEMA_VERSION: u32 = 1;

macro_rules! wire_words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }
        impl From<model::$name> for $name {
            fn from(value: model::$name) -> Self {
                match value { $(model::$name::$variant => Self::$variant),+ }
            }
        }
        impl From<$name> for model::$name {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),+ }
            }
        }
        impl $name {
            /// The word as it stands in the JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => model::$name::$variant.as_str()),+ }
            }
        }
    )+};
}

wire_words! {
    /// The verdict on the change.
    Decision {
        /// Reviewed by models, nothing found.
        Approve,
        /// Reviewed by models, nothing that blocks.
        ApproveWithComments,
        /// A critical finding or a leaked secret stands.
        RequestChanges,
        /// The review could not be completed; says nothing about the code.
        CouldNotComplete,
        /// No model reviewed; the built-in checks found nothing that requests changes.
        ChecksOnly,
        /// There was nothing to review.
        Skipped,
    }
    /// Where the diff came from.
    InputKind {
        /// Working tree and untracked files against a base.
        WorkingTree,
        /// The index against `HEAD`.
        Staged,
        /// Two commits.
        Range,
        /// A patch without a tree.
        Patch,
        /// A pull request.
        PullRequest,
    }
    /// How much a finding matters.
    Severity {
        /// Worth knowing.
        Suggestion,
        /// A real problem that does not block.
        Warning,
        /// Must be fixed before merging.
        Critical,
    }
    /// What kind of problem it is.
    Category {
        /// The code does something else than it should.
        Correctness,
        /// The code is harder to keep right than it needs to be.
        Quality,
        /// The code can be abused.
        Security,
        /// A credential is in the code.
        Secrets,
    }
    /// Which version of a file a line number counts in.
    Side {
        /// The version before the change.
        Old,
        /// The version after the change.
        New,
    }
    /// Whether a finding counts towards the decision.
    FindingStatus {
        /// It stands.
        Open,
        /// Refuted twice but too grave to disappear: listed, not deciding.
        Disputed,
    }
    /// How far a finding has been checked.
    VerificationStatus {
        /// Its location and evidence were found mechanically.
        Grounded,
        /// A second look at the source confirmed it.
        Verified,
        /// A second look could not tell.
        Uncertain,
        /// Nothing checked it.
        Unverified,
    }
    /// The stage at which a finding was dropped.
    DropStage {
        /// Its location does not exist.
        Grounding,
        /// The reviewer took it back.
        Retracted,
        /// Another finding says the same.
        Dedupe,
        /// The coordinator dropped it.
        Coordination,
        /// The verifier refuted it.
        Verification,
        /// The configuration hides it.
        Policy,
        /// Over the configured number of findings.
        Cap,
        /// An ignore directive in the code, or a baseline.
        Suppression,
    }
    /// What git says happened to a file.
    ChangeStatus {
        /// New file.
        Added,
        /// Content or mode changed.
        Modified,
        /// File removed.
        Deleted,
        /// Moved, perhaps with edits.
        Renamed,
        /// Copied, perhaps with edits.
        Copied,
        /// File, symlink or submodule became another kind.
        TypeChanged,
        /// In conflict in the index.
        Unmerged,
    }
    /// What happened to a changed file in the review.
    FileOutcome {
        /// Every changed line was reviewed by every reviewer assigned to it.
        Reviewed,
        /// Some reviewers or lines are missing.
        Partial,
        /// Hidden from the reviewers on purpose.
        Filtered,
        /// Nobody reviewed it.
        Missed,
    }
    /// What a pass was for.
    PassKind {
        /// The deterministic checks.
        Checks,
        /// One reviewer over one chunk.
        Review,
        /// One reviewer over the connections between chunks.
        CrossCutting,
        /// Picks the reviewers that matter.
        Route,
        /// Merges and judges what was found.
        Coordinate,
        /// Checks one finding against the source.
        Verify,
    }
    /// How a pass ended.
    PassOutcomeKind {
        /// It ran to its end.
        Complete,
        /// It was cut; what it had reported is kept.
        Truncated,
        /// It gave nothing that can be relied on.
        Failed,
        /// It was never started.
        Skipped,
    }
}

/// How far usage numbers can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageConfidence {
    /// Nothing was measured; there are no numbers.
    Unavailable,
    /// At least one number is an estimate.
    Estimated,
    /// Every number was reported by the provider, or no model was called.
    Exact,
}

impl From<model::UsageConfidence> for UsageConfidence {
    fn from(value: model::UsageConfidence) -> Self {
        match value {
            model::UsageConfidence::Unavailable => Self::Unavailable,
            model::UsageConfidence::Estimated => Self::Estimated,
            model::UsageConfidence::Exact => Self::Exact,
        }
    }
}

/// How the paths of an object are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathEncoding {
    /// A path here is not UTF-8: in every path of this object each byte that is not printable ASCII, and `%`, is `%XX`.
    Bytes,
}

/// The program that wrote the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// `ecr`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What was reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Where the diff came from.
    pub kind: InputKind,
    /// The base commit, full id.
    pub base: Option<String>,
    /// The head commit, full id; null for a working tree.
    pub head: Option<String>,
    /// What a person calls the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_name: Option<String>,
    /// `owner/name` on the forge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Pull request number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr: Option<u64>,
}

/// The sandbox that engines ran in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sandbox {
    /// The level reached: `full`, `files`, `none`, or `not_needed` when no child was started.
    pub level: String,
    /// What the platform could not give.
    pub missing: Vec<String>,
}

/// How far a finding has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// The state reached.
    pub status: VerificationStatus,
    /// Why, where it is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One finding. Its texts are untrusted; credentials in them are masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The identity that dismissals refer to: 12 hexadecimal digits.
    #[schemars(regex(pattern = r"^[0-9a-f]{12}$"))]
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What kind of problem it is.
    pub category: Category,
    /// The file, from the repository root.
    pub file: String,
    /// Present when `file` is escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_encoding: Option<PathEncoding>,
    /// First line, 1-based; null means the whole file.
    pub line: Option<u32>,
    /// Last line, 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// Which version of the file `line` counts in.
    pub side: Side,
    /// True when the lines are part of the diff.
    pub in_diff: bool,
    /// One line that says what is wrong.
    pub title: String,
    /// What breaks, for whom, when.
    pub rationale: String,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// One line of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Who reported it.
    pub agents: Vec<String>,
    /// The scope that reported it, in a monorepo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The deterministic rule that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether it counts towards the decision.
    pub status: FindingStatus,
    /// How far it has been checked.
    pub verification: Verification,
}

/// A finding that a maintainer dismissed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dismissed {
    /// The finding as it stood.
    #[serde(flatten)]
    pub finding: Finding,
    /// Who dismissed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A finding that was dropped on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// The finding as it stood.
    #[serde(flatten)]
    pub finding: Finding,
    /// Where it was dropped.
    pub stage: DropStage,
    /// Why, for a person.
    pub reason: String,
}

/// One changed file in the receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoverageFile {
    /// Path after the change (before it, for a deletion).
    pub path: String,
    /// Path before a rename or copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// Present when `path` and `oldPath` are escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_encoding: Option<PathEncoding>,
    /// What happened to the file.
    pub status: ChangeStatus,
    /// Added lines, as `git diff --numstat` counts them (0 for a binary file).
    pub added: u32,
    /// Deleted lines, counted alike.
    pub deleted: u32,
    /// Present and true when git shows no text for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    /// What the review did with it.
    pub outcome: FileOutcome,
    /// Why, unless it was reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Changed lines that everyone assigned reviewed.
    pub reviewed_lines: u64,
    /// Lines that reviewers opened, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_read: Option<u64>,
}

/// The sums of the receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoverageTotals {
    /// Changed files.
    pub files: u64,
    /// Files whose outcome is `reviewed`.
    pub reviewed_files: u64,
    /// Added plus deleted lines.
    pub changed_lines: u64,
    /// Those reviewed by everyone assigned.
    pub reviewed_lines: u64,
}

/// Every changed file and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// One entry a changed file, in the order of the diff.
    pub files: Vec<CoverageFile>,
    /// The sums.
    pub totals: CoverageTotals,
}

/// Something a reader has to know about the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// `pass_failed`, `pass_truncated`, `missed`, `budget`, `interrupted` and `model_substituted` mean
    /// that the review is not complete; `checks_only`, `setup` and `info` do not. More kinds may come.
    pub kind: String,
    /// The text, for a person.
    pub text: String,
}

/// Tokens and money. Without a measurement there are no numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageNumbers {
    /// Fresh input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Input tokens served from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Input tokens written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
    /// Reasoning tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Money in US dollars, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How far the numbers can be trusted.
    pub confidence: UsageConfidence,
}

/// One pass as it went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pass {
    /// Its id, unique within the run.
    pub id: String,
    /// What it was for.
    pub kind: PassKind,
    /// Who reviewed.
    pub agent: String,
    /// The files it was given.
    pub files: Vec<String>,
    /// Present when `files` are escaped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_encoding: Option<PathEncoding>,
    /// The engine that ran it.
    pub engine: String,
    /// The model asked for; null for the built-in checks.
    pub model_configured: Option<String>,
    /// The model that answered.
    pub model_answered: Option<String>,
    /// How it ended.
    pub outcome: PassOutcomeKind,
    /// Why, unless it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How often it was started.
    pub attempts: u32,
    /// Tool calls served to it.
    pub tool_calls: u32,
    /// Wall clock in milliseconds.
    pub duration_ms: u64,
    /// What it used.
    pub usage: UsageNumbers,
    /// Its cost in US dollars, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Wall clock of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// From start to report, milliseconds.
    pub total_ms: u64,
    /// The part spent outside model calls, milliseconds.
    pub overhead_ms: u64,
}

/// The machine output of `ecr`, version 1. Ignore fields you do not know: they may be added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputV1 {
    /// The version of this format: 1.
    #[schemars(extend("const" = SCHEMA_VERSION))]
    pub schema_version: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// What was reviewed.
    pub input: Input,
    /// The sandbox that engines ran in.
    pub sandbox: Sandbox,
    /// The verdict.
    pub decision: Decision,
    /// True when every unfiltered changed line was reviewed by everyone assigned to it. When false, no
    /// decision may be read as an approval.
    pub complete: bool,
    /// One paragraph for a person.
    pub summary: String,
    /// What stands, most severe first.
    pub findings: Vec<Finding>,
    /// What a maintainer dismissed.
    pub dismissed: Vec<Dismissed>,
    /// What was dropped on the way, with reasons.
    pub dropped: Vec<Dropped>,
    /// What was reviewed and what was not.
    pub coverage: Coverage,
    /// What a reader has to know.
    pub notes: Vec<Note>,
    /// How each pass went.
    pub passes: Vec<Pass>,
    /// The sum of the passes' usage.
    pub usage: UsageNumbers,
    /// Wall clock.
    pub timing: Timing,
}

/// The published JSON Schema (draft 2020-12) of [`OutputV1`].
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<OutputV1>()
        .to_value()
}

/// Converts a review. The texts are taken as they are: callers that write the result anywhere go
/// through `render::output`, which masks credentials first.
pub fn from_review(review: &Review, tool: &Tool) -> OutputV1 {
    let totals = review.coverage.totals();
    OutputV1 {
        schema_version: SCHEMA_VERSION,
        tool: tool.clone(),
        input: Input {
            kind: review.input.kind.into(),
            base: review.input.base.as_ref().map(ToString::to_string),
            head: review.input.head.as_ref().map(ToString::to_string),
            base_name: review.input.base_name.clone(),
            repo: review.input.repo.clone(),
            pr: review.input.pr,
        },
        sandbox: Sandbox {
            level: review.sandbox.level.clone(),
            missing: review.sandbox.missing.clone(),
        },
        decision: review.decision.into(),
        complete: review.complete,
        summary: review.summary.clone(),
        findings: review.findings.iter().map(finding).collect(),
        dismissed: review
            .dismissed
            .iter()
            .map(|d| Dismissed {
                finding: finding(&d.finding),
                by: d.by.clone(),
                reason: d.reason.clone(),
            })
            .collect(),
        dropped: review
            .dropped
            .iter()
            .map(|d| Dropped {
                finding: finding(&d.finding),
                stage: d.stage.into(),
                reason: d.reason.clone(),
            })
            .collect(),
        coverage: Coverage {
            files: review.coverage.files.iter().map(coverage_file).collect(),
            totals: CoverageTotals {
                files: totals.files,
                reviewed_files: totals.reviewed_files,
                changed_lines: totals.changed_lines,
                reviewed_lines: totals.reviewed_lines,
            },
        },
        notes: review
            .notes
            .iter()
            .map(|note| Note {
                kind: note.kind.as_str().to_owned(),
                text: note.text.clone(),
            })
            .collect(),
        passes: review.passes.iter().map(pass).collect(),
        usage: usage(&review.usage),
        timing: Timing {
            total_ms: review.timing.total_ms,
            overhead_ms: review.timing.overhead_ms,
        },
    }
}

fn finding(finding: &model::Finding) -> Finding {
    let (file, escaped) = finding.location.file.to_wire();
    Finding {
        id: finding.id.to_string(),
        severity: finding.severity.into(),
        category: finding.category.into(),
        file,
        path_encoding: escaped.then_some(PathEncoding::Bytes),
        line: finding.location.line,
        end_line: finding.location.end_line,
        side: finding.location.side.into(),
        in_diff: finding.in_diff,
        title: finding.title.clone(),
        rationale: finding.rationale.clone(),
        suggestion: finding.suggestion.clone(),
        evidence: finding.evidence.clone(),
        agents: finding.agents.iter().map(ToString::to_string).collect(),
        scope: finding.scope.as_ref().map(ToString::to_string),
        rule: finding.rule.as_ref().map(ToString::to_string),
        status: finding.status.into(),
        verification: Verification {
            status: finding.verification.status.into(),
            reason: finding.verification.reason.clone(),
        },
    }
}

/// Writes paths that share one encoding mark: when one is not UTF-8, all are escaped.
fn wire_paths(paths: &[&RepoPath]) -> (Vec<String>, Option<PathEncoding>) {
    let texts: Option<Vec<&str>> = paths.iter().map(|path| path.as_str()).collect();
    match texts {
        Some(texts) => (texts.into_iter().map(str::to_owned).collect(), None),
        None => (
            paths.iter().map(|path| path.percent_escaped()).collect(),
            Some(PathEncoding::Bytes),
        ),
    }
}

fn coverage_file(file: &model::FileCoverage) -> CoverageFile {
    let mut paths = vec![&file.path];
    paths.extend(&file.old_path);
    let (mut texts, path_encoding) = wire_paths(&paths);
    CoverageFile {
        old_path: (texts.len() > 1).then(|| texts.remove(1)),
        path: texts.remove(0),
        path_encoding,
        status: file.status.into(),
        added: file.added,
        deleted: file.deleted,
        binary: file.binary,
        outcome: file.outcome.into(),
        reason: file.reason.clone(),
        reviewed_lines: file.reviewed_lines,
        lines_read: file.lines_read,
    }
}

/// Tokens and money as they are written.
pub fn usage(usage: &Usage) -> UsageNumbers {
    let tokens = usage.tokens();
    UsageNumbers {
        input: tokens.map(|t| t.input),
        output: tokens.map(|t| t.output),
        cache_read: tokens.map(|t| t.cache_read),
        cache_write: tokens.map(|t| t.cache_write),
        reasoning: tokens.map(|t| t.reasoning),
        cost_usd: usage.cost().map(model::Cost::usd),
        confidence: usage.confidence().into(),
    }
}

fn pass(pass: &model::PassRecord) -> Pass {
    let (files, path_encoding) = wire_paths(&pass.files.iter().collect::<Vec<_>>());
    Pass {
        id: pass.id.to_string(),
        kind: pass.kind.into(),
        agent: pass.agent.to_string(),
        files,
        path_encoding,
        engine: pass.engine.to_string(),
        model_configured: pass.model_configured.as_ref().map(ToString::to_string),
        model_answered: pass.model_answered.as_ref().map(ToString::to_string),
        outcome: pass.outcome.into(),
        reason: pass.reason.clone(),
        attempts: pass.attempts,
        tool_calls: pass.tool_calls,
        duration_ms: pass.duration_ms,
        usage: usage(&pass.usage),
        cost_usd: pass.usage.cost().map(model::Cost::usd),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_path_that_is_not_utf8_escapes_its_neighbours() {
        let plain = RepoPath::new("50%.rs").unwrap();
        let bytes = RepoPath::new(b"a\xff").unwrap();
        assert_eq!(wire_paths(&[&plain]), (vec!["50%.rs".to_owned()], None));
        assert_eq!(
            wire_paths(&[&plain, &bytes]),
            (
                vec!["50%25.rs".to_owned(), "a%FF".to_owned()],
                Some(PathEncoding::Bytes)
            )
        );
    }

    #[test]
    fn the_words_are_those_of_the_model() {
        for decision in model::Decision::ALL {
            let wire = serde_json::to_value(Decision::from(*decision)).unwrap();
            assert_eq!(wire, decision.as_str());
        }
        for status in model::ChangeStatus::ALL {
            let wire = serde_json::to_value(ChangeStatus::from(*status)).unwrap();
            assert_eq!(wire, status.as_str());
        }
    }

    #[test]
    fn unavailable_usage_carries_no_number() {
        let wire = serde_json::to_value(usage(&Usage::Unavailable)).unwrap();
        assert_eq!(wire, serde_json::json!({"confidence": "unavailable"}));
    }
}

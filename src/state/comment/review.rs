//! The review as a comment keeps it: what is shown, short enough to be kept. Wire format, within [`super::STATE_VERSION`].

use serde::{Deserialize, Serialize};

use crate::model::RepoPath;
use crate::state::output::{
    Category, CoverageTotals, Decision, DropStage, FileOutcome, FindingStatus, Note, Severity,
    Side, UsageNumbers, VerificationStatus,
};

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// One finding; texts that there is no room for are empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredFinding {
    /// Its identity, 12 hexadecimal digits.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What kind of problem it is.
    pub category: Category,
    /// Whether it counts towards the decision.
    pub status: FindingStatus,
    /// The file, as in the machine output; empty when there is no room for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// True when `file` is percent-escaped because it is not UTF-8.
    #[serde(default, skip_serializing_if = "is_false")]
    pub escaped: bool,
    /// The file's name in the diff, where that is another one (a finding on the old side of a renamed file).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// First line, 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Last line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// Which version `line` counts in.
    pub side: Side,
    /// True when the diff shows the lines.
    #[serde(default, skip_serializing_if = "is_false")]
    pub in_diff: bool,
    /// One line that says what is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What breaks, for whom, when.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rationale: String,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggestion: String,
    /// Source lines with their numbers, or the quoted line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// Who reported it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// The scope that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The deterministic rule that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How far it has been checked.
    pub verification: VerificationStatus,
    /// Why it stopped there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doubt: String,
}

impl StoredFinding {
    /// The file as git stores it.
    pub fn path(&self) -> Option<RepoPath> {
        RepoPath::from_wire(&self.file, self.escaped).ok()
    }

    /// The file by its name in the diff.
    pub fn path_in_diff(&self) -> Option<RepoPath> {
        match &self.renamed {
            Some(name) => RepoPath::from_wire(name, self.escaped).ok(),
            None => self.path(),
        }
    }
}

/// One finding that was dropped on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredDropped {
    /// Its identity.
    pub id: String,
    /// What it said.
    pub title: String,
    /// Where it was, for a person.
    pub place: String,
    /// The stage.
    pub stage: DropStage,
    /// Why.
    pub reason: String,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredFile {
    /// Its path, as in the machine output.
    pub path: String,
    /// Added lines.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub added: u64,
    /// Deleted lines.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub deleted: u64,
    /// What the review did with it.
    pub outcome: FileOutcome,
    /// Why, unless it was reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Findings that there is no room for at all: how many, and whether one of them blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unlisted {
    /// Open critical ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub critical: u64,
    /// Open warnings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warning: u64,
    /// Open suggestions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suggestion: u64,
    /// Disputed ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disputed: u64,
    /// Those among them that request changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocking: u64,
}

impl Unlisted {
    /// How many there are.
    pub fn total(self) -> u64 {
        self.critical + self.warning + self.suggestion + self.disputed
    }
}

/// What changed since the review before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delta {
    /// The head of the review before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Findings that are gone because the code changed, as id and title (empty where there is no room for it).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixed: Vec<(String, String)>,
    /// How many are gone; more than `fixed` lists when there was no room.
    pub fixed_total: u64,
    /// Ids of findings that were not there before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new: Vec<String>,
    /// How many were not there before.
    pub new_total: u64,
    /// Findings that are gone because the reviewer dropped them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub withdrawn: u64,
    /// Findings that are gone only because nobody looked again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
}

/// A review as the comment keeps it. Every text is masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredReview {
    /// When it ended, seconds since 1970.
    pub at: i64,
    /// The version of ecr that made it.
    pub version: String,
    /// The commit under review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The commit it was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What a person calls that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_name: Option<String>,
    /// The hash of everything that the review depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// The verdict before any dismissal.
    pub decision: Decision,
    /// True when nothing is missing from the review.
    pub complete: bool,
    /// True when no model reviewed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub checks_only: bool,
    /// True when the run was interrupted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interrupted: bool,
    /// True when texts or findings were left out of this record for lack of room.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
    /// One paragraph.
    pub summary: String,
    /// The sums of the receipt.
    pub totals: CoverageTotals,
    /// Files left out on purpose, by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filtered: Vec<(String, u64)>,
    /// The changed files, as far as there is room.
    pub files: Vec<StoredFile>,
    /// What stands, most severe first.
    pub findings: Vec<StoredFinding>,
    /// What there is no room for.
    #[serde(default)]
    pub unlisted: Unlisted,
    /// What was dropped, as far as there is room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<StoredDropped>,
    /// How many were dropped at each stage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_totals: Vec<(DropStage, u64)>,
    /// What a reader has to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Who reviewed.
    pub agents: Vec<String>,
    /// The models that answered.
    pub models: Vec<String>,
    /// Tool calls of all passes.
    pub tool_calls: u64,
    /// Tokens and money.
    pub usage: UsageNumbers,
    /// Wall clock in milliseconds.
    pub total_ms: u64,
    /// Against the review before, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta: Option<Delta>,
}

impl StoredReview {
    /// Files left out on purpose.
    pub fn filtered_total(&self) -> u64 {
        self.filtered.iter().map(|(_, n)| n).sum()
    }

    /// Findings dropped on the way.
    pub fn dropped_total(&self) -> u64 {
        self.dropped_totals.iter().map(|(_, n)| n).sum()
    }
}

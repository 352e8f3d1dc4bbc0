//! The figures of an evaluation, version 1 (`ecr eval --json`). The doc comments are the published schema's
//! descriptions.

use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use crate::state::output::{Decision, Tool};

/// The version of this format. Fields may be added within a version.
pub const EVAL_VERSION: u32 = 1;

/// What the rates are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Known defects that were found.
    pub hits: u64,
    /// Findings that are no known defect, or one that was found already.
    pub false_alarms: u64,
    /// Known defects that were not found.
    pub missed: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.hits += other.hits;
        self.false_alarms += other.false_alarms;
        self.missed += other.missed;
    }
}

impl Add for Counts {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Counts {
    /// The share of findings that are known defects; none without a finding.
    pub fn precision(self) -> Option<f64> {
        share(self.hits, self.hits + self.false_alarms)
    }

    /// The share of known defects that were found; none without one.
    pub fn recall(self) -> Option<f64> {
        share(self.hits, self.hits + self.missed)
    }

    /// The harmonic mean of the two; none where there is neither a finding nor a known defect.
    pub fn f1(self) -> Option<f64> {
        share(
            2 * self.hits,
            2 * self.hits + self.false_alarms + self.missed,
        )
    }
}

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// A rate; null where there is nothing to measure it by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// The rate over all scored cases, 0 to 1.
    pub value: Option<f64>,
    /// Its interval by resampling the cases; absent with fewer than two cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

/// How right and how complete the findings are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rates {
    /// The share of findings that are known defects. Labels are rarely complete: this is a lower bound.
    pub precision: Rate,
    /// The share of known defects that were found.
    pub recall: Rate,
    /// The harmonic mean of the two.
    pub f1: Rate,
    /// The precision over findings that somebody has labelled, one way or the other.
    pub labelled_precision: Option<f64>,
}

/// What the false alarms are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FalseAlarms {
    /// Known not to hold, or on a clean change.
    pub refuted: u64,
    /// A known defect said again.
    pub duplicates: u64,
    /// A known defect, by its words, at another place of the file.
    pub misplaced: u64,
    /// Not labelled at all.
    pub unlabelled: u64,
}

/// Whether findings stand where the defect is, over the hits where both have a line.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineAccuracy {
    /// Hits whose lines overlap with the label's.
    pub exact: u64,
    /// Hits within the tolerance.
    pub near: u64,
    /// Findings that are a known defect by their words, at another place.
    pub misplaced: u64,
    /// The share of exact ones; null where there is none of the three.
    pub share: Option<f64>,
    /// Lines that the hits are away from their labels, on average.
    pub mean_distance: Option<f64>,
}

/// How quiet reviews of clean changes are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Silence {
    /// Clean cases.
    pub cases: u64,
    /// Those reviewed completely and without a finding.
    pub silent: u64,
    /// Their share.
    pub share: Option<f64>,
    /// Findings on clean changes.
    pub findings: u64,
}

/// What the verifier kept, and what it refuted or did not clear of the coordinator's doubt. A finding that is not labelled counts as false, as in the precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifierCounts {
    /// Known defects among what it confirmed or could not tell.
    pub kept_true: u64,
    /// Others among them.
    pub kept_false: u64,
    /// Known defects among what it refuted.
    pub killed_true: u64,
    /// Others among them.
    pub killed_false: u64,
}

/// Which findings are counted at a point of the curve; from everything to the surest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Also what the verifier has refuted: what the reviewers alone would have reported.
    WithoutVerifier,
    /// What was reported.
    Reported,
    /// Without what is listed as disputed.
    NotDisputed,
    /// Also without what nobody could check.
    NotUnverified,
    /// Also without what the verifier could not tell.
    NotUncertain,
    /// Only what the verifier confirmed.
    Verified,
}

impl Keep {
    /// All points, in order.
    pub const ALL: [Self; 6] = [
        Self::WithoutVerifier,
        Self::Reported,
        Self::NotDisputed,
        Self::NotUnverified,
        Self::NotUncertain,
        Self::Verified,
    ];
}

/// The rates, were only some of the findings reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CurvePoint {
    /// Which findings.
    pub keep: Keep,
    /// What the rates are made of.
    pub counts: Counts,
    /// The precision.
    pub precision: Option<f64>,
    /// The recall.
    pub recall: Option<f64>,
    /// The harmonic mean of the two.
    pub f1: Option<f64>,
}

/// What the reviews took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Fresh input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens served from the provider's cache.
    pub cache_read: u64,
    /// US dollars, over the cases whose price is known.
    pub usd: f64,
    /// Cases whose price is not known.
    pub unpriced_cases: u64,
    /// The median of the cases' wall clock, milliseconds.
    pub median_ms: u64,
}

/// A finding and the known defect that it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// The finding's id.
    pub finding: String,
    /// Position in the case's `findings`, from 0.
    pub label: u64,
    /// Lines between the two; absent where one of them has no line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<u32>,
    /// How much the words agree, 0 to 1.
    pub similarity: f64,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaseLine {
    /// Its name.
    pub case: String,
    /// The verdict.
    pub decision: Decision,
    /// Every changed line was reviewed by everybody assigned to it.
    pub complete: bool,
    /// There was nothing to find.
    pub clean: bool,
    /// What the rates are made of.
    pub counts: Counts,
    /// What was found.
    pub matches: Vec<Match>,
    /// Positions in the case's `findings` of what was not found.
    pub missed: Vec<u64>,
    /// Ids of the false alarms.
    pub false_alarms: Vec<String>,
}

/// The result of `ecr eval`, version 1. Ignore fields you do not know: they may be added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvalReportV1 {
    /// The version of this format: 1.
    #[schemars(extend("const" = EVAL_VERSION))]
    pub eval_version: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// The data set's name.
    pub dataset: String,
    /// Cases asked for.
    pub cases: u64,
    /// Those that were reviewed and scored.
    pub scored: u64,
    /// Those whose review was complete. What an incomplete one did not find counts as missed.
    pub complete: u64,
    /// Lines that a finding may be away from a label.
    pub tolerance: u32,
    /// The least similarity of the words where the lines agree.
    pub similarity: f64,
    /// What the intervals were drawn with.
    pub seed: u64,
    /// What the rates are made of.
    pub counts: Counts,
    /// How right and how complete the findings are.
    pub rates: Rates,
    /// What the false alarms are.
    pub false_alarms: FalseAlarms,
    /// Whether findings stand where the defect is.
    pub lines: LineAccuracy,
    /// How quiet reviews of clean changes are.
    pub silence: Silence,
    /// What the verifier kept and refuted.
    pub verifier: VerifierCounts,
    /// The rates by how sure a finding is.
    pub curve: Vec<CurvePoint>,
    /// What the reviews took.
    pub cost: Cost,
    /// Every scored case.
    pub per_case: Vec<CaseLine>,
}

/// The published JSON Schema (draft 2020-12) of [`EvalReportV1`].
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<EvalReportV1>()
        .to_value()
}

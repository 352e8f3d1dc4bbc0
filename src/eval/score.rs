//! From reviews and labels to the figures.

use super::bootstrap::intervals;
use super::case::Case;
use super::matching::{Matching, Outcome, Settings, matching};
use super::report::{
    CaseLine, Cost, Counts, CurvePoint, EVAL_VERSION, EvalReportV1, FalseAlarms, Keep,
    LineAccuracy, Match, Rate, Rates, Silence, VerifierCounts, share,
};
use crate::state::output::{DropStage, Finding, FindingStatus, OutputV1, Tool, VerificationStatus};

/// A case that was reviewed.
#[derive(Debug, Clone, Copy)]
pub struct Reviewed<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is known of it.
    pub case: &'a Case,
    /// The review.
    pub output: &'a OutputV1,
}

/// Scores the reviews of a data set; `asked` is how many cases it should have been.
pub fn score(
    dataset: &str,
    asked: usize,
    reviewed: &[Reviewed<'_>],
    settings: Settings,
    seed: u64,
) -> EvalReportV1 {
    let mut per_case = Vec::new();
    let mut alarms = FalseAlarms::default();
    let mut lines = Distances::default();
    let mut silence = Silence::default();
    let mut verifier = VerifierCounts::default();
    for one in reviewed {
        let findings: Vec<&Finding> = one.output.findings.iter().collect();
        let matched = matching(&findings, one.case, settings);
        for outcome in &matched.outcomes {
            match outcome {
                Outcome::Hit => {}
                // On a clean change every finding is labelled: as wrong.
                _ if one.case.clean => alarms.refuted += 1,
                Outcome::Duplicate => alarms.duplicates += 1,
                Outcome::Refuted => alarms.refuted += 1,
                Outcome::Misplaced => alarms.misplaced += 1,
                Outcome::Unknown => alarms.unlabelled += 1,
            }
        }
        lines.add(&matched);
        if one.case.clean {
            silence.cases += 1;
            silence.findings += findings.len() as u64;
            silence.silent += u64::from(findings.is_empty() && one.output.complete);
        }
        judge(one, settings, &mut verifier);
        per_case.push(case_line(one, &findings, &matched));
    }
    silence.share = share(silence.silent, silence.cases);
    let counts: Vec<Counts> = per_case.iter().map(|line| line.counts).collect();
    let total = sum(&counts);
    let [precision, recall, f1] = intervals(&counts, seed).unwrap_or([None; 3]);
    EvalReportV1 {
        eval_version: EVAL_VERSION,
        tool: Tool {
            name: "ecr".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        dataset: dataset.to_owned(),
        cases: asked as u64,
        scored: per_case.len() as u64,
        complete: per_case.iter().filter(|line| line.complete).count() as u64,
        tolerance: settings.tolerance,
        similarity: settings.similarity,
        seed,
        counts: total,
        rates: Rates {
            precision: Rate {
                value: total.precision(),
                interval: precision,
            },
            recall: Rate {
                value: total.recall(),
                interval: recall,
            },
            f1: Rate {
                value: total.f1(),
                interval: f1,
            },
            labelled_precision: share(total.hits, total.hits + alarms.refuted),
        },
        false_alarms: alarms,
        lines: lines.accuracy(alarms.misplaced),
        silence,
        verifier,
        curve: Keep::ALL
            .iter()
            .map(|keep| point(*keep, reviewed, settings))
            .collect(),
        cost: cost(reviewed),
        per_case,
    }
}

fn sum(counts: &[Counts]) -> Counts {
    counts.iter().fold(Counts::default(), |sum, one| sum + *one)
}

fn counts_of(matched: &Matching, case: &Case) -> Counts {
    let hits = matched.hits.len() as u64;
    Counts {
        hits,
        false_alarms: matched.outcomes.len() as u64 - hits,
        missed: case.findings.len() as u64 - hits,
    }
}

fn case_line(one: &Reviewed<'_>, findings: &[&Finding], matched: &Matching) -> CaseLine {
    let mut matches: Vec<Match> = matched
        .hits
        .iter()
        .map(|pair| Match {
            finding: findings[pair.finding].id.clone(),
            label: pair.label as u64,
            distance: pair.distance,
            similarity: (pair.similarity * 1_000.0).round() / 1_000.0,
        })
        .collect();
    matches.sort_by_key(|pair| pair.label);
    let missed = (0..one.case.findings.len())
        .filter(|at| matched.hits.iter().all(|pair| pair.label != *at))
        .map(|at| at as u64);
    let wrong = findings
        .iter()
        .zip(&matched.outcomes)
        .filter(|(_, outcome)| **outcome != Outcome::Hit);
    CaseLine {
        case: one.name.to_owned(),
        decision: one.output.decision,
        complete: one.output.complete,
        clean: one.case.clean,
        counts: counts_of(matched, one.case),
        matches,
        missed: missed.collect(),
        false_alarms: wrong.map(|(finding, _)| finding.id.clone()).collect(),
    }
}

#[derive(Default)]
struct Distances {
    exact: u64,
    near: u64,
    lines: u64,
}

impl Distances {
    fn add(&mut self, matched: &Matching) {
        for distance in matched.hits.iter().filter_map(|pair| pair.distance) {
            match distance {
                0 => self.exact += 1,
                _ => self.near += 1,
            }
            self.lines += u64::from(distance);
        }
    }

    fn accuracy(&self, misplaced: u64) -> LineAccuracy {
        let hits = self.exact + self.near;
        LineAccuracy {
            exact: self.exact,
            near: self.near,
            misplaced,
            share: share(self.exact, hits + misplaced),
            mean_distance: share(self.lines, hits),
        }
    }
}

/// What the verifier has refuted, or did not clear of the coordinator's doubt, and is not reported.
fn killed(output: &OutputV1) -> impl Iterator<Item = &Finding> {
    output
        .dropped
        .iter()
        .filter(|dropped| {
            matches!(
                dropped.stage,
                DropStage::Verification | DropStage::Coordination
            )
        })
        .map(|dropped| &dropped.finding)
}

/// Adds what the verifier did in one case. The kept are matched first: what repeats a kept defect is no loss.
fn judge(one: &Reviewed<'_>, settings: Settings, counts: &mut VerifierCounts) {
    let kept: Vec<&Finding> = one.output.findings.iter().collect();
    let kept_matched = matching(&kept, one.case, settings);
    for (finding, outcome) in kept.iter().zip(&kept_matched.outcomes) {
        let looked_at = matches!(
            finding.verification.status,
            VerificationStatus::Verified | VerificationStatus::Uncertain
        ) || finding.status == FindingStatus::Disputed;
        match (looked_at, outcome) {
            (false, _) => {}
            (true, Outcome::Hit) => counts.kept_true += 1,
            (true, _) => counts.kept_false += 1,
        }
    }
    let mut left = one.case.clone();
    let mut position = 0;
    left.findings.retain(|_| {
        position += 1;
        kept_matched
            .hits
            .iter()
            .all(|pair| pair.label + 1 != position)
    });
    let killed: Vec<&Finding> = killed(one.output).collect();
    for outcome in matching(&killed, &left, settings).outcomes {
        match outcome {
            Outcome::Hit => counts.killed_true += 1,
            _ => counts.killed_false += 1,
        }
    }
}

fn point(keep: Keep, reviewed: &[Reviewed<'_>], settings: Settings) -> CurvePoint {
    let counts: Vec<Counts> = reviewed
        .iter()
        .map(|one| {
            let mut findings: Vec<&Finding> = one.output.findings.iter().collect();
            findings.retain(|finding| stays(finding, keep));
            if keep == Keep::WithoutVerifier {
                findings.extend(killed(one.output));
            }
            counts_of(&matching(&findings, one.case, settings), one.case)
        })
        .collect();
    let counts = sum(&counts);
    CurvePoint {
        keep,
        counts,
        precision: counts.precision(),
        recall: counts.recall(),
        f1: counts.f1(),
    }
}

fn stays(finding: &Finding, keep: Keep) -> bool {
    let status = finding.verification.status;
    (keep < Keep::NotDisputed || finding.status != FindingStatus::Disputed)
        && (keep < Keep::NotUnverified || status != VerificationStatus::Unverified)
        && (keep < Keep::NotUncertain || status != VerificationStatus::Uncertain)
        && (keep < Keep::Verified || status == VerificationStatus::Verified)
}

fn cost(reviewed: &[Reviewed<'_>]) -> Cost {
    let mut cost = Cost::default();
    let mut times = Vec::new();
    for one in reviewed {
        let usage = &one.output.usage;
        cost.input += usage.input.unwrap_or(0);
        cost.output += usage.output.unwrap_or(0);
        cost.cache_read += usage.cache_read.unwrap_or(0);
        match usage.cost_usd {
            Some(usd) => cost.usd += usd,
            None => cost.unpriced_cases += 1,
        }
        times.push(one.output.timing.total_ms);
    }
    times.sort_unstable();
    cost.median_ms = times.get(times.len() / 2).copied().unwrap_or(0);
    cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::matching::tests::{finding, label};
    use serde_json::{Value, json};

    fn output(findings: &[Finding], dropped: &[(Finding, &str)], complete: bool) -> OutputV1 {
        let dropped: Vec<Value> = dropped
            .iter()
            .map(|(finding, stage)| {
                let mut value = serde_json::to_value(finding).unwrap();
                value["stage"] = json!(stage);
                value["reason"] = json!("r");
                value
            })
            .collect();
        serde_json::from_value(json!({
            "schemaVersion": 1, "tool": {"name": "ecr", "version": "0"},
            "input": {"kind": "range", "base": null, "head": null},
            "sandbox": {"level": "none", "missing": []}, "decision": "approve_with_comments", "complete": complete,
            "summary": "", "findings": findings, "dismissed": [], "dropped": dropped,
            "coverage": {"files": [], "totals": {"files": 0, "reviewedFiles": 0, "changedLines": 0, "reviewedLines": 0}},
            "notes": [], "passes": [],
            "usage": {"input": 100, "output": 10, "costUsd": 0.25, "confidence": "exact"},
            "timing": {"totalMs": 40, "overheadMs": 1},
        }))
        .unwrap()
    }

    fn with(mut finding: Finding, status: VerificationStatus) -> Finding {
        finding.verification.status = status;
        finding
    }

    fn close(rate: Option<f64>, expected: f64) {
        assert!(
            (rate.unwrap() - expected).abs() < 1e-9,
            "{rate:?} is not {expected}"
        );
    }

    #[test]
    fn the_figures_of_a_small_set() {
        let overflow = "The sum overflows for large orders";
        let leak = "The connection is never closed";
        let defects = Case {
            findings: vec![label("a.rs", 10, overflow), label("b.rs", 5, leak)],
            non_findings: vec![label("a.rs", 40, "The name of the variable is too short")],
            ..Case::default()
        };
        let clean = Case {
            clean: true,
            ..Case::default()
        };
        let first = output(
            &[
                with(
                    finding("a.rs", 12, "Sum overflows"),
                    VerificationStatus::Verified,
                ),
                with(
                    finding("a.rs", 40, "Variable name too short"),
                    VerificationStatus::Uncertain,
                ),
            ],
            &[
                (
                    finding("b.rs", 5, "Connection never closed"),
                    "verification",
                ),
                (finding("b.rs", 80, "Rename this"), "coordination"),
                (finding("b.rs", 5, leak), "dedupe"),
            ],
            true,
        );
        let quiet = output(&[], &[], true);
        let cut = output(&[], &[], false);
        let loud = output(&[finding("c.rs", 1, "Hm")], &[], true);
        let reviewed = [
            Reviewed {
                name: "one",
                case: &defects,
                output: &first,
            },
            Reviewed {
                name: "quiet",
                case: &clean,
                output: &quiet,
            },
            Reviewed {
                name: "cut",
                case: &clean,
                output: &cut,
            },
            Reviewed {
                name: "loud",
                case: &clean,
                output: &loud,
            },
        ];
        let report = score("set", 5, &reviewed, Settings::default(), 1);
        assert_eq!((report.cases, report.scored, report.complete), (5, 4, 3));
        assert_eq!(
            report.counts,
            Counts {
                hits: 1,
                false_alarms: 2,
                missed: 1
            }
        );
        close(report.rates.precision.value, 1.0 / 3.0);
        close(report.rates.recall.value, 0.5);
        close(report.rates.f1.value, 0.4);
        close(report.rates.labelled_precision, 1.0 / 3.0);
        let interval = report.rates.recall.interval.unwrap();
        assert!(interval.low <= 0.5 && interval.high >= 0.5);
        assert_eq!(
            report.false_alarms,
            FalseAlarms {
                refuted: 2,
                ..FalseAlarms::default()
            }
        );
        assert_eq!((report.lines.exact, report.lines.near), (0, 1));
        close(report.lines.mean_distance, 2.0);
        // A review that was cut found nothing, too; that is no silence.
        assert_eq!(
            (
                report.silence.cases,
                report.silence.silent,
                report.silence.findings
            ),
            (3, 1, 1)
        );
        assert_eq!(
            report.verifier,
            VerifierCounts {
                kept_true: 1,
                kept_false: 1,
                killed_true: 1,
                killed_false: 1
            }
        );
        let at = |keep: Keep| report.curve.iter().find(|p| p.keep == keep).unwrap().counts;
        assert_eq!(
            at(Keep::WithoutVerifier),
            Counts {
                hits: 2,
                false_alarms: 3,
                missed: 0
            }
        );
        assert_eq!(at(Keep::Reported), report.counts);
        assert_eq!(
            at(Keep::NotUncertain),
            Counts {
                hits: 1,
                false_alarms: 1,
                missed: 1
            }
        );
        assert_eq!(
            at(Keep::Verified),
            Counts {
                hits: 1,
                false_alarms: 0,
                missed: 1
            }
        );
        assert_eq!(
            (
                report.cost.input,
                report.cost.output,
                report.cost.unpriced_cases
            ),
            (400, 40, 0)
        );
        close(Some(report.cost.usd), 1.0);
        assert_eq!(report.per_case[0].missed, [1]);
        assert_eq!(report.per_case[0].matches[0].label, 0);

        let value = serde_json::to_value(&report).unwrap();
        let validator = jsonschema::validator_for(&crate::eval::report_schema()).unwrap();
        assert!(validator.is_valid(&value), "{value:#}");
        assert!(!validator.is_valid(&json!({"evalVersion": 1})));
        let text = crate::eval::terminal(&report);
        assert!(text.contains("33.3%") && text.contains("cut"), "{text}");
    }

    #[test]
    fn nothing_scored_is_no_figure_and_no_panic() {
        let report = score("set", 3, &[], Settings::default(), 1);
        assert_eq!(report.rates.f1.value, None);
        assert_eq!(report.rates.f1.interval, None);
        assert!(crate::eval::terminal(&report).contains("0 of 3"));
    }
}

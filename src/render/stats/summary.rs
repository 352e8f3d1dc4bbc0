//! The log added up.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::state::output::{Decision, PassOutcomeKind, UsageNumbers};
use crate::state::run_log::{FindingCounts, RunLine};

/// A chart has at most this many columns.
const COLUMNS: usize = 60;

/// Runs added up.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The version of this document.
    pub stats_version: u32,
    /// Runs.
    pub runs: u64,
    /// The day of the first and of the last run, in UTC.
    pub from: Option<String>,
    /// See `from`.
    pub to: Option<String>,
    /// Runs that reviewed everything.
    pub complete: u64,
    /// Runs by verdict.
    pub decisions: BTreeMap<&'static str, u64>,
    /// Changed lines, and how many of them were reviewed.
    pub changed_lines: u64,
    /// See `changed_lines`.
    pub reviewed_lines: u64,
    /// Findings shown.
    pub findings: FindingCounts,
    /// Findings that did not hold.
    pub dropped: u64,
    /// Wall clock of a run in milliseconds: half of them took at most this.
    pub duration_median_ms: u64,
    /// Nine of ten took at most this.
    pub duration_p90_ms: u64,
    /// US dollars, as far as they are known.
    pub cost_usd: f64,
    /// Runs whose cost is not known, or not wholly.
    pub unpriced_runs: u64,
    /// Tokens.
    pub tokens: Tokens,
    /// Each reviewer with each of its models, the dearest first.
    pub agents: Vec<AgentRow>,
    /// The runs along time, without gaps.
    pub buckets: Vec<Bucket>,
    /// Days in a bucket.
    pub bucket_days: u32,
}

/// Tokens added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Fresh input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input from the provider's cache.
    pub cache_read: u64,
    /// Input written to it.
    pub cache_write: u64,
}

impl Tokens {
    fn add(&mut self, usage: &UsageNumbers) {
        let sum = |a: u64, b: Option<u64>| a.saturating_add(b.unwrap_or(0));
        self.input = sum(self.input, usage.input);
        self.output = sum(self.output, usage.output);
        self.cache_read = sum(self.cache_read, usage.cache_read);
        self.cache_write = sum(self.cache_write, usage.cache_write);
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.all_input().saturating_add(self.output)
    }

    fn all_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Which part of the input came from the cache, 0 to 1; `None` without input.
    pub fn cache_hit(&self) -> Option<f64> {
        let all = self.all_input();
        (all > 0).then(|| self.cache_read as f64 / all as f64)
    }
}

/// One reviewer with one model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRow {
    /// Who reviewed.
    pub agent: String,
    /// With what; `None` for the checks.
    pub model: Option<String>,
    /// Passes.
    pub passes: u64,
    /// Passes that ran to their end.
    pub complete: u64,
    /// Findings shown that name it.
    pub findings: u64,
    /// Half of its passes took at most this, in milliseconds.
    pub duration_median_ms: u64,
    /// Tokens.
    pub tokens: Tokens,
    /// US dollars, as far as they are known.
    pub cost_usd: f64,
}

/// The runs of some days.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bucket {
    /// The first day, in UTC.
    pub day: String,
    /// Runs.
    pub runs: u64,
    /// US dollars, as far as they are known.
    pub cost_usd: f64,
    /// Half of the runs took at most this, in milliseconds.
    pub duration_median_ms: u64,
    /// Findings shown.
    pub findings: FindingCounts,
    /// Tokens.
    pub tokens: Tokens,
}

#[derive(Default)]
struct Part {
    runs: u64,
    cost: f64,
    durations: Vec<u64>,
    findings: FindingCounts,
    tokens: Tokens,
}

#[derive(Default)]
struct AgentPart {
    passes: u64,
    complete: u64,
    findings: u64,
    durations: Vec<u64>,
    tokens: Tokens,
    cost: f64,
}

impl Stats {
    /// Adds up the runs that ended at or after `since`. Runs without a readable time count only without a limit.
    pub fn of(runs: &[RunLine], since: Option<Timestamp>) -> Self {
        let runs: Vec<(&RunLine, Option<Date>)> = runs
            .iter()
            .filter_map(|run| {
                let ended = run.ended();
                match (since, ended) {
                    (Some(since), Some(ended)) if ended < since => None,
                    (Some(_), None) => None,
                    _ => Some((run, ended.map(day))),
                }
            })
            .collect();
        let days = runs.iter().filter_map(|(_, day)| *day);
        let (first, last) = (days.clone().min(), days.max());
        let mut all = Part::default();
        let mut agents: BTreeMap<(&str, Option<&str>), AgentPart> = BTreeMap::new();
        let mut decisions: BTreeMap<&'static str, u64> = BTreeMap::new();
        let (mut complete, mut unpriced, mut changed, mut reviewed, mut dropped) =
            (0, 0, 0u64, 0u64, 0u64);
        for (run, _) in &runs {
            all.add(run);
            complete += u64::from(run.complete && run.decision != Decision::Skipped);
            unpriced += u64::from(run.usage.cost_usd.is_none());
            changed = changed.saturating_add(run.changed_lines);
            reviewed = reviewed.saturating_add(run.reviewed_lines);
            dropped = dropped.saturating_add(run.dropped);
            *decisions.entry(run.decision.as_str()).or_default() += 1;
            for pass in &run.passes {
                let part = agents
                    .entry((&pass.agent, pass.model.as_deref()))
                    .or_default();
                part.passes += 1;
                part.complete += u64::from(pass.outcome == PassOutcomeKind::Complete);
                part.durations.push(pass.duration_ms);
                part.tokens.add(&pass.usage);
                part.cost += pass.usage.cost_usd.unwrap_or(0.0);
            }
            // A finding names its reviewer and not its pass: each reviewer is credited once a run.
            let mut credited: Vec<&str> = Vec::new();
            for pass in &run.passes {
                if !credited.contains(&pass.agent.as_str()) {
                    credited.push(&pass.agent);
                    if let Some(part) = agents.get_mut(&(&*pass.agent, pass.model.as_deref())) {
                        part.findings = part.findings.saturating_add(pass.findings);
                    }
                }
            }
        }
        let mut agents: Vec<AgentRow> = agents
            .into_iter()
            .map(|((agent, model), mut part)| AgentRow {
                agent: agent.to_owned(),
                model: model.map(str::to_owned),
                passes: part.passes,
                complete: part.complete,
                findings: part.findings,
                duration_median_ms: quantile(&mut part.durations, 50),
                tokens: part.tokens,
                cost_usd: part.cost,
            })
            .collect();
        agents.sort_by(|a, b| {
            b.cost_usd
                .total_cmp(&a.cost_usd)
                .then(b.tokens.total().cmp(&a.tokens.total()))
        });
        let (buckets, bucket_days) = match (first, last) {
            (Some(first), Some(last)) => along_time(&runs, first, last),
            _ => (Vec::new(), 1),
        };
        Self {
            stats_version: 1,
            runs: all.runs,
            from: first.map(|day| day.to_string()),
            to: last.map(|day| day.to_string()),
            complete,
            decisions,
            changed_lines: changed,
            reviewed_lines: reviewed,
            findings: all.findings,
            dropped,
            duration_median_ms: quantile(&mut all.durations, 50),
            duration_p90_ms: quantile(&mut all.durations, 90),
            cost_usd: all.cost,
            unpriced_runs: unpriced,
            tokens: all.tokens,
            agents,
            buckets,
            bucket_days,
        }
    }
}

impl Part {
    fn add(&mut self, run: &RunLine) {
        self.runs += 1;
        self.cost += run.usage.cost_usd.unwrap_or(0.0);
        self.durations.push(run.duration_ms);
        let sum = &mut self.findings;
        sum.critical = sum.critical.saturating_add(run.findings.critical);
        sum.warning = sum.warning.saturating_add(run.findings.warning);
        sum.suggestion = sum.suggestion.saturating_add(run.findings.suggestion);
        self.tokens.add(&run.usage);
    }
}

fn day(at: Timestamp) -> Date {
    at.to_zoned_datetime(TimeZone::UTC).date()
}

/// Days since another day; nothing for an earlier one.
fn days_between(first: Date, day: Date) -> usize {
    first
        .until(day)
        .ok()
        .and_then(|span| usize::try_from(span.get_days()).ok())
        .unwrap_or(0)
}

fn along_time(runs: &[(&RunLine, Option<Date>)], first: Date, last: Date) -> (Vec<Bucket>, u32) {
    let width = days_between(first, last) / COLUMNS + 1;
    let mut parts: Vec<Part> = Vec::new();
    parts.resize_with(days_between(first, last) / width + 1, Part::default);
    for (run, day) in runs {
        if let Some(part) = day.and_then(|day| parts.get_mut(days_between(first, day) / width)) {
            part.add(run);
        }
    }
    let buckets = parts
        .into_iter()
        .enumerate()
        .map(|(at, mut part)| {
            let span = i64::try_from(at * width).map(|days| jiff::Span::new().try_days(days));
            let day = match span {
                Ok(Ok(span)) => first.checked_add(span).unwrap_or(last),
                _ => last,
            };
            Bucket {
                day: day.to_string(),
                runs: part.runs,
                cost_usd: part.cost,
                duration_median_ms: quantile(&mut part.durations, 50),
                findings: part.findings,
                tokens: part.tokens,
            }
        })
        .collect();
    (buckets, u32::try_from(width).unwrap_or(u32::MAX))
}

/// The smallest value that `percent` of the values do not exceed; 0 without values.
fn quantile(values: &mut [u64], percent: usize) -> u64 {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::state::output::{InputKind, PassKind, UsageConfidence};
    use crate::state::run_log::PassLine;

    fn usage(input: u64, cache_read: u64, cost: Option<f64>) -> UsageNumbers {
        UsageNumbers {
            input: Some(input),
            output: Some(10),
            cache_read: Some(cache_read),
            cache_write: Some(0),
            reasoning: None,
            cost_usd: cost,
            confidence: UsageConfidence::Exact,
        }
    }

    pub(in crate::render::stats) fn run(at: &str, duration_ms: u64, cost: Option<f64>) -> RunLine {
        let pass = |model: &str| PassLine {
            kind: PassKind::Review,
            agent: "security".to_owned(),
            engine: "api".to_owned(),
            model: Some(model.to_owned()),
            outcome: PassOutcomeKind::Complete,
            attempts: 1,
            duration_ms,
            findings: 2,
            usage: usage(100, 300, cost.map(|c| c / 2.0)),
        };
        RunLine {
            log_version: 1,
            at: at.to_owned(),
            ecr_version: "0".to_owned(),
            input: InputKind::Range,
            decision: Decision::RequestChanges,
            complete: true,
            duration_ms,
            files: 3,
            reviewed_files: 3,
            changed_lines: 40,
            reviewed_lines: 30,
            findings: FindingCounts {
                critical: 1,
                warning: 1,
                suggestion: 0,
            },
            disputed: 0,
            dropped: 1,
            dismissed: 0,
            passes: vec![pass("a/<m>"), pass("a/<m>")],
            usage: usage(200, 600, cost),
        }
    }

    #[test]
    fn sums_quantiles_and_shares() {
        let runs: Vec<RunLine> = (1..=10)
            .map(|day| run(&format!("2026-11-{day:02}T10:00:00Z"), day * 100, Some(0.5)))
            .collect();
        let stats = Stats::of(&runs, None);
        assert_eq!((stats.runs, stats.complete), (10, 10));
        assert_eq!(stats.decisions["request_changes"], 10);
        assert_eq!(
            (stats.duration_median_ms, stats.duration_p90_ms),
            (500, 900)
        );
        assert_eq!((stats.changed_lines, stats.reviewed_lines), (400, 300));
        assert!((stats.cost_usd - 5.0).abs() < 1e-9);
        assert_eq!(stats.tokens.cache_hit(), Some(0.75));
        assert_eq!(stats.buckets.len(), 10);
        let [agent] = &stats.agents[..] else {
            panic!("{:?}", stats.agents)
        };
        // Two passes a run share the two findings that name their reviewer.
        assert_eq!((agent.passes, agent.findings), (20, 20));
    }

    #[test]
    fn since_leaves_out_what_is_older() {
        let runs = [
            run("2026-11-01T10:00:00Z", 1, None),
            run("2026-11-03T10:00:00Z", 1, Some(1.0)),
            run("some day", 1, None),
        ];
        let since = "2026-11-02T00:00:00Z".parse().unwrap();
        assert_eq!(Stats::of(&runs, Some(since)).runs, 1);
        let all = Stats::of(&runs, None);
        assert_eq!((all.runs, all.unpriced_runs), (3, 2));
        assert_eq!(all.buckets.iter().map(|b| b.runs).sum::<u64>(), 2);
    }

    #[test]
    fn long_times_have_wider_columns_and_no_run_is_lost() {
        let runs = [
            run("1970-01-01T00:00:00Z", 1, None),
            run("2026-11-03T10:00:00Z", 1, None),
            run("9999-12-30T10:00:00Z", 1, None),
        ];
        let stats = Stats::of(&runs, None);
        assert!(stats.buckets.len() <= COLUMNS + 1);
        assert_eq!(stats.buckets.iter().map(|b| b.runs).sum::<u64>(), 3);
        assert_eq!(Stats::of(&[], None).buckets, []);
    }
}

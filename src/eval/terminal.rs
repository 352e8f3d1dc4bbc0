//! The figures as text for a terminal.

use std::fmt::Write as _;

use super::report::{EvalReportV1, Keep, Rate};
use crate::model::printable;

/// Cases with something to say that are listed by name.
const MAX_CASES: usize = 40;

/// The report as plain text of at most 100 columns. Names of cases are made printable.
pub fn terminal(report: &EvalReportV1) -> String {
    let mut out = String::new();
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<12} {text}");
    };
    line(
        "cases",
        format!(
            "{} of {} scored, {} of them reviewed completely",
            report.scored, report.cases, report.complete
        ),
    );
    let counts = report.counts;
    line(
        "precision",
        format!(
            "{}  {} of {} findings are known defects",
            rate(&report.rates.precision),
            counts.hits,
            counts.hits + counts.false_alarms
        ),
    );
    line(
        "recall",
        format!(
            "{}  {} of {} known defects were found",
            rate(&report.rates.recall),
            counts.hits,
            counts.hits + counts.missed
        ),
    );
    line("F1", rate(&report.rates.f1));
    let alarms = report.false_alarms;
    line(
        "false alarms",
        format!(
            "{} known not to hold, {} said twice, {} at another place, {} not labelled",
            alarms.refuted, alarms.duplicates, alarms.misplaced, alarms.unlabelled
        ),
    );
    if let Some(labelled) = report.rates.labelled_precision {
        line(
            "",
            format!(
                "precision over labelled findings only: {}",
                percent(Some(labelled)).trim_start()
            ),
        );
    }
    if report.lines.share.is_some() {
        line(
            "lines",
            format!(
                "{}  on the line, {} within {}, {} elsewhere",
                percent(report.lines.share),
                report.lines.near,
                report.tolerance,
                report.lines.misplaced
            ),
        );
    }
    if report.silence.cases > 0 {
        line(
            "silence",
            format!(
                "{}  {} of {} clean changes, {} false alarms on them",
                percent(report.silence.share),
                report.silence.silent,
                report.silence.cases,
                report.silence.findings
            ),
        );
    }
    let verifier = report.verifier;
    line(
        "verifier",
        format!(
            "kept {} true and {} false, refuted {} true and {} false",
            verifier.kept_true, verifier.kept_false, verifier.killed_true, verifier.killed_false
        ),
    );
    let cost = report.cost;
    let unpriced = match cost.unpriced_cases {
        0 => String::new(),
        n => format!(" ({n} cases without a known price)"),
    };
    line(
        "cost",
        format!(
            "${:.4}{unpriced}, {} tokens in ({} more from the cache), {} out; half the cases within {:.1}s",
            cost.usd,
            cost.input,
            cost.cache_read,
            cost.output,
            cost.median_ms as f64 / 1_000.0
        ),
    );
    let _ = writeln!(
        out,
        "\n  {:<34} precision  recall      F1  findings",
        "by how sure a finding is"
    );
    for point in &report.curve {
        let _ = writeln!(
            out,
            "  {:<34}    {}  {}  {}  {:>8}",
            words(point.keep),
            percent(point.precision),
            percent(point.recall),
            percent(point.f1),
            point.counts.hits + point.counts.false_alarms
        );
    }
    cases(report, &mut out);
    out
}

fn cases(report: &EvalReportV1, out: &mut String) {
    let speaking: Vec<_> = report
        .per_case
        .iter()
        .filter(|case| !case.complete || case.counts.missed > 0 || case.counts.false_alarms > 0)
        .collect();
    if speaking.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n  {:<40} found  missed  false",
        "cases with something missed or false"
    );
    for case in speaking.iter().take(MAX_CASES) {
        let name: String = printable(&case.case).chars().take(40).collect();
        let incomplete = if case.complete { "" } else { "  incomplete" };
        let _ = writeln!(
            out,
            "  {name:<40} {:>5}  {:>6}  {:>5}{incomplete}",
            case.counts.hits, case.counts.missed, case.counts.false_alarms
        );
    }
    if let Some(more) = speaking.len().checked_sub(MAX_CASES).filter(|n| *n > 0) {
        let _ = writeln!(out, "  … and {more} more (see --json)");
    }
}

fn words(keep: Keep) -> &'static str {
    match keep {
        Keep::WithoutVerifier => "all, also what was refuted",
        Keep::Reported => "as reported",
        Keep::NotDisputed => "without disputed ones",
        Keep::NotUnverified => "also without unverified ones",
        Keep::NotUncertain => "also without uncertain ones",
        Keep::Verified => "only what the verifier confirmed",
    }
}

/// Six columns; a dash where there is nothing to measure.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(
        || format!("{:>6}", "-"),
        |share| format!("{:>5.1}%", share * 100.0),
    )
}

fn rate(rate: &Rate) -> String {
    let value = percent(rate.value);
    match rate.interval {
        Some(interval) => format!(
            "{value}  [{:.1} to {:.1}]",
            interval.low * 100.0,
            interval.high * 100.0
        ),
        None => value,
    }
}

//! The figures for a terminal.

use super::Stats;
use crate::render::layout::{self, Page, Paint, TerminalOptions};
use crate::render::printable_line;
use crate::render::words::count;

/// The figures as text. `log` is where they come from, as a person would name it.
pub fn terminal(stats: &Stats, log: &str, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    let (Some(from), Some(to)) = (&stats.from, &stats.to) else {
        page.wrapped(
            (Paint::Faint, ""),
            Paint::Plain,
            &format!("no runs in {}", printable_line(log)),
        );
        return page.finish();
    };
    let days = if from == to {
        from.clone()
    } else {
        format!("{from} to {to}")
    };
    page.line(&page.paint(
        Paint::Strong,
        &format!("{}, {days}", count(stats.runs, "run")),
    ));
    let mut row = |name: &str, text: String| {
        page.wrapped(
            (Paint::Faint, &format!("  {name:<10}")),
            Paint::Plain,
            &text,
        );
    };
    let decisions: Vec<String> = stats
        .decisions
        .iter()
        .map(|(decision, runs)| format!("{} {}", runs, decision.replace('_', " ")))
        .collect();
    row("verdicts", decisions.join(", "));
    row(
        "coverage",
        format!(
            "{} complete; {} of {} changed lines reviewed",
            share(stats.complete, stats.runs),
            stats.reviewed_lines,
            stats.changed_lines
        ),
    );
    row(
        "findings",
        format!(
            "{} critical, {} warning, {} suggestion; {} dropped",
            stats.findings.critical,
            stats.findings.warning,
            stats.findings.suggestion,
            stats.dropped
        ),
    );
    row(
        "time",
        format!(
            "half within {}, nine of ten within {}",
            seconds(stats.duration_median_ms),
            seconds(stats.duration_p90_ms)
        ),
    );
    let unpriced = match stats.unpriced_runs {
        0 => String::new(),
        n => format!(", {} without a known price", count(n, "run")),
    };
    row("cost", format!("${:.2}{unpriced}", stats.cost_usd));
    if let Some(hit) = stats.tokens.cache_hit() {
        row(
            "tokens",
            format!(
                "{} in, {} out; {:.0}% of the input from the cache",
                short(stats.tokens.total() - stats.tokens.output),
                short(stats.tokens.output),
                hit * 100.0
            ),
        );
    }
    page.gap();
    let name = |agent: &str, model: &Option<String>| match model {
        Some(model) => format!("{} ({})", printable_line(agent), printable_line(model)),
        None => printable_line(agent),
    };
    let room = page.width().saturating_sub(48).clamp(12, 48);
    page.line(&page.paint(
        Paint::Faint,
        &format!(
            "  {:<room$} {:>6} {:>6} {:>8} {:>8} {:>8}",
            "reviewer", "passes", "ok", "findings", "time", "cost"
        ),
    ));
    for row in &stats.agents {
        let name = layout::clip(&name(&row.agent, &row.model), room);
        let pad = " ".repeat(room.saturating_sub(layout::width(&name)));
        page.line(&format!(
            "  {name}{pad} {:>6} {:>6} {:>8} {:>8} {:>8}",
            row.passes,
            share(row.complete, row.passes),
            row.findings,
            seconds(row.duration_median_ms),
            format!("${:.2}", row.cost_usd),
        ));
    }
    page.finish()
}

pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    // Rounded down: 99.9 % is not all.
    format!("{}%", part.saturating_mul(100) / whole)
}

pub(super) fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{:.1}s", ms as f64 / 1e3),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1_000 % 60),
    }
}

pub(super) fn short(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{}k", n / 1_000),
        _ => format!("{}M", n / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::run;
    use super::*;

    #[test]
    fn says_what_there_is_in_any_width() {
        let runs = [
            run("2026-11-01T10:00:00Z", 61_000, Some(0.25)),
            run("2026-11-02T10:00:00Z", 900, None),
        ];
        let stats = Stats::of(&runs, None);
        let wide = terminal(
            &stats,
            "log",
            &TerminalOptions {
                width: 100,
                ..TerminalOptions::default()
            },
        );
        for words in [
            "2 runs, 2026-11-01 to 2026-11-02",
            "2 request changes",
            "100% complete; 60 of 80 changed lines reviewed",
            "half within 900ms, nine of ten within 1m01s",
            "$0.25, 1 run without a known price",
            "75% of the input from the cache",
            "security (a/<m>)",
        ] {
            assert!(wide.contains(words), "{words}: {wide}");
        }
        let narrow = terminal(
            &stats,
            "log",
            &TerminalOptions {
                width: 40,
                ..TerminalOptions::default()
            },
        );
        assert!(narrow.contains("2 runs"), "{narrow}");
        let none = terminal(
            &Stats::of(&[], None),
            "the log",
            &TerminalOptions::default(),
        );
        assert!(none.contains("no runs in the log"), "{none}");
    }
}

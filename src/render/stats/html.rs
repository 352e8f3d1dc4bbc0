//! The figures as one HTML page that needs nothing else: no script, no font, no request.

use std::fmt::Write as _; // writing to a String cannot fail

use super::terminal::{seconds, share, short};
use super::{Bucket, Stats};
use crate::render::printable_line;

const WIDTH: usize = 640;
const HEIGHT: usize = 160;
/// Room for the axis' labels.
const LEFT: usize = 56;
const BOTTOM: usize = 22;

const STYLE: &str = "\
:root{color-scheme:light dark;--fg:#1f2328;--dim:#59636e;--line:#d1d9e0;--bg:#fff;--a:#0969da;--crit:#cf222e;--warn:#bf8700;--sugg:#59636e}\
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;--bg:#0d1117;--a:#4493f8;--crit:#f85149;--warn:#d29922;--sugg:#9198a1}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:2rem auto;max-width:56rem;padding:0 1rem}\
h1{font-size:1.4rem}h2{font-size:1rem;margin:1.6rem 0 .4rem}p{margin:.3rem 0;color:var(--dim)}\
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:1rem;margin:1rem 0}\
dt{color:var(--dim);font-size:.85rem}dd{margin:0;font-size:1.3rem}\
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}\
figure{margin:0;min-width:0}svg{width:100%;height:auto;display:block}\
svg text{fill:var(--dim);font:12px system-ui,sans-serif}svg .axis{stroke:var(--line)}\
.a{fill:var(--a)}.crit{fill:var(--crit)}.warn{fill:var(--warn)}.sugg{fill:var(--sugg)}\
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}";

/// The page.
pub fn html(stats: &Stats) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <title>ecr: past runs</title><style>",
    );
    page.push_str(STYLE);
    page.push_str("</style></head><body>\n<h1>ecr: past runs</h1>\n");
    let (Some(from), Some(to)) = (&stats.from, &stats.to) else {
        page.push_str("<p>No runs in this time.</p>\n</body></html>\n");
        return page;
    };
    let _ = writeln!(page, "<p>{} to {}, days in UTC</p>", text(from), text(to));
    figures(&mut page, stats);
    page.push_str("<div class=\"charts\">\n");
    let cost = |b: &Bucket| vec![("a", b.cost_usd)];
    chart(&mut page, stats, "Cost, US$", &|v| format!("{v:.2}"), &cost);
    let time = |b: &Bucket| vec![("a", b.duration_median_ms as f64)];
    #[allow(clippy::cast_sign_loss)] // clamped
    let whole = |v: f64| seconds(v.round().clamp(0.0, 1e15) as u64);
    chart(&mut page, stats, "Time of the median run", &whole, &time);
    let findings = |b: &Bucket| {
        vec![
            ("crit", b.findings.critical as f64),
            ("warn", b.findings.warning as f64),
            ("sugg", b.findings.suggestion as f64),
        ]
    };
    let title = "Findings: <tspan class=\"crit\">critical</tspan>, <tspan class=\"warn\">warning</tspan>, \
                 <tspan class=\"sugg\">suggestion</tspan>";
    chart(&mut page, stats, title, &|v| format!("{v:.0}"), &findings);
    let hit = |b: &Bucket| vec![("a", b.tokens.cache_hit().unwrap_or(0.0) * 100.0)];
    chart(
        &mut page,
        stats,
        "Input from the cache, %",
        &|v| format!("{v:.0}"),
        &hit,
    );
    page.push_str("</div>\n");
    agents(&mut page, stats);
    page.push_str("</body></html>\n");
    page
}

fn figures(page: &mut String, stats: &Stats) {
    let hit = stats.tokens.cache_hit();
    let rows = [
        ("Runs", stats.runs.to_string()),
        ("Complete", share(stats.complete, stats.runs)),
        ("Findings", stats.findings.total().to_string()),
        ("Cost", format!("${:.2}", stats.cost_usd)),
        ("Median time", seconds(stats.duration_median_ms)),
        ("Tokens", short(stats.tokens.total())),
        (
            "From the cache",
            hit.map_or("-".to_owned(), |hit| format!("{:.0}%", hit * 100.0)),
        ),
    ];
    page.push_str("<dl>");
    for (name, value) in rows {
        let _ = write!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    page.push_str("</dl>\n");
    let decisions: Vec<String> = stats
        .decisions
        .iter()
        .map(|(decision, runs)| format!("{runs} {}", decision.replace('_', " ")))
        .collect();
    let _ = writeln!(
        page,
        "<p>Verdicts: {}. {} of {} changed lines reviewed; {} findings dropped.</p>",
        text(&decisions.join(", ")),
        stats.reviewed_lines,
        stats.changed_lines,
        stats.dropped
    );
    if stats.unpriced_runs > 0 {
        let _ = writeln!(
            page,
            "<p>The cost of {} runs is not known.</p>",
            stats.unpriced_runs
        );
    }
}

/// A column chart; a column is a stack of parts. `title` is markup.
fn chart(
    page: &mut String,
    stats: &Stats,
    title: &str,
    words: &dyn Fn(f64) -> String,
    parts: &dyn Fn(&Bucket) -> Vec<(&'static str, f64)>,
) {
    let columns: Vec<(&Bucket, Vec<(&str, f64)>)> =
        stats.buckets.iter().map(|b| (b, parts(b))).collect();
    let sum = |parts: &[(&str, f64)]| parts.iter().map(|(_, v)| v).sum::<f64>();
    let top = columns
        .iter()
        .map(|(_, parts)| sum(parts))
        .fold(0.0, f64::max);
    let (right, base) = ((WIDTH - 4) as f64, (HEIGHT - BOTTOM) as f64);
    let room = base - 28.0;
    let step = (right - LEFT as f64) / columns.len().max(1) as f64;
    let _ = write!(
        page,
        "<figure><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><text x=\"0\" y=\"14\">{title}</text>\
         <line class=\"axis\" x1=\"{LEFT}\" y1=\"{base}\" x2=\"{right}\" y2=\"{base}\"/>\
         <text x=\"{x}\" y=\"{base}\" text-anchor=\"end\">{zero}</text>\
         <text x=\"{x}\" y=\"36\" text-anchor=\"end\">{most}</text>",
        x = LEFT - 6,
        zero = text(&words(0.0)),
        most = text(&words(top)),
    );
    for (at, (bucket, parts)) in columns.iter().enumerate() {
        let x = LEFT as f64 + step * at as f64;
        let mut y = base;
        let _ = write!(
            page,
            "<g><title>{}: {}</title>",
            text(&bucket.day),
            text(&words(sum(parts)))
        );
        for (class, value) in parts {
            let height = if top > 0.0 { value / top * room } else { 0.0 };
            y -= height;
            let _ = write!(
                page,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                (step * 0.8).min(48.0)
            );
        }
        page.push_str("</g>");
    }
    let label = |bucket: &Bucket| text(&bucket.day);
    if let (Some(first), Some(last)) = (stats.buckets.first(), stats.buckets.last()) {
        let _ = write!(
            page,
            "<text x=\"{LEFT}\" y=\"{}\">{}</text>",
            HEIGHT - 6,
            label(first)
        );
        if stats.buckets.len() > 1 {
            let _ = write!(
                page,
                "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                HEIGHT - 6,
                label(last)
            );
        }
    }
    page.push_str("</svg></figure>\n");
}

fn agents(page: &mut String, stats: &Stats) {
    page.push_str(
        "<h2>Reviewers</h2>\n<div class=\"scroll\"><table><thead><tr><th>Reviewer</th><th>Model</th><th>Passes</th>\
         <th>Complete</th><th>Findings</th><th>Median time</th><th>Tokens</th><th>Cost</th></tr></thead><tbody>\n",
    );
    for row in &stats.agents {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>${:.2}</td></tr>",
            text(&row.agent),
            text(row.model.as_deref().unwrap_or("-")),
            row.passes,
            share(row.complete, row.passes),
            row.findings,
            seconds(row.duration_median_ms),
            short(row.tokens.total()),
            row.cost_usd,
        );
    }
    page.push_str("</tbody></table></div>\n");
}

/// Text of the log as HTML text.
fn text(words: &str) -> String {
    printable_line(words)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::summary::tests::run;
    use super::*;

    #[test]
    fn the_page_asks_for_nothing_and_lets_no_markup_in() {
        let mut line = run("2026-11-01T10:00:00Z", 61_000, Some(0.25));
        line.passes[0].model = Some("<script>alert(1)</script>".to_owned());
        line.passes[0].agent = "\"><img src=x>\u{202e}".to_owned();
        let page = html(&Stats::of(&[line], None));
        for banned in [
            "<script", "<img", "http://", "https://", "url(", "@import", "\u{202e}",
        ] {
            assert!(!page.contains(banned), "{banned}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)"));
        assert_eq!(page.matches("<svg").count(), 4);
        assert!(html(&Stats::of(&[], None)).contains("No runs"));
    }
}

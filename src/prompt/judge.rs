//! What the judges are told: the coordinator, which merges what reviewers found, and the verifier, which checks one
//! claim against the source.
//!
//! @ref LLP 0016#two-judges — what each of them sees

use std::fmt::Write as _;

use serde_json::json;

use super::review::longest_run;
use super::sanitise::{flatten, sanitise_capped};
use crate::model::Finding;

/// How the coordinator answers, beside what the repository's set-up says about its work.
const COORDINATE: &str = include_str!("../../templates/prompts/coordinate.md");
/// Who the verifier is. It stands alone: rules of the repository are for finders.
const VERIFY: &str = include_str!("../../templates/prompts/verify.md");
/// Who looks at the connections between chunks.
const CROSS_CUTTING: &str = include_str!("../../templates/prompts/cross-cutting.md");

/// Who picks the reviewers of a change.
const ROUTE: &str = include_str!("../../templates/prompts/route.md");

/// Characters of a consequence that the coordinator sees.
const MAX_CONSEQUENCE: usize = 600;
/// Characters of a line of evidence.
const MAX_EVIDENCE: usize = 400;

/// The reviewer of the connections between chunks, to be completed by [`super::reviewer_system`].
pub fn cross_cutting() -> &'static str {
    CROSS_CUTTING.trim()
}

/// The system prompt of the coordinator: the shared rules, its own text, how it answers.
pub fn coordinator_system(shared: &str, own: &str) -> String {
    let parts = [shared.trim(), own.trim(), COORDINATE.trim()];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// The system prompt of the verifier.
pub fn verifier_system() -> &'static str {
    VERIFY.trim()
}

/// The system prompt of the router.
pub fn router_system() -> &'static str {
    ROUTE.trim()
}

/// The coordinator's task: `candidates` as JSON, as many as fit into `max` bytes, in the order given; and how many that
/// were.
pub fn coordinate_task(candidates: &[&Finding], mark: &str, max: usize) -> (String, usize) {
    let mut rows: Vec<String> = Vec::new();
    let mut bytes = 0;
    for finding in candidates {
        let by: Vec<_> = finding.agents.iter().map(ToString::to_string).collect();
        let row = json!({
            "id": finding.id.as_str(),
            "severity": finding.severity.as_str(),
            "category": finding.category.as_str(),
            "file": flatten(&finding.location.file.to_lossy()),
            "line": finding.location.line,
            "by": by,
            "title": flatten(&finding.title),
            "consequence": flatten(&sanitise_capped(&finding.rationale, MAX_CONSEQUENCE)),
            "evidence": finding.evidence.as_deref().map(short),
        })
        .to_string();
        bytes += row.len() + 2;
        if bytes > max && !rows.is_empty() {
            break;
        }
        rows.push(row);
    }
    let shown = rows.len();
    let list = rows.join(",\n");
    let fence = fence(&list);
    let mut text = format!(
        "Make one review of these findings. Mark of this run: {mark}\n\n{mark} begin\n{fence}json\n[{list}]\n{fence}\n{mark} end\n"
    );
    if shown < candidates.len() {
        let more = candidates.len() - shown;
        let _ = write!(
            text,
            "\n{more} more findings are not shown; they stay as they are.\n"
        );
    }
    (text, shown)
}

/// What the verifier's task is written from. The texts are shown as they are, in fences.
#[derive(Debug, Clone, Copy)]
pub struct VerifyTask<'a> {
    /// The finding.
    pub finding: &'a Finding,
    /// The change of its file, or the part of it around the finding.
    pub change: &'a str,
    /// The numbered lines of the file after the change, or the part around the finding; empty when it cannot be read.
    pub source: &'a str,
    /// The finding was not found where it was claimed.
    pub ungrounded: bool,
    /// A second look by another judge, which begins at the other end.
    pub second: bool,
    /// The run's mark.
    pub mark: &'a str,
}

impl VerifyTask<'_> {
    /// The task's text.
    pub fn text(&self) -> String {
        let (finding, mark) = (self.finding, self.mark);
        let place = finding.location.line.map_or_else(
            || "the whole file".to_owned(),
            |line| format!("line {line}, {} side", finding.location.side),
        );
        let mut text = format!(
            "Is this claim true? Mark of this run: {mark}\n\n{mark} begin\nFile: {}\nPlace: {place}\nKind: {}, {}\nClaim: {}\n",
            flatten(&finding.location.file.to_lossy()),
            finding.severity,
            finding.category,
            flatten(&finding.title),
        );
        if let Some(evidence) = &finding.evidence {
            let _ = writeln!(text, "Quoted line: {}", short(evidence));
            if self.ungrounded {
                text.push_str("The quoted line was not found in the file.\n");
            }
        }
        if !self.change.is_empty() {
            let fence = fence(self.change);
            let _ = write!(
                text,
                "\nThe change:\n{fence}diff\n{}\n{fence}\n",
                self.change.trim_end_matches('\n')
            );
        }
        if !self.source.is_empty() {
            let fence = fence(self.source);
            let _ = write!(
                text,
                "\nAfter the change, with line numbers:\n{fence}\n{}\n{fence}\n",
                self.source.trim_end_matches('\n')
            );
        }
        let _ = writeln!(text, "{mark} end");
        if self.second {
            text.push_str("\nFirst look for one input, state or order of events with which the claim holds; then decide.\n");
        }
        text
    }
}

fn short(line: &str) -> String {
    let line = flatten(line);
    match line.char_indices().nth(MAX_EVIDENCE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A fence longer than any run of backticks in `text`.
fn fence(text: &str) -> String {
    "`".repeat(longest_run(text).max(2) + 1)
}

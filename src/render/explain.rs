//! Why a finding was reported, merged, dropped or suppressed: read back from a saved run.

use std::fmt::Write as _; // writing to a String cannot fail

use super::layout::{Page, Paint, TerminalOptions};
use super::safe::printable_line;
use super::terminal::prose;
use crate::model::Fingerprint;
use crate::model::printable;
use crate::state::output::{
    DropStage, Finding, FindingStatus, OutputV1, PathEncoding, Side, VerificationStatus,
};

/// Why there is nothing to explain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// What was given is no start of an id.
    #[error("{0:?} is not a finding id: expected up to 12 hexadecimal digits")]
    NotAnId(String),
    /// No finding of the run has it.
    #[error("no finding {0} in this run; `ecr review -v` lists all, dropped ones included")]
    NotFound(String),
    /// Several findings have it.
    #[error("{prefix} is the start of several findings: {}", ids.join(", "))]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// The ids that begin with it, up to ten.
        ids: Vec<String>,
    },
}

/// What became of the findings whose id begins with `prefix`.
pub fn explain(
    run: &OutputV1,
    prefix: &str,
    options: &TerminalOptions,
) -> Result<String, ExplainError> {
    let id = full_id(run, prefix)?;
    let mut page = Page::new(options);
    // One id can stand in several lists: a finding said twice is open and dropped.
    for finding in run.findings.iter().filter(|f| f.id == id) {
        let fate = match finding.status {
            FindingStatus::Open => "reported".to_owned(),
            FindingStatus::Disputed => {
                "reported as disputed: refuted, but too grave to disappear; it does not decide"
                    .to_owned()
            }
        };
        entry(&mut page, finding, &fate, None);
    }
    for dismissed in run.dismissed.iter().filter(|d| d.finding.id == id) {
        let by = dismissed.by.as_deref().map_or_else(
            || "dismissed".to_owned(),
            |by| format!("dismissed by {}", printable_line(by)),
        );
        entry(
            &mut page,
            &dismissed.finding,
            &by,
            dismissed.reason.as_deref(),
        );
    }
    for dropped in run.dropped.iter().filter(|d| d.finding.id == id) {
        let fate = format!("dropped: {}", stage(dropped.stage));
        entry(&mut page, &dropped.finding, &fate, Some(&dropped.reason));
    }
    Ok(page.finish())
}

fn full_id(run: &OutputV1, prefix: &str) -> Result<String, ExplainError> {
    let prefix = prefix.trim().to_ascii_lowercase();
    if prefix.is_empty()
        || prefix.len() > Fingerprint::LEN
        || !prefix.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return Err(ExplainError::NotAnId(printable_line(&prefix)));
    }
    let mut ids: Vec<&str> = run
        .findings
        .iter()
        .chain(run.dismissed.iter().map(|d| &d.finding))
        .chain(run.dropped.iter().map(|d| &d.finding))
        .map(|finding| finding.id.as_str())
        .filter(|id| id.starts_with(&prefix))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    match ids.as_slice() {
        [] => Err(ExplainError::NotFound(prefix)),
        [id] => Ok((*id).to_owned()),
        ids => Err(ExplainError::Ambiguous {
            prefix,
            ids: ids.iter().take(10).map(|id| printable_line(id)).collect(),
        }),
    }
}

fn stage(stage: DropStage) -> &'static str {
    match stage {
        DropStage::Grounding => "the place it names does not exist",
        DropStage::Retracted => "the reviewer took it back",
        DropStage::Dedupe => "merged into another finding that says the same",
        DropStage::Coordination => "the coordinator merged or rejected it",
        DropStage::Verification => "a second look at the source refuted it",
        DropStage::Policy => "the configuration hides it",
        DropStage::Cap => "over the configured number of findings",
        DropStage::Suppression => "an ignore directive in the code or a baseline covers it",
    }
}

fn entry(page: &mut Page<'_>, finding: &Finding, fate: &str, reason: Option<&str>) {
    page.gap();
    let lead = format!("{}: ", finding.severity.as_str());
    page.wrapped(
        (Paint::Strong, &lead),
        Paint::Strong,
        &prose(&finding.title),
    );
    let mut place = printable(&finding.file).into_owned();
    if let Some(line) = finding.line {
        let _ = write!(place, ":{line}");
    }
    if finding.side == Side::Old {
        place.push_str(" (before the change)");
    }
    if finding.path_encoding == Some(PathEncoding::Bytes) {
        place.push_str(" (bytes escaped as %XX)");
    }
    page.line(&format!("  {place}"));
    let item = |page: &mut Page<'_>, label: &str, text: &str| {
        page.wrapped((Paint::Blue, label), Paint::Plain, text);
    };
    item(page, "  outcome:  ", fate);
    if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) {
        item(page, "  because:  ", &prose(reason));
    }
    let by = match &finding.rule {
        Some(rule) => format!("the deterministic rule {}", printable_line(rule)),
        None if finding.agents.is_empty() => "not recorded".to_owned(),
        None => printable_line(&finding.agents.join(" and ")),
    };
    item(page, "  found by: ", &by);
    let checked = match finding.verification.status {
        VerificationStatus::Grounded => "its place and evidence exist in the file",
        VerificationStatus::Verified => "a second look at the source confirmed it",
        VerificationStatus::Uncertain => "a second look could not tell",
        VerificationStatus::Unverified => "nothing checked it",
    };
    let checked = match &finding.verification.reason {
        Some(reason) => format!("{checked}: {}", prose(reason)),
        None => checked.to_owned(),
    };
    item(page, "  checked:  ", &checked);
    if let Some(evidence) = &finding.evidence {
        item(page, "  evidence: ", &prose(evidence));
    }
    item(page, "  why:      ", &prose(&finding.rationale));
    if let Some(suggestion) = &finding.suggestion {
        item(page, "  fix:      ", &prose(suggestion));
    }
    item(
        page,
        "  identity: ",
        &format!(
            "{} ({})",
            printable_line(&finding.id),
            finding.category.as_str()
        ),
    );
}

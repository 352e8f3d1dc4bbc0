//! `report`, `retract`, and what `finish` says.
//!
//! @ref LLP 0010#findings-come-in-one-at-a-time — grounded while the model has the code in mind

use super::arguments::{Arguments, echo};
use super::path::{LONGEST, parse};
use super::session::{Outcome, Shared};
use super::specs::{MAX_CONSEQUENCE, MAX_EVIDENCE, MAX_EXAMINED, MAX_REASON, MAX_TITLE};
use crate::model::{Category, FindingReport, Fingerprint, Location, RepoPath, Severity, Side};
use crate::port::FindingReceipt;

/// The defect that a call of `report` tells of.
pub(super) fn defect(shared: &Shared, arguments: &mut Arguments) -> Result<FindingReport, String> {
    let severity = arguments.one_of("severity", Severity::ALL)?;
    let category = arguments.one_of("category", Category::ALL)?;
    let file = arguments.text("file", LONGEST)?;
    let line = arguments
        .number("line", 1, u32::MAX)?
        .ok_or("line is missing: send the line's number")?;
    let end_line = arguments.number("endLine", 1, u32::MAX)?;
    if let Some(end) = end_line.filter(|end| *end < line) {
        return Err(format!("endLine ({end}) is before line ({line})"));
    }
    let side = arguments.one_of("side", Side::ALL)?;
    let title = arguments.words("title", MAX_TITLE)?;
    let rationale = arguments.words("consequence", MAX_CONSEQUENCE)?;
    let evidence = arguments.words("evidence", MAX_EVIDENCE)?;
    let file = shared.path(&file)?;
    Ok(FindingReport {
        severity,
        category,
        location: Location {
            file,
            line: Some(line),
            end_line,
            side,
            columns: None,
        },
        title,
        rationale,
        suggestion: None,
        evidence: Some(evidence),
        rule: None,
    })
}

/// Serves `report`: the sink grounds it and says what is wrong with it.
pub(super) fn report(shared: &Shared, finding: FindingReport) -> Outcome {
    // Whether a quote is in a file would be an answer about its content.
    shared.check_served(&finding.location.file)?;
    match shared.settings.sink.report(&shared.settings.pass, finding) {
        FindingReceipt::Accepted(id) => Ok(format!("reported as {id}")),
        FindingReceipt::Rejected(words) => Err(format!("not taken: {words}")),
    }
}

/// Serves `retract`.
pub(super) fn retract(shared: &Shared, arguments: &mut Arguments) -> Outcome {
    let text = arguments.text("id", LONGEST)?;
    let reason = arguments.words("reason", MAX_REASON)?;
    let id = Fingerprint::new(text.trim())
        .map_err(|_| format!("{} is no id: send the one that report gave", echo(&text)))?;
    if shared
        .settings
        .sink
        .retract(&shared.settings.pass, &id, &reason)
    {
        Ok(format!("retracted {id}"))
    } else {
        Err(format!("no defect {id} of yours is reported"))
    }
}

/// The changed files that `finish` names, each once; other names are of no account.
pub(super) fn examined(
    shared: &Shared,
    arguments: &mut Arguments,
) -> Result<Vec<RepoPath>, String> {
    let mut files = Vec::new();
    for text in arguments.texts("examined", MAX_EXAMINED)? {
        let Ok(meant) = parse(&text) else {
            continue;
        };
        let at = shared
            .changed(&meant.path)
            .or_else(|| shared.changed(meant.unescaped.as_ref()?));
        if let Some(at) = at {
            files.push(shared.settings.diff.files[at].path.clone());
        }
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

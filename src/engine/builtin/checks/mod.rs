//! The text rules: what can be told from lines, paths and workflow files without parsing a language.

mod added;
mod conflict;
mod files;
mod hostile;
mod path;
mod secrets;
mod tls;
mod workflow;

pub(super) use files::{FileFacts, LARGE_BINARY, junk_root};
pub(super) use path::wants_content;

use super::{CheckedFile, Hit, Rule};
use crate::model::{Category, Severity};

/// Every text rule.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    secrets::rules()
        .chain(conflict::RULES)
        .chain(hostile::RULES)
        .chain(workflow::RULES)
        .chain(files::RULES)
        .chain(tls::RULES)
}

/// Runs every text rule on a file's added lines.
pub(super) fn check_text(file: &CheckedFile<'_>, report: &mut dyn FnMut(Hit)) {
    if file.added.is_empty() {
        return;
    }
    let added = added::AddedText::new(file);
    secrets::check(file, &added, report);
    conflict::check(file, &added, report);
    hostile::check(file, &added, report);
    workflow::check(file, report);
    files::check_text(file, report);
    tls::check(file, report);
}

/// Runs the rules about the file itself, whatever is in it.
pub(super) fn check_file(facts: &FileFacts<'_>, report: &mut dyn FnMut(Hit)) {
    files::check_file(facts, report);
}

/// A table entry: id, severity, category, then title, consequence and remedy.
const fn rule(
    id: &'static str,
    severity: Severity,
    category: Category,
    words: [&'static str; 3],
) -> Rule {
    Rule {
        id,
        severity,
        category,
        title: words[0],
        consequence: words[1],
        remedy: words[2],
    }
}

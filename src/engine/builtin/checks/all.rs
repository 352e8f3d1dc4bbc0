//! All text rules together.

use super::{FileFacts, added, conflict, files, hostile, secrets, tls, workflow};
use crate::engine::builtin::{CheckedFile, Hit, Rule};
use crate::model::{Category, Severity};

/// Every text rule.
pub(in crate::engine::builtin) fn rules() -> impl Iterator<Item = &'static Rule> {
    secrets::rules()
        .chain(conflict::RULES)
        .chain(hostile::RULES)
        .chain(workflow::RULES)
        .chain(files::RULES)
}

/// Runs every text rule on a file's added lines.
pub(in crate::engine::builtin) fn check_text(file: &CheckedFile<'_>, report: &mut dyn FnMut(Hit)) {
    if file.added.is_empty() {
        return;
    }
    let added = added::AddedText::new(file);
    secrets::check(file, &added, report);
    conflict::check(file, &added, report);
    hostile::check(file, &added, report);
    workflow::check(file, report);
    files::check_text(file, report);
    tls::check(file, &added, report);
}

/// Runs the rules about the file itself, whatever is in it.
pub(in crate::engine::builtin) fn check_file(facts: &FileFacts<'_>, report: &mut dyn FnMut(Hit)) {
    files::check_file(facts, report);
}

/// A table entry: id, severity, category, then title, consequence and remedy.
pub(super) const fn rule(
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

//! What the routing of a review setup names has to be there.

use jsonc_parser::ast::{Object, StringLit, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::citation::{Exists, normalised};
use super::index::Index;
use super::markdown::Lines;
use super::report::{Problem, ProblemKind};
use super::setup::NAMES;
use crate::diff::glob::Glob;
use crate::model::RepoPath;
use crate::tree::TreeError;

/// Checks `routing.jsonc` of the setup in `folder`, where there is one.
pub(super) fn check(
    index: &Index<'_>,
    folder: &str,
    problems: &mut Vec<Problem>,
) -> Result<(), TreeError> {
    let Ok(file) = RepoPath::new(format!("{folder}/routing.jsonc")) else {
        return Ok(());
    };
    let Some(text) = index.text(&file)? else {
        return Ok(());
    };
    let text = text.trim_start_matches('\u{feff}');
    let lines = Lines::new(text);
    let mut report = |at: usize, problem: String, target: Option<&str>| {
        problems.push(Problem {
            file: file.clone(),
            line: lines.of(at),
            kind: ProblemKind::Structural,
            problem,
            target: target.map(str::to_owned),
            suggestion: None,
        });
    };
    let parsed = match parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()) {
        Ok(parsed) => parsed.value,
        Err(error) => {
            report(
                error.range().start,
                format!("cannot be read: {}", error.kind()),
                None,
            );
            return Ok(());
        }
    };
    let Some(Value::Object(root)) = &parsed else {
        report(0, "is no JSON object".to_owned(), None);
        return Ok(());
    };
    let enforced = root
        .get_object("defaults")
        .map(|d| strings(d, "enforceAgents"))
        .unwrap_or_default();
    for id in enforced {
        let agent = format!("{folder}/agents/{}.md", id.value);
        if index.exists(&agent) != Exists::File {
            report(
                id.start(),
                format!(
                    "the enforced agent `{}` has no file agents/{}.md",
                    id.value, id.value
                ),
                Some(&id.value),
            );
        }
    }
    let scopes = root
        .get_array("scopes")
        .map(|a| a.elements.as_slice())
        .unwrap_or_default();
    for scope in scopes.iter().filter_map(Value::as_object) {
        if let Some(config) = scope.get_string("config")
            && !has_setup(index, &config.value)
        {
            report(
                config.start(),
                format!(
                    "the scope folder `{}` has no review setup ({})",
                    config.value,
                    NAMES.join(" or ")
                ),
                Some(&config.value),
            );
        }
        for pattern in strings(scope, "paths") {
            if !matches_something(index, &pattern.value) {
                report(
                    pattern.start(),
                    format!(
                        "the scope path `{}` matches no file in the repository",
                        pattern.value
                    ),
                    Some(&pattern.value),
                );
            }
        }
    }
    Ok(())
}

fn strings<'o, 'a>(object: &'o Object<'a>, key: &str) -> Vec<&'o StringLit<'a>> {
    let elements = object
        .get_array(key)
        .map(|a| a.elements.as_slice())
        .unwrap_or_default();
    elements.iter().filter_map(Value::as_string_lit).collect()
}

fn has_setup(index: &Index<'_>, config: &str) -> bool {
    match normalised(config).as_deref() {
        // The root's own setup is the one that holds the routing.
        Some("") => true,
        Some(folder) => NAMES
            .iter()
            .any(|name| index.exists(&format!("{folder}/{name}")) == Exists::Folder),
        None => false,
    }
}

fn matches_something(index: &Index<'_>, pattern: &str) -> bool {
    Glob::routing(pattern).is_ok_and(|glob| index.any_match(&glob))
}

//! The built-in structural rules over one changed file.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use tree_sitter::Node;

use super::super::{CheckedFile, Hit};
use crate::diff::FileMode;

use super::language::Language;
use super::scan::{Found, Scan, Site};
use super::syntax::{self, Deadline, Unparsed};
use super::triggers::{self, MAX_LINE};
use super::{bash, go, java, javascript, python, rules, rust};

/// Hits of one rule in one file; a file with more is machine-made or hostile.
pub(super) const MAX_HITS: usize = 50;

/// Time for the rules on one parsed file, which takes milliseconds where nobody makes it take longer.
pub(super) const MAX_TIME: Duration = Duration::from_secs(2);

/// Nodes between two looks at the clock.
pub(super) const NODES_PER_LOOK: u32 = 16;

/// Reports what the built-in rules find in the added lines of `file`. Returns why a file that called for a parse was not
/// parsed; `Ok` otherwise, also for files in other languages and for patches without a tree (`content` is `None`).
pub fn check(file: &CheckedFile<'_>, sink: &mut dyn FnMut(Hit)) -> Result<(), Unparsed> {
    if file.mode == FileMode::SYMLINK {
        return Ok(()); // its content is a path
    }
    let Some(language) = Language::of(file) else {
        return Ok(());
    };
    if !triggers::calls_for_parse(language, file) {
        return Ok(());
    }
    let Some(content) = file.content.get() else {
        return Ok(());
    };
    let tree = syntax::parse(language, content)?;
    let scan = Scan::new(language, content, file.path, &tree);
    let mut deadline = Deadline::after(MAX_TIME, NODES_PER_LOOK);
    let mut outcome = Ok(());
    let mut found: Found<'_> = Vec::new();
    let mut hits: HashMap<&'static str, usize> = HashMap::new();
    syntax::walk(&tree, file, |ancestors, node| {
        let site = Site {
            scan: &scan,
            ancestors,
            node,
        };
        match language {
            Language::JavaScript | Language::TypeScript | Language::Tsx => {
                javascript::check(&site, &mut found);
            }
            Language::Python => python::check(&site, &mut found),
            Language::Go => go::check(&site, &mut found),
            Language::Rust => rust::check(&site, &mut found),
            Language::Java => java::check(&site, &mut found),
            Language::Bash => bash::check(&site, &mut found),
            Language::Yaml => {}
        }
        for (rule, node) in found.drain(..) {
            let seen = hits.entry(rule).or_default();
            // Tests show what NaN does.
            let shown = rule == rules::NAN_COMPARISON && scan.in_tests;
            if !shown
                && *seen < MAX_HITS
                && let Some(hit) = hit(file, rule, node)
            {
                *seen += 1;
                sink(hit);
            }
        }
        // Rules look at a bounded number of nodes around each; hostile input can still make that many.
        if !deadline.has_passed() {
            return ControlFlow::Continue(());
        }
        outcome = Err(Unparsed::TooContorted);
        ControlFlow::Break(())
    });
    outcome
}

/// The hit for `node`, at its first line that was added; `None` where none of its lines was, or the line is machine-made.
pub(super) fn hit(file: &CheckedFile<'_>, rule: &str, node: Node<'_>) -> Option<Hit> {
    let (first, last) = syntax::lines(node);
    let (line, evidence) = file.added_between(first, last)?;
    if evidence.len() > MAX_LINE {
        return None;
    }
    let from = node.start_position().column;
    let to = if last == first {
        node.end_position().column
    } else {
        evidence.len()
    };
    let columns = (line == first && from < to && to <= evidence.len()).then_some(from..to);
    Some(Hit {
        rule: rule.to_owned(),
        line,
        end_line: last,
        columns,
        evidence: Some(evidence.to_vec()),
        title: None,
    })
}

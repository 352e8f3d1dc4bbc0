//! Parsing under a budget, and walking the part of a tree that the change touched.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::language::Language;

/// Files above this size are not parsed.
pub(super) const MAX_SOURCE: usize = 1024 * 1024;

/// Nodes below this depth are not looked at: nobody writes such code, and machine-made code is not ours to judge.
pub(super) const MAX_DEPTH: usize = 500;

/// Why a file was not parsed although its added lines called for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unparsed {
    /// It is larger than the limit.
    #[error("larger than 1 MiB")]
    TooLarge,
    /// The parser would have needed far more steps than code of that size does.
    #[error("too contorted to parse in bounded time")]
    TooContorted,
}

/// Parses `source`. The budget counts the parser's own steps, so that ordinary input gives the same answer on every machine; the
/// deadline is for input that makes single steps expensive.
pub(super) fn parse(language: Language, source: &[u8]) -> Result<Tree, Unparsed> {
    if source.len() > MAX_SOURCE {
        return Err(Unparsed::TooLarge);
    }
    let mut parser = Parser::new();
    parser
        .set_language(&language.grammar())
        .map_err(|_| Unparsed::TooContorted)?;
    // The callback runs every 100 parser operations; ordinary code needs up to one operation a byte,
    // minified code up to 1.8.
    let mut left = 200 + source.len() / STEP_BYTES;
    let deadline = Instant::now() + MAX_TIME;
    let mut progress = |_: &tree_sitter::ParseState| match left.checked_sub(1) {
        Some(rest) if Instant::now() < deadline => {
            left = rest;
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(()),
    };
    parser
        .parse_with_options(
            &mut |at, _| source.get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut progress)),
        )
        .ok_or(Unparsed::TooContorted)
}

/// Bytes of source that buy one progress step (100 parser operations).
const STEP_BYTES: usize = 40;

/// Seven times what the largest honest file takes on a quiet machine, so that load alone does not cost a file its check.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Calls `see` with every node that shares a line with `rows` (1-based), parents first, with its ancestors
/// (outermost first). What the parser could not make sense of is passed over: a guess about broken code would be a false alarm.
pub(super) fn walk<'t>(
    tree: &'t Tree,
    rows: &BTreeSet<u32>,
    see: impl FnMut(&[Node<'t>], Node<'t>) -> ControlFlow<()>,
) {
    walk_where(tree, |node| touches(node, rows) && !node.is_error(), see);
}

fn walk_where<'t>(
    tree: &'t Tree,
    enters: impl Fn(Node<'t>) -> bool,
    mut see: impl FnMut(&[Node<'t>], Node<'t>) -> ControlFlow<()>,
) {
    let mut cursor = tree.walk();
    let mut ancestors: Vec<Node<'t>> = Vec::new();
    loop {
        let node = cursor.node();
        let enter = enters(node);
        if enter && see(&ancestors, node).is_break() {
            return;
        }
        if enter && ancestors.len() < MAX_DEPTH && cursor.goto_first_child() {
            ancestors.push(node);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
            ancestors.pop();
        }
    }
}

/// Calls `see` with every node of the tree, parents first, with its ancestors (outermost first).
pub(super) fn walk_all<'t>(tree: &'t Tree, mut see: impl FnMut(&[Node<'t>], Node<'t>)) {
    walk_where(
        tree,
        |node| !node.is_error(),
        |ancestors, node| {
            see(ancestors, node);
            ControlFlow::Continue(())
        },
    );
}

/// Whether some node lies more than `limit` levels below the root.
pub(super) fn is_deeper_than(tree: &Tree, limit: usize) -> bool {
    let mut cursor = tree.walk();
    let mut depth = 0;
    loop {
        if depth > limit {
            return true;
        }
        if cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return false;
            }
            depth -= 1;
        }
    }
}

/// Whether any of `node`'s lines is in `rows`.
pub(super) fn touches(node: Node<'_>, rows: &BTreeSet<u32>) -> bool {
    let (first, last) = lines(node);
    rows.range(first..=last).next().is_some()
}

/// The node's first and last line, 1-based. A node that ends with a newline does not reach into the next line.
pub(super) fn lines(node: Node<'_>) -> (u32, u32) {
    let (start, end) = (node.start_position(), node.end_position());
    let last = if end.column == 0 && end.row > start.row {
        end.row
    } else {
        end.row + 1
    };
    (start.row as u32 + 1, last as u32)
}

//! Parsing under a budget, and walking the part of a tree that the change touched.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser, Tree};

use super::super::CheckedFile;
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
    let mut parser = parser_of(language).ok_or(Unparsed::TooContorted)?;
    // The callback runs every 100 parser operations; ordinary code needs up to one operation a byte,
    // minified code up to 1.8.
    let mut left = 200 + source.len() / STEP_BYTES;
    let mut deadline = Deadline::after(MAX_TIME, STEPS_PER_LOOK);
    let mut progress = |_: &tree_sitter::ParseState| match left.checked_sub(1) {
        Some(rest) if !deadline.has_passed() => {
            left = rest;
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Break(()),
    };
    let tree = parser
        .parse_with_options(
            &mut |at, _| source.get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut progress)),
        )
        .ok_or(Unparsed::TooContorted)?;
    // One that was stopped half-way is not used again.
    PARSERS.with_borrow_mut(|kept| kept.insert(language, parser));
    Ok(tree)
}

thread_local! {
    /// The parsers of this thread, of which each keeps the memory that it has worked with.
    static PARSERS: RefCell<BTreeMap<Language, Parser>> = const { RefCell::new(BTreeMap::new()) };
}

fn parser_of(language: Language) -> Option<Parser> {
    if let Some(kept) = PARSERS.with_borrow_mut(|kept| kept.remove(&language)) {
        return Some(kept);
    }
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()).ok()?;
    Some(parser)
}

/// A moment that is looked for now and then: a look at the clock costs more than what is done between two of them.
#[derive(Debug)]
pub(super) struct Deadline {
    at: Instant,
    every: u32,
    asked: u32,
}

impl Deadline {
    /// `time` from now, looked at every so many questions.
    pub(super) fn after(time: Duration, every: u32) -> Self {
        Self {
            at: Instant::now() + time,
            every,
            asked: 0,
        }
    }

    pub(super) fn has_passed(&mut self) -> bool {
        self.asked = self.asked.wrapping_add(1);
        self.asked.is_multiple_of(self.every) && Instant::now() >= self.at
    }
}

/// Progress steps between two looks at the clock.
const STEPS_PER_LOOK: u32 = 8;

/// Bytes of source that buy one progress step (100 parser operations).
const STEP_BYTES: usize = 40;

/// Seven times what the largest honest file takes on a quiet machine, so that load alone does not cost a file its check.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Calls `see` with every node that shares a line with the added ones of `file`, parents first, with its ancestors
/// (outermost first). What the parser could not make sense of is passed over: a guess about broken code would be a false alarm.
pub(super) fn walk<'t>(
    tree: &'t Tree,
    file: &CheckedFile<'_>,
    see: impl FnMut(&[Node<'t>], Node<'t>) -> ControlFlow<()>,
) {
    // Nodes come in the order of their first lines, so that lines before one are done with.
    let mut rows = file.added.iter().map(|(number, _)| *number).peekable();
    let touches = |node: Node<'t>| {
        let (first, last) = lines(node);
        while rows.next_if(|row| *row < first).is_some() {}
        rows.peek().is_some_and(|row| *row <= last) && !node.is_error()
    };
    walk_where(tree, touches, see);
}

fn walk_where<'t>(
    tree: &'t Tree,
    mut enters: impl FnMut(Node<'t>) -> bool,
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

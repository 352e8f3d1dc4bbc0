//! Text that a program puts together: literals with holes, however the language writes them
//! (templates, concatenation, format strings).

use tree_sitter::Node;

use super::language::Language;
use super::nodes::{arguments, bare, children, field, last_segment, mentions, text};
use super::scan::Site;

/// Pieces and levels of nesting that are looked at; nobody reads longer expressions, and it bounds the work.
const MAX_PIECES: usize = 96;
const MAX_LEVELS: u8 = 12;

/// A piece of such a text, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Literal text as written.
    Text(&'a [u8]),
    /// An expression (or the name of a placeholder) whose value goes here.
    Hole(&'a [u8]),
}

/// The pieces of `node` where it is literal text with at least one hole in it; else `None`.
pub(super) fn built<'a>(site: &Site<'_, 'a>, node: Node<'_>) -> Option<Vec<Piece<'a>>> {
    let pieces = pieces(site.scan.language, site.scan.source, node);
    let text = pieces
        .iter()
        .any(|piece| matches!(piece, Piece::Text(text) if !text.trim_ascii().is_empty()));
    let hole = pieces.iter().any(|piece| matches!(piece, Piece::Hole(_)));
    (text && hole).then_some(pieces)
}

/// Whether `node` is literal text with a foreign value glued into it.
pub(super) fn glues_data(site: &Site<'_, '_>, node: Node<'_>) -> bool {
    built(site, node).is_some_and(|pieces| has_foreign(site, &pieces, &[]))
}

/// Whether `command` is a shell command with a foreign value behind a program named in the text. A text that begins with a
/// hole is a wrapper: running the command it is given is its purpose. `own` are words of expressions that name the program's
/// own place.
pub(super) fn is_command_with_data(site: &Site<'_, '_>, command: Node<'_>, own: &[&str]) -> bool {
    built(site, command).is_some_and(|pieces| {
        let names_program = pieces.first().is_some_and(
            |piece| matches!(piece, Piece::Text(text) if text.iter().any(u8::is_ascii_alphanumeric)),
        );
        names_program && has_foreign(site, &pieces, own)
    })
}

fn has_foreign(site: &Site<'_, '_>, pieces: &[Piece<'_>], own: &[&str]) -> bool {
    pieces.iter().any(|piece| {
        matches!(piece, Piece::Hole(hole)
            if !is_harmless(site, hole) && !mentions(hole, &["quote", "escape"]) && !mentions(hole, own))
    })
}

/// Whether `node` is text without any hole, or another plain literal.
pub(super) fn is_literal(language: Language, source: &[u8], node: Node<'_>) -> bool {
    let node = bare(node);
    if matches!(
        node.kind(),
        "number"
            | "integer"
            | "float"
            | "true"
            | "false"
            | "null"
            | "none"
            | "nil"
            | "int_literal"
            | "float_literal"
            | "integer_literal"
            | "boolean_literal"
            | "decimal_integer_literal"
    ) {
        return true;
    }
    let pieces = pieces(language, source, node);
    !pieces.is_empty() && pieces.iter().all(|piece| matches!(piece, Piece::Text(_)))
}

fn pieces<'a>(language: Language, source: &'a [u8], node: Node<'_>) -> Vec<Piece<'a>> {
    let mut flattened = Flattened {
        language,
        source,
        pieces: Vec::new(),
    };
    flattened.add(node, 0);
    flattened.pieces
}

struct Flattened<'a> {
    language: Language,
    source: &'a [u8],
    pieces: Vec<Piece<'a>>,
}

impl<'a> Flattened<'a> {
    fn text(&self, node: Node<'_>) -> &'a [u8] {
        text(self.source, node)
    }

    fn push(&mut self, piece: Piece<'a>) {
        if self.pieces.len() < MAX_PIECES {
            self.pieces.push(piece);
        }
    }

    fn add(&mut self, node: Node<'_>, level: u8) {
        let node = bare(node);
        if level > MAX_LEVELS || self.pieces.len() >= MAX_PIECES {
            return self.push(Piece::Hole(self.text(node)));
        }
        match node.kind() {
            "string"
            | "string_literal"
            | "raw_string_literal"
            | "interpreted_string_literal"
            | "template_string" => {
                self.add_string(node);
            }
            "concatenated_string" => {
                for part in children(node, MAX_PIECES) {
                    self.add(part, level + 1);
                }
            }
            "binary_expression" | "binary_operator" if self.operator(node) == b"+" => {
                self.add_sum(node, level);
            }
            "binary_operator" if self.operator(node) == b"%" => self.add_percent(node, level),
            "reference_expression" => match field(node, "value") {
                Some(value) => self.add(value, level + 1),
                None => self.push(Piece::Hole(self.text(node))),
            },
            "call" | "call_expression" | "method_invocation" | "macro_invocation" => {
                if !self.add_format_call(node, level) {
                    self.push(Piece::Hole(self.text(node)));
                }
            }
            _ => self.push(Piece::Hole(self.text(node))),
        }
    }

    fn operator(&self, node: Node<'_>) -> &'a [u8] {
        field(node, "operator").map_or(&[], |operator| self.text(operator))
    }

    /// Sums nest to the left, one level a `+`: unrolled, so that long ones are read whole.
    fn add_sum(&mut self, node: Node<'_>, level: u8) {
        let mut right_sides = Vec::new();
        let mut left = node;
        while matches!(left.kind(), "binary_expression" | "binary_operator")
            && self.operator(left) == b"+"
            && right_sides.len() < MAX_PIECES
        {
            let (Some(l), Some(r)) = (field(left, "left"), field(left, "right")) else {
                break;
            };
            right_sides.push(r);
            left = bare(l);
        }
        if right_sides.is_empty() {
            return self.push(Piece::Hole(self.text(node)));
        }
        self.add(left, level + 1);
        for right in right_sides.into_iter().rev() {
            self.add(right, level + 1);
        }
    }

    fn add_string(&mut self, node: Node<'_>) {
        let (mut from, to) = self.inside_quotes(node);
        for part in children(node, MAX_PIECES) {
            if matches!(part.kind(), "template_substitution" | "interpolation") {
                self.push_text(from, part.start_byte());
                let hole = field(part, "expression").or_else(|| children(part, 1).first().copied());
                self.push(Piece::Hole(hole.map_or(&[], |hole| self.text(hole))));
                from = part.end_byte();
            }
        }
        self.push_text(from, to);
    }

    fn push_text(&mut self, from: usize, to: usize) {
        if let Some(text) = self.source.get(from..to) {
            self.push(Piece::Text(text));
        }
    }

    /// The byte range within the quotes (and prefixes) of a string node.
    fn inside_quotes(&self, node: Node<'_>) -> (usize, usize) {
        let text = self.text(node);
        let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b'`');
        let Some(open) = text.iter().position(is_quote) else {
            return (node.start_byte(), node.end_byte());
        };
        let triple = text[open..].starts_with(b"\"\"\"") || text[open..].starts_with(b"'''");
        let width = if triple { 3 } else { 1 };
        let close = text.iter().rposition(is_quote).unwrap_or(open);
        let from = node.start_byte() + open + width;
        let to = node.start_byte() + (close + 1).saturating_sub(width);
        (from, to.max(from))
    }

    /// Python's `"…%s…" % value`.
    fn add_percent(&mut self, node: Node<'_>, level: u8) {
        let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
            return self.push(Piece::Hole(self.text(node)));
        };
        let right = bare(right);
        let values: Vec<&[u8]> = match right.kind() {
            "tuple" => children(right, MAX_PIECES)
                .into_iter()
                .map(|value| self.text(value))
                .collect(),
            "dictionary" => Vec::new(),
            _ => vec![self.text(right)],
        };
        self.add_expanded(left, level, |text, out| expand_printf(text, &values, out));
    }

    /// Adds `template`'s pieces with the placeholders in its literal text replaced by `expand`.
    fn add_expanded(
        &mut self,
        template: Node<'_>,
        level: u8,
        mut expand: impl FnMut(&'a [u8], &mut Vec<Piece<'a>>),
    ) {
        let from = self.pieces.len();
        self.add(template, level + 1);
        for piece in self.pieces.split_off(from) {
            match piece {
                Piece::Text(text) => {
                    let mut expanded = Vec::new();
                    expand(text, &mut expanded);
                    for piece in expanded {
                        self.push(piece);
                    }
                }
                Piece::Hole(_) => self.push(piece),
            }
        }
    }

    /// `"…".format(…)`, `fmt.Sprintf(…)`, `format!(…)`, `String.format(…)`; false for any other call.
    fn add_format_call(&mut self, node: Node<'_>, level: u8) -> bool {
        match (self.language, node.kind()) {
            (Language::Python, "call") => self.add_python_format(node, level),
            (Language::Go, "call_expression") => {
                let callee = field(node, "function").map_or(&b""[..], |callee| self.text(callee));
                callee == b"fmt.Sprintf" && self.add_printf_call(&arguments(node), level)
            }
            (Language::Java, "method_invocation") => {
                let name = field(node, "name").map_or(&b""[..], |name| self.text(name));
                let object = field(node, "object");
                match (name, object) {
                    (b"format", Some(object)) if self.text(object) == b"String" => {
                        self.add_printf_call(&arguments(node), level)
                    }
                    (b"formatted", Some(object)) if object.kind() == "string_literal" => {
                        let mut all = vec![object];
                        all.extend(arguments(node));
                        self.add_printf_call(&all, level)
                    }
                    _ => false,
                }
            }
            (Language::Rust, "macro_invocation") => {
                let name = field(node, "macro").map_or(&b""[..], |name| self.text(name));
                last_segment(name) == b"format" && self.add_rust_format(node, level)
            }
            _ => false,
        }
    }

    fn add_printf_call(&mut self, arguments: &[Node<'_>], level: u8) -> bool {
        let Some((template, values)) = arguments.split_first() else {
            return false;
        };
        let values: Vec<&[u8]> = values.iter().map(|value| self.text(*value)).collect();
        self.add_expanded(*template, level, |text, out| {
            expand_printf(text, &values, out);
        });
        true
    }

    fn add_python_format(&mut self, node: Node<'_>, level: u8) -> bool {
        let Some(callee) = field(node, "function").filter(|callee| callee.kind() == "attribute")
        else {
            return false;
        };
        let (Some(object), Some(name)) = (field(callee, "object"), field(callee, "attribute"))
        else {
            return false;
        };
        if self.text(name) != b"format"
            || !matches!(
                bare(object).kind(),
                "string" | "concatenated_string" | "binary_operator"
            )
        {
            return false;
        }
        let mut values = Values::default();
        for argument in arguments(node) {
            match (field(argument, "name"), field(argument, "value")) {
                (Some(name), Some(value)) if argument.kind() == "keyword_argument" => {
                    values.named.push((self.text(name), self.text(value)));
                }
                _ => values.positional.push(self.text(argument)),
            }
        }
        self.add_expanded(object, level, |text, out| expand_braces(text, &values, out));
        true
    }

    fn add_rust_format(&mut self, node: Node<'_>, level: u8) -> bool {
        let Some(tokens) = children(node, 4)
            .into_iter()
            .find(|child| child.kind() == "token_tree")
        else {
            return false;
        };
        let Some(template) = children(tokens, 1)
            .into_iter()
            .find(|child| matches!(child.kind(), "string_literal" | "raw_string_literal"))
        else {
            return false;
        };
        let mut values = Values::default();
        let mut cursor = tokens.walk();
        let commas: Vec<usize> = tokens
            .children(&mut cursor)
            .filter(|child| child.kind() == ",")
            .map(|comma| comma.start_byte())
            .take(32)
            .chain(std::iter::once(tokens.end_byte().saturating_sub(1)))
            .collect();
        for pair in commas.windows(2) {
            let value = self
                .source
                .get(pair[0] + 1..pair[1])
                .unwrap_or_default()
                .trim_ascii();
            match value.iter().position(|b| *b == b'=') {
                Some(at)
                    if value[..at].trim_ascii().iter().all(|b| is_word(*b))
                        && value.get(at + 1) != Some(&b'=') =>
                {
                    values
                        .named
                        .push((value[..at].trim_ascii(), value[at + 1..].trim_ascii()));
                }
                _ => values.positional.push(value),
            }
        }
        self.add_expanded(template, level, |text, out| {
            expand_braces(text, &values, out);
        });
        true
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Splits `text` at printf placeholders. A number's placeholder is text: nothing but digits can come out of it.
fn expand_printf<'a>(text: &'a [u8], values: &[&'a [u8]], out: &mut Vec<Piece<'a>>) {
    let mut from = 0;
    let mut at = 0;
    let mut next = 0;
    while let Some(percent) =
        memchr::memchr(b'%', text.get(at..).unwrap_or_default()).map(|found| at + found)
    {
        let mut end = percent + 1;
        let mut name: &[u8] = &[];
        if text.get(end) == Some(&b'(') {
            let close = text[end..]
                .iter()
                .position(|b| *b == b')')
                .map_or(text.len(), |found| end + found);
            name = &text[end + 1..close.max(end + 1).min(text.len())];
            end = close + 1;
        }
        while text.get(end).is_some_and(|b| {
            matches!(
                b,
                b'0'..=b'9' | b'.' | b'-' | b'+' | b' ' | b'#' | b'*' | b'$' | b'[' | b']'
            )
        }) {
            end += 1;
        }
        let Some(verb) = text.get(end).copied() else {
            break;
        };
        at = end + 1;
        if matches!(verb, b'%' | b'n') {
            continue;
        }
        if matches!(verb, b's' | b'v' | b'r' | b'q') {
            out.push(Piece::Text(&text[from..percent]));
            let value = if name.is_empty() {
                values.get(next).copied().unwrap_or(b"")
            } else {
                name
            };
            out.push(Piece::Hole(value));
            from = at;
        }
        next += 1;
    }
    out.push(Piece::Text(&text[from.min(text.len())..]));
}

/// The arguments of a format string with braces.
#[derive(Debug, Default)]
struct Values<'a> {
    positional: Vec<&'a [u8]>,
    named: Vec<(&'a [u8], &'a [u8])>,
}

/// Splits `text` at `{}` placeholders; `{{` is a brace.
fn expand_braces<'a>(text: &'a [u8], values: &Values<'a>, out: &mut Vec<Piece<'a>>) {
    let mut from = 0;
    let mut at = 0;
    let mut next = 0;
    while let Some(open) =
        memchr::memchr(b'{', text.get(at..).unwrap_or_default()).map(|found| at + found)
    {
        if text.get(open + 1) == Some(&b'{') {
            at = open + 2;
            continue;
        }
        let Some(close) = memchr::memchr(b'}', &text[open..]).map(|found| open + found) else {
            break;
        };
        let spec = &text[open + 1..close];
        let name = spec
            .split(|b| matches!(b, b':' | b'!' | b'.' | b'['))
            .next()
            .unwrap_or(spec)
            .trim_ascii();
        let value = if name.is_empty() {
            next += 1;
            values.positional.get(next - 1).copied().unwrap_or(b"")
        } else if let Some(index) = std::str::from_utf8(name)
            .ok()
            .and_then(|name| name.parse::<usize>().ok())
        {
            values.positional.get(index).copied().unwrap_or(b"")
        } else {
            values
                .named
                .iter()
                .find(|(key, _)| *key == name)
                .map_or(name, |(_, value)| *value)
        };
        out.push(Piece::Text(&text[from..open]));
        out.push(Piece::Hole(value));
        from = close + 1;
        at = from;
    }
    out.push(Piece::Text(&text[from.min(text.len())..]));
}

/// Whether a value cannot carry anything foreign: a literal, a constant, a number, something already quoted for its use.
pub(super) fn is_harmless(site: &Site<'_, '_>, hole: &[u8]) -> bool {
    let hole = hole.trim_ascii();
    let hole = hole.strip_prefix(b"&").unwrap_or(hole);
    let Some(first) = hole.first().copied() else {
        return true;
    };
    if first.is_ascii_digit() || first == b'-' {
        return true;
    }
    if is_plain_string(hole) {
        return true;
    }
    let name_end = hole.iter().position(|b| *b == b'(').unwrap_or(hole.len());
    let name = last_segment(&hole[..name_end]);
    if name_end < hole.len() {
        return mentions(name, MAKES_HARMLESS)
            || matches!(
                name,
                b"int"
                    | b"float"
                    | b"len"
                    | b"bool"
                    | b"Number"
                    | b"Atoi"
                    | b"Itoa"
                    | b"ord"
                    | b"hash"
                    | b"id"
            );
    }
    if is_constant_name(name) || mentions(name, NUMBERS_AND_QUOTED) {
        return true;
    }
    // Loop counters.
    if matches!(hole, b"i" | b"j" | b"k") {
        return true;
    }
    if !hole.iter().all(|b| is_word(*b)) {
        return false;
    }
    if site.scan.bindings().is_number(hole, site.ancestors) {
        return true;
    }
    site.scan
        .bindings()
        .value(hole, site.ancestors)
        .is_some_and(|value| is_harmless_value(site, value))
}

fn is_harmless_value(site: &Site<'_, '_>, value: Node<'_>) -> bool {
    let (language, source) = (site.scan.language, site.scan.source);
    if is_literal(language, source, value) {
        return true;
    }
    let value = bare(value);
    if matches!(
        value.kind(),
        "ternary_expression" | "conditional_expression"
    ) {
        // `a ? "x" : "y"` and Python's `"x" if a else "y"`.
        return children(value, 4)
            .iter()
            .filter(|part| is_literal(language, source, **part))
            .count()
            >= 2;
    }
    if matches!(
        value.kind(),
        "call" | "call_expression" | "method_invocation"
    ) {
        let callee = field(value, "function").or_else(|| field(value, "name"));
        return callee
            .is_some_and(|callee| mentions(last_segment(text(source, callee)), MAKES_HARMLESS));
    }
    false
}

/// Functions whose result is a number or quoted text.
const MAKES_HARMLESS: &[&str] = &[
    "quote",
    "escape",
    "ident",
    "literal",
    "placeholder",
    "sanitiz",
    "sanitis",
    "parseint",
    "parsefloat",
    "tostring_number",
    "getpid",
    "shellescape",
    "uuid4",
    "randomuuid",
    "timestamp",
    "isoformat",
    "random",
];

/// Names of numbers and of text that says it is quoted.
const NUMBERS_AND_QUOTED: &[&str] = &[
    "placeholder",
    "quoted",
    "escaped",
    "sanitized",
    "sanitised",
    "qmark",
    "pid",
    "port",
    "limit",
    "offset",
    "count",
    "timeout",
    "index",
];

fn is_plain_string(hole: &[u8]) -> bool {
    let quote = hole[0];
    matches!(quote, b'"' | b'\'')
        && hole.len() >= 2
        && hole.ends_with(&[quote])
        && memchr::memchr_iter(quote, hole).count() == 2
}

/// `SCREAMING_CASE`, the custom for constants in all the languages here.
fn is_constant_name(name: &[u8]) -> bool {
    name.len() > 1
        && name.iter().any(u8::is_ascii_uppercase)
        && name
            .iter()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
}

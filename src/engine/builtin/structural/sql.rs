//! Where in an SQL text a hole stands for a value.

use super::interpolation::{Piece, built, is_harmless};
use super::nodes::{contains, last_segment, mentions};
use super::scan::Site;
use tree_sitter::Node;

/// Whether `node` is an SQL statement with a foreign value pasted in where a bound parameter could stand. Names of tables and
/// columns, which no database lets one bind, do not count.
pub(super) fn pastes_value<'a>(site: &Site<'_, 'a>, node: Node<'a>) -> bool {
    let Some(pieces) = built(site, node) else {
        return false;
    };
    let Some(Piece::Text(head)) = pieces
        .iter()
        .find(|piece| !matches!(piece, Piece::Text(text) if text.trim_ascii().is_empty()))
    else {
        return false;
    };
    if !starts_statement(head) || !has_clause(&pieces) {
        return false;
    }
    let mut before: Vec<u8> = Vec::new();
    for piece in &pieces {
        match piece {
            Piece::Text(text) => before.extend_from_slice(text),
            Piece::Hole(hole) => {
                if is_value_place(&before) && !is_harmless(site, hole) && !is_sql_fragment(hole) {
                    return true;
                }
                before.push(HOLE);
            }
        }
    }
    false
}

/// Stands for a hole in the text before another one; no source holds it.
const HOLE: u8 = 1;

fn starts_statement(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    let upper = head[..head.len().min(16)].to_ascii_uppercase();
    [
        "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "MERGE", "CALL", "EXEC",
    ]
    .iter()
    .any(|verb| {
        upper.starts_with(verb.as_bytes())
            && upper
                .get(verb.len())
                .is_some_and(|b| b.is_ascii_whitespace() || *b == b'\\')
    })
}

/// A statement says where its rows are; an English sentence that starts with "select" does not.
fn has_clause(pieces: &[Piece<'_>]) -> bool {
    pieces.iter().any(|piece| {
        let Piece::Text(text) = piece else {
            return false;
        };
        let upper = text.to_ascii_uppercase();
        ["FROM", "INTO", "SET", "VALUES", "CALL", "EXEC", "WHERE"]
            .iter()
            .any(|word| contains(&upper, word))
    })
}

/// Whether a value goes after `before`: inside a quoted literal, after a comparison, in a list of values.
fn is_value_place(before: &[u8]) -> bool {
    let quotes = memchr::memchr_iter(b'\'', before).count();
    if quotes % 2 == 1 {
        return true;
    }
    let tail = before[before.len().saturating_sub(400)..].trim_ascii_end();
    // MySQL and SQLite take double quotes for text too; after a comparison no name can stand there.
    let tail = tail.strip_suffix(b"\"").unwrap_or(tail).trim_ascii_end();
    let tail = tail.strip_suffix(b"\\").unwrap_or(tail).trim_ascii_end();
    let upper = tail.to_ascii_uppercase();
    if let Some(column) = upper.strip_suffix(b"=") {
        // Orders (`<=`) are those of numbers and dates. Where the column is filled in as well, the text is a builder's, and the
        // value an expression or a placeholder of its own.
        return !column.ends_with(b"<")
            && !column.ends_with(b">")
            && !column.trim_ascii_end().ends_with(&[HOLE]);
    }
    if [&b" LIKE"[..], b" ILIKE", b" BETWEEN"]
        .iter()
        .any(|word| upper.ends_with(word))
    {
        return true;
    }
    // `VALUES (` and `VALUES (?, `, with nothing closed since.
    let Some(values) = memchr::memmem::rfind(&upper, b"VALUES") else {
        return false;
    };
    let since = &upper[values + b"VALUES".len()..];
    let open = memchr::memchr_iter(b'(', since).count() > memchr::memchr_iter(b')', since).count();
    open && (upper.ends_with(b"(") || upper.ends_with(b","))
}

/// Names of pieces of SQL rather than of values.
fn is_sql_fragment(hole: &[u8]) -> bool {
    let callee = hole.split(|b| *b == b'(').next().unwrap_or(hole);
    mentions(
        last_segment(callee),
        &[
            "sql",
            "quer",
            "clause",
            "where",
            "cond",
            "column",
            "field",
            "table",
            "stmt",
            "expr",
            "param",
            "bind",
            "filter",
            "join",
            "schema",
            "quote",
            "escape",
            "literal",
            "ident",
            "placeholder",
            "relation",
            "subselect",
            "prefix",
        ],
    ) || contains(hole, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_places() {
        for (before, expected) in [
            ("SELECT * FROM t WHERE a = ", true),
            ("SELECT * FROM t WHERE a = '", true),
            ("SELECT * FROM t WHERE a LIKE '%", true),
            ("SELECT * FROM t WHERE a != ", true),
            ("SELECT * FROM t WHERE a >= ", false),
            ("SELECT * FROM t WHERE a > ", false),
            ("SELECT * FROM t WHERE a > '", true),
            ("SELECT * FROM t WHERE \u{1} = ", false),
            ("UPDATE \u{1} SET \u{1} = '", true),
            ("INSERT INTO t (a, b) VALUES (1, ", true),
            ("SELECT * FROM ", false),
            ("SELECT * FROM t ORDER BY ", false),
            ("INSERT INTO t (", false),
            ("INSERT INTO t (a) VALUES (1); DELETE FROM ", false),
            ("SELECT 'a' FROM ", false),
        ] {
            assert_eq!(is_value_place(before.as_bytes()), expected, "{before}");
        }
    }
}

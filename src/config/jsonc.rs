//! Strict JSONC: comments and trailing commas are allowed, nothing else that JSON forbids.
//!
//! @ref LLP 0003#strict-reading — what is refused, and why

use std::collections::HashMap;
use std::ops::Range;

use jsonc_parser::ast::Value as Node;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::check::{Refusal, check};
use super::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Source, quoted};

/// A parsed file together with the places of its keys.
#[derive(Debug)]
pub(super) struct Document<'a, T> {
    source: &'a Source,
    root: Node<'a>,
    /// The typed content.
    pub(super) value: T,
}

/// Parses `source`, checks it against `schema` and reads it into a `T`; all problems found are given.
pub(super) fn read<'a, T: DeserializeOwned>(
    source: &'a Source,
    schema: &Value,
    refused: &[Refusal],
) -> Result<Document<'a, T>, Vec<Diagnostic>> {
    let root = parse(source).map_err(|error| vec![error])?;
    let mut problems = duplicates(source, &root);
    let plain = to_json(&root);
    problems.extend(check(source, (&root, &plain), schema, refused));
    if !problems.is_empty() {
        problems.sort_by_key(|d| d.position);
        if problems.len() > MAX_DIAGNOSTICS {
            problems.truncate(MAX_DIAGNOSTICS);
            problems.push(Diagnostic::bare(
                source.origin(),
                "there are more problems than are listed here",
            ));
        }
        return Err(problems);
    }
    // The schema is generated from `T`, so this fails only where a schema cannot say what the type does.
    match serde_path_to_error::deserialize::<_, T>(&plain) {
        Ok(value) => Ok(Document {
            source,
            root,
            value,
        }),
        Err(error) => {
            let path = error.path().to_string();
            let segments: Vec<_> = path
                .split(['.', '[', ']'])
                .filter(|s| !s.is_empty())
                .collect();
            let span = find(&root, &segments);
            Err(vec![
                source
                    .error(span, error.into_inner().to_string())
                    .with_key(&path),
            ])
        }
    }
}

impl<T> Document<'_, T> {
    /// An error at the value of `path`: keys, and decimal numbers for places in a list.
    pub(super) fn error(&self, path: &[&str], message: impl AsRef<str>) -> Diagnostic {
        self.source
            .error(find(&self.root, path), message)
            .with_key(&path.join("."))
    }
}

pub(super) fn strict() -> ParseOptions {
    // All fields, so that a new one has to be judged before the crate can be updated.
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The syntax tree of `source`. Nesting is bounded by the parser (512).
pub(super) fn parse(source: &Source) -> Result<Node<'_>, Diagnostic> {
    let result = parse_to_ast(source.text(), &CollectOptions::default(), &strict())
        .map_err(|error| {
            let range = error.range();
            source
                .error(range.start..range.end, error.kind().to_string())
                .with_help("the file is JSON with comments: names and texts in double quotes, a comma between entries")
        })?;
    result.value.ok_or_else(|| {
        Diagnostic::bare(source.origin(), "the file is empty")
            .with_expected("expected an object: { … }")
    })
}

/// The byte range of a node.
pub(super) fn span(node: &impl Ranged) -> Range<usize> {
    let range = node.range();
    range.start..range.end
}

/// The range of the value at `path`, or of the deepest value on the way that exists.
fn find(root: &Node<'_>, path: &[&str]) -> Range<usize> {
    let mut node = root;
    for segment in path {
        let next = match node {
            Node::Object(object) => object.get(segment).map(|property| &property.value),
            Node::Array(array) => segment
                .parse::<usize>()
                .ok()
                .and_then(|index| array.elements.get(index)),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    span(node)
}

/// Every key that stands twice in one object.
fn duplicates(source: &Source, node: &Node<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match node {
            Node::Array(array) => open.extend(&array.elements),
            Node::Object(object) => {
                let mut first = HashMap::new();
                for property in &object.properties {
                    let name = property.name.as_str();
                    if let Some(at) = first.insert(name, span(&property.name))
                        && found.len() <= MAX_DIAGNOSTICS
                    {
                        let line = source.error(at, "").position.map_or(0, |p| p.line);
                        let message = format!("the key {} stands here a second time", quoted(name));
                        let problem = source
                            .error(span(&property.name), message)
                            .with_expected(format!("it stands already in line {line}"))
                            .with_help("keep one of the two");
                        found.push(problem);
                    }
                    open.push(&property.value);
                }
            }
            _ => {}
        }
    }
    found
}

/// A whole number may be written `20.0`: JSON Schema counts it as an integer, so it has to be one here.
fn to_number(text: &str) -> Value {
    let number: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
            Value::from(float as i64)
        }
        _ => number,
    }
}

/// The plain JSON value of a syntax tree whose numbers have been checked.
pub(super) fn to_json(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(text) => Value::String(text.value.clone().into_owned()),
        Node::NumberLit(number) => to_number(number.value),
        Node::BooleanLit(boolean) => Value::Bool(boolean.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(to_json).collect(),
        Node::Object(object) => Value::Object(
            object
                .properties
                .iter()
                .map(|property| (property.name.as_str().to_owned(), to_json(&property.value)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value(text: &str) -> Result<Value, String> {
        let source = Source::new("c", text);
        parse(&source)
            .map(|node| to_json(&node))
            .map_err(|error| format!("{} {}", error.place(), error.message))
    }

    #[test]
    fn comments_and_trailing_commas() {
        for (text, expected) in [
            ("{\"a\":1,}", json!({"a": 1})),
            ("[1,2,]", json!([1, 2])),
            ("{\"s\":\"a,\"}", json!({"s": "a,"})),
            ("{\"url\":\"http://x\"}", json!({"url": "http://x"})),
            (
                "\u{feff}// a\n{/* b */\"a\": -1.5e3 // c\n}",
                json!({"a": -1500}),
            ),
            ("{\"a\":\"\\u00e9\\n\"}", json!({"a": "é\n"})),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_a_place() {
        for text in [
            "",
            "  // only a comment",
            "{a: 1}",
            "{'a': 1}",
            "{\"a\": 0x10}",
            "{\"a\": +1}",
            "{\"a\": .5}",
            "{\"a\": NaN}",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": 1} {}",
            "{\"a\": 1",
            "{\"a\": }",
            "[1,,2]",
            "{\"a\": \"\\x41\"}",
            "/* open",
            "{\"a\": Infinity}",
        ] {
            assert!(value(text).is_err(), "{text}");
        }
        assert!(value("{\n  \"a\" 1\n}").unwrap_err().starts_with("c:2:"));
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(100_000);
        assert!(
            value(&deep).unwrap_err().contains("nesting"),
            "{}",
            value(&deep).unwrap_err()
        );
        assert!(value(&format!("{}{}", "[".repeat(200), "]".repeat(200))).is_ok());
    }

    #[test]
    fn duplicate_keys_name_both_places() {
        let source = Source::new("c", "{\n\"a\": {\"b\": 1,\n \"b\": 2},\n\"\\u0061\": 3}");
        let found = duplicates(&source, &parse(&source).unwrap());
        let places: Vec<_> = found.iter().map(Diagnostic::place).collect();
        assert_eq!(places, ["c:4:1", "c:3:2"]);
        assert_eq!(
            found[1].expected.as_deref(),
            Some("it stands already in line 2")
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[\\[\\]{}\",:/*0-9a-z\\\\ \n.-]{0,60}") {
            let _ = value(&text);
        }
    }
}

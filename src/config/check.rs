//! Checks a parsed file against the schema of its type, so that every problem comes with its place and
//! what was expected. The schema is the published one: what an editor accepts and what ecr accepts is one thing.

use jsonc_parser::ast::{Object, Value as Node};
use regex::Regex;
use serde_json::Value;

use super::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Source, did_you_mean, listed, quoted};
use super::jsonc::span;

/// A key (dotted path) that this kind of file may not have, and why.
pub(super) type Refusal = (&'static str, &'static str);

/// All problems of `root`, in the order found; it stops after [`MAX_DIAGNOSTICS`] of them.
pub(super) fn check(
    source: &Source,
    root: &Node<'_>,
    schema: &Value,
    refused: &[Refusal],
) -> Vec<Diagnostic> {
    let mut checker = Checker {
        source,
        schema,
        refused,
        found: Vec::new(),
    };
    checker.value(schema, root, "");
    checker.found
}

struct Checker<'a> {
    source: &'a Source,
    schema: &'a Value,
    refused: &'a [Refusal],
    found: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    fn report(&mut self, diagnostic: Diagnostic, path: &str) {
        self.found.push(if path.is_empty() {
            diagnostic
        } else {
            diagnostic.with_key(path)
        });
    }

    /// One over the limit, so that the reader knows that there are more. To look no further also keeps the
    /// time linear: finding the line of a problem means counting from the start.
    fn is_full(&self) -> bool {
        self.found.len() > MAX_DIAGNOSTICS
    }

    /// Follows `$ref` into the definitions.
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.schema.pointer(reference.trim_start_matches('#')))
            .unwrap_or(schema)
    }

    fn value(&mut self, schema: &'a Value, node: &Node<'_>, path: &str) {
        let schema = self.branch(self.resolve(schema), node);
        let fits = match (kind(schema), node) {
            (None, _) | (Some("boolean"), Node::BooleanLit(_)) => true,
            (Some("object"), Node::Object(object)) => {
                self.object(schema, object, path);
                true
            }
            (Some("array"), Node::Array(array)) => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                if (array.elements.len() as u64) < least {
                    let message = format!("{} is empty", name(path));
                    self.mismatch(schema, node, path, &message);
                }
                if let Some(items) = schema.get("items") {
                    for (index, element) in array.elements.iter().enumerate() {
                        if self.is_full() {
                            return;
                        }
                        self.value(items, element, &format!("{path}[{index}]"));
                    }
                }
                true
            }
            (Some("string"), Node::StringLit(text)) => text_fits(schema, &text.value),
            (Some(kind @ ("integer" | "number")), Node::NumberLit(number)) => {
                number_fits(schema, number.value, kind == "integer")
            }
            _ => false,
        };
        if !fits {
            let message = format!("{} cannot be {}", name(path), shown(node));
            self.mismatch(schema, node, path, &message);
        }
    }

    fn mismatch(&mut self, schema: &'a Value, node: &Node<'_>, path: &str, message: &str) {
        let mut problem = self
            .source
            .error(span(node), message)
            .with_expected(format!("expected {}", self.expected(schema)));
        let words = words(schema);
        if let Node::NullKeyword(_) = node {
            problem = problem.with_help("leave the key out to get its default");
        } else if let Node::StringLit(text) = node
            && let Some(word) = did_you_mean(&text.value, words.iter().copied())
        {
            problem = problem.with_help(format!("did you mean `{word}`?"));
        }
        self.report(problem, path);
    }

    /// Of a choice of objects, the one whose required keys are all there; else the last, which requires none.
    fn branch(&self, schema: &'a Value, node: &Node<'_>) -> &'a Value {
        let Some(branches) = schema.get("anyOf").and_then(Value::as_array) else {
            return schema;
        };
        branches
            .iter()
            .map(|branch| self.resolve(branch))
            .find(|branch| {
                let mut required = strings(branch, "required");
                node.as_object()
                    .is_some_and(|object| required.all(|key| object.get(key).is_some()))
            })
            .or_else(|| branches.last().map(|branch| self.resolve(branch)))
            .unwrap_or(schema)
    }

    fn object(&mut self, schema: &'a Value, object: &Object<'_>, path: &str) {
        let known = schema.get("properties").and_then(Value::as_object);
        for property in &object.properties {
            if self.is_full() {
                return;
            }
            let key = property.name.as_str();
            let inner = if path.is_empty() {
                key.to_owned()
            } else {
                format!("{path}.{key}")
            };
            let at = span(&property.name);
            if let Some((_, reason)) = self.refused.iter().find(|(path, _)| *path == inner) {
                let problem = self
                    .source
                    .error(at, format!("{} is not allowed here", quoted(&inner)))
                    .with_expected(*reason)
                    .with_help("declare it in the root configuration only");
                self.report(problem, &inner);
            } else if let Some(schema) = known.and_then(|known| known.get(key)) {
                self.value(schema, &property.value, &inner);
            } else {
                match schema.get("additionalProperties") {
                    Some(Value::Bool(false)) => {
                        let problem = self.unknown(schema, key, path, at);
                        self.report(problem, &inner);
                    }
                    Some(others) if others.is_object() => {
                        if !schema
                            .get("propertyNames")
                            .is_none_or(|names| text_fits(names, key))
                        {
                            let names = &schema["propertyNames"];
                            let problem = self
                                .source
                                .error(at, format!("{} cannot be a key here", quoted(key)))
                                .with_expected(format!("expected {}", self.expected(names)));
                            self.report(problem, &inner);
                        }
                        self.value(others, &property.value, &inner);
                    }
                    _ => {}
                }
            }
        }
        for key in strings(schema, "required") {
            if object.get(key).is_none() {
                let start = span(object).start;
                let problem = self
                    .source
                    .error(start..start + 1, format!("`{key}` is missing"))
                    .with_expected(format!("expected {} with `{key}`", name(path)));
                self.report(problem, path);
            }
        }
    }

    fn unknown(
        &self,
        schema: &Value,
        key: &str,
        path: &str,
        at: std::ops::Range<usize>,
    ) -> Diagnostic {
        let known: Vec<&str> = schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|known| known.keys().map(String::as_str).collect())
            .unwrap_or_default();
        let place = if path.is_empty() {
            String::new()
        } else {
            format!(" in {}", quoted(path))
        };
        let problem = self
            .source
            .error(at, format!("unknown key {}{place}", quoted(key)));
        if let Some(home) = self.home_of(key).filter(|_| path.is_empty()) {
            return problem.with_expected(format!("it belongs under `{home}`"));
        }
        match did_you_mean(key, known.iter().copied()) {
            Some(word) => problem.with_expected(format!("did you mean `{word}`?")),
            None => problem
                .with_expected("there is no such key")
                .with_help(format!("known keys here: {}", known.join(", "))),
        }
    }

    /// The top-level object that has `key`.
    fn home_of(&self, key: &str) -> Option<&'a str> {
        let top = self.schema.get("properties")?.as_object()?;
        top.iter()
            .find(|(_, schema)| {
                self.resolve(schema)
                    .get("properties")
                    .is_some_and(|inner| inner.get(key).is_some())
            })
            .map(|(home, _)| home.as_str())
    }

    /// What the schema asks for, in words.
    fn expected(&self, schema: &'a Value) -> String {
        let words = words(schema);
        if !words.is_empty() {
            return listed(words);
        }
        let number = |key| schema.get(key).and_then(Value::as_f64);
        match kind(schema) {
            Some("boolean") => "true or false".to_owned(),
            Some(kind @ ("integer" | "number")) => {
                let what = if kind == "integer" {
                    "a whole number"
                } else {
                    "a number"
                };
                let least = number("minimum");
                match (number("exclusiveMinimum"), least, number("maximum")) {
                    (Some(bound), ..) => format!("{what} above {bound}"),
                    (_, Some(least), Some(most)) => format!("{what} from {least} to {most}"),
                    (_, Some(least), None) => format!("{what} of at least {least}"),
                    (_, None, Some(most)) => format!("{what} of at most {most}"),
                    (None, None, None) => what.to_owned(),
                }
            }
            Some("array") => match schema.get("items").map(|items| self.resolve(items)) {
                Some(items) => format!(
                    "a list of {}",
                    self.expected(items).trim_start_matches("a ")
                ),
                None => "a list".to_owned(),
            },
            Some("object") => "an object: { … }".to_owned(),
            _ => schema
                .get("x-expected")
                .and_then(Value::as_str)
                .unwrap_or("a text in double quotes that is not empty")
                .to_owned(),
        }
    }
}

fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type").and_then(Value::as_str) {
        // `oneOf` of constants carries its type in the branches.
        None if !words(schema).is_empty() => Some("string"),
        kind => kind,
    }
}

fn strings<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    schema
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The words of an enumeration, in the order of the type.
fn words(schema: &Value) -> Vec<&str> {
    let mut words: Vec<_> = strings(schema, "enum").collect();
    for branch in schema
        .get("oneOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        words.extend(branch.get("const").and_then(Value::as_str));
        words.extend(strings(branch, "enum"));
    }
    words
}

fn text_fits(schema: &Value, text: &str) -> bool {
    let words = words(schema);
    let limit = |key| schema.get(key).and_then(Value::as_u64);
    let length = || text.chars().count() as u64;
    (words.is_empty() || words.contains(&text))
        && limit("minLength").is_none_or(|least| length() >= least)
        && limit("maxLength").is_none_or(|most| length() <= most)
        && schema
            .get("pattern")
            .and_then(Value::as_str)
            .is_none_or(|pattern| Regex::new(pattern).is_ok_and(|regex| regex.is_match(text)))
}

fn number_fits(schema: &Value, text: &str, whole: bool) -> bool {
    let Ok(number) = text.parse::<f64>() else {
        return false;
    };
    let bound = |key| schema.get(key).and_then(Value::as_f64);
    number.is_finite()
        && (!whole || text.parse::<i64>().is_ok())
        && bound("minimum").is_none_or(|least| number >= least)
        && bound("maximum").is_none_or(|most| number <= most)
        && bound("exclusiveMinimum").is_none_or(|least| number > least)
}

fn name(path: &str) -> String {
    if path.is_empty() {
        "the file".to_owned()
    } else {
        quoted(path)
    }
}

fn shown(node: &Node<'_>) -> String {
    match node {
        Node::StringLit(text) if text.value.is_empty() => "an empty text".to_owned(),
        Node::StringLit(text) => format!("the text {}", quoted(&text.value)),
        Node::NumberLit(number) => format!("the number {}", quoted(number.value)),
        Node::BooleanLit(boolean) => format!("{}", boolean.value),
        Node::NullKeyword(_) => "null".to_owned(),
        Node::Array(_) => "a list".to_owned(),
        Node::Object(_) => "an object".to_owned(),
    }
}

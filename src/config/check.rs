//! Says in words, and with its place, what is wrong with a file. What is wrong is decided by the JSON Schema of
//! its type, the published one, so that what an editor accepts and what ecr accepts is one thing.

use std::fmt::Write as _;

use jsonc_parser::ast::Value as Node;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::{Location, LocationSegment as Segment};
use jsonschema::{ValidationError, validator_for};
use serde_json::Value;

use super::diagnostic::{Diagnostic, MAX_DIAGNOSTICS, Source, did_you_mean, listed, quoted};
use super::jsonc::span;

/// A key (dotted path) that this kind of file may not have, and why.
pub(super) type Refusal = (&'static str, &'static str);

/// All problems of `root`, whose plain value is `value`; it stops after [`MAX_DIAGNOSTICS`] of them.
pub(super) fn check(
    source: &Source,
    (root, value): (&Node<'_>, &Value),
    schema: &Value,
    refused: &[Refusal],
) -> Vec<Diagnostic> {
    let validator = match validator_for(schema) {
        Ok(validator) => validator,
        // A test compiles every schema, so this is for the compiler only; an error is the safe answer.
        Err(error) => return vec![Diagnostic::bare(source.origin(), error.to_string())],
    };
    let mut checker = Checker {
        source,
        root,
        schema,
        found: Vec::new(),
    };
    for refusal in refused {
        checker.refuse(refusal);
    }
    for error in validator.iter_errors(value) {
        if checker.is_full() {
            break;
        }
        checker.take(&error);
    }
    checker.found
}

/// A place in the file, as the schema check names it.
struct Place<'n, 's> {
    node: &'n Node<'n>,
    schema: &'s Value,
    /// The branch of a choice that `schema` is.
    choice: Option<usize>,
    /// Dotted, with list places in brackets; empty for the file itself.
    path: String,
}

struct Checker<'a> {
    source: &'a Source,
    root: &'a Node<'a>,
    schema: &'a Value,
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

    /// Reports a key that the schema knows but this kind of file may not have.
    fn refuse(&mut self, (path, reason): &Refusal) {
        let mut object = self.root.as_object();
        let mut keys = path.split('.').peekable();
        while let Some(key) = keys.next() {
            let Some(property) = object.and_then(|object| object.get(key)) else {
                return;
            };
            if keys.peek().is_none() {
                let problem = self
                    .source
                    .error(
                        span(&property.name),
                        format!("{} is not allowed here", quoted(path)),
                    )
                    .with_expected(*reason)
                    .with_help("declare it in the root configuration only");
                self.report(problem, path);
            }
            object = property.value.as_object();
        }
    }

    /// Puts one problem of the schema check into words.
    fn take(&mut self, error: &ValidationError<'_>) {
        let Some(place) = self.place(error.instance_path()) else {
            return;
        };
        match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                for key in unexpected {
                    self.unexpected(&place, key);
                }
            }
            Kind::PropertyNames { error } => {
                if let Some(key) = error.instance().as_str() {
                    self.bad_key(&place, key);
                }
            }
            Kind::Required { property } => {
                let key = property.as_str().unwrap_or_default();
                let start = span(place.node).start;
                let problem = self
                    .source
                    .error(start..start + 1, format!("`{key}` is missing"))
                    .with_expected(format!("expected {} with `{key}`", name(&place.path)));
                self.report(problem, &place.path);
            }
            Kind::MinItems { .. } => {
                let message = format!("{} is empty", name(&place.path));
                self.mismatch(&place, &message);
            }
            // The words are about the branch that is meant; its own problems say more.
            Kind::AnyOf { context } => match place.choice.and_then(|at| context.get(at)) {
                Some(problems) if !problems.is_empty() => {
                    for problem in problems {
                        self.take(problem);
                    }
                }
                _ => self.wrong(&place),
            },
            _ => self.wrong(&place),
        }
    }

    fn wrong(&mut self, place: &Place<'a, 'a>) {
        let message = format!("{} cannot be {}", name(&place.path), shown(place.node));
        self.mismatch(place, &message);
    }

    /// The value at `location`, its schema, and its path in words.
    fn place(&self, location: &Location) -> Option<Place<'a, 'a>> {
        let mut node = self.root;
        let (mut schema, mut choice) = self.branch(self.schema, node);
        let mut path = String::new();
        for segment in location {
            let next = match (segment, node) {
                (Segment::Property(key), Node::Object(object)) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&key);
                    node = &object.get(&key)?.value;
                    schema
                        .get("properties")
                        .and_then(|known| known.get(key.as_ref()))
                        .or_else(|| schema.get("additionalProperties"))
                }
                (Segment::Index(index), Node::Array(array)) => {
                    let _ = write!(path, "[{index}]");
                    node = array.elements.get(index)?;
                    schema.get("items")
                }
                _ => return None,
            };
            (schema, choice) = self.branch(next?, node);
        }
        Some(Place {
            node,
            schema,
            choice,
            path,
        })
    }

    fn unexpected(&mut self, place: &Place<'a, 'a>, key: &str) {
        if self.is_full() {
            return;
        }
        let Some((at, inner)) = key_of(place, key) else {
            return;
        };
        let problem = self.unknown(place.schema, key, &place.path, at);
        self.report(problem, &inner);
    }

    fn bad_key(&mut self, place: &Place<'a, 'a>, key: &str) {
        let Some((at, inner)) = key_of(place, key) else {
            return;
        };
        let problem = self
            .source
            .error(at, format!("{} cannot be a key here", quoted(key)))
            .with_expected(format!(
                "expected {}",
                self.expected(&place.schema["propertyNames"])
            ));
        self.report(problem, &inner);
    }

    /// Reports a value that does not fit; the first problem of a value is enough.
    fn mismatch(&mut self, place: &Place<'a, 'a>, message: &str) {
        let mut problem = self
            .source
            .error(span(place.node), message)
            .with_expected(format!("expected {}", self.expected(place.schema)));
        let words = words(place.schema);
        if let Node::NullKeyword(_) = place.node {
            problem = problem.with_help("leave the key out to get its default");
        } else if let Node::StringLit(text) = place.node
            && let Some(word) = did_you_mean(&text.value, words.iter().copied())
        {
            problem = problem.with_help(format!("did you mean `{word}`?"));
        }
        if !self
            .found
            .iter()
            .any(|known| known.position == problem.position && known.message == problem.message)
        {
            self.report(problem, &place.path);
        }
    }

    /// Follows `$ref` into the definitions.
    fn resolve(&self, schema: &'a Value) -> &'a Value {
        schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| self.schema.pointer(reference.trim_start_matches('#')))
            .unwrap_or(schema)
    }

    /// The schema that counts for `node`, and which branch of a choice it is.
    fn branch(&self, schema: &'a Value, node: &Node<'_>) -> (&'a Value, Option<usize>) {
        let schema = self.resolve(schema);
        let choice = self.choice(schema, node);
        let branch = choice.map(|at| self.resolve(&schema["anyOf"][at]));
        (branch.unwrap_or(schema), choice)
    }

    /// Of a choice of objects, the one that is meant: whose required keys are all there; else the last, which
    /// requires none. `None` where there is no choice.
    fn choice(&self, schema: &'a Value, node: &Node<'_>) -> Option<usize> {
        let branches = schema.get("anyOf")?.as_array()?;
        let has_all = |branch: &'a Value| {
            let mut required = strings(self.resolve(branch), "required");
            node.as_object()
                .is_some_and(|object| required.all(|key| object.get(key).is_some()))
        };
        let found = branches.iter().position(has_all);
        found.or_else(|| branches.len().checked_sub(1))
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

/// Where `key` of the object at `place` stands, and its path.
fn key_of(place: &Place<'_, '_>, key: &str) -> Option<(std::ops::Range<usize>, String)> {
    let property = place.node.as_object()?.get(key)?;
    let inner = if place.path.is_empty() {
        key.to_owned()
    } else {
        format!("{}.{key}", place.path)
    };
    Some((span(&property.name), inner))
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

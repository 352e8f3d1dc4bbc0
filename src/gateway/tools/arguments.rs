//! Arguments of a call, checked strictly: no client checks them against the schema.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::page::boundary;

/// Bytes of a model's own word that an error repeats.
const ECHO: usize = 60;

/// What is left of the arguments of one call.
pub(super) struct Arguments {
    fields: Map<String, Value>,
}

/// `text` shortened for an error message.
pub(super) fn echo(text: &str) -> String {
    let end = boundary(text, ECHO);
    let more = if end < text.len() { "…" } else { "" };
    format!("{:?}{more}", &text[..end])
}

/// What a value is, in a word.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl Arguments {
    /// Takes the arguments of `tool`, which knows the fields `known`.
    pub(super) fn new(tool: &str, value: Value, known: &[&str]) -> Result<Self, String> {
        let fields = match value {
            Value::Null => Map::new(),
            Value::Object(fields) => fields,
            other => {
                return Err(format!(
                    "the arguments are {}: send an object with {}",
                    kind_of(&other),
                    known.join(", ")
                ));
            }
        };
        if let Some(stranger) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(format!(
                "unknown field {}: {tool} takes {}",
                echo(stranger),
                known.join(", ")
            ));
        }
        Ok(Self { fields })
    }

    /// The value of a field; `null` is as good as absent.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.fields.remove(name).filter(|value| !value.is_null())
    }

    /// A text of at most `max` characters.
    pub(super) fn optional_text(
        &mut self,
        name: &str,
        max: usize,
    ) -> Result<Option<String>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => {
                // Counting characters of a huge text would be wasted: each has a byte at least.
                let long = text.len() > max && text.chars().count() > max;
                if long {
                    let count = text.chars().count();
                    return Err(format!("{name} has {count} characters: send at most {max}"));
                }
                Ok(Some(text))
            }
            Some(other) => Err(format!("{name} is {}: send a string", kind_of(&other))),
        }
    }

    /// A text that has to be there.
    pub(super) fn text(&mut self, name: &str, max: usize) -> Result<String, String> {
        self.optional_text(name, max)?
            .ok_or_else(|| format!("{name} is missing: send a string"))
    }

    /// A text with something in it besides white space.
    pub(super) fn words(&mut self, name: &str, max: usize) -> Result<String, String> {
        let text = self.text(name, max)?;
        if text.trim().is_empty() {
            return Err(format!("{name} is empty"));
        }
        Ok(text)
    }

    /// A whole number from `min` to `max`.
    pub(super) fn number(&mut self, name: &str, min: u32, max: u32) -> Result<Option<u32>, String> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| (min..=max).contains(number))
            .map(Some)
            .ok_or_else(|| {
                let range = match (min, max) {
                    (min, u32::MAX) => format!("of {min} or more"),
                    (min, max) => format!("from {min} to {max}"),
                };
                format!("{name} has to be a whole number {range}")
            })
    }

    /// One of the words of an enumeration.
    pub(super) fn one_of<T: FromStr + Display>(
        &mut self,
        name: &str,
        all: &[T],
    ) -> Result<T, String> {
        let all_words = || {
            let words: Vec<_> = all.iter().map(ToString::to_string).collect();
            words.join(", ")
        };
        match self.take(name) {
            Some(Value::String(text)) => text
                .parse()
                .map_err(|_| format!("{name} is {}: send one of {}", echo(&text), all_words())),
            Some(other) => Err(format!(
                "{name} is {}: send one of {}",
                kind_of(&other),
                all_words()
            )),
            None => Err(format!("{name} is missing: send one of {}", all_words())),
        }
    }

    /// A list of at most `max` texts.
    pub(super) fn texts(&mut self, name: &str, max: usize) -> Result<Vec<String>, String> {
        let strings = || format!("{name} has to be an array of strings");
        let Some(Value::Array(items)) = self.take(name) else {
            return Err(strings());
        };
        if items.len() > max {
            return Err(format!(
                "{name} has {} items: send at most {max}",
                items.len()
            ));
        }
        items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(strings()),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Side;

    fn arguments(value: Value) -> Arguments {
        Arguments::new("t", value, &["a", "b"]).ok().unwrap()
    }

    fn refusal(value: Value) -> String {
        Arguments::new("t", value, &["a", "b"]).err().unwrap()
    }

    #[test]
    fn only_an_object_of_known_fields_is_taken() {
        assert!(arguments(Value::Null).fields.is_empty());
        assert_eq!(
            refusal(json!({"a": 1, "c": 2})),
            "unknown field \"c\": t takes a, b"
        );
        assert!(refusal(json!([1])).starts_with("the arguments are an array"));
        assert!(refusal(json!("x")).contains("send an object with a, b"));
        let long = refusal(json!({"é".repeat(10_000): 1}));
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn texts_have_a_type_and_a_length() {
        assert_eq!(arguments(json!({"a": "é"})).text("a", 1), Ok("é".into()));
        assert_eq!(
            arguments(json!({"a": null})).optional_text("a", 1),
            Ok(None)
        );
        assert_eq!(
            arguments(json!({"a": "ab"})).text("a", 1),
            Err("a has 2 characters: send at most 1".into())
        );
        assert_eq!(
            arguments(json!({"a": 5})).text("a", 1),
            Err("a is a number: send a string".into())
        );
        assert!(arguments(json!({})).text("a", 1).is_err());
        assert_eq!(
            arguments(json!({"a": " \n"})).words("a", 9),
            Err("a is empty".into())
        );
    }

    #[test]
    fn numbers_are_whole_and_in_range() {
        let number = |value: Value| arguments(json!({"a": value})).number("a", 1, 9);
        assert_eq!(number(json!(9)), Ok(Some(9)));
        for bad in [
            json!(0),
            json!(10),
            json!(-1),
            json!(1.5),
            json!("3"),
            json!(1e300),
            json!(u64::MAX),
        ] {
            let words = "a has to be a whole number from 1 to 9";
            assert_eq!(number(bad), Err(words.into()));
        }
        assert_eq!(arguments(json!({})).number("a", 1, 9), Ok(None));
    }

    #[test]
    fn enumerations_and_lists() {
        let side = |value: Value| arguments(value).one_of("a", Side::ALL);
        assert_eq!(side(json!({"a": "old"})), Ok(Side::Old));
        let words = "a is \"New\": send one of old, new";
        assert_eq!(side(json!({"a": "New"})), Err(words.into()));
        assert!(side(json!({})).is_err() && side(json!({"a": [1]})).is_err());
        assert_eq!(
            arguments(json!({"a": ["x"]})).texts("a", 1),
            Ok(vec!["x".into()])
        );
        for bad in [
            json!({}),
            json!({"a": "x"}),
            json!({"a": [1]}),
            json!({"a": ["x", "y"]}),
        ] {
            assert!(arguments(bad).texts("a", 1).is_err());
        }
    }
}

//! From a JSON schema to the subset that strict structured output takes.

use serde_json::{Map, Value, json};

/// Keywords that strict modes refuse or ignore.
const DROPPED: &[&str] = &[
    "$schema",
    "title",
    "default",
    "examples",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "readOnly",
    "writeOnly",
    "deprecated",
    "$comment",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "patternProperties",
    "propertyNames",
    "contentEncoding",
    "contentMediaType",
];

/// The schema for a provider's strict mode: every object closed, every property required (what was
/// optional may be null instead), `oneOf` as `anyOf`, constants as enumerations of one.
pub fn strict(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        // `true` and `false` have no counterpart; an object of any shape is the nearest.
        return json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    };
    let mut out = Map::new();
    for (key, value) in map {
        match key.as_str() {
            key if DROPPED.contains(&key) => {}
            "oneOf" | "anyOf" => {
                out.insert("anyOf".to_owned(), each(value));
            }
            "allOf" => merge(&mut out, value),
            "const" => {
                out.insert("enum".to_owned(), json!([value]));
            }
            "items" => {
                out.insert(key.clone(), strict(value));
            }
            "$defs" | "definitions" => {
                let named = value.as_object().into_iter().flatten();
                let defs = named.map(|(name, def)| (name.clone(), strict(def)));
                out.insert(key.clone(), Value::Object(defs.collect()));
            }
            "properties" | "required" | "additionalProperties" => {}
            _ => {
                out.insert(key.clone(), value.clone());
            }
        }
    }
    if map.get("type") == Some(&json!("object")) || map.contains_key("properties") {
        object(&mut out, map);
    }
    Value::Object(out)
}

fn each(value: &Value) -> Value {
    value.as_array().into_iter().flatten().map(strict).collect()
}

fn merge(out: &mut Map<String, Value>, parts: &Value) {
    for part in parts.as_array().into_iter().flatten() {
        if let Value::Object(part) = strict(part) {
            out.extend(part);
        }
    }
}

fn object(out: &mut Map<String, Value>, map: &Map<String, Value>) {
    let required: Vec<_> = map
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut properties = Map::new();
    let named = map.get("properties").and_then(Value::as_object);
    for (name, property) in named.into_iter().flatten() {
        let property = strict(property);
        let property = if required.contains(&name.as_str()) {
            property
        } else {
            nullable(property)
        };
        properties.insert(name.clone(), property);
    }
    let names = properties.keys().cloned().map(Value::String).collect();
    out.insert("type".to_owned(), json!("object"));
    out.insert("required".to_owned(), Value::Array(names));
    out.insert("properties".to_owned(), Value::Object(properties));
    out.insert("additionalProperties".to_owned(), json!(false));
}

/// The same schema, or null.
fn nullable(mut schema: Value) -> Value {
    match schema.get("type").cloned() {
        Some(Value::String(kind)) if kind != "null" && schema.get("enum").is_none() => {
            schema["type"] = json!([kind, "null"]);
            schema
        }
        Some(Value::Array(kinds)) if kinds.contains(&json!("null")) => schema,
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_required_and_closed() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Verdict",
            "type": "object",
            "properties": {
                "verified": {"type": "boolean"},
                "reason": {"type": "string", "minLength": 1, "format": "uri"},
                "level": {"enum": ["a", "b"], "type": "string"},
                "where": {"oneOf": [{"$ref": "#/$defs/Place"}, {"const": "nowhere"}]},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": ["integer", "null"]}}}},
            },
            "required": ["verified", "where"],
            "$defs": {"Place": {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]}},
        });
        let out = strict(&schema);
        assert_eq!(
            out["required"],
            json!(["verified", "reason", "level", "where", "list"])
        );
        assert_eq!(out["additionalProperties"], json!(false));
        assert_eq!(out["properties"]["verified"], json!({"type": "boolean"}));
        assert_eq!(
            out["properties"]["reason"],
            json!({"type": ["string", "null"]})
        );
        assert_eq!(
            out["properties"]["level"]["anyOf"][1],
            json!({"type": "null"})
        );
        assert_eq!(
            out["properties"]["where"]["anyOf"][1],
            json!({"enum": ["nowhere"]})
        );
        let item = &out["properties"]["list"]["items"];
        assert_eq!(item["required"], json!(["x"]));
        assert_eq!(
            item["properties"]["x"],
            json!({"type": ["integer", "null"]})
        );
        assert_eq!(out["$defs"]["Place"]["additionalProperties"], json!(false));
        let text = out.to_string();
        assert!(!text.contains("oneOf") && !text.contains("format") && !text.contains("$schema"));
        assert_eq!(strict(&out), out, "a strict schema stays as it is");
    }

    #[test]
    fn what_models_answer_reviews_with_is_strict_already() {
        let schema = crate::reply::findings_schema();
        assert_eq!(strict(&schema), schema);
    }
}

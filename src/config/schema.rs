//! The published JSON Schemas (draft 2020-12), generated from the types that read the files.
//!
//! @ref LLP 0003#one-type-one-schema — the published schema is the loader

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde_json::Value;

use super::raw::{RawConfig, RawRouting};

static CONFIG: LazyLock<Value> = LazyLock::new(generate::<RawConfig>);
static ROUTING: LazyLock<Value> = LazyLock::new(generate::<RawRouting>);

/// The schema of `config.jsonc`, as `ecr schema config` prints it.
pub fn config() -> Value {
    CONFIG.clone()
}

/// The schema of `routing.jsonc`, as `ecr schema routing` prints it.
pub fn routing() -> Value {
    ROUTING.clone()
}

pub(super) fn config_ref() -> &'static Value {
    &CONFIG
}

pub(super) fn routing_ref() -> &'static Value {
    &ROUTING
}

/// The schema of `T` in the form of the published ones, for files that are read with
/// [`crate::config::read_strict`].
pub fn generate<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    tidy(&mut schema);
    schema
}

/// Takes out `null`, which `Option` brings in: a key is left out, never null. And joins the lines of
/// descriptions, which follow the width of the source.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
                branches.retain(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
                if let [Value::Object(only)] = branches.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
            // Draft 2020-12 does not know Rust's widths; the bounds say all.
            if object
                .get("format")
                .is_some_and(|format| matches!(format.as_str(), Some("uint32" | "double")))
            {
                object.remove("format");
            }
            if let Some(Value::String(text)) = object.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            object.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

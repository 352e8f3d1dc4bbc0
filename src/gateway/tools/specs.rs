//! The tools: names, fields, schemas.

use serde_json::{Map, Value, json};

use crate::gateway::ToolSpec;
use crate::model::{Category, Severity, Side};
use crate::prompt::tool_text;

/// A tool of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Read,
    Grep,
    Glob,
    List,
    Diff,
    Report,
    Retract,
    Finish,
}

/// Characters that texts may have.
pub(super) const MAX_TITLE: usize = 120;
pub(super) const MAX_CONSEQUENCE: usize = 600;
pub(super) const MAX_EVIDENCE: usize = 2_000;
pub(super) const MAX_REASON: usize = 300;
pub(super) const MAX_PATTERN: usize = 1_000;
pub(super) const MAX_CONTEXT: u32 = 10;
pub(super) const MAX_EXAMINED: usize = 5_000;

impl Tool {
    /// All of them, in the order in which they are offered.
    pub(super) const ALL: [Self; 8] = [
        Self::Read,
        Self::Grep,
        Self::Glob,
        Self::List,
        Self::Diff,
        Self::Report,
        Self::Retract,
        Self::Finish,
    ];

    /// Its name, without the prefix that a client adds.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Grep => "grep",
            Self::Glob => "glob",
            Self::List => "list",
            Self::Diff => "diff",
            Self::Report => "report",
            Self::Retract => "retract",
            Self::Finish => "finish",
        }
    }

    /// The tool of that name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// True when it only looks.
    pub(super) fn reads(self) -> bool {
        !matches!(self, Self::Report | Self::Retract | Self::Finish)
    }

    /// True when it says something about a defect.
    pub(super) fn reports(self) -> bool {
        matches!(self, Self::Report | Self::Retract)
    }

    /// True when there is nothing for it to do without a tree.
    pub(super) fn needs_tree(self) -> bool {
        matches!(self, Self::Read | Self::Grep | Self::Glob | Self::List)
    }

    /// Its fields; those marked `true` have to be there.
    fn fields(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::Read | Self::Diff => &[
                ("path", true),
                ("from", false),
                ("to", false),
                ("column", false),
            ],
            Self::Grep => &[("pattern", true), ("glob", false), ("context", false)],
            Self::Glob => &[("pattern", true)],
            Self::List => &[("path", true)],
            Self::Report => &[
                ("severity", true),
                ("category", true),
                ("file", true),
                ("line", true),
                ("endLine", false),
                ("side", true),
                ("title", true),
                ("consequence", true),
                ("evidence", true),
            ],
            Self::Retract => &[("id", true), ("reason", true)],
            Self::Finish => &[("examined", true)],
        }
    }

    /// The names of its fields.
    pub(super) fn field_names(self) -> Vec<&'static str> {
        self.fields().iter().map(|(name, _)| *name).collect()
    }

    /// What the model is told of it. Limits that only a strange call meets are not in it: the answer tells them.
    pub(super) fn spec(self) -> ToolSpec {
        let text = tool_text(self.name());
        let mut properties = Map::new();
        for (name, _) in self.fields() {
            let mut schema = field_schema(name);
            let words = text.fields.iter().find(|(field, _)| field == name);
            if let (Some((_, words)), Value::Object(schema)) = (words, &mut schema) {
                schema.insert("description".to_owned(), json!(words));
            }
            properties.insert((*name).to_owned(), schema);
        }
        let required: Vec<_> = self
            .fields()
            .iter()
            .filter(|(_, required)| *required)
            .map(|(name, _)| *name)
            .collect();
        ToolSpec {
            name: self.name().to_owned(),
            description: text.description.to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": properties,
                "required": required,
            }),
            read_only: self.reads(),
        }
    }
}

/// The schema of a field; a name means the same in every tool.
fn field_schema(name: &str) -> Value {
    fn words<T: ToString>(all: &[T]) -> Value {
        json!({"type": "string", "enum": all.iter().map(ToString::to_string).collect::<Vec<_>>()})
    }
    match name {
        "from" | "to" | "column" | "line" | "endLine" | "context" => json!({"type": "integer"}),
        "severity" => words(Severity::ALL),
        "category" => words(Category::ALL),
        "side" => words(Side::ALL),
        "title" => json!({"type": "string", "maxLength": MAX_TITLE}),
        "consequence" => json!({"type": "string", "maxLength": MAX_CONSEQUENCE}),
        "examined" => json!({"type": "array", "items": {"type": "string"}}),
        _ => json!({"type": "string"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_words_and_a_valid_schema() {
        for tool in Tool::ALL {
            let spec = tool.spec();
            assert_eq!(Tool::named(&spec.name), Some(tool));
            assert!(!spec.description.is_empty(), "{}", spec.name);
            assert!(
                jsonschema::meta::is_valid(&spec.input_schema),
                "{}",
                spec.name
            );
            let properties = spec.input_schema["properties"].as_object().unwrap();
            for (field, _) in tool_text(&spec.name).fields {
                assert!(properties.contains_key(*field), "{} {field}", spec.name);
            }
        }
        assert_eq!(Tool::named("Read"), None);
    }

    #[test]
    fn what_every_request_carries_is_small() {
        let all: usize = Tool::ALL
            .into_iter()
            .map(|tool| {
                let spec = tool.spec();
                spec.name.len() + spec.description.len() + spec.input_schema.to_string().len()
            })
            .sum();
        assert!(all <= 2_048, "{all} bytes");
    }
}

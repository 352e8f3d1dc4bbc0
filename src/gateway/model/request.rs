//! What the door has to know about a request. The body itself is never changed.

use std::collections::BTreeSet;

use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::operation::Operation;
use crate::ledger::estimated_tokens;

/// Facts about a request body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestFacts {
    /// The model it asks for.
    pub(super) model: Option<String>,
    /// The output limit it sets.
    pub(super) max_output: Option<u64>,
    /// Names of the tools it offers, as the model would call them.
    pub(super) tools: BTreeSet<String>,
    /// It may write to the cache for an hour.
    pub(super) long_lived_cache: bool,
    /// Input tokens it may take.
    pub(super) input_estimate: u64,
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    max_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    #[serde(default)]
    tools: Option<Vec<Tool>>,
    #[serde(default)]
    input: Input,
}

#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    function: Option<Function>,
    /// Of a namespace (codex).
    tools: Option<Vec<Tool>>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
}

/// Responses input: codex's code mode offers tools in an input item.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Input {
    Items(Vec<Item>),
    Other(IgnoredAny),
    #[default]
    None,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: Option<String>,
    tools: Option<Vec<Tool>>,
}

impl RequestFacts {
    /// Reads a body. The error says in words what is wrong with it.
    pub(super) fn read(operation: Operation, body: &[u8]) -> Result<Self, String> {
        let parsed: Body = serde_json::from_slice(body)
            .map_err(|error| format!("the request body is not understood: {error}"))?;
        let mut tools = BTreeSet::new();
        for tool in parsed.tools.into_iter().flatten() {
            tool.names("", 0, &mut tools);
        }
        if let Input::Items(items) = parsed.input {
            let offered = items
                .into_iter()
                .filter(|item| item.kind.as_deref() == Some("additional_tools"));
            for tool in offered.flat_map(|item| item.tools.into_iter().flatten()) {
                tool.names("", 0, &mut tools);
            }
        }
        Ok(Self {
            model: parsed.model,
            max_output: match operation {
                Operation::Responses => parsed.max_output_tokens,
                Operation::Chat => parsed.max_completion_tokens.or(parsed.max_tokens),
                Operation::Messages | Operation::CountTokens => parsed.max_tokens,
            },
            tools,
            long_lived_cache: memmem::find(body, b"\"1h\"").is_some(),
            input_estimate: estimated_tokens(body.len() as u64),
        })
    }

    /// What is wrong with the tools on offer; `None` when they are right. Every `expected` one has
    /// to be there (asked on a pass's first request only), and nothing besides `allowed`.
    pub(super) fn tools_problem(
        &self,
        expected: &[String],
        allowed: &[String],
        first: bool,
    ) -> Option<String> {
        let list = |names: Vec<&str>| names.join(", ");
        let missing: Vec<_> = expected
            .iter()
            .filter(|name| first && !self.tools.contains(*name))
            .map(String::as_str)
            .collect();
        let extra: Vec<_> = self
            .tools
            .iter()
            .filter(|name| !expected.contains(name) && !allowed.contains(name))
            .map(String::as_str)
            .collect();
        match (missing.is_empty(), extra.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!(
                "the tool door is missing: {} not offered to the model",
                list(missing)
            )),
            (true, false) => Some(format!("tools that are not ours: {}", list(extra))),
            (false, false) => Some(format!(
                "the tool door is missing ({} not offered) and tools are not ours: {}",
                list(missing),
                list(extra)
            )),
        }
    }
}

impl Tool {
    /// Adds the names under which a model can call this tool. A namespace `n` with a tool `t` is
    /// `n__t`; a tool of the provider's own goes by its type.
    fn names(self, prefix: &str, depth: u8, out: &mut BTreeSet<String>) {
        let own = self
            .name
            .or_else(|| self.function.and_then(|f| f.name))
            .or(self.kind)
            .unwrap_or_else(|| "unnamed".to_owned());
        let full = if prefix.is_empty() {
            own
        } else {
            format!("{prefix}__{own}")
        };
        match self.tools {
            Some(inner) if depth < 4 => {
                for tool in inner {
                    tool.names(&full, depth + 1, out);
                }
            }
            _ => {
                out.insert(full.chars().take(200).collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(operation: Operation, body: &serde_json::Value) -> RequestFacts {
        RequestFacts::read(operation, body.to_string().as_bytes()).unwrap()
    }

    fn names(facts: &RequestFacts) -> Vec<&str> {
        facts.tools.iter().map(String::as_str).collect()
    }

    #[test]
    fn tools_of_the_three_protocols() {
        let anthropic = read(
            Operation::Messages,
            &serde_json::json!({
                "model": "claude-x", "max_tokens": 128_000, "stream": true,
                "messages": [{"role": "user", "content": [{"type": "text", "text": "x",
                    "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}],
                "tools": [{"name": "mcp__tree__read", "input_schema": {}}, {"type": "web_search_20260101", "name": "web_search"}],
            }),
        );
        assert_eq!(names(&anthropic), ["mcp__tree__read", "web_search"]);
        assert_eq!(anthropic.max_output, Some(128_000));
        assert!(anthropic.long_lived_cache);

        let codex = read(
            Operation::Responses,
            &serde_json::json!({
                "model": "gpt-x",
                "input": [{"type": "message", "role": "user", "content": []},
                          {"type": "additional_tools", "tools": [{"type": "custom", "name": "exec"}]}],
                "tools": [
                    {"type": "function", "name": "list_mcp_resources"},
                    {"type": "namespace", "name": "mcp__tree", "tools": [
                        {"type": "function", "name": "read"}, {"type": "function", "name": "grep"}]},
                    {"type": "web_search"},
                ],
            }),
        );
        assert_eq!(
            names(&codex),
            [
                "exec",
                "list_mcp_resources",
                "mcp__tree__grep",
                "mcp__tree__read",
                "web_search"
            ]
        );

        let chat = read(
            Operation::Chat,
            &serde_json::json!({
                "model": "m", "messages": [], "max_tokens": 10, "max_completion_tokens": 20,
                "tools": [{"type": "function", "function": {"name": "tree_read"}}],
            }),
        );
        assert_eq!(names(&chat), ["tree_read"]);
        assert_eq!(chat.max_output, Some(20));
    }

    #[test]
    fn odd_bodies() {
        let text_input = read(
            Operation::Responses,
            &serde_json::json!({"model": "m", "input": "hello"}),
        );
        assert_eq!(text_input.tools.len(), 0);
        for bad in ["", "[]", "{\"tools\": 1}", "\u{0}", "{\"model\":{}}"] {
            assert!(
                RequestFacts::read(Operation::Chat, bad.as_bytes()).is_err(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn the_tools_have_to_be_exactly_ours() {
        let facts = |tools: &[&str]| RequestFacts {
            tools: tools.iter().map(|t| (*t).to_owned()).collect(),
            ..RequestFacts::default()
        };
        let expected = ["read".to_owned(), "grep".to_owned()];
        let allowed = ["list_mcp_resources".to_owned()];
        let problem =
            |tools: &[&str], first| facts(tools).tools_problem(&expected, &allowed, first);
        assert_eq!(problem(&["read", "grep"], true), None);
        assert_eq!(problem(&["read", "grep", "list_mcp_resources"], true), None);
        assert!(problem(&["read"], true).unwrap().contains("grep"));
        assert_eq!(problem(&[], false), None, "a later summary needs no tools");
        assert!(
            problem(&["read", "grep", "Bash"], false)
                .unwrap()
                .contains("Bash")
        );
        assert!(
            problem(&["Bash"], true)
                .unwrap()
                .contains("read, grep not offered")
        );
    }
}

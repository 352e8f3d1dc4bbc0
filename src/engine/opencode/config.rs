//! The one configuration file that `OpenCode` reads.

use serde_json::{Map, Value, json};

use super::launch::{AGENT, PROVIDER};
use crate::engine::cli::PassFacts;
use crate::gateway::Protocol;

/// The tool door's name: the model sees `tree_read`, `tree_grep`, … With it no name falls under the
/// permission of a built-in tool.
const SERVER: &str = "tree";

/// Beyond what the tool door ever answers: `OpenCode` cuts longer results and points to a file that
/// the model cannot read.
const RESULT_LINES: u64 = 1_000_000;
const RESULT_BYTES: u64 = 8_000_000;

/// How `OpenCode` spells a served tool for its model.
pub(super) fn spelled(tool: &str) -> String {
    format!("{SERVER}_{tool}")
}

/// The text of `opencode.json`.
///
/// Everything is denied at the top, not only for our agent: an agent that is unknown makes `run` fall
/// back to another one. `*` has to come first, for the last rule that matches counts. `doom_loop` is
/// what three equal calls in a row fall under; denied, they end the pass.
pub(super) fn config(pass: &PassFacts<'_>) -> String {
    let rules = permission(pass.tools);
    let patience = u64::try_from(pass.time.as_millis())
        .unwrap_or(u64::MAX)
        .clamp(60_000, 24 * 3_600_000);
    let model = format!("{PROVIDER}/{}", pass.model.name());
    let value = json!({
        // Without it, OpenCode would add it and write the file.
        "$schema": "https://opencode.ai/config.json",
        "enabled_providers": [PROVIDER],
        "model": model,
        "small_model": model,
        "default_agent": AGENT,
        "provider": {PROVIDER: {
            "npm": package(pass.upstream.protocol),
            "name": PROVIDER,
            "options": {
                "baseURL": format!("http://{}/v1", pass.doors),
                "apiKey": pass.placeholder.expose(),
                "headerTimeout": patience,
                "chunkTimeout": patience,
            },
            "models": {pass.model.name(): {
                "name": pass.model.name(),
                // Compaction is off, so the context's size decides nothing.
                "limit": {"context": 1_000_000, "output": pass.limits.max_output_per_call},
            }},
        }},
        "mcp": servers(pass, patience),
        "tool_output": {"max_lines": RESULT_LINES, "max_bytes": RESULT_BYTES},
        "permission": rules,
        "agent": {
            AGENT: {
                "mode": "primary",
                "prompt": prompt(pass),
                "permission": rules,
                "options": options(pass),
            },
            "title": {"disable": true},
            "summary": {"disable": true},
            "compaction": {"disable": true},
            "build": {"disable": true},
            "plan": {"disable": true},
            "general": {"disable": true},
            "explore": {"disable": true},
        },
        "autoupdate": false,
        "share": "disabled",
        "snapshot": false,
        "compaction": {"auto": false, "prune": false},
        "formatter": false,
        "lsp": false,
        "plugin": [],
    });
    inert(&value.to_string())
}

/// The provider packages that are part of the binary.
fn package(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::AnthropicMessages => "@ai-sdk/anthropic",
        Protocol::OpenAiResponses => "@ai-sdk/openai",
        Protocol::OpenAiChat => "@ai-sdk/openai-compatible",
    }
}

fn permission(tools: &[String]) -> Value {
    let mut rules = Map::new();
    rules.insert("*".to_owned(), json!("deny"));
    let names = tools.iter().map(|tool| spelled(tool));
    for name in names.chain(["doom_loop".to_owned()]) {
        rules.insert(name, json!("allow"));
    }
    Value::Object(rules)
}

fn servers(pass: &PassFacts<'_>, patience: u64) -> Value {
    if pass.tools.is_empty() {
        return json!({});
    }
    let bearer = format!("Bearer {}", pass.placeholder.expose());
    json!({SERVER: {
        "type": "remote",
        "url": format!("http://{}/mcp", pass.doors),
        "headers": {"Authorization": bearer},
        "enabled": true,
        // Otherwise a refusal makes it look for a login.
        "oauth": false,
        "timeout": patience,
    }})
}

/// The system prompt; with a schema it ends with the demand for it, for not every provider package
/// passes one on.
fn prompt(pass: &PassFacts<'_>) -> String {
    match pass.schema {
        None => pass.system.to_owned(),
        Some(schema) => format!(
            "{}\n\nAnswer with one JSON object and nothing else. It has to satisfy this JSON schema:\n{schema}",
            pass.system
        ),
    }
}

/// Goes into the request's body as it is, where the provider package lets it.
fn options(pass: &PassFacts<'_>) -> Value {
    match (pass.schema, pass.upstream.protocol) {
        (Some(schema), Protocol::OpenAiChat) => {
            let schema = crate::engine::api::strict(schema);
            json!({"response_format": {"type": "json_schema",
                "json_schema": {"name": "reply", "strict": true, "schema": schema}}})
        }
        _ => json!({}),
    }
}

/// The same JSON without a brace inside of a string: `OpenCode` replaces `{env:NAME}` and `{file:PATH}`
/// in the text of its configuration before it parses it.
fn inert(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            '{' if quoted => {
                // JSON never escapes a brace, so no backslash stands before it.
                out.push_str("\\u007b");
                continue;
            }
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = c == '\\' && quoted && !escaped;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::gateway::{Credential, PassLimits, Upstream};
    use crate::model::{ModelId, Secret};

    fn text(
        protocol: Protocol,
        model: &str,
        system: &str,
        schema: Option<&Value>,
        time: u64,
    ) -> String {
        let tools = ["read", "report", "finish"].map(str::to_owned);
        let upstream = Upstream {
            provider: "acme".to_owned(),
            protocol,
            base_url: "https://acme.test/v1".parse().unwrap(),
            credential: Credential::ApiKey(Secret::new("real-key".to_owned())),
        };
        config(&PassFacts {
            model: &ModelId::new(&format!("acme/{model}")).unwrap(),
            upstream: &upstream,
            system,
            task: "The task.",
            schema,
            tools: if schema.is_none() { &tools } else { &[] },
            doors: "127.0.0.1:4711".parse().unwrap(),
            placeholder: &Secret::new("place-holder".to_owned()),
            root: Path::new("/private"),
            limits: &PassLimits::default(),
            time: Duration::from_secs(time),
        })
    }

    fn made(protocol: Protocol, schema: Option<&Value>, seconds: u64) -> Value {
        serde_json::from_str(&text(protocol, "org/big", "You review.", schema, seconds)).unwrap()
    }

    #[test]
    fn nothing_is_allowed_but_the_served_tools() {
        let value = made(Protocol::OpenAiChat, None, 900);
        for rules in [&value["permission"], &value["agent"][AGENT]["permission"]] {
            let rules: Vec<_> = rules.as_object().unwrap().iter().collect();
            assert_eq!(rules[0], (&"*".to_owned(), &json!("deny")), "`*` is first");
            let allowed: Vec<_> = rules[1..]
                .iter()
                .map(|(name, rule)| {
                    assert_eq!(**rule, json!("allow"));
                    name.as_str()
                })
                .collect();
            assert_eq!(
                allowed,
                ["tree_read", "tree_report", "tree_finish", "doom_loop"]
            );
        }
        assert_eq!(value["default_agent"], AGENT);
        assert_eq!(value["plugin"], json!([]));
        assert_eq!(value["lsp"], json!(false));
        assert_eq!(value["compaction"]["auto"], json!(false));
        assert_eq!(value["agent"]["title"]["disable"], json!(true));
        assert_eq!(value["enabled_providers"], json!([PROVIDER]));
    }

    #[test]
    fn every_address_is_a_door() {
        for (protocol, package) in [
            (Protocol::AnthropicMessages, "@ai-sdk/anthropic"),
            (Protocol::OpenAiResponses, "@ai-sdk/openai"),
            (Protocol::OpenAiChat, "@ai-sdk/openai-compatible"),
        ] {
            let value = made(protocol, None, 900);
            let provider = &value["provider"][PROVIDER];
            assert_eq!(provider["npm"], package);
            assert_eq!(provider["options"]["baseURL"], "http://127.0.0.1:4711/v1");
            assert_eq!(provider["options"]["apiKey"], "place-holder");
            assert!(provider["models"]["org/big"].is_object());
            let server = &value["mcp"][SERVER];
            assert_eq!(server["url"], "http://127.0.0.1:4711/mcp");
            assert_eq!(server["headers"]["Authorization"], "Bearer place-holder");
            assert_eq!(server["oauth"], json!(false));
            let text = value.to_string();
            let addresses = text.matches("http").count();
            assert_eq!(addresses, 3, "the schema's name and the two doors: {text}");
        }
    }

    #[test]
    fn a_pass_with_a_schema_has_no_tools() {
        let schema = json!({"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]});
        for (protocol, passed_on) in [
            (Protocol::OpenAiChat, true),
            (Protocol::AnthropicMessages, false),
        ] {
            let value = made(protocol, Some(&schema), 900);
            assert_eq!(value["mcp"], json!({}));
            assert_eq!(
                value["permission"],
                json!({"*": "deny", "doom_loop": "allow"})
            );
            let agent = &value["agent"][AGENT];
            assert!(agent["prompt"].as_str().unwrap().contains("\"verdict\""));
            assert_eq!(
                agent["options"]["response_format"]["type"] == "json_schema",
                passed_on
            );
        }
    }

    #[test]
    fn no_timeout_fires_before_ours() {
        let value = made(Protocol::OpenAiChat, None, 1_200);
        let options = &value["provider"][PROVIDER]["options"];
        assert_eq!(options["headerTimeout"], json!(1_200_000));
        assert_eq!(options["chunkTimeout"], json!(1_200_000));
        let value = made(Protocol::OpenAiChat, None, 0);
        assert_eq!(value["mcp"][SERVER]["timeout"], json!(60_000));
    }

    #[test]
    fn nothing_in_the_prompt_is_replaced() {
        let trick = "{env:HOME} {file:/etc/passwd} \"{env:X}\" \\{file:y} // no comment";
        let text = text(Protocol::OpenAiChat, "{env:MODEL}", trick, None, 0);
        assert!(
            !text.contains("{env:") && !text.contains("{file:"),
            "{text}"
        );
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["agent"][AGENT]["prompt"], trick);
        assert!(!text.contains("real-key") && !text.contains("acme.test"));
    }

    proptest! {
        #[test]
        fn inert_text_means_the_same(text in ".*", key in "[\\\\\"{}a:]*") {
            let value = json!({key: [text, {"a": {}}]});
            let inert = inert(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&inert).unwrap(), value);
            let replaced = ["{env:", "{file:"].iter().any(|at| inert.contains(at));
            prop_assert!(!replaced);
        }
    }
}

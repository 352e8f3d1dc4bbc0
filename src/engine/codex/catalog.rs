//! The one entry of the model catalogue that Codex is given.
//!
//! @ref LLP 0014#a-catalogue-of-our-own — what the built-in entries would add

use serde_json::{Value, json};

/// Tokens. Beyond what the model door lets through: Codex must neither cut what the tool door answers nor ask
/// its model for a summary of its own.
const UNLIMITED: u64 = 10_000_000;

/// The catalogue for a model that is called `slug`: no shell, no `apply_patch`, no code mode, and tools that are
/// offered in the first request instead of being searched for.
pub(super) fn catalog(slug: &str) -> Value {
    let level = "medium";
    json!({"models": [{
        "slug": slug,
        "display_name": slug,
        // Codex takes the system prompt from a file; here it would be a template.
        "base_instructions": "",
        "visibility": "list",
        "supported_in_api": true,
        "priority": 0,
        "shell_type": "disabled",
        "apply_patch_tool_type": null,
        "experimental_supported_tools": [],
        "supports_search_tool": false,
        "use_responses_lite": false,
        "supports_parallel_tool_calls": true,
        "support_verbosity": false,
        "default_reasoning_level": level,
        "supported_reasoning_levels": [{"effort": level, "description": level}],
        "default_reasoning_summary": "none",
        "input_modalities": ["text"],
        "include_apps_usage_instructions": false,
        "truncation_policy": {"mode": "tokens", "limit": UNLIMITED},
        "context_window": UNLIMITED,
        "max_context_window": UNLIMITED,
    }]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_adds_no_tool() {
        let catalog = catalog("org/any");
        let [entry] = catalog["models"].as_array().unwrap().as_slice() else {
            panic!("{catalog}");
        };
        assert_eq!(entry["slug"], "org/any");
        assert_eq!(entry["shell_type"], "disabled");
        assert_eq!(entry["supports_search_tool"], false);
        assert_eq!(entry["experimental_supported_tools"], json!([]));
        for absent in ["tool_mode", "apply_patch_tool_type", "multi_agent_version"] {
            assert!(entry[absent].is_null(), "{absent}");
        }
    }
}

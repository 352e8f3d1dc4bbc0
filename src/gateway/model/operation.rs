//! Which paths are served, and where they go upstream.

use reqwest::Url;

use crate::gateway::seam::{Credential, Protocol, Upstream};

/// A model operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// `/v1/messages`
    Messages,
    /// `/v1/messages/count_tokens`: free of charge, and no turn.
    CountTokens,
    /// `/v1/responses`
    Responses,
    /// `/v1/chat/completions`
    Chat,
}

impl Operation {
    /// The operation behind a path, as the three CLIs spell it.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let rest = ["/v1", "/backend-api/codex"]
            .iter()
            .find_map(|prefix| path.strip_prefix(prefix))
            .unwrap_or(path);
        match rest {
            "/messages" => Some(Self::Messages),
            "/messages/count_tokens" => Some(Self::CountTokens),
            "/responses" => Some(Self::Responses),
            "/chat/completions" => Some(Self::Chat),
            _ => None,
        }
    }

    /// Whether an upstream of this protocol has it.
    pub(super) fn speaks(self, protocol: Protocol) -> bool {
        matches!(
            (self, protocol),
            (
                Self::Messages | Self::CountTokens,
                Protocol::AnthropicMessages
            ) | (Self::Responses, Protocol::OpenAiResponses)
                | (Self::Chat, Protocol::OpenAiChat)
        )
    }

    /// Whether it asks the model for an answer.
    pub(super) fn answers(self) -> bool {
        self != Self::CountTokens
    }

    fn tail(self) -> &'static str {
        match self {
            Self::Messages => "/messages",
            Self::CountTokens => "/messages/count_tokens",
            Self::Responses => "/responses",
            Self::Chat => "/chat/completions",
        }
    }

    /// Its address at `upstream`. Only the query comes from the caller.
    pub(super) fn address(self, upstream: &Upstream, query: Option<&str>) -> Url {
        let mut url = upstream.base_url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        let version = match upstream.protocol {
            Protocol::AnthropicMessages => !base.ends_with("/v1"),
            // A bare host means the usual version; any path of one's own is taken as it is.
            Protocol::OpenAiResponses | Protocol::OpenAiChat => {
                base.is_empty() && !matches!(upstream.credential, Credential::ChatGpt { .. })
            }
        };
        let version = if version { "/v1" } else { "" };
        url.set_path(&format!("{base}{version}{}", self.tail()));
        url.set_query(query);
        url.set_fragment(None);
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(protocol: Protocol, base: &str) -> Upstream {
        Upstream {
            provider: "p".to_owned(),
            protocol,
            base_url: Url::parse(base).unwrap(),
            credential: Credential::None,
        }
    }

    #[test]
    fn paths_of_the_clis() {
        for (path, operation) in [
            ("/v1/messages", Some(Operation::Messages)),
            ("/v1/messages/count_tokens", Some(Operation::CountTokens)),
            ("/v1/responses", Some(Operation::Responses)),
            ("/backend-api/codex/responses", Some(Operation::Responses)),
            ("/v1/chat/completions", Some(Operation::Chat)),
            ("/chat/completions", Some(Operation::Chat)),
            ("/v1/models", None),
            ("/v1/v1/messages", None),
            ("/v1/messages/", None),
            ("/v1/../v1/messages", None),
            ("/", None),
        ] {
            assert_eq!(Operation::of_path(path), operation, "{path}");
        }
    }

    #[test]
    fn addresses_follow_each_sdks_custom() {
        use Protocol::{AnthropicMessages, OpenAiChat, OpenAiResponses};
        for (protocol, operation, base, expected) in [
            (
                AnthropicMessages,
                Operation::Messages,
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/messages?beta=true",
            ),
            (
                AnthropicMessages,
                Operation::Messages,
                "https://gw.test/anthropic/v1/",
                "https://gw.test/anthropic/v1/messages?beta=true",
            ),
            (
                OpenAiResponses,
                Operation::Responses,
                "https://api.openai.com/v1",
                "https://api.openai.com/v1/responses?beta=true",
            ),
            (
                OpenAiChat,
                Operation::Chat,
                "http://127.0.0.1:11434",
                "http://127.0.0.1:11434/v1/chat/completions?beta=true",
            ),
            (
                OpenAiChat,
                Operation::Chat,
                "https://llm.test/v1beta/openai/",
                "https://llm.test/v1beta/openai/chat/completions?beta=true",
            ),
        ] {
            let address = operation.address(&upstream(protocol, base), Some("beta=true"));
            assert_eq!(address.as_str(), expected);
            assert!(operation.speaks(protocol));
        }
        assert!(!Operation::Chat.speaks(OpenAiResponses));
    }
}

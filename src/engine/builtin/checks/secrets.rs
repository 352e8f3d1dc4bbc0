//! Credentials in added lines.
//!
//! Where they stand decides how much they matter: in tests (also beside the code), fixtures, examples and documentation a credential is mostly
//! made up or long revoked, so what is critical elsewhere is a warning there (a key pair for a test server a suggestion) and what
//! is only a warning elsewhere is not reported.

use super::added::AddedText;
use super::all::rule;
use super::path::{is_example_line, is_fixture};
use crate::detect::{SecretKind as K, secrets};
use crate::engine::builtin::{CheckedFile, Hit, Rule};
use crate::model::{Category, Severity};

const IN_FIXTURE: &str = "secret-in-fixture";
const KEY_IN_FIXTURE: &str = "private-key-in-fixture";

static FIXTURE_RULES: &[Rule] = &[
    rule(
        IN_FIXTURE,
        Severity::Warning,
        Category::Secrets,
        [
            "Valid-looking credential in a test, example or document",
            "If it was ever real, everyone who can read the repository can use it; its format and checksum are right.",
            "Revoke it if it was real; otherwise build it at run time or use the provider's documented example.",
        ],
    ),
    rule(
        KEY_IN_FIXTURE,
        Severity::Suggestion,
        Category::Secrets,
        [
            "Private key in a test, example or document",
            "Whoever reuses this key where it matters uses one that everybody has.",
            "Make sure that nothing outside the tests trusts it, or generate it at run time.",
        ],
    ),
];

const LEAK: &str = "Everyone who can read the repository, now or later, can act as its owner; it stays in the history after it is deleted.";
const REVOKE: &str =
    "Revoke it at the provider now, then read it from the environment or a secret store.";

const fn leak(kind: K, id: &'static str, title: &'static str) -> (K, Rule) {
    (
        kind,
        rule(
            id,
            Severity::Critical,
            Category::Secrets,
            [title, LEAK, REVOKE],
        ),
    )
}

const fn exposed(
    kind: K,
    id: &'static str,
    severity: Severity,
    words: [&'static str; 3],
) -> (K, Rule) {
    (kind, rule(id, severity, Category::Secrets, words))
}

/// One rule a kind of credential.
static KIND_RULES: &[(K, Rule)] = &[
    exposed(
        K::PrivateKey,
        "secret-private-key",
        Severity::Critical,
        [
            "Unencrypted private key in the code",
            "Everyone who can read the repository can log in, sign or decrypt as its owner.",
            "Replace the key pair everywhere it is trusted, and keep the new key out of the repository.",
        ],
    ),
    leak(K::AgeKey, "secret-age-key", "age secret key in the code"),
    leak(
        K::AirtableToken,
        "secret-airtable-token",
        "Airtable token in the code",
    ),
    leak(
        K::AnthropicKey,
        "secret-anthropic-key",
        "Anthropic API key in the code",
    ),
    leak(
        K::AtlassianToken,
        "secret-atlassian-token",
        "Atlassian API token in the code",
    ),
    leak(
        K::AwsKeyPair,
        "secret-aws-access-key",
        "AWS secret access key in the code",
    ),
    exposed(
        K::AwsKeyId,
        "secret-aws-access-key-id",
        Severity::Suggestion,
        [
            "AWS access key id in the code",
            "It names the account and is half of a credential; the other half often follows.",
            "Use a role or a named profile instead of a fixed key.",
        ],
    ),
    leak(
        K::AzureStorageKey,
        "secret-azure-storage-key",
        "Azure storage account key in the code",
    ),
    leak(
        K::AzureSharedKey,
        "secret-azure-shared-access-key",
        "Azure shared access key in the code",
    ),
    leak(
        K::CratesIoToken,
        "secret-crates-io-token",
        "crates.io token in the code",
    ),
    leak(
        K::DatabricksToken,
        "secret-databricks-token",
        "Databricks token in the code",
    ),
    leak(
        K::DigitalOceanToken,
        "secret-digitalocean-token",
        "DigitalOcean token in the code",
    ),
    exposed(
        K::DiscordWebhook,
        "secret-discord-webhook",
        Severity::Warning,
        [
            "Discord webhook URL in the code",
            "Everyone who can read the repository can post into the channel in its name.",
            "Delete the webhook and read the new URL from the environment.",
        ],
    ),
    leak(
        K::DockerHubToken,
        "secret-docker-hub-token",
        "Docker Hub token in the code",
    ),
    leak(
        K::DopplerToken,
        "secret-doppler-token",
        "Doppler token in the code",
    ),
    leak(
        K::FigmaToken,
        "secret-figma-token",
        "Figma token in the code",
    ),
    leak(
        K::GithubToken,
        "secret-github-token",
        "GitHub token in the code",
    ),
    leak(
        K::GitlabToken,
        "secret-gitlab-token",
        "GitLab token in the code",
    ),
    exposed(
        K::GoogleApiKey,
        "secret-google-api-key",
        Severity::Warning,
        [
            "Google API key in the code",
            "Unless it is restricted to this app, everyone who can read the repository can use its quota at your cost.",
            "Restrict the key to its APIs and callers, or read it from the environment.",
        ],
    ),
    exposed(
        K::GoogleClientSecret,
        "secret-google-client-secret",
        Severity::Warning,
        [
            "Google OAuth client secret in the code",
            "For a web application, everyone who can read the repository can pose as it towards Google.",
            "Reset the secret and read it from the environment, unless this is an installed application.",
        ],
    ),
    leak(
        K::GrafanaToken,
        "secret-grafana-token",
        "Grafana service account token in the code",
    ),
    leak(K::GroqKey, "secret-groq-key", "Groq API key in the code"),
    leak(
        K::HerokuKey,
        "secret-heroku-key",
        "Heroku API key in the code",
    ),
    leak(
        K::HuggingFaceToken,
        "secret-hugging-face-token",
        "Hugging Face token in the code",
    ),
    exposed(
        K::Jwt,
        "secret-jwt",
        Severity::Warning,
        [
            "Signed web token in the code",
            "Until it expires, everyone who can read the repository can act as the subject that it names.",
            "Revoke it or rotate the signing key, and obtain tokens at run time.",
        ],
    ),
    leak(
        K::LinearKey,
        "secret-linear-key",
        "Linear API key in the code",
    ),
    leak(
        K::NetlifyToken,
        "secret-netlify-token",
        "Netlify token in the code",
    ),
    leak(
        K::NewRelicKey,
        "secret-new-relic-key",
        "New Relic user key in the code",
    ),
    leak(K::NpmToken, "secret-npm-token", "npm token in the code"),
    leak(
        K::OpenAiKey,
        "secret-openai-key",
        "OpenAI API key in the code",
    ),
    leak(
        K::PlanetScaleToken,
        "secret-planetscale-token",
        "PlanetScale credential in the code",
    ),
    leak(
        K::PostmanKey,
        "secret-postman-key",
        "Postman API key in the code",
    ),
    leak(
        K::PulumiToken,
        "secret-pulumi-token",
        "Pulumi token in the code",
    ),
    leak(K::PypiToken, "secret-pypi-token", "PyPI token in the code"),
    leak(
        K::ReplicateToken,
        "secret-replicate-token",
        "Replicate token in the code",
    ),
    leak(
        K::RubyGemsKey,
        "secret-rubygems-key",
        "RubyGems API key in the code",
    ),
    leak(
        K::SendGridKey,
        "secret-sendgrid-key",
        "SendGrid API key in the code",
    ),
    leak(
        K::SentryToken,
        "secret-sentry-token",
        "Sentry token in the code",
    ),
    leak(
        K::ShopifyToken,
        "secret-shopify-token",
        "Shopify token in the code",
    ),
    leak(
        K::SlackToken,
        "secret-slack-token",
        "Slack token in the code",
    ),
    exposed(
        K::SlackWebhook,
        "secret-slack-webhook",
        Severity::Warning,
        [
            "Slack webhook URL in the code",
            "Everyone who can read the repository can post into the channel in its name.",
            "Revoke the webhook and read the new URL from the environment.",
        ],
    ),
    leak(
        K::StripeKey,
        "secret-stripe-key",
        "Stripe live key in the code",
    ),
    leak(
        K::SupabaseToken,
        "secret-supabase-token",
        "Supabase token in the code",
    ),
    leak(
        K::TelegramToken,
        "secret-telegram-token",
        "Telegram bot token in the code",
    ),
    leak(
        K::TerraformToken,
        "secret-terraform-token",
        "Terraform Cloud token in the code",
    ),
    leak(
        K::TwilioToken,
        "secret-twilio-token",
        "Twilio auth token in the code",
    ),
    exposed(
        K::UrlPassword,
        "secret-url-password",
        Severity::Warning,
        [
            "Password in a URL",
            "Everyone who can read the repository can log in to that host, and URLs end up in logs.",
            "Change the password and read it from the environment.",
        ],
    ),
    leak(
        K::VaultToken,
        "secret-vault-token",
        "Vault token in the code",
    ),
    leak(K::XaiKey, "secret-xai-key", "xAI API key in the code"),
];

/// The table.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    KIND_RULES.iter().map(|(_, rule)| rule).chain(FIXTURE_RULES)
}

fn rule_of(kind: K) -> Option<&'static Rule> {
    KIND_RULES
        .iter()
        .find(|(k, _)| *k == kind)
        .map(|(_, rule)| rule)
}

/// Which rule a credential of `kind` breaks here, if any.
fn rule_here(kind: K, in_fixture: bool) -> Option<&'static str> {
    let rule = rule_of(kind)?;
    match (in_fixture, kind) {
        (false, _) => Some(rule.id),
        (true, K::PrivateKey | K::AgeKey) => Some(KEY_IN_FIXTURE),
        (true, _) => (rule.severity == Severity::Critical).then_some(IN_FIXTURE),
    }
}

/// Reports each credential in the added lines; the same kind once a line.
pub(super) fn check(file: &CheckedFile<'_>, added: &AddedText<'_>, report: &mut dyn FnMut(Hit)) {
    let found = secrets(&added.text);
    if found.is_empty() {
        return;
    }
    let in_fixture_file = is_fixture(file.path);
    let mut last = None;
    for secret in found {
        let Some(mut hit) = added.hit("", &secret.range) else {
            continue;
        };
        let in_fixture = in_fixture_file
            || is_example_line(file, hit.line, hit.evidence.as_deref().unwrap_or_default());
        let Some(id) = rule_here(secret.kind, in_fixture) else {
            continue;
        };
        id.clone_into(&mut hit.rule);
        if last == Some((hit.line, secret.kind)) {
            continue;
        }
        last = Some((hit.line, secret.kind));
        if in_fixture && secret.kind != K::PrivateKey {
            hit.title = Some(format!(
                "Valid-looking {} in a test, example or document",
                secret.kind.name()
            ));
        }
        report(hit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_rule() {
        for kind in K::ALL {
            let rule = rule_of(*kind).unwrap();
            assert_eq!(rule.id, format!("secret-{}", kind.id()));
        }
        assert_eq!(KIND_RULES.len(), K::ALL.len());
    }
}

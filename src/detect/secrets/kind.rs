//! The kinds of credentials.

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal;)+) => {
        /// What kind of credential was recognised.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum SecretKind { $(#[doc = concat!("`", $name, "`")] $variant),+ }

        impl SecretKind {
            /// All kinds, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// A stable kebab-case id (`github-token`).
            pub fn id(self) -> &'static str {
                match self { $(Self::$variant => $id),+ }
            }

            /// What a person calls it (`GitHub token`).
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

kinds! {
    PrivateKey = "private-key", "private key";
    AgeKey = "age-key", "age secret key";
    AirtableToken = "airtable-token", "Airtable token";
    AnthropicKey = "anthropic-key", "Anthropic API key";
    AtlassianToken = "atlassian-token", "Atlassian API token";
    AwsKeyPair = "aws-access-key", "AWS access key with its secret";
    AwsKeyId = "aws-access-key-id", "AWS access key id";
    AzureStorageKey = "azure-storage-key", "Azure storage account key";
    AzureSharedKey = "azure-shared-access-key", "Azure shared access key";
    CratesIoToken = "crates-io-token", "crates.io token";
    DatabricksToken = "databricks-token", "Databricks token";
    DigitalOceanToken = "digitalocean-token", "DigitalOcean token";
    DiscordWebhook = "discord-webhook", "Discord webhook URL";
    DockerHubToken = "docker-hub-token", "Docker Hub token";
    DopplerToken = "doppler-token", "Doppler token";
    FigmaToken = "figma-token", "Figma token";
    GithubToken = "github-token", "GitHub token";
    GitlabToken = "gitlab-token", "GitLab token";
    GoogleApiKey = "google-api-key", "Google API key";
    GoogleClientSecret = "google-client-secret", "Google OAuth client secret";
    GrafanaToken = "grafana-token", "Grafana service account token";
    GroqKey = "groq-key", "Groq API key";
    HerokuKey = "heroku-key", "Heroku API key";
    HuggingFaceToken = "hugging-face-token", "Hugging Face token";
    Jwt = "jwt", "JSON Web Token";
    LinearKey = "linear-key", "Linear API key";
    NetlifyToken = "netlify-token", "Netlify token";
    NewRelicKey = "new-relic-key", "New Relic user key";
    NpmToken = "npm-token", "npm token";
    OpenAiKey = "openai-key", "OpenAI API key";
    PlanetScaleToken = "planetscale-token", "PlanetScale credential";
    PostmanKey = "postman-key", "Postman API key";
    PulumiToken = "pulumi-token", "Pulumi token";
    PypiToken = "pypi-token", "PyPI token";
    ReplicateToken = "replicate-token", "Replicate token";
    RubyGemsKey = "rubygems-key", "RubyGems API key";
    SendGridKey = "sendgrid-key", "SendGrid API key";
    SentryToken = "sentry-token", "Sentry token";
    ShopifyToken = "shopify-token", "Shopify token";
    SlackToken = "slack-token", "Slack token";
    SlackWebhook = "slack-webhook", "Slack webhook URL";
    StripeKey = "stripe-key", "Stripe live key";
    SupabaseToken = "supabase-token", "Supabase token";
    TelegramToken = "telegram-token", "Telegram bot token";
    TerraformToken = "terraform-token", "Terraform Cloud token";
    TwilioToken = "twilio-token", "Twilio auth token with its account";
    UrlPassword = "url-password", "password in a URL";
    VaultToken = "vault-token", "Vault token";
    XaiKey = "xai-key", "xAI API key";
}

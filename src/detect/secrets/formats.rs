//! Tokens that begin with a provider's prefix.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::checksum::{bech32_ok, ends_with_crc};
use super::kind::SecretKind;
use super::placeholder::{looks_random, looks_random_mixed};

/// A token format: a prefix, then `min..=max` bytes of one class that pass a check.
pub(in crate::detect) struct Format {
    /// What it is.
    pub(in crate::detect) kind: SecretKind,
    /// How it begins.
    pub(in crate::detect) prefix: &'static str,
    class: fn(u8) -> bool,
    min: usize,
    max: usize,
    check: fn(&[u8]) -> bool,
}

impl Format {
    /// The token at `start`, where the prefix has been seen, when it stands alone and passes the checks.
    pub(super) fn at(&self, bytes: &[u8], start: usize) -> Option<Range<usize>> {
        if start > 0 && is_word(bytes[start - 1]) {
            return None;
        }
        let body_start = start + self.prefix.len();
        let rest = bytes.get(body_start..)?;
        let len = rest
            .iter()
            .take(self.max + 1)
            .take_while(|b| (self.class)(**b))
            .count();
        let ends_a_word = rest.get(len).is_none_or(|b| !is_word(*b));
        let fits = (self.min..=self.max).contains(&len) && ends_a_word;
        (fits && (self.check)(&rest[..len])).then_some(start..body_start + len)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn lower_alnum(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn upper_alnum(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

fn lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// The alphabet of URL-safe base64.
pub(super) fn url64(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn url64_dot(byte: u8) -> bool {
    url64(byte) || byte == b'.'
}

fn url64_padded(byte: u8) -> bool {
    url64(byte) || byte == b'='
}

/// True when `body` is random parts of exactly these lengths, joined by `joint`.
fn parts(body: &[u8], joint: u8, lens: &[usize]) -> bool {
    let mut pieces = body.split(|b| *b == joint);
    let fit = lens.iter().all(|len| {
        pieces
            .next()
            .is_some_and(|p| p.len() == *len && looks_random(p))
    });
    fit && pieces.next().is_none()
}

fn github_fine_grained(body: &[u8]) -> bool {
    body.get(22) == Some(&b'_')
        && body[..22]
            .iter()
            .chain(&body[23..])
            .all(u8::is_ascii_alphanumeric)
        && looks_random_mixed(&body[23..])
}

/// `payload.xx.yyyyyyy`: what follows the last dots is a length and a checksum in base 36.
fn gitlab_routable(body: &[u8]) -> bool {
    let mut pieces = body.split(|b| *b == b'.');
    let (Some(payload), Some(len), Some(sum), None) =
        (pieces.next(), pieces.next(), pieces.next(), pieces.next())
    else {
        return false;
    };
    payload.len() >= 27
        && len.len() == 2
        && sum.len() == 7
        && sum.iter().chain(len).all(|b| lower_alnum(*b))
        && looks_random_mixed(payload)
}

/// Numbers and a random last part, joined by `-` (`1234567890-1234567890123-AbC…`).
fn slack(body: &[u8]) -> bool {
    let pieces: Vec<&[u8]> = body.split(|b| *b == b'-').collect();
    let Some((last, numbers)) = pieces.split_last() else {
        return false;
    };
    (1..=3).contains(&numbers.len())
        && numbers
            .iter()
            .all(|n| (9..=14).contains(&n.len()) && n.iter().all(u8::is_ascii_digit))
        && (24..=64).contains(&last.len())
        && looks_random_mixed(last)
}

/// `A0123456789-1234567890123-<64 hex>`.
fn slack_app(body: &[u8]) -> bool {
    let pieces: Vec<&[u8]> = body.split(|b| *b == b'-').collect();
    matches!(pieces[..], [app, number, secret]
        if app.iter().all(|b| upper_alnum(*b)) && number.iter().all(u8::is_ascii_digit)
            && secret.len() == 64 && secret.iter().all(|b| lower_hex(*b)) && looks_random(secret))
}

fn anthropic(body: &[u8]) -> bool {
    body.ends_with(b"AA") && looks_random_mixed(body)
}

/// `<random>T3BlbkFJ<random>`; the middle is the maker's name in base64.
fn openai(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"T3BlbkFJ").is_some_and(|at| at >= 16 && body.len() - at - 8 >= 16)
        && looks_random_mixed(body)
}

fn age(body: &[u8]) -> bool {
    bech32_ok(b"age-secret-key-", body)
}

fn sendgrid(body: &[u8]) -> bool {
    parts(body, b'.', &[22, 43])
}

fn airtable(body: &[u8]) -> bool {
    body.get(14) == Some(&b'.')
        && body[15..].iter().all(|b| lower_hex(*b))
        && looks_random(&body[15..])
}

fn grafana(body: &[u8]) -> bool {
    body.get(32) == Some(&b'_')
        && body[33..].iter().all(u8::is_ascii_hexdigit)
        && looks_random_mixed(&body[..32])
}

fn postman(body: &[u8]) -> bool {
    parts(body, b'-', &[24, 34])
}

/// `T…/B…/<24>`.
fn slack_webhook(body: &[u8]) -> bool {
    let pieces: Vec<&[u8]> = body.split(|b| *b == b'/').collect();
    matches!(pieces[..], [team, bot, secret]
        if team.starts_with(b"T") && bot.starts_with(b"B") && (9..=12).contains(&team.len()) && (9..=12).contains(&bot.len())
            && secret.len() == 24 && looks_random_mixed(secret))
}

fn slash_alnum(byte: u8) -> bool {
    alnum(byte) || byte == b'/'
}

/// `<snowflake>/<68>`.
fn discord_webhook(body: &[u8]) -> bool {
    let mut pieces = body.splitn(2, |b| *b == b'/');
    let (Some(id), Some(secret)) = (pieces.next(), pieces.next()) else {
        return false;
    };
    (17..=20).contains(&id.len())
        && id.iter().all(u8::is_ascii_digit)
        && (60..=80).contains(&secret.len())
        && looks_random_mixed(secret)
}

fn slash_url64(byte: u8) -> bool {
    url64(byte) || byte == b'/'
}

/// `AccountKey=` and the like: `bytes` bytes in padded base64, random, and not the emulator's published key.
fn standard_base64(body: &[u8], bytes: usize) -> bool {
    STANDARD.decode(body).is_ok_and(|raw| raw.len() == bytes)
        && !body.starts_with(b"Eby8vdM02x")
        && looks_random_mixed(body)
}

fn azure_storage(body: &[u8]) -> bool {
    standard_base64(body, 64)
}

fn azure_shared(body: &[u8]) -> bool {
    standard_base64(body, 32)
}

fn base64_padded(byte: u8) -> bool {
    alnum(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn atlassian(body: &[u8]) -> bool {
    let Some((random, sum)) = body.split_last_chunk::<9>() else {
        return false;
    };
    sum[0] == b'=' && sum[1..].iter().all(|b| upper_alnum(*b)) && looks_random_mixed(random)
}

fn letters_random(body: &[u8]) -> bool {
    body.iter().any(u8::is_ascii_lowercase)
        && body.iter().any(u8::is_ascii_uppercase)
        && looks_random(body)
}

const fn format(
    kind: SecretKind,
    prefix: &'static str,
    class: fn(u8) -> bool,
    len: (usize, usize),
    check: fn(&[u8]) -> bool,
) -> Format {
    Format {
        kind,
        prefix,
        class,
        min: len.0,
        max: len.1,
        check,
    }
}

use SecretKind as K;

/// Every token format. A prefix may stand in several rows.
pub(in crate::detect) static FORMATS: &[Format] = &[
    format(K::GithubToken, "ghp_", alnum, (36, 36), ends_with_crc),
    format(K::GithubToken, "gho_", alnum, (36, 36), ends_with_crc),
    format(K::GithubToken, "ghu_", alnum, (36, 36), ends_with_crc),
    format(K::GithubToken, "ghs_", alnum, (36, 36), ends_with_crc),
    format(K::GithubToken, "ghr_", alnum, (36, 36), ends_with_crc),
    format(K::GithubToken, "ghr_", alnum, (76, 76), looks_random_mixed),
    format(
        K::GithubToken,
        "github_pat_",
        is_word,
        (82, 82),
        github_fine_grained,
    ),
    format(K::NpmToken, "npm_", alnum, (36, 36), ends_with_crc),
    format(K::GoogleApiKey, "AIza", url64, (35, 35), looks_random_mixed),
    format(
        K::GoogleClientSecret,
        "GOCSPX-",
        url64,
        (28, 28),
        looks_random,
    ),
    format(K::SlackToken, "xoxb-", url64, (40, 120), slack),
    format(K::SlackToken, "xoxp-", url64, (40, 120), slack),
    format(K::SlackToken, "xoxa-", url64, (40, 120), slack),
    format(K::SlackToken, "xoxr-", url64, (40, 120), slack),
    format(K::SlackToken, "xoxs-", url64, (40, 120), slack),
    format(K::SlackToken, "xapp-1-", url64, (80, 110), slack_app),
    format(
        K::SlackWebhook,
        "hooks.slack.com/services/",
        slash_alnum,
        (44, 52),
        slack_webhook,
    ),
    format(
        K::StripeKey,
        "sk_live_",
        alnum,
        (24, 247),
        looks_random_mixed,
    ),
    format(
        K::StripeKey,
        "rk_live_",
        alnum,
        (24, 247),
        looks_random_mixed,
    ),
    format(K::OpenAiKey, "sk-", alnum, (48, 48), openai),
    format(K::OpenAiKey, "sk-proj-", url64, (48, 200), openai),
    format(K::OpenAiKey, "sk-svcacct-", url64, (48, 200), openai),
    format(K::OpenAiKey, "sk-admin-", url64, (48, 200), openai),
    format(K::AnthropicKey, "sk-ant-api03-", url64, (95, 95), anthropic),
    format(
        K::AnthropicKey,
        "sk-ant-admin01-",
        url64,
        (95, 95),
        anthropic,
    ),
    format(
        K::AnthropicKey,
        "sk-ant-oat01-",
        url64,
        (86, 120),
        anthropic,
    ),
    format(
        K::AnthropicKey,
        "sk-ant-ort01-",
        url64,
        (86, 120),
        anthropic,
    ),
    format(
        K::GitlabToken,
        "glpat-",
        url64,
        (20, 20),
        looks_random_mixed,
    ),
    format(
        K::GitlabToken,
        "glpat-",
        url64_dot,
        (38, 310),
        gitlab_routable,
    ),
    format(K::GitlabToken, "gldt-", url64, (20, 20), looks_random_mixed),
    format(K::GitlabToken, "glrt-", url64, (20, 20), looks_random_mixed),
    format(K::GitlabToken, "glptt-", lower_hex, (40, 40), looks_random),
    // The fixed heads are a version 2 macaroon's whose location is the package index.
    format(
        K::PypiToken,
        "pypi-AgEIcHlwaS5vcmc",
        url64,
        (50, 400),
        looks_random_mixed,
    ),
    format(
        K::PypiToken,
        "pypi-AgENdGVzdC5weXBpLm9yZw",
        url64,
        (50, 400),
        looks_random_mixed,
    ),
    format(K::CratesIoToken, "cio", alnum, (32, 32), looks_random_mixed),
    format(K::HuggingFaceToken, "hf_", letter, (34, 34), letters_random),
    format(K::SendGridKey, "SG.", url64_dot, (66, 66), sendgrid),
    format(
        K::DigitalOceanToken,
        "dop_v1_",
        lower_hex,
        (64, 64),
        looks_random,
    ),
    format(
        K::DigitalOceanToken,
        "doo_v1_",
        lower_hex,
        (64, 64),
        looks_random,
    ),
    format(
        K::DigitalOceanToken,
        "dor_v1_",
        lower_hex,
        (64, 64),
        looks_random,
    ),
    format(
        K::AzureStorageKey,
        "AccountKey=",
        base64_padded,
        (88, 88),
        azure_storage,
    ),
    format(
        K::AzureSharedKey,
        "SharedAccessKey=",
        base64_padded,
        (44, 44),
        azure_shared,
    ),
    format(
        K::DiscordWebhook,
        "discord.com/api/webhooks/",
        slash_url64,
        (78, 102),
        discord_webhook,
    ),
    format(
        K::DiscordWebhook,
        "discordapp.com/api/webhooks/",
        slash_url64,
        (78, 102),
        discord_webhook,
    ),
    format(K::ShopifyToken, "shpat_", lower_hex, (32, 32), looks_random),
    format(K::ShopifyToken, "shpca_", lower_hex, (32, 32), looks_random),
    format(K::ShopifyToken, "shppa_", lower_hex, (32, 32), looks_random),
    format(K::ShopifyToken, "shpss_", lower_hex, (32, 32), looks_random),
    format(
        K::DatabricksToken,
        "dapi",
        lower_hex,
        (32, 32),
        looks_random,
    ),
    format(
        K::DopplerToken,
        "dp.pt.",
        alnum,
        (40, 44),
        looks_random_mixed,
    ),
    format(
        K::DopplerToken,
        "dp.ct.",
        alnum,
        (40, 44),
        looks_random_mixed,
    ),
    format(K::VaultToken, "hvs.", url64, (90, 160), looks_random_mixed),
    format(K::VaultToken, "hvb.", url64, (130, 300), looks_random_mixed),
    format(K::AgeKey, "AGE-SECRET-KEY-1", upper_alnum, (58, 58), age),
    format(K::AirtableToken, "pat", airtable_class, (79, 79), airtable),
    format(
        K::AtlassianToken,
        "ATATT3xFfGF0",
        url64_padded,
        (150, 220),
        atlassian,
    ),
    format(
        K::DockerHubToken,
        "dckr_pat_",
        url64,
        (27, 27),
        looks_random,
    ),
    format(K::FigmaToken, "figd_", url64, (40, 44), looks_random_mixed),
    format(K::GrafanaToken, "glsa_", is_word, (41, 41), grafana),
    format(K::GroqKey, "gsk_", alnum, (52, 52), looks_random_mixed),
    format(K::HerokuKey, "HRKU-AA", url64, (58, 58), looks_random_mixed),
    format(
        K::LinearKey,
        "lin_api_",
        alnum,
        (40, 40),
        looks_random_mixed,
    ),
    format(K::NetlifyToken, "nfp_", alnum, (36, 36), looks_random_mixed),
    format(
        K::NewRelicKey,
        "NRAK-",
        upper_alnum,
        (27, 27),
        looks_random_mixed,
    ),
    format(
        K::PlanetScaleToken,
        "pscale_tkn_",
        url64,
        (32, 64),
        looks_random_mixed,
    ),
    format(
        K::PlanetScaleToken,
        "pscale_pw_",
        url64,
        (32, 64),
        looks_random_mixed,
    ),
    format(K::PostmanKey, "PMAK-", url64, (59, 59), postman),
    format(K::PulumiToken, "pul-", lower_hex, (40, 40), looks_random),
    format(
        K::ReplicateToken,
        "r8_",
        alnum,
        (37, 37),
        looks_random_mixed,
    ),
    format(
        K::RubyGemsKey,
        "rubygems_",
        lower_hex,
        (48, 48),
        looks_random,
    ),
    format(K::SentryToken, "sntryu_", lower_hex, (64, 64), looks_random),
    format(K::SupabaseToken, "sbp_", lower_hex, (40, 40), looks_random),
    format(K::XaiKey, "xai-", alnum, (80, 80), looks_random_mixed),
];

fn airtable_class(byte: u8) -> bool {
    alnum(byte) || byte == b'.'
}

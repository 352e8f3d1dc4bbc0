//! One pass over the text for every kind of credential.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::formats::FORMATS;
use super::keys::private_key_block;
use super::kind::SecretKind;
use super::structured::{
    aws_id_at, aws_secret_after_name, aws_secret_near, jwt_at, telegram_at, terraform_at,
    twilio_at, url_password_at,
};

/// A credential in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMatch {
    /// Where it is, in bytes; for a URL only the password, for a private key the whole block.
    pub range: Range<usize>,
    /// What it is.
    pub kind: SecretKind,
}

/// What an anchor starts.
#[derive(Debug, Clone, Copy)]
enum Anchor {
    /// A row (or rows) of [`FORMATS`] with this prefix.
    Prefix(&'static str),
    PrivateKey,
    Jwt,
    Url,
    AwsId,
    AwsSecretName,
    Telegram,
    Twilio,
    Terraform,
}

const STRUCTURED: &[(&str, Anchor)] = &[
    ("-----BEGIN ", Anchor::PrivateKey),
    ("eyJ", Anchor::Jwt),
    ("://", Anchor::Url),
    ("AKIA", Anchor::AwsId),
    ("ASIA", Anchor::AwsId),
    ("ecret_access_key", Anchor::AwsSecretName),
    ("ECRET_ACCESS_KEY", Anchor::AwsSecretName),
    ("ecretAccessKey", Anchor::AwsSecretName),
    ("ecret_key", Anchor::AwsSecretName),
    ("ECRET_KEY", Anchor::AwsSecretName),
    (":AA", Anchor::Telegram),
    ("AC", Anchor::Twilio),
    (".atlasv1.", Anchor::Terraform),
];

struct Scanner {
    automaton: AhoCorasick,
    anchors: Vec<Anchor>,
}

/// `None` only if the automaton could not be built, which a test rules out: its input is constant.
static SCANNER: LazyLock<Option<Scanner>> = LazyLock::new(|| {
    let mut texts: Vec<&'static str> = Vec::new();
    let mut anchors = Vec::new();
    for format in FORMATS {
        if !texts.contains(&format.prefix) {
            texts.push(format.prefix);
            anchors.push(Anchor::Prefix(format.prefix));
        }
    }
    for (text, anchor) in STRUCTURED {
        texts.push(text);
        anchors.push(*anchor);
    }
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(&texts)
        .ok()?;
    Some(Scanner { automaton, anchors })
});

/// Every credential in `bytes`, in order, without overlaps. Precise rather than complete: formats with a checksum are
/// verified, known examples and placeholders are left out, and a bare `password = …` is not reported.
///
/// Linear in the length of `bytes`.
pub fn secrets(bytes: &[u8]) -> Vec<SecretMatch> {
    let mut found = Vec::new();
    let Some(scanner) = SCANNER.as_ref() else {
        return found;
    };
    // Where nothing but a match inside an already read block may begin.
    let mut done = 0;
    for hit in scanner.automaton.find_iter(bytes) {
        if hit.start() < done {
            continue;
        }
        let (start, end) = (hit.start(), hit.end());
        let matched = match scanner.anchors[hit.pattern().as_usize()] {
            Anchor::Prefix(prefix) => FORMATS
                .iter()
                .filter(|f| f.prefix == prefix)
                .find_map(|f| Some((f.at(bytes, start)?, f.kind))),
            Anchor::PrivateKey => private_key_block(bytes, start).and_then(|block| {
                done = block.range.end;
                block
                    .usable
                    .then_some((block.range, SecretKind::PrivateKey))
            }),
            Anchor::Jwt => jwt_at(bytes, start).map(|range| (range, SecretKind::Jwt)),
            Anchor::Url => url_password_at(bytes, start)
                .filter(|url| url.is_real(bytes))
                .map(|url| (url.range, SecretKind::UrlPassword)),
            Anchor::AwsId => aws_id_at(bytes, start).map(|id| match aws_secret_near(bytes, &id) {
                Some(secret) => (secret, SecretKind::AwsKeyPair),
                None => (id, SecretKind::AwsKeyId),
            }),
            Anchor::AwsSecretName => {
                aws_secret_after_name(bytes, end).map(|range| (range, SecretKind::AwsKeyPair))
            }
            Anchor::Telegram => {
                telegram_at(bytes, start).map(|range| (range, SecretKind::TelegramToken))
            }
            Anchor::Twilio => twilio_at(bytes, start).map(|range| (range, SecretKind::TwilioToken)),
            Anchor::Terraform => {
                terraform_at(bytes, start).map(|range| (range, SecretKind::TerraformToken))
            }
        };
        if let Some((range, kind)) = matched {
            found.push(SecretMatch { range, kind });
        }
    }
    without_overlaps(found)
}

fn without_overlaps(mut found: Vec<SecretMatch>) -> Vec<SecretMatch> {
    found.sort_by(|a, b| {
        a.range
            .start
            .cmp(&b.range.start)
            .then(b.range.end.cmp(&a.range.end))
            .then(a.kind.cmp(&b.kind))
    });
    let mut end = 0;
    found.retain(|m| {
        let fresh = m.range.start >= end;
        if fresh {
            end = m.range.end;
        }
        fresh
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_automaton_builds() {
        assert!(SCANNER.is_some());
    }
}

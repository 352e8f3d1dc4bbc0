//! Credentials that a structure gives away: web tokens, URLs, cloud key pairs.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::formats::url64;
use super::placeholder::{entropy, is_placeholder, looks_random, looks_random_mixed};

/// How far an AWS secret may stand from its key id, in bytes.
const PAIR_DISTANCE: usize = 400;

fn run_len(bytes: &[u8], class: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|b| class(**b)).count()
}

/// A signed web token at `start` whose header and claims decode, whose signature has its algorithm's length, and
/// which is neither a published example nor meant to be public.
pub(super) fn jwt_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    if start > 0 && (url64(bytes[start - 1]) || bytes[start - 1] == b'.') {
        return None;
    }
    let mut ends = [0; 3];
    let mut at = start;
    for (index, end) in ends.iter_mut().enumerate() {
        at += run_len(&bytes[at..], url64);
        *end = at;
        if index < 2 {
            if bytes.get(at) != Some(&b'.') {
                return None;
            }
            at += 1;
        }
    }
    let header = decode_object(&bytes[start..ends[0]])?;
    let claims = decode_object(&bytes[ends[0] + 1..ends[1]])?;
    let signature = URL_SAFE_NO_PAD.decode(&bytes[ends[1] + 1..ends[2]]).ok()?;
    let expected: &[usize] = match header.get("alg")?.as_str()? {
        "HS256" => &[32],
        "HS384" => &[48],
        "HS512" | "ES256" | "EdDSA" => &[64],
        "ES384" => &[96],
        "RS256" | "RS384" | "RS512" | "PS256" | "PS384" | "PS512" => &[256, 384, 512],
        _ => return None,
    };
    let telling = [
        "John Doe",
        "1234567890",
        "example",
        "anon",
        "test",
        "foo",
        "bar",
        "joe",
        "user",
        "admin",
    ];
    let is_example = claims
        .values()
        .filter_map(serde_json::Value::as_str)
        .any(|value| {
            telling.contains(&value) || value.contains("example.") || value.contains("localhost")
        });
    // Without an issuer, subject or audience it opens nothing that could be named.
    let names_something = ["iss", "sub", "aud", "role", "scope", "scp", "email"]
        .iter()
        .any(|claim| claims.contains_key(*claim));
    let real = expected.contains(&signature.len())
        && names_something
        && !is_example
        && entropy(&signature) > 4.0;
    real.then_some(start..ends[2])
}

fn decode_object(part: &[u8]) -> Option<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// A password in a URL.
pub(in crate::detect) struct UrlPassword {
    /// The password's bytes.
    pub(in crate::detect) range: Range<usize>,
    user: Range<usize>,
    host: Range<usize>,
}

/// The password of `scheme://user:password@host` whose `://` begins at `at`, placeholder or not.
pub(in crate::detect) fn url_password_at(bytes: &[u8], at: usize) -> Option<UrlPassword> {
    if at == 0 || !bytes[at - 1].is_ascii_alphanumeric() {
        return None;
    }
    let start = at + 3;
    let window = &bytes[start..bytes.len().min(start + 300)];
    let end = run_len(window, |b| {
        b.is_ascii_graphic()
            && !matches!(
                b,
                b'/' | b'?' | b'#' | b'"' | b'\'' | b'`' | b'<' | b'>' | b',' | b')' | b'|' | b'\\'
            )
    });
    let authority = &window[..end];
    let sign = memchr::memrchr(b'@', authority)?;
    let colon = memchr::memchr(b':', &authority[..sign])?;
    let host_len = run_len(&authority[sign + 1..], |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')
    });
    if colon + 1 == sign || host_len == 0 {
        return None;
    }
    Some(UrlPassword {
        range: start + colon + 1..start + sign,
        user: start..start + colon,
        host: start + sign + 1..start + sign + 1 + host_len,
    })
}

impl UrlPassword {
    /// True when this is a real password for a real host rather than an example, a local service or a template.
    pub(super) fn is_real(&self, bytes: &[u8]) -> bool {
        let host = bytes[self.host.clone()].to_ascii_lowercase();
        let password = &bytes[self.range.clone()];
        let user = &bytes[self.user.clone()];
        let top = host.rsplit(|b| *b == b'.').next().unwrap_or_default();
        let public_host = host.contains(&b'.')
            && !host.iter().all(|b| b.is_ascii_digit() || *b == b'.')
            && !matches!(
                top,
                b"local"
                    | b"localhost"
                    | b"test"
                    | b"example"
                    | b"invalid"
                    | b"internal"
                    | b"localdomain"
            )
            && ![
                "example.",
                "domain.",
                "host.",
                "server.",
                "hostname.",
                "foo.",
                "bar.",
                "test.",
                "your",
                "acme.",
                "company.",
                "proxy.",
            ]
            .iter()
            .any(|word| memchr::memmem::find(&host, word.as_bytes()).is_some());
        public_host
            && password.len() >= 10
            && password != user
            && !password.contains(&b'%')
            && looks_random_mixed(password)
            && !user.iter().any(|b| matches!(b, b'$' | b'{' | b'<' | b'%'))
    }
}

/// An AWS access key id at `start` (at `AKIA` or `ASIA`).
pub(super) fn aws_id_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let end = start + 20;
    let id = bytes.get(start + 4..end)?;
    let alone = (start == 0 || !bytes[start - 1].is_ascii_alphanumeric())
        && bytes.get(end).is_none_or(|b| !b.is_ascii_alphanumeric());
    let fits = id.iter().all(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7'));
    (alone && fits && id.iter().any(u8::is_ascii_digit) && !is_placeholder(id) && entropy(id) > 2.4)
        .then_some(start..end)
}

/// The secret that belongs to the key id at `id`: 40 random characters close by.
pub(super) fn aws_secret_near(bytes: &[u8], id: &Range<usize>) -> Option<Range<usize>> {
    let from = id.start.saturating_sub(PAIR_DISTANCE);
    let to = bytes.len().min(id.end + PAIR_DISTANCE);
    let after = aws_secret_in(bytes, id.end..to);
    after.or_else(|| aws_secret_in(bytes, from..id.start))
}

/// The value after a name such as `aws_secret_access_key`, whose end is at `name_end`.
pub(super) fn aws_secret_after_name(bytes: &[u8], name_end: usize) -> Option<Range<usize>> {
    aws_secret_in(bytes, name_end..bytes.len().min(name_end + 60))
}

fn aws_secret_in(bytes: &[u8], within: Range<usize>) -> Option<Range<usize>> {
    let class = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'+');
    let mut at = within.start;
    while at < within.end {
        // No further than decides: a run may be as long as the text.
        let len = run_len(&bytes[at..bytes.len().min(at + 41)], class);
        let starts_clean =
            at == 0 || !(class(bytes[at - 1]) || matches!(bytes[at - 1], b'-' | b'_' | b'.'));
        let end = at + len;
        let ends_clean = bytes
            .get(end)
            .is_none_or(|b| !matches!(b, b'=' | b'-' | b'_' | b'.'));
        if len == 40 && starts_clean && ends_clean && is_aws_secret(&bytes[at..end]) {
            return Some(at..end);
        }
        at = end + usize::from(len <= 40);
    }
    None
}

fn is_aws_secret(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_lowercase)
        && value.iter().any(u8::is_ascii_uppercase)
        && memchr::memchr_iter(b'/', value).count() <= 4
        && looks_random_mixed(value)
        && entropy(value) > 4.2
}

/// A Telegram bot token whose `:AA` begins at `colon`: 8–10 digits, `:AA`, 33 more.
pub(super) fn telegram_at(bytes: &[u8], colon: usize) -> Option<Range<usize>> {
    let digits = bytes[..colon]
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_digit())
        .count();
    let start = colon - digits;
    let body = bytes.get(colon + 1..)?;
    let len = run_len(body, url64);
    let bounded = start == 0 || !url64(bytes[start - 1]) || bytes[..start].ends_with(b"bot");
    ((8..=10).contains(&digits) && bounded && len == 35 && looks_random_mixed(&body[2..35]))
        .then_some(start..colon + 1 + len)
}

/// A Twilio auth token close behind its account id, which begins at `start` (at `AC`).
pub(super) fn twilio_at(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    let id_end = start + 34;
    if (start > 0 && bytes[start - 1].is_ascii_alphanumeric())
        || run_len(bytes.get(start + 2..)?, hex) != 32
    {
        return None;
    }
    let window_end = bytes.len().min(id_end + 120);
    let mut at = id_end;
    while at < window_end {
        let len = run_len(&bytes[at..], |b| b.is_ascii_alphanumeric());
        let token = &bytes[at..at + len];
        if len == 32
            && token.iter().all(|b| hex(*b))
            && looks_random(token)
            && looks_random(&bytes[start + 2..id_end])
        {
            return Some(at..at + len);
        }
        at += len + 1;
    }
    None
}

/// A Terraform Cloud token whose `.atlasv1.` begins at `dot`: 14 characters before it, 60 or more after.
pub(super) fn terraform_at(bytes: &[u8], dot: usize) -> Option<Range<usize>> {
    let before = bytes[..dot]
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric())
        .count();
    let body_start = dot + b".atlasv1.".len();
    let len = run_len(&bytes[body_start..], url64);
    (before == 14
        && (60..=70).contains(&len)
        && looks_random_mixed(&bytes[body_start..body_start + len]))
    .then_some(dot - before..body_start + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_parts() {
        let text = b"see postgres://app:k3J9vQ2pLx7R@db.shop.io:5432/x";
        let found = url_password_at(text, 12).unwrap();
        assert_eq!(&text[found.range.clone()], b"k3J9vQ2pLx7R");
        assert!(found.is_real(text));
        for text in [
            "http://host:80/@x",
            "a://b@c",
            "://u:p@h",
            "http://u:@h",
            "x://:p@ h",
        ] {
            let at = text.find("://").unwrap();
            let found = url_password_at(text.as_bytes(), at);
            assert!(found.is_none_or(|f| !f.is_real(text.as_bytes())), "{text}");
        }
    }
}

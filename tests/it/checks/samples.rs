//! Well-formed credentials that open nothing, made at run time so that no scanner trips over this file.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

pub(super) const ALNUM: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
pub(super) const HEX: &[u8] = b"0123456789abcdef";
pub(super) const UPPER: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BECH32: &[u8] = b"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";

/// A small deterministic generator (`SplitMix64`).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn text(&mut self, alphabet: &[u8], len: usize) -> String {
        (0..len)
            .map(|_| char::from(alphabet[(self.next() % alphabet.len() as u64) as usize]))
            .collect()
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Independent of the code under test: bit by bit, most significant digit first.
fn checksum(text: &str) -> String {
    let mut crc: u32 = u32::MAX;
    for byte in text.bytes() {
        for bit in 0..8 {
            let carry = (crc & 1) ^ u32::from((byte >> bit) & 1);
            crc >>= 1;
            if carry == 1 {
                crc ^= 0xedb8_8320;
            }
        }
    }
    let mut rest = u64::from(!crc);
    let mut digits = Vec::new();
    for _ in 0..6 {
        digits.push(char::from(ALNUM[(rest % 62) as usize]));
        rest /= 62;
    }
    digits.iter().rev().collect()
}

fn crc_token(prefix: &str, random: &mut Random) -> String {
    let body = random.text(ALNUM, 30);
    format!("{prefix}{body}{}", checksum(&body))
}

fn age_key(random: &mut Random) -> String {
    let data = random.text(BECH32, 52);
    // The six checksum characters, found by solving the linear code one bit at a time.
    let residue = |text: &str| {
        let mut sum: u32 = 1;
        let mut step = |value: u32| {
            let top = sum >> 25;
            sum = ((sum & 0x1ff_ffff) << 5) ^ value;
            for (bit, term) in [
                0x3b6a_57b2_u32,
                0x2650_8e6d,
                0x1ea1_19fa,
                0x3d42_33dd,
                0x2a14_62b3,
            ]
            .into_iter()
            .enumerate()
            {
                if top >> bit & 1 == 1 {
                    sum ^= term;
                }
            }
        };
        let human = "age-secret-key-";
        human.bytes().for_each(|b| step(u32::from(b >> 5)));
        step(0);
        human.bytes().for_each(|b| step(u32::from(b & 31)));
        for byte in text.bytes() {
            step(
                BECH32
                    .iter()
                    .position(|c| *c == byte)
                    .expect("in the alphabet") as u32,
            );
        }
        (0..6).for_each(|_| step(0));
        sum ^ 1
    };
    let sum = residue(&data);
    let tail: String = (0..6)
        .map(|i| char::from(BECH32[(sum >> (5 * (5 - i)) & 31) as usize]))
        .collect();
    ["AGE-SECRET", "-KEY-1", &data, &tail].concat()
}

/// An Ed25519 key in PKCS#8, in armour.
pub(super) fn private_key(random: &mut Random) -> String {
    let mut der = vec![
        0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20,
    ];
    der.extend(random.bytes(32));
    armour("PRIVATE KEY", &der)
}

/// A sequence of the length of an RSA key of 1,024 bits.
pub(super) fn rsa_key(random: &mut Random) -> String {
    let mut der = vec![0x30, 0x82, 0x02, 0x5c, 2, 1, 0];
    der.extend(random.bytes(0x25c - 3));
    armour("RSA PRIVATE KEY", &der)
}

/// An OpenSSH key; `cipher` is `none` for one without a passphrase.
pub(super) fn openssh_key(random: &mut Random, cipher: &str) -> String {
    let mut raw = b"openssh-key-v1\0".to_vec();
    raw.extend((cipher.len() as u32).to_be_bytes());
    raw.extend(cipher.as_bytes());
    raw.extend(random.bytes(200));
    armour("OPENSSH PRIVATE KEY", &raw)
}

pub(super) fn armour(label: &str, raw: &[u8]) -> String {
    let text = STANDARD.encode(raw);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|c| std::str::from_utf8(c).expect("ascii"))
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----",
        lines.join("\n")
    )
}

pub(super) fn jwt(header: &str, claims: &str, signature: &[u8]) -> String {
    [header.as_bytes(), claims.as_bytes(), signature]
        .map(|part| URL_SAFE_NO_PAD.encode(part))
        .join(".")
}

/// The id of each kind of credential that stands in one line, with an example.
pub(super) fn one_line(seed: u64) -> Vec<(&'static str, String)> {
    let r = &mut Random(seed);
    let join = |parts: &[&str]| parts.concat();
    let mut out = Vec::new();
    for prefix in ["ghp", "gho", "ghu", "ghs", "ghr"] {
        out.push(("github-token", crc_token(&join(&[prefix, "_"]), r)));
    }
    out.push((
        "github-token",
        join(&[
            "github",
            "_pat_",
            &r.text(ALNUM, 22),
            "_",
            &r.text(ALNUM, 59),
        ]),
    ));
    out.push(("npm-token", crc_token("npm_", r)));
    out.push(("google-api-key", join(&["AI", "za", &r.text(ALNUM, 35)])));
    out.push((
        "google-client-secret",
        join(&["GOC", "SPX-", &r.text(ALNUM, 28)]),
    ));
    out.push((
        "slack-token",
        join(&[
            "xo",
            "xb-",
            &digits(r, 12),
            "-",
            &digits(r, 13),
            "-",
            &r.text(ALNUM, 24),
        ]),
    ));
    out.push((
        "slack-token",
        join(&[
            "xo",
            "xp-",
            &digits(r, 12),
            "-",
            &digits(r, 12),
            "-",
            &digits(r, 12),
            "-",
            &r.text(HEX, 32),
        ]),
    ));
    out.push((
        "slack-token",
        join(&[
            "xa",
            "pp-1-A",
            &r.text(UPPER, 10),
            "-",
            &digits(r, 13),
            "-",
            &r.text(HEX, 64),
        ]),
    ));
    out.push((
        "slack-webhook",
        join(&[
            "https://hooks.slack.com/ser",
            "vices/T",
            &r.text(UPPER, 9),
            "/B",
            &r.text(UPPER, 9),
            "/",
            &r.text(ALNUM, 24),
        ]),
    ));
    out.push(("stripe-key", join(&["sk_", "live_", &r.text(ALNUM, 24)])));
    out.push(("stripe-key", join(&["rk_", "live_", &r.text(ALNUM, 99)])));
    out.push((
        "openai-key",
        join(&[
            "sk",
            "-",
            &r.text(ALNUM, 20),
            "T3Blbk",
            "FJ",
            &r.text(ALNUM, 20),
        ]),
    ));
    out.push((
        "openai-key",
        join(&[
            "sk",
            "-proj-",
            &r.text(ALNUM, 74),
            "T3Blbk",
            "FJ",
            &r.text(ALNUM, 74),
        ]),
    ));
    out.push((
        "anthropic-key",
        join(&["sk-a", "nt-api03-", &r.text(ALNUM, 93), "AA"]),
    ));
    out.push(("gitlab-token", join(&["glp", "at-", &r.text(ALNUM, 20)])));
    out.push((
        "gitlab-token",
        join(&[
            "glp",
            "at-",
            &r.text(ALNUM, 40),
            ".01.1",
            &r.text(b"abcdefgh0123456789", 6),
        ]),
    ));
    out.push((
        "pypi-token",
        join(&["pypi-AgEIcHl", "waS5vcmc", &r.text(ALNUM, 120)]),
    ));
    out.push(("crates-io-token", join(&["ci", "o", &r.text(ALNUM, 32)])));
    out.push((
        "hugging-face-token",
        join(&["h", "f_", &r.text(&ALNUM[10..], 34)]),
    ));
    out.push((
        "sendgrid-key",
        join(&["S", "G.", &r.text(ALNUM, 22), ".", &r.text(ALNUM, 43)]),
    ));
    out.push((
        "digitalocean-token",
        join(&["dop", "_v1_", &r.text(HEX, 64)]),
    ));
    out.push((
        "azure-storage-key",
        join(&[
            "AccountName=shop;Account",
            "Key=",
            &STANDARD.encode(r.bytes(64)),
            ";EndpointSuffix=core",
        ]),
    ));
    out.push((
        "azure-shared-access-key",
        join(&["SharedAccess", "Key=", &STANDARD.encode(r.bytes(32))]),
    ));
    out.push((
        "discord-webhook",
        join(&[
            "https://discord.com/api/web",
            "hooks/",
            &digits(r, 18),
            "/",
            &r.text(ALNUM, 68),
        ]),
    ));
    out.push(("shopify-token", join(&["shp", "at_", &r.text(HEX, 32)])));
    out.push(("databricks-token", join(&["da", "pi", &r.text(HEX, 32)])));
    out.push(("doppler-token", join(&["dp.", "pt.", &r.text(ALNUM, 43)])));
    out.push(("vault-token", join(&["hv", "s.", &r.text(ALNUM, 95)])));
    out.push(("age-key", age_key(r)));
    out.push((
        "airtable-token",
        join(&["pa", "t", &r.text(ALNUM, 14), ".", &r.text(HEX, 64)]),
    ));
    out.push((
        "atlassian-token",
        join(&[
            "ATATT3x",
            "FfGF0",
            &r.text(ALNUM, 170),
            "=",
            &r.text(b"0123456789ABCDEF", 8),
        ]),
    ));
    out.push((
        "docker-hub-token",
        join(&["dckr", "_pat_", &r.text(ALNUM, 27)]),
    ));
    out.push(("figma-token", join(&["fi", "gd_", &r.text(ALNUM, 40)])));
    out.push((
        "grafana-token",
        join(&["gl", "sa_", &r.text(ALNUM, 32), "_", &r.text(HEX, 8)]),
    ));
    out.push(("groq-key", join(&["gs", "k_", &r.text(ALNUM, 52)])));
    out.push(("heroku-key", join(&["HRKU", "-AA", &r.text(ALNUM, 58)])));
    out.push(("linear-key", join(&["lin", "_api_", &r.text(ALNUM, 40)])));
    out.push(("netlify-token", join(&["nf", "p_", &r.text(ALNUM, 36)])));
    out.push(("new-relic-key", join(&["NR", "AK-", &r.text(UPPER, 27)])));
    out.push((
        "planetscale-token",
        join(&["pscale", "_tkn_", &r.text(ALNUM, 43)]),
    ));
    out.push((
        "postman-key",
        join(&["PM", "AK-", &r.text(HEX, 24), "-", &r.text(HEX, 34)]),
    ));
    out.push(("pulumi-token", join(&["pu", "l-", &r.text(HEX, 40)])));
    out.push(("replicate-token", join(&["r", "8_", &r.text(ALNUM, 37)])));
    out.push(("rubygems-key", join(&["ruby", "gems_", &r.text(HEX, 48)])));
    out.push(("sentry-token", join(&["sntr", "yu_", &r.text(HEX, 64)])));
    out.push(("supabase-token", join(&["sb", "p_", &r.text(HEX, 40)])));
    out.push(("xai-key", join(&["x", "ai-", &r.text(ALNUM, 80)])));
    out.push((
        "telegram-token",
        join(&[&digits(r, 10), ":A", "A", &r.text(ALNUM, 33)]),
    ));
    out.push((
        "terraform-token",
        join(&[&r.text(ALNUM, 14), ".atlas", "v1.", &r.text(ALNUM, 67)]),
    ));
    out.push((
        "twilio-token",
        join(&["A", "C", &r.text(HEX, 32), "\", \"", &r.text(HEX, 32)]),
    ));
    out.push((
        "url-password",
        join(&[
            "postgres://app",
            ":",
            &r.text(ALNUM, 20),
            "@db.shop.io/main",
        ]),
    ));
    out.push((
        "aws-access-key",
        join(&[
            "AK",
            "IA",
            &r.text(BASE32, 15),
            "5 ",
            &r.text(ALNUM, 37),
            "aB3",
        ]),
    ));
    out.push((
        "aws-access-key",
        join(&["aws_sec", "ret_access_key = ", &r.text(ALNUM, 37), "aB3"]),
    ));
    out.push((
        "aws-access-key-id",
        join(&["AK", "IA", &r.text(BASE32, 15), "5"]),
    ));
    let claims = format!(
        "{{\"iss\":\"https://id.shop.io\",\"sub\":\"u-{}\"}}",
        r.next()
    );
    out.push((
        "jwt",
        jwt("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", &claims, &r.bytes(32)),
    ));
    out
}

fn digits(random: &mut Random, len: usize) -> String {
    format!("1{}", random.text(b"0123456789", len - 1))
}

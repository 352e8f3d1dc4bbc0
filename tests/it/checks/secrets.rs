//! Credentials: every format is found, and nothing that only looks like one.

use ecr::detect::{SecretKind, secrets};

use super::harness::check_new;
use super::samples::{
    ALNUM, HEX, Random, armour, jwt, one_line, openssh_key, private_key, rsa_key,
};

fn kinds(text: &str) -> Vec<&'static str> {
    secrets(text.as_bytes())
        .into_iter()
        .map(|m| m.kind.id())
        .collect()
}

#[test]
fn every_format_is_found_wherever_it_stands() {
    for seed in 0..20 {
        for (kind, token) in one_line(seed) {
            for text in [
                token.clone(),
                format!("key = \"{token}\","),
                format!("  curl -H 'x: {token}' # go\n"),
                format!("a\n{token}\nb"),
            ] {
                let found = secrets(text.as_bytes());
                assert_eq!(
                    found.iter().map(|m| m.kind.id()).collect::<Vec<_>>(),
                    [kind],
                    "seed {seed}: {text}"
                );
                assert!(token.contains(&text[found[0].range.clone()]), "{kind}");
            }
        }
    }
}

#[test]
fn the_samples_cover_every_kind_but_multi_line_keys() {
    let covered: std::collections::BTreeSet<_> =
        one_line(1).into_iter().map(|(kind, _)| kind).collect();
    for kind in SecretKind::ALL {
        assert!(
            covered.contains(kind.id()) || *kind == SecretKind::PrivateKey,
            "{}",
            kind.id()
        );
    }
}

#[test]
fn every_kind_has_its_finding() {
    for (kind, token) in one_line(7) {
        assert_eq!(
            check_new("src/config.ts", format!("\nconst k = '{token}';\n")),
            [format!("secret-{kind}:2")]
        );
    }
}

#[test]
fn a_damaged_checksum_is_no_token() {
    for seed in 0..20 {
        for (kind, token) in one_line(seed) {
            if matches!(kind, "npm-token" | "age-key")
                || kind == "github-token" && token.len() == 40
            {
                let last = token.len() - 1;
                let other = if token.ends_with('7') { '9' } else { '7' };
                assert_eq!(
                    kinds(&format!("{}{other}", &token[..last])),
                    [] as [&str; 0],
                    "{token}"
                );
            }
        }
    }
}

#[test]
fn a_token_within_a_longer_word_or_of_another_length_is_none() {
    let loose = [
        "url-password",
        "twilio-token",
        "aws-access-key",
        "jwt",
        "slack-webhook",
        "discord-webhook",
        "azure-storage-key",
    ];
    for (kind, token) in one_line(3) {
        if loose.contains(&kind) || token.contains("KEY-1") {
            continue;
        }
        let inside = format!("z{token}");
        assert!(
            !kinds(&inside).contains(&kind) || kind == "telegram-token",
            "{inside}"
        );
        let fixed = !matches!(
            kind,
            "stripe-key"
                | "openai-key"
                | "pypi-token"
                | "vault-token"
                | "atlassian-token"
                | "figma-token"
                | "planetscale-token"
                | "doppler-token"
                | "terraform-token"
                | "slack-token"
                | "gitlab-token"
                | "azure-shared-access-key"
        );
        if fixed {
            let longer = format!("{token}Zq");
            assert!(!kinds(&longer).contains(&kind), "{longer}");
        }
    }
}

#[test]
fn placeholders_in_a_tokens_place() {
    let prefixes = [
        ["sk_", "live_"],
        ["glp", "at-"],
        ["h", "f_"],
        ["AI", "za"],
        ["shp", "at_"],
        ["da", "pi"],
        ["dop", "_v1_"],
        ["dp.", "pt."],
        ["gs", "k_"],
        ["hv", "s."],
        ["ci", "o"],
        ["nf", "p_"],
        ["lin", "_api_"],
        ["pu", "l-"],
        ["ruby", "gems_"],
        ["r", "8_"],
        ["gh", "p_"],
        ["np", "m_"],
    ];
    for prefix in prefixes {
        for body in [
            "x".repeat(36),
            "X".repeat(32),
            "0".repeat(20),
            "0".repeat(64),
            "1234567890".repeat(4),
            "abcdefghijklmnopqrstuvwxyz012345".to_owned(),
            "0123456789abcdef0123456789abcdef".to_owned(),
            "YOUR_TOKEN_HERE".to_owned(),
            "<your-token>".to_owned(),
            "${TOKEN}".to_owned(),
            "$(cat token)".to_owned(),
            "EXAMPLEEXAMPLEEXAMPLE123".to_owned(),
            "...".to_owned(),
            "*".repeat(20),
            String::new(),
            "deadbeefdeadbeefdeadbeefdeadbeef".to_owned(),
        ] {
            let text = format!("token = \"{}{body}\"", prefix.concat());
            assert_eq!(kinds(&text), [] as [&str; 0], "{text}");
        }
    }
}

#[test]
fn look_alikes() {
    let r = &mut Random(11);
    let sha = r.text(HEX, 40);
    let join = |parts: &[&str]| parts.concat();
    for text in [
        join(&["AK", "IAIOSFODNN7EXAMPLE"]),
        join(&[
            "AWS_SEC",
            "RET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ]),
        format!("aws_secret_access_key = {sha}"),
        format!("commit {sha}"),
        format!("integrity sha512-{}==", r.text(ALNUM, 86)),
        format!("uuid {}", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        join(&["https://user", ":password@example.com/"]),
        join(&["https://user", ":k3J9vQ2pLx7R@localhost:8080/"]),
        join(&["postgres://postgres", ":postgres@db:5432/app"]),
        join(&["mysql://root", ":${MYSQL_PASSWORD}@db.shop.io/app"]),
        join(&["redis://:", "{password}@cache.shop.io"]),
        join(&["https://x-access-token", ":$TOKEN@github.com/a/b"]),
        join(&["http://foo", ":bar@proxy.internal:3128"]),
        join(&["amqp://guest", ":guest@10.0.0.4:5672"]),
        "https://host.example:8080/@scope/pkg".to_owned(),
        "http://[::1]:80/a@b".to_owned(),
        jwt(
            "{\"alg\":\"HS256\",\"typ\":\"JWT\"}",
            "{\"sub\":\"1234567890\",\"name\":\"John Doe\",\"iat\":1516239022}",
            &r.bytes(32),
        ),
        jwt("{\"alg\":\"none\"}", "{\"sub\":\"u-1\",\"iss\":\"a\"}", b""),
        jwt(
            "{\"alg\":\"HS256\"}",
            "{\"role\":\"anon\",\"iss\":\"supabase\"}",
            &r.bytes(32),
        ),
        jwt("{\"alg\":\"HS256\"}", "{\"sub\":\"u-77\"}", &r.bytes(20)),
        jwt(
            "{\"alg\":\"HS256\"}",
            "{\"iss\":\"https://id.example.com\"}",
            &r.bytes(32),
        ),
        jwt("{\"typ\":\"JWT\"}", "{\"sub\":\"u-77\"}", &r.bytes(32)),
        join(&["ey", "JhbGciOiJIUzI1NiJ9.not-json.sig"]),
        join(&[
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;Account",
            "Key=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        ]),
        "AccountKey=<storage key>".to_owned(),
        "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX".to_owned(),
        join(&["xo", "xb-not-a-real-token"]),
        join(&[
            "xo",
            "xb-123456789012-1234567890123-your_token_goes_here_ok",
        ]),
        join(&["sk_", "test_", &r.text(ALNUM, 24)]),
        join(&["pk_", "live_", &r.text(ALNUM, 24)]),
        "task-api03-runner and disk-usage and ask-proj".to_owned(),
        "sk-learn==1.2.3".to_owned(),
        "const npm_config_registry = process.env.npm_config_registry".to_owned(),
        "hf_hub_download(repo_id=REPO, filename=NAME, revision=REV)".to_owned(),
        "SG.FromConfiguration.WithDefaults".to_owned(),
        "cioPhotographicExhibitionsInstitute".to_owned(),
        "dapi.services.internal.platform.run".to_owned(),
        "r8_unorm, r8_snorm, r8_uint".to_owned(),
        "password = \"hunter2hunter2\"".to_owned(),
        "secret: s3cr3t-v4lu3-for-tests".to_owned(),
        format!("etag = \"{}\"", r.text(HEX, 32)),
        format!("AC{} without a token", r.text(HEX, 32)),
        "12345:AA not a bot".to_owned(),
        format!("{}:AA{}", "12345678", "short"),
        "patience.00000000".to_owned(),
    ] {
        assert_eq!(kinds(&text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn private_keys_with_real_content() {
    let r = &mut Random(5);
    for key in [private_key(r), rsa_key(r), openssh_key(r, "none")] {
        for text in [
            key.clone(),
            format!("x\n{key}\ny"),
            key.replace('\n', "\r\n"),
            format!("{{\"private_key\": \"{}\\n\"}}", key.replace('\n', "\\n")),
            format!("    \"{}\\n\"", key.replace('\n', "\\n\" +\n    \"")),
            format!("  {}", key.replace('\n', "\n  ")),
        ] {
            assert_eq!(kinds(&text), ["private-key"], "{text}");
        }
    }
    assert_eq!(
        check_new("deploy/server.pem", private_key(r)),
        ["secret-private-key:1"]
    );
    assert_eq!(
        check_new("tests/data/server.pem", private_key(r)),
        ["private-key-in-fixture:1"]
    );
}

#[test]
fn keys_that_are_none() {
    let r = &mut Random(6);
    let begin =
        |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----");
    let mut cut = private_key(r);
    cut.truncate(60);
    for text in [
        begin("RSA PRIVATE KEY", "..."),
        begin("RSA PRIVATE KEY", "MIIEpAIBAAKCAQEA"),
        begin("PRIVATE KEY", "<base64 here>"),
        begin("PRIVATE KEY", &"A".repeat(64)),
        begin("EC PRIVATE KEY", &r.text(ALNUM, 64)),
        armour("CERTIFICATE", &r.bytes(300)),
        armour("PUBLIC KEY", &r.bytes(91)),
        armour(
            "ENCRYPTED PRIVATE KEY",
            &[&[0x30, 0x82, 1, 0][..], &r.bytes(256)].concat(),
        ),
        openssh_key(r, "aes256-ctr"),
        begin(
            "RSA PRIVATE KEY",
            &format!(
                "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AA\n\n{}",
                r.text(ALNUM, 64)
            ),
        ),
        "if line.startswith('-----BEGIN PRIVATE KEY-----'):".to_owned(),
        "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
        "-----BEGIN ".to_owned(),
        cut,
    ] {
        assert_eq!(kinds(&text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn fixtures_lower_what_is_reported() {
    for (kind, token) in one_line(9) {
        let found = check_new(
            "tests/fixtures/auth.json",
            format!("{{\"k\": \"{token}\"}}"),
        );
        let minor = [
            "google-api-key",
            "google-client-secret",
            "jwt",
            "url-password",
            "aws-access-key-id",
            "slack-webhook",
            "discord-webhook",
        ];
        let expected: &[&str] = match kind {
            "age-key" => &["private-key-in-fixture:1"],
            kind if minor.contains(&kind) => &[],
            _ => &["secret-in-fixture:1"],
        };
        assert_eq!(found, expected, "{kind}");
    }
}

#[test]
fn examples_beside_the_code_count_as_fixtures() {
    let token = one_line(4).swap_remove(0).1;
    let in_tests =
        format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n    const K: &str = \"{token}\";\n}}\n");
    for (name, text, expected) in [
        ("src/a.rs", in_tests.as_str(), "secret-in-fixture:4"),
        (
            "src/a.rs",
            &format!("//! let k = \"{token}\";\n"),
            "secret-in-fixture:1",
        ),
        (
            "src/a.py",
            &format!("TEST_TOKEN = '{token}'\n"),
            "secret-in-fixture:1",
        ),
        (
            "src/a.rs",
            &format!("const K: &str = \"{token}\";\n#[test]\nfn t() {{}}\n"),
            "secret-github-token:1",
        ),
        (
            "src/a.py",
            &format!("LATEST = '{token}'\n"),
            "secret-github-token:1",
        ),
        (
            "src/a.py",
            &format!("# token = '{token}'\n"),
            "secret-github-token:1",
        ),
    ] {
        assert_eq!(check_new(name, text), [expected], "{text}");
    }
}

#[test]
fn hostile_input_takes_linear_time_and_no_panic() {
    let unit = ["AK", "IAQ3EGRZ5TKWMNBV2X/"].concat();
    for piece in [
        &unit,
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN ",
        "eyJ",
        "eyJ.",
        "://a:b@",
        "AC",
        ":AA",
        ".atlasv1.",
        "1:AA",
        "ghp_",
        "\u{fffd}",
        "ecret_access_key",
        "xoxb-",
        "\\n",
        "-----BEGIN PRIVATE KEY-----\nAAAA\n",
    ] {
        let text = piece.repeat(400_000 / piece.len());
        secrets(text.as_bytes());
    }
    let mut random = Random(1);
    for _ in 0..200 {
        let len = (random.next() % 400) as usize;
        secrets(&random.bytes(len));
    }
}

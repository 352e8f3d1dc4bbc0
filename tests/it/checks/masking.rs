//! Masking: nothing that is recognised survives, and a second time changes nothing.

use ecr::detect::{mask, secrets};
use proptest::prelude::*;

use super::samples::{Random, one_line, openssh_key, private_key, rsa_key};

#[test]
fn no_sample_survives() {
    for seed in 0..10 {
        let r = &mut Random(seed);
        let keys =
            [private_key(r), rsa_key(r), openssh_key(r, "none")].map(|key| ("private-key", key));
        for (kind, token) in one_line(seed).into_iter().chain(keys) {
            for text in [
                token.clone(),
                format!("a = \"{token}\"; b"),
                format!("é{token}é\n{token}"),
            ] {
                let masked = mask(&text);
                assert_eq!(secrets(masked.as_bytes()), [], "{kind}: {masked}");
                assert_eq!(mask(&masked), masked, "{kind}");
                assert!(masked.contains('…'), "{kind}: {masked}");
            }
        }
    }
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|seed| {
            let samples = one_line(seed);
            samples[(seed % samples.len() as u64) as usize].1.clone()
        }),
        any::<u64>().prop_map(|seed| private_key(&mut Random(seed))),
        "[ -~\\n]{0,30}",
        "\\PC{0,10}",
        prop::sample::select(vec![
            "password=",
            "\"token\": \"",
            "Authorization: Bearer ",
            "://u:",
            "@h",
            "…",
            "-----BEGIN ",
            "PRIVATE KEY-----",
            "_",
            "-",
            "\"",
            "'",
            "eyJ",
            "api_key: ",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn masking_is_complete_and_idempotent(pieces in prop::collection::vec(piece(), 0..8)) {
        let text = pieces.concat();
        let masked = mask(&text).into_owned();
        prop_assert_eq!(secrets(masked.as_bytes()), vec![], "{:?} -> {:?}", text, masked);
        prop_assert_eq!(mask(&masked).into_owned(), masked);
    }
}

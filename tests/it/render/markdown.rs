//! The Markdown report keeps its shape whatever stands in it.

use ecr::render::{Format, TerminalOptions};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, TextMergeStream};

use super::hostile::{PIECES, review_of, text};
use super::sample::rendered;

/// The parsed report with all contents taken out.
fn shape(attack: &str) -> Vec<String> {
    let report = rendered(
        Format::Markdown,
        &review_of(attack),
        TerminalOptions::default(),
    );
    let mut options = Options::all();
    // Typographic quotes change letters, not the shape, but split texts.
    options.remove(Options::ENABLE_SMART_PUNCTUATION);
    TextMergeStream::new(Parser::new_ext(&report, options))
        .map(|event| match event {
            Event::Text(_) => "text".to_owned(),
            Event::Code(_) => "code".to_owned(),
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn every_single_attack_keeps_the_shape() {
    let plain = shape("plain");
    assert!(plain.len() > 50, "there is a shape to keep");
    for piece in PIECES {
        for attack in [
            format!("{piece}."),
            format!("a {piece} b"),
            format!("{piece}\n{piece}x"),
        ] {
            assert_eq!(shape(&attack), plain, "{attack:?}");
        }
    }
}

#[test]
fn texts_come_out_as_they_are() {
    let attack = "**b** <i> [l](u) `c` &lt; \\ | ~ $x$ _y_ 1. - = # h";
    let report = rendered(
        Format::Markdown,
        &review_of(attack),
        TerminalOptions::default(),
    );
    let merged = TextMergeStream::new(Parser::new_ext(&report, Options::all()));
    let found = merged
        .filter(|event| matches!(event, Event::Text(text) if text.contains(attack)))
        .count();
    assert!(found > 5, "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]
    #[test]
    fn hostile_reports_have_the_shape_of_a_plain_one(attack in text()) {
        // An empty text is left out with its label, which is no attack.
        let attack = format!("{attack}.");
        prop_assert_eq!(shape(&attack), shape("plain"), "{:?}", attack);
    }
}

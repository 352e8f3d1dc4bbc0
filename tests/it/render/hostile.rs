//! Reviews whose every text attacks its reader.

use ecr::model::{
    Category, ChangeStatus, CoverageNote, Decision, Excerpt, FileCoverage, FileOutcome, NoteKind,
    Review, Severity,
};
use ecr::render::{Format, TerminalOptions, Verbosity};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::sample::{self, finding, path, rendered};

/// What the attacks are made of.
pub(super) const PIECES: &[&str] = &[
    "\u{1b}[31m",
    "\u{1b}]8;;http://e.vil\u{1b}\\",
    "\u{9b}2J",
    "\u{7}",
    "\0",
    "\r",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "\u{8}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{e0041}",
    "\u{2028}",
    "\u{85}",
    "\u{ad}",
    "e\u{301}",
    "@octocat",
    "#12",
    "GH-7",
    "fixes #1",
    "https://e.vil/a",
    "www.e.vil",
    "a@b.example",
    "0123456789abcdef0123",
    "```",
    "````",
    "`",
    "~~~",
    "# Approved",
    "## Critical",
    "---",
    "===",
    "- [x] a",
    "1. a",
    "> q",
    "* * *",
    "| a | b |",
    "![i](u)",
    "[l](u)",
    "[^1]",
    "[[w]]",
    "<script>",
    "<!-- ecr:state -->",
    "-->",
    "</details>",
    "&lt;",
    "$x$",
    "$$",
    "~~s~~",
    "**b**",
    "__b__",
    "*i*",
    "_i_",
    "\\",
    "\"",
    "'",
    "{0}",
    "](",
    "||s||",
    ": d",
    "^s^",
    "!",
    "{.c}",
    "::error::x",
    "::stop-commands::t",
    "%0A",
    "%",
    ",",
    "##[error]",
    "日本語",
    "שלום",
    "لا",
    "👩‍👩‍👧",
    "word",
    " ",
    "    ",
];

pub(super) fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..12).prop_map(|parts| parts.concat())
}

/// A review in which `attack` stands wherever a text of somebody else can stand.
pub(super) fn review_of(attack: &str) -> Review {
    let mut review = sample::review();
    attack.clone_into(&mut review.summary);
    review.input.base_name = Some(attack.to_owned());
    let name: Vec<u8> = attack.bytes().filter(|b| !matches!(b, 0 | b'/')).collect();
    let mut file = b"d-".to_vec();
    file.extend(&name);
    let file = path(file);
    for (n, category) in [Category::Quality, Category::Secrets]
        .into_iter()
        .enumerate()
    {
        let mut found = finding(n as u32 + 0x900, Severity::Critical, attack, attack, attack);
        found.category = category;
        found.location.file = file.clone();
        found.verification.reason = Some(attack.to_owned());
        found.excerpt = Some(Excerpt {
            first_line: 40,
            lines: vec![attack.to_owned(); 3],
            highlight: Some((1, 1..attack.len() + 5)),
        });
        review.findings.push(found.clone());
        review.dropped[0].finding = found.clone();
        review.dismissed[0].finding = found;
    }
    attack.clone_into(&mut review.dropped[0].reason);
    review.dismissed[0].by = Some(attack.to_owned());
    review.dismissed[0].reason = Some(attack.to_owned());
    review.coverage.files.push(FileCoverage {
        path: file.clone(),
        old_path: Some(file),
        status: ChangeStatus::Renamed,
        added: 1,
        deleted: 1,
        binary: false,
        outcome: FileOutcome::Missed,
        reason: Some(attack.to_owned()),
        reviewed_lines: 0,
        lines_read: None,
    });
    for kind in [NoteKind::Missed, NoteKind::Info] {
        review.notes.push(CoverageNote {
            kind,
            text: attack.to_owned(),
        });
    }
    review.passes[0].reason = Some(attack.to_owned());
    review
}

/// Every attack at once.
pub(super) fn review() -> Review {
    review_of(&PIECES.concat())
}

fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}'
            | '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Takes our own colour codes and hyperlinks away; whatever else has an ESC stays.
fn without_own_codes(text: &str) -> String {
    let own =
        regex::Regex::new("\u{1b}\\[[0-9]+m|\u{1b}\\]8;;(file://[A-Za-z0-9%/._~#-]*)?\u{1b}\\\\")
            .expect("a pattern");
    own.replace_all(text, "").into_owned()
}

fn check_all(review: &Review) -> Result<(), TestCaseError> {
    for format in Format::ALL {
        for (width, colour) in [(20, false), (33, true), (120, false)] {
            let options = TerminalOptions {
                kept: true,
                width,
                colour,
                hyperlinks: colour,
                verbosity: Verbosity::Verbose,
                root: Some("/r".into()),
            };
            let text = rendered(*format, review, options);
            let bare = without_own_codes(&text);
            if let Some(c) = bare.chars().find(|c| is_control(*c)) {
                return Err(TestCaseError::fail(format!("{format}: raw {c:?}")));
            }
            prop_assert!(colour || bare == text, "{format}: codes without colour");
            if *format == Format::Terminal {
                check_width(&bare, width)?;
            }
            if matches!(
                format,
                Format::Json | Format::Sarif | Format::Rdjson | Format::Gitlab
            ) {
                let parsed = serde_json::from_str::<serde_json::Value>(&text);
                prop_assert!(parsed.is_ok(), "{format} does not parse");
            }
            if *format == Format::Github {
                for line in text.lines() {
                    let command = ["::notice ", "::warning ", "::error "];
                    prop_assert!(command.iter().any(|c| line.starts_with(c)), "{line}");
                }
            }
            if *format == Format::Agent {
                prop_assert_eq!(text.matches("```").count(), 2);
                for line in text.lines().skip(2).take_while(|line| *line != "```") {
                    prop_assert!(serde_json::from_str::<serde_json::Value>(line).is_ok());
                }
            }
        }
    }
    Ok(())
}

/// Lines with a path stay in one piece; all others keep to the width.
fn check_width(text: &str, width: usize) -> Result<(), TestCaseError> {
    for line in text.lines() {
        let has_path = [" --> ", "  d-", "  src/", "  Cargo.lock"]
            .iter()
            .any(|p| line.starts_with(p));
        prop_assert!(
            has_path || line.width() <= width,
            "{} > {width}: {line:?}",
            line.width()
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
    #[test]
    fn no_text_leaves_its_place(attack in text()) {
        check_all(&review_of(&attack))?;
    }

    #[test]
    fn any_characters_at_all(attack in "\\PC{0,40}|.{0,40}|[\\s\\S]{0,40}") {
        check_all(&review_of(&attack))?;
    }
}

#[test]
fn all_attacks_at_once() {
    check_all(&review()).expect("harmless");
}

#[test]
fn a_run_with_gaps_never_reads_as_an_approval() {
    let praise = regex::Regex::new(
        "(?i)approv|looks good|lgtm|no problems|no issues|nothing found|all good|passed|clean",
    )
    .expect("a pattern");
    let mut reviews = vec![sample::checks_only(), sample::quiet(Decision::Skipped)];
    for decision in Decision::ALL {
        reviews.push(sample::with_gaps(*decision));
    }
    for review in reviews {
        for format in Format::ALL {
            for verbosity in [Verbosity::Quiet, Verbosity::Normal, Verbosity::Verbose] {
                let options = TerminalOptions {
                    verbosity,
                    ..TerminalOptions::default()
                };
                let text = rendered(*format, &review, options);
                assert!(!praise.is_match(&text), "{format}: {text}");
            }
        }
    }
    let good = rendered(
        Format::Terminal,
        &sample::quiet(Decision::Approve),
        TerminalOptions::default(),
    );
    assert!(praise.is_match(&good), "the scan finds what it looks for");
}

#[test]
fn the_secret_is_in_no_output() {
    // No shape that a recogniser could know, so only the finding's own mark protects it.
    let secret = "not-a-known-shape-but-secret-8271";
    let mut unmarked = sample::review();
    unmarked.findings[0].location.columns = None;
    unmarked.findings[0]
        .excerpt
        .as_mut()
        .expect("an excerpt")
        .highlight = None;
    for review in [sample::review(), unmarked] {
        assert!(
            review.findings[0]
                .evidence
                .as_ref()
                .is_some_and(|e| e.contains(secret))
        );
        for format in Format::ALL {
            let text = rendered(*format, &review, TerminalOptions::default());
            assert!(!text.contains(&secret[8..]), "{format}: {text}");
        }
    }
}

#[test]
fn the_body_of_a_key_goes_with_its_first_line() {
    let mut review = sample::review();
    let body = "QyNTUxOQAAACD".repeat(5);
    let excerpt = review.findings[0].excerpt.as_mut().expect("an excerpt");
    excerpt.lines[2].clone_from(&body);
    for format in [Format::Terminal, Format::Markdown] {
        let text = rendered(format, &review, TerminalOptions::default());
        assert!(!text.contains(&body[4..]), "{format}: {text}");
    }
}

#[test]
fn large_reviews_render() {
    let mut large = sample::review();
    let text = "ten bytes ".repeat(1000);
    large.findings = (0..1000)
        .map(|n| {
            let mut finding = finding(n, Severity::Warning, "many", &text, "x");
            finding.suggestion = None;
            finding
        })
        .collect();
    let line = format!("{}\u{202e}{}", "y".repeat(500_000), "日".repeat(200_000));
    large
        .findings
        .push(finding(5000, Severity::Critical, &line, &line, &line));
    for format in Format::ALL {
        let out = rendered(*format, &large, TerminalOptions::default());
        assert!(out.contains("many"), "{format}");
        assert!(!out.contains('\u{202e}'), "{format}");
    }
}

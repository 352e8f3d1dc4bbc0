//! The comment on a pull request: golden files for every variant, and its shape under attack.

use comrak::nodes::NodeValue;
use comrak::{Arena, Options, parse_document};
use ecr::model::{CommitId, Decision, Fingerprint, InputKind, Review, Severity};
use ecr::render::comment::{
    Before, Comment, NotReviewed, Origin, Page, PrFacts, Subject, comment, step_summary, store,
};
use ecr::state::comment::{
    BreakGlass, CommandError, CommentState, Damage, Dismissal, Outcome, Permission, StoredReview,
    Tag, decode,
};
use proptest::prelude::*;

use super::golden::matches_file;
use super::hostile::{PIECES, review_of, text};
use super::sample::{checks_only, finding, path, quiet, review, with_gaps};

pub(super) const TAG: &str = "expo-ai-code-reviewer";

pub(super) fn tag() -> Tag {
    Tag::new(TAG).expect("a tag")
}

pub(super) fn facts() -> PrFacts {
    PrFacts {
        server: "https://github.com".to_owned(),
        repo: "octo/demo".to_owned(),
        number: 42,
        live_head: None,
    }
}

fn commit(digit: &str) -> CommitId {
    CommitId::new(&digit.repeat(40)).expect("an id")
}

/// The review as one of a pull request.
pub(super) fn of_pull_request(mut review: Review, head: &str) -> Review {
    review.input.kind = InputKind::PullRequest;
    review.input.repo = Some("octo/demo".to_owned());
    review.input.pr = Some(42);
    review.input.head = Some(commit(head));
    review
}

pub(super) fn stored(review: &Review) -> StoredReview {
    store(
        review,
        Origin {
            at: 1_764_571_234,
            version: "0.0.0".to_owned(),
            inputs: Some("ab".repeat(32)),
            interrupted: false,
        },
    )
}

pub(super) fn dismissal(id: &str, comment: u64, reason: Option<&str>) -> Dismissal {
    Dismissal {
        id: Fingerprint::new(id).expect("an id"),
        active: true,
        comment,
        at: 1_764_571_234,
        by: Some("octocat".to_owned()),
        reasoned: reason.is_some(),
        reason: reason.map(str::to_owned),
    }
}

pub(super) fn state_of(review: &Review) -> CommentState {
    CommentState {
        review: Some(stored(review)),
        ..CommentState::default()
    }
}

pub(super) fn page_of(state: &CommentState, subject: &Subject, pr: &PrFacts) -> Comment {
    page_with(state, subject, pr, Damage::default(), &[])
}

fn page_with(
    state: &CommentState,
    subject: &Subject,
    pr: &PrFacts,
    damage: Damage,
    outcomes: &[Outcome],
) -> Comment {
    let tag = tag();
    let page = Page {
        tag: &tag,
        marker: "/skip-review",
        pr,
        state,
        subject,
        damage,
        outcomes,
    };
    let made = comment(&page);
    if !made.shortened {
        let summary = step_summary(&page);
        assert!(made.body.ends_with(&summary), "one text in both places");
    }
    made
}

/// The comment without its state, which changes with the compressor.
fn visible(made: &Comment) -> String {
    made.body
        .lines()
        .map(|line| match line.split_once(":ecr=") {
            Some((start, _)) => format!("{start}:ecr=... -->\n"),
            None => format!("{line}\n"),
        })
        .collect()
}

#[test]
fn reviews() {
    let first = of_pull_request(review(), "1");
    let mut state = state_of(&first);
    matches_file(
        "comment/findings.md",
        &visible(&page_of(&state, &Subject::Review, &facts())),
    );

    // The key was dismissed with a reason, the warning fixed, something new found, and the head has moved.
    let mut second = of_pull_request(review(), "2");
    second.findings.remove(1);
    let mut new = finding(
        0xf66,
        Severity::Warning,
        "The name is never checked",
        "Any file can be written.",
        "write(name)",
    );
    new.location.file = path("docs/a b.md");
    new.in_diff = false;
    second.findings.push(new);
    state.dismissals.put(dismissal(
        "000000000a11",
        7,
        Some("a key for tests, revoked"),
    ));
    state.dismissals.put(dismissal("00000000ffff", 7, None));
    let mut now = stored(&second);
    let before = state.review.take().expect("a review");
    now.delta = Some(Before::Review(&before).compare(&now, &state.dismissals));
    state.review = Some(now);
    let moved = PrFacts {
        live_head: Some("3".repeat(40)),
        ..facts()
    };
    let outcome = Outcome {
        comment: 8,
        author: "octocat".to_owned(),
        command: Err(CommandError::BadIds(vec!["xyz".to_owned()])),
        permission: Permission::Granted,
        unknown: vec![Fingerprint::new("00000000ffff").expect("an id")],
        needs_reason: Vec::new(),
    };
    let damage = Damage {
        dismissals: true,
        ..Damage::default()
    };
    let made = page_with(&state, &Subject::Review, &moved, damage, &[outcome]);
    matches_file("comment/re-review.md", &visible(&made));
    let reused = Subject::Reused {
        head: "3".repeat(40),
    };
    matches_file(
        "comment/reused.md",
        &visible(&page_of(&state, &reused, &facts())),
    );
}

#[test]
fn verdicts() {
    let mut several = String::new();
    for review in [
        quiet(Decision::Approve),
        checks_only(),
        with_gaps(Decision::ApproveWithComments),
        quiet(Decision::Skipped),
    ] {
        let state = state_of(&of_pull_request(review, "1"));
        several.push_str(&visible(&page_of(&state, &Subject::Review, &facts())));
        several.push_str("====\n");
    }
    matches_file("comment/verdicts.md", &several);
}

#[test]
fn without_a_review() {
    let mut state = state_of(&of_pull_request(review(), "1"));
    state.break_glass = Some(BreakGlass {
        comment: 9,
        at: 0,
        active: true,
        by: "octocat".to_owned(),
    });
    let mut several = String::new();
    for (why, state) in [
        (NotReviewed::BreakGlass, &state),
        (
            NotReviewed::Skipped("it is a draft".to_owned()),
            &CommentState::default(),
        ),
        (
            NotReviewed::CouldNotRun("the provider answered 500 @everyone".to_owned()),
            &CommentState::default(),
        ),
        (
            NotReviewed::CredentialLock {
                expected: vec!["ANTHROPIC_API_KEY".to_owned()],
                declared: Vec::new(),
            },
            &CommentState::default(),
        ),
        (
            NotReviewed::SetupMissing("the base commit has no `.expo-code-review/`".to_owned()),
            &CommentState::default(),
        ),
    ] {
        let made = page_of(state, &Subject::NotReviewed(why), &facts());
        several.push_str(&visible(&made));
        several.push_str("====\n");
        assert_eq!(decode(&tag(), &made.body).state, made.state);
    }
    matches_file("comment/not-reviewed.md", &several);
    for line in several.lines().filter(|l| l.starts_with("## ")) {
        assert!(!line.to_lowercase().contains("approv"), "{line}");
    }
}

#[test]
fn dismissals_change_the_verdict_and_grave_ones_stay_in_sight() {
    let state_with = |records: &[Dismissal]| {
        let mut state = state_of(&of_pull_request(review(), "1"));
        for record in records {
            state.dismissals.put(record.clone());
        }
        page_of(&state, &Subject::Review, &facts()).body
    };
    let bare = state_with(&[dismissal("000000000a11", 1, None)]);
    assert!(bare.contains("## ecr: Changes requested"), "{bare}");
    assert!(bare.contains("without a reason"), "{bare}");
    let reasoned = state_with(&[dismissal("000000000a11", 1, Some("a test key"))]);
    assert!(
        reasoned.contains("## ecr: Nothing that blocks"),
        "{reasoned}"
    );
    assert!(
        reasoned.contains("### Critical (1, 1 of them dismissed)"),
        "{reasoned}"
    );
    assert!(
        reasoned.contains("dismissed by `octocat` on 2025-12-01: a test key"),
        "{reasoned}"
    );
    let all = state_with(&[
        dismissal("000000000a11", 1, Some("a test key")),
        dismissal("000000000b22", 1, None),
        dismissal("000000000c33", 1, Some("no")),
        dismissal("000000000e55", 1, None),
    ]);
    assert!(all.contains("## ecr: Nothing found"), "{all}");
    assert!(all.contains("4 findings are dismissed"), "{all}");
}

#[test]
fn links_go_to_the_diff_or_to_the_right_commit() {
    let mut of = of_pull_request(review(), "1");
    of.findings.truncate(2);
    of.findings[0].location.end_line = Some(43);
    of.findings[1].in_diff = false;
    of.findings[1].location.file = path("a b/(x)#?.md");
    let mut old = of.findings[0].clone();
    old.id = Fingerprint::new("0000000000aa").expect("an id");
    old.location.side = ecr::model::Side::Old;
    old.location.file = path("src/before.rs");
    of.coverage.files[0].old_path = Some(path("src/before.rs"));
    of.findings.push(old);
    let body = page_of(&state_of(&of), &Subject::Review, &facts()).body;
    let file = "https://github.com/octo/demo/pull/42/files#diff-22c83e7b20a40c3dbb33b46f0a68e2d9bb9ed6a4ea7d1c58ee4b1e54ba7d8c25";
    let start = &file[..file.find("22c8").expect("a digest")];
    assert!(body.contains(start), "{body}");
    assert!(
        body.contains("R41-R43)") && body.contains("L41-L43)"),
        "{body}"
    );
    let one = format!(
        "/blob/{}/a%20b/%28x%29%23%3F.md?plain=1#L41)",
        "1".repeat(40)
    );
    assert!(body.contains(&one), "{body}");
    let moved = PrFacts {
        live_head: Some("2".repeat(40)),
        ..facts()
    };
    let body = page_of(&state_of(&of), &Subject::Review, &moved).body;
    assert!(!body.contains("/files#diff-"), "{body}");
    assert!(
        body.contains(&format!(
            "/blob/{}/src/before.rs#L41-L43)",
            "1a2b".repeat(10)
        )),
        "{body}"
    );
}

/// The parsed comment: kinds of nodes in order with their depth, without texts; and every address in it.
fn shape(markdown: &str) -> (Vec<String>, Vec<String>) {
    let arena = Arena::new();
    let mut options = Options::default();
    let on = &mut options.extension;
    on.table = true;
    on.autolink = true;
    on.strikethrough = true;
    on.tasklist = true;
    on.footnotes = true;
    on.math_dollars = true;
    on.math_code = true;
    on.shortcodes_on();
    on.alerts = true;
    let root = parse_document(&arena, markdown, &options);
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    for node in root.descendants() {
        let depth = node.ancestors().count();
        let name = match &node.data.borrow().value {
            // Where a text is split does not matter.
            NodeValue::Text(_) | NodeValue::SoftBreak | NodeValue::Escaped => continue,
            NodeValue::HtmlBlock(html) => format!("html {}", html.literal),
            NodeValue::HtmlInline(html) => format!("inline html {html}"),
            NodeValue::Link(link) | NodeValue::Image(link) => {
                links.push(link.url.clone());
                "link".to_owned()
            }
            NodeValue::Heading(heading) => format!("heading {}", heading.level),
            other => {
                let name = format!("{other:?}");
                name.split(['(', ' ']).next().unwrap_or_default().to_owned()
            }
        };
        nodes.push(format!("{depth} {name}"));
    }
    (nodes, links)
}

trait Shortcodes {
    fn shortcodes_on(&mut self);
}

impl Shortcodes for comrak::options::Extension<'_> {
    /// Emoji names are looked for in the text by [`no_reference`]; comrak needs a feature for them.
    fn shortcodes_on(&mut self) {}
}

/// What GitHub looks for in the rendered text, outside code.
fn references(markdown: &str) -> Vec<String> {
    let arena = Arena::new();
    let root = parse_document(&arena, markdown, &Options::default());
    let pattern = regex::Regex::new(
        r"(?i)@[\w-]|#\d|\bgh-\d|\b[0-9a-f]{7,40}\b|://|www\.|:[a-z0-9_+-]+:|<!--",
    )
    .expect("a pattern");
    let mut found = Vec::new();
    for block in root.descendants() {
        if !matches!(
            block.data.borrow().value,
            NodeValue::Paragraph | NodeValue::Heading(_)
        ) {
            continue;
        }
        let mut text = String::new();
        for node in block.descendants() {
            match &node.data.borrow().value {
                NodeValue::Text(part) => text.push_str(part),
                NodeValue::Code(_) => text.push(' '),
                _ => {}
            }
        }
        found.extend(
            pattern
                .find_iter(&text)
                .map(|m| format!("{} in {text}", m.as_str())),
        );
    }
    found
}

fn hostile_comment(attack: &str) -> String {
    let mut state = state_of(&of_pull_request(review_of(attack), "1"));
    let mut record = dismissal("000000000901", 7, Some("x"));
    record.by = Some(attack.to_owned());
    record.reason = Some(attack.to_owned());
    state.dismissals.put(record);
    let outcome = Outcome {
        comment: 8,
        author: attack.to_owned(),
        command: Err(CommandError::BadIds(vec![attack.to_owned()])),
        permission: Permission::Granted,
        unknown: vec![Fingerprint::new("00000000ffff").expect("an id")],
        needs_reason: Vec::new(),
    };
    let review = page_with(
        &state,
        &Subject::Review,
        &facts(),
        Damage::default(),
        std::slice::from_ref(&outcome),
    );
    assert_eq!(
        decode(&tag(), &review.body).state,
        review.state,
        "{attack:?}"
    );
    let mut text = review.body;
    let head = text.find("\n\n").expect("the state ends");
    text.drain(..head);
    text.push_str("\n\n");
    for why in [
        NotReviewed::CouldNotRun(format!("{attack}x")),
        NotReviewed::SetupMissing(format!("{attack}x")),
        NotReviewed::CredentialLock {
            expected: vec![attack.to_owned()],
            declared: vec![attack.to_owned(), "B".to_owned()],
        },
    ] {
        let made = page_of(
            &CommentState::default(),
            &Subject::NotReviewed(why),
            &facts(),
        );
        let head = made.body.find("\n\n").expect("the state ends");
        text.push_str(&made.body[head..]);
    }
    text
}

fn keeps_its_shape(attack: &str) -> Result<(), TestCaseError> {
    let hostile = hostile_comment(attack);
    let (nodes, links) = shape(&hostile);
    let (plain, _) = shape(&hostile_comment("plain"));
    prop_assert_eq!(nodes, plain, "{:?}", attack);
    for link in links {
        prop_assert!(link.starts_with("https://github.com/octo/demo/"), "{link}");
    }
    let found = references(&hostile);
    prop_assert!(found.is_empty(), "{attack:?}: {found:?}");
    Ok(())
}

#[test]
fn every_single_attack_keeps_the_shape() {
    assert!(
        shape(&hostile_comment("plain")).0.len() > 80,
        "there is a shape to keep"
    );
    for piece in PIECES {
        for attack in [
            format!("{piece}."),
            format!("a {piece} b"),
            format!("{piece}\n{piece}x"),
        ] {
            if let Err(error) = keeps_its_shape(&attack) {
                panic!("{error}");
            }
        }
    }
}

/// Text that does not fold well.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).expect("a letter"))
    })
    .take(length)
    .collect()
}

#[test]
fn a_comment_of_any_review_fits_and_loses_no_dismissal() {
    let severities = [Severity::Suggestion, Severity::Warning, Severity::Critical];
    for (findings, dismissals) in [(1_000_u64, 2_000_u64), (1_000, 0), (0, 2_000), (200, 200)] {
        let mut of = of_pull_request(review(), "1");
        let model = of.findings[0].clone();
        of.findings = (0..findings)
            .map(|at| {
                let mut one = model.clone();
                one.id = Fingerprint::new(&format!("{at:012x}")).expect("an id");
                one.severity = severities[usize::try_from(at % 3).expect("small")];
                one.title = noise(at + 1, 200);
                one.rationale = noise(at + 7, 10_000);
                one.evidence = Some(noise(at + 9, 10_000));
                one
            })
            .collect();
        let mut state = state_of(&of);
        for at in 0..dismissals {
            let id = format!("{:012x}", at * 0x10_0001);
            state
                .dismissals
                .put(dismissal(&id, at + 1, Some(&noise(at + 3, 200))));
        }
        let made = page_of(&state, &Subject::Review, &facts());
        assert!(made.body.len() <= 60_000, "{}", made.body.len());
        let kept = decode(&tag(), &made.body).state;
        assert_eq!(kept, made.state);
        assert_eq!(kept.dismissals.iter().count() as u64, dismissals);
        // What matters most is kept longest.
        let review = kept.review.expect("a review");
        let with_text = |severity: Severity| {
            let severity = severity.into();
            let texts = review.findings.iter().filter(|f| f.severity == severity);
            texts.map(|f| f.title.len()).max().unwrap_or_default()
        };
        let (critical, suggestion) = (
            with_text(Severity::Critical),
            with_text(Severity::Suggestion),
        );
        assert!(
            findings == 0 || critical >= suggestion,
            "{findings} {dismissals}: {critical} {suggestion}"
        );
        let verdict = "## ecr: Changes requested";
        assert!(findings == 0 || made.body.contains(verdict));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
    #[test]
    fn hostile_comments_have_the_shape_of_a_plain_one(attack in text()) {
        keeps_its_shape(&format!("{attack}."))?;
    }
}

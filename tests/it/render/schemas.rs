//! Outputs against their schemas.

use ecr::model::{Decision, FindingStatus, RepoPath, Severity, Side};
use ecr::render::{Format, TerminalOptions};
use serde_json::Value;

use super::hostile;
use super::sample::{checks_only, finding, quiet, rendered, review, with_gaps};

fn schema(name: &str) -> jsonschema::Validator {
    let file = format!(
        "{}/tests/fixtures/schemas/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(file).expect("a schema");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    jsonschema::validator_for(&value).expect("a valid schema")
}

fn json(format: Format, review: &ecr::model::Review) -> Value {
    let text = rendered(format, review, TerminalOptions::default());
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn every_json_format_satisfies_its_schema() {
    let output = jsonschema::validator_for(&ecr::state::output::schema()).expect("a valid schema");
    let schemas = [
        (Format::Json, output),
        (Format::Sarif, schema("sarif-2.1.0.json")),
        (Format::Gitlab, schema("gitlab-code-quality.json")),
        (Format::Rdjson, schema("rdjson.json")),
    ];
    let reviews = [
        review(),
        checks_only(),
        with_gaps(Decision::Approve),
        quiet(Decision::Skipped),
        hostile::review(),
    ];
    for (format, schema) in &schemas {
        for review in &reviews {
            let document = json(*format, review);
            let errors: Vec<_> = schema
                .iter_errors(&document)
                .map(|e| e.to_string())
                .collect();
            assert!(errors.is_empty(), "{format}: {errors:#?}");
        }
        assert!(
            !schema.is_valid(&serde_json::json!({"nonsense": true})),
            "{format}"
        );
    }
}

#[test]
fn the_published_schema_describes_itself() {
    let schema = ecr::state::output::schema();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    let finding = &schema["$defs"]["Finding"]["properties"];
    assert!(
        finding["rule"]["description"]
            .as_str()
            .is_some_and(|d| d.contains("rule"))
    );
    assert!(finding["inDiff"].is_object());
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let mut document = json(Format::Json, &review());
    document["addedLater"] = serde_json::json!(1);
    assert!(
        validator.is_valid(&document),
        "additive versions stay valid"
    );
    document["decision"] = serde_json::json!("fine");
    assert!(!validator.is_valid(&document));
}

#[test]
fn sarif_counts_columns_in_characters_and_rdjson_in_bytes() {
    let mut review = review();
    review.findings.remove(0);
    let sarif = json(Format::Sarif, &review);
    let region = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
    // `\tloop { connect("日本"); }`: bytes 8..25 hold two characters of three bytes.
    assert_eq!(region["startColumn"], 9);
    assert_eq!(region["endColumn"], 22);
    let rdjson = json(Format::Rdjson, &review);
    let range = &rdjson["diagnostics"][0]["location"]["range"];
    assert_eq!(range["start"]["column"], 9);
    assert_eq!(range["end"]["column"], 26);
    // A line cut at the front has other offsets than the file: no column then, but never a wrong one.
    let excerpt = review.findings[0].excerpt.as_mut().expect("an excerpt");
    excerpt.highlight = Some((1, 1..5));
    review.findings[0].evidence = None;
    let sarif = json(Format::Sarif, &review);
    let region = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"];
    assert_eq!(*region, serde_json::json!({"startLine": 41}));
}

#[test]
fn sarif_marks_gaps_and_suppresses_what_was_dismissed() {
    let run = json(Format::Sarif, &review())["runs"][0].clone();
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let last = run["results"]
        .as_array()
        .expect("results")
        .last()
        .expect("one")
        .clone();
    assert_eq!(
        last["suppressions"][0]["justification"],
        "a matter of taste"
    );
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "ecr/private-key");
    let run = json(Format::Sarif, &with_gaps(Decision::Approve))["runs"][0].clone();
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let notice = &run["invocations"][0]["toolExecutionNotifications"][0];
    assert_eq!(notice["level"], "error");
}

#[test]
fn gaps_show_in_the_formats_that_know_only_findings() {
    let review = with_gaps(Decision::CouldNotComplete);
    let gitlab = json(Format::Gitlab, &review);
    assert_eq!(gitlab[0]["check_name"], "ecr/incomplete");
    assert_eq!(gitlab[0]["location"]["path"], "src/late.rs");
    let rdjson = json(Format::Rdjson, &review);
    assert_eq!(rdjson["diagnostics"][0]["code"]["value"], "ecr/incomplete");
    let github = rendered(Format::Github, &review, TerminalOptions::default());
    assert!(
        github.starts_with("::warning title=ecr::Partly reviewed"),
        "{github}"
    );
}

#[test]
fn odd_places_stay_inside_the_formats_rules() {
    let mut review = review();
    let mut old = finding(1, Severity::Warning, "Old", "x", "y");
    old.location.side = Side::Old;
    let mut whole = finding(2, Severity::Warning, "Whole", "x", "y");
    (whole.location.line, whole.location.end_line) = (None, None);
    let mut zero = finding(3, Severity::Warning, "Zero", "x", "y");
    (zero.location.line, zero.location.end_line) = (Some(0), Some(0));
    let mut bytes = finding(4, Severity::Warning, "Bytes", "x", "y");
    bytes.location.file = RepoPath::new(b"a b/%\xff.rs").expect("a path");
    let twin = finding(4, Severity::Warning, "Twin", "x", "y");
    review.findings = vec![old, whole, zero, bytes, twin];
    let results = json(Format::Sarif, &review)["runs"][0]["results"].clone();
    for at in 0..3 {
        let place = &results[at]["locations"][0]["physicalLocation"];
        assert!(place.get("region").is_none(), "{place}");
    }
    let uri = &results[3]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
    assert_eq!(*uri, "a%20b/%25%FF.rs");
    let finding = json(Format::Json, &review)["findings"][3].clone();
    assert_eq!(finding["file"], "a b/%25%FF.rs");
    assert_eq!(finding["pathEncoding"], "bytes");
    let gitlab = json(Format::Gitlab, &review);
    assert_eq!(gitlab[4]["fingerprint"], "000000000004-2");
    assert!(
        review
            .findings
            .iter()
            .all(|f| f.status == FindingStatus::Open)
    );
    let github = rendered(Format::Github, &review, TerminalOptions::default());
    assert!(
        !github
            .lines()
            .nth(1)
            .expect("the old side")
            .contains("line=")
    );
}

//! Outputs compared with files; `ECR_BLESS=1` rewrites the files.

use std::path::PathBuf;

use ecr::model::{
    AgentId, ChangeStatus, Cost, Decision, EngineName, ModelId, PassId, PassKind, Review,
};
use ecr::render::{
    ExplainError, Format, PlanChunk, PlanFile, PlanPass, PlanView, RenderContext, TerminalOptions,
    Verbosity, explain, output, plan_json, plan_terminal,
};
use ecr::state::saved::{self, SavedRun};

use super::sample::{checks_only, path, quiet, rendered, review, with_gaps};

pub(super) fn matches_file(name: &str, text: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/render")
        .join(name);
    if std::env::var_os("ECR_BLESS").is_some() {
        std::fs::write(&file, text).expect("the golden file can be written");
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        wanted == text,
        "{name} differs (ECR_BLESS=1 rewrites it):\n{}",
        diffy::create_patch(&wanted, text)
    );
}

fn options(width: usize) -> TerminalOptions {
    TerminalOptions {
        width,
        ..TerminalOptions::default()
    }
}

#[test]
fn terminal() {
    let plain = |review: &Review, options| rendered(Format::Terminal, review, options);
    matches_file("terminal.txt", &plain(&review(), options(80)));
    matches_file("terminal-narrow.txt", &plain(&review(), options(24)));
    let verbose = TerminalOptions {
        verbosity: Verbosity::Verbose,
        ..options(100)
    };
    matches_file("terminal-verbose.txt", &plain(&review(), verbose));
    let quiet_options = TerminalOptions {
        verbosity: Verbosity::Quiet,
        ..options(60)
    };
    matches_file("terminal-quiet.txt", &plain(&review(), quiet_options));
    let colour = TerminalOptions {
        colour: true,
        hyperlinks: true,
        root: Some("/home/a b/repo".into()),
        ..options(80)
    };
    matches_file("terminal-colour.txt", &plain(&review(), colour));
    let mut several = String::new();
    for review in [
        quiet(Decision::Approve),
        checks_only(),
        with_gaps(Decision::CouldNotComplete),
    ] {
        several.push_str(&plain(&review, options(80)));
        several.push_str("----\n");
    }
    matches_file("terminal-verdicts.txt", &several);
}

#[test]
fn machine_formats() {
    for (format, name) in [
        (Format::Json, "review.json"),
        (Format::Markdown, "review.md"),
        (Format::Sarif, "review.sarif"),
        (Format::Rdjson, "review.rdjson"),
        (Format::Gitlab, "review.gitlab.json"),
        (Format::Github, "review.github.txt"),
        (Format::Agent, "review.agent.txt"),
    ] {
        matches_file(name, &rendered(format, &review(), options(80)));
    }
}

#[test]
fn plan() {
    let file = |name: &str, filtered: Option<&str>| PlanFile {
        path: path(name),
        status: ChangeStatus::Modified,
        added: 12,
        deleted: 3,
        filtered: filtered.map(str::to_owned),
    };
    let pass = |id: &str, model: Option<&str>, cost| PlanPass {
        id: PassId::new(id),
        kind: PassKind::Review,
        agent: AgentId::new("security").expect("an id"),
        engine: EngineName::new(if model.is_some() { "api" } else { "builtin" }),
        model: model.map(|m| ModelId::new(m).expect("an id")),
        files: 1,
        tokens: if model.is_some() { 9000 } else { 0 },
        cost,
    };
    let mut view = PlanView {
        input: review().input,
        files: vec![file("src/a.rs", None), file("Cargo.lock", Some("lockfile"))],
        chunks: vec![PlanChunk {
            files: vec![0],
            lines: 15,
        }],
        passes: vec![
            pass("checks", None, None),
            pass("security/1", Some("acme/large"), Some(Cost(30_000))),
        ],
        notes: vec!["the tree is read from the work tree".to_owned()],
    };
    matches_file("plan.txt", &plan_terminal(&view, &options(80)));
    matches_file("plan.json", &plan_json(&view));
    view.passes[1].cost = None;
    assert!(plan_terminal(&view, &options(80)).contains("a price is not known"));
    view.passes.truncate(1);
    assert!(plan_terminal(&view, &options(80)).contains("no model is called"));
}

#[test]
fn explanations_come_from_a_saved_run() {
    let run = output(&review(), &RenderContext::new(options(80)));
    let saved = SavedRun::new(jiff::Timestamp::UNIX_EPOCH, run);
    let text = saved::encode(&saved).expect("encodes");
    let read = saved::decode(&text).expect("decodes");
    assert_eq!(read, saved);
    assert_eq!(read.saved_at, "1970-01-01T00:00:00Z");
    let mut all = String::new();
    for id in ["000000000a11", "000000000d", "000000000e55", "000000000c33"] {
        all.push_str(&explain(&read.output, id, &options(80)).expect("known"));
        all.push_str("----\n");
    }
    matches_file("explain.txt", &all);
    let error = |id| explain(&read.output, id, &options(80)).expect_err("refused");
    assert!(matches!(error("0000"), ExplainError::Ambiguous { ids, .. } if ids.len() == 5));
    assert!(matches!(error("ffff"), ExplainError::NotFound(_)));
    assert!(matches!(error("../x"), ExplainError::NotAnId(_)));
    assert!(matches!(error(""), ExplainError::NotAnId(_)));
}

#[test]
fn newer_and_broken_runs_are_refused_in_words() {
    let run = output(&review(), &RenderContext::new(options(80)));
    let saved = SavedRun::new(jiff::Timestamp::UNIX_EPOCH, run);
    let mut value = serde_json::to_value(&saved).expect("a document");
    // An additive field of a later minor version is no obstacle, in the envelope or below.
    value["later"] = serde_json::json!(1);
    value["output"]["findings"][0]["later"] = serde_json::json!({"a": 1});
    assert_eq!(saved::decode(&value.to_string()).expect("readable"), saved);
    let bare = saved::decode(&value["output"].to_string()).expect("readable");
    assert_eq!(bare.output, saved.output);
    value["output"]["schemaVersion"] = serde_json::json!(2);
    value["output"]["findings"] = serde_json::json!("another shape");
    let error = saved::decode(&value.to_string()).expect_err("newer");
    assert!(error.to_string().contains("update ecr"), "{error}");
    for broken in [
        "",
        "null",
        "[]",
        "{}",
        "{\"savedVersion\":1}",
        "{\"savedVersion\":0,\"output\":{}}",
    ] {
        let error = saved::decode(broken).expect_err("broken");
        assert!(
            error.to_string().starts_with("not a saved ecr run"),
            "{broken}"
        );
    }
}

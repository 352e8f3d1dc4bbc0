//! Which engine, which address, which credential: said before anything is sent.

use serde_json::json;

use crate::support::repo::TestRepo;

fn repository(config: &serde_json::Value) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("a.rs", "fn a() {}\n");
    repo.write(".expo-code-review/config.jsonc", config.to_string());
    repo.commit_all("base");
    repo.write("a.rs", "fn a() { b() }\n");
    repo
}

fn refusal(config: &serde_json::Value, args: &[&str]) -> String {
    let repo = repository(config);
    let mut all = vec!["review"];
    all.extend(args);
    let output = repo.ecr(&all);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty());
    said
}

#[test]
fn another_engine_is_never_taken_silently() {
    for (model, engine) in [
        ("anthropic/x", "claude"),
        ("openai/x", "codex"),
        ("acme/x", "opencode"),
    ] {
        let said = refusal(&json!({}), &["--model", model]);
        assert!(
            said.contains(engine) && said.contains("\"engines\""),
            "{said}"
        );
    }
}

#[test]
fn what_is_missing_is_named() {
    let api = |provider: &str| json!({"engines": {provider: "api"}});
    let said = refusal(&api("anthropic"), &["--model", "anthropic/x"]);
    assert!(said.contains("ANTHROPIC_API_KEY"), "{said}");
    let said = refusal(&api("acme"), &["--model", "acme/x"]);
    assert!(said.contains("auth.providers.acme.baseUrl"), "{said}");
}

#[test]
fn the_variable_names_a_model_too_and_a_plan_needs_no_credential() {
    let repo = repository(&json!({"engines": {"anthropic": "api"}}));
    let output = repo
        .command(env!("CARGO_BIN_EXE_ecr"))
        .env("REVIEWER_MODEL", "anthropic/x")
        .args(["review", "--plan", "--json"])
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(plan.to_string().contains("anthropic/x"), "{plan}");
}

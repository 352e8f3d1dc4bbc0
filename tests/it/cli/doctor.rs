//! `ecr doctor`.

use std::path::PathBuf;

use serde_json::Value;

use super::harness::{ECR, Ran, clean, ecr, ecr_env, run};
use crate::support::repo::TestRepo;

const CONFIG: &str = ".expo-code-review/config.jsonc";
const API: &str = r#"{ "model": "anthropic/claude-opus-5-5", "engines": { "anthropic": "api" } }"#;

/// A `PATH` with git and nothing else.
fn path_with_git(repo: &TestRepo) -> PathBuf {
    let folder = repo.home().join("only-git");
    std::fs::create_dir_all(&folder).unwrap();
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("git"))
        .find(|git| git.is_file())
        .expect("git is installed");
    let link = folder.join("git");
    if !link.exists() {
        std::os::unix::fs::symlink(git, link).unwrap();
    }
    folder
}

fn doctor(repo: &TestRepo, env: &[(&str, &str)]) -> Ran {
    let mut command = repo.command(ECR);
    command.env("PATH", path_with_git(repo));
    run(command.envs(env.iter().copied()).args(["doctor", "--json"]))
}

fn areas(report: &Value, list: &str) -> Vec<String> {
    let list = report[list].as_array().unwrap().iter();
    list.map(|problem| problem["area"].as_str().unwrap().to_owned())
        .collect()
}

fn messages(report: &Value, list: &str) -> String {
    report[list].to_string()
}

#[test]
fn a_repository_without_a_model_is_reviewed_by_the_checks() {
    let repo = clean();
    let report = doctor(&repo, &[]).exits(0).json();
    assert_eq!(report["schemaVersion"], 1);
    assert_eq!(report["ok"], true);
    assert_eq!(report["problems"], serde_json::json!([]));
    assert_eq!(areas(&report, "warnings"), ["model"]);
    assert_eq!(report["setup"]["from"], "embedded");
    assert_eq!(report["setup"]["checks"], true);
    for door in ["model", "tools", "strangers"] {
        assert_eq!(report["doors"][door], true, "{report}");
    }
    let root = report["git"]["repository"].as_str().unwrap();
    assert_eq!(
        PathBuf::from(root).canonicalize().unwrap(),
        repo.root().canonicalize().unwrap()
    );
    assert!(report["git"]["version"].as_str().unwrap().contains('.'));
    let engines: Vec<_> = report["engines"].as_array().unwrap().iter().collect();
    let ids: Vec<_> = engines.iter().map(|engine| &engine["id"]).collect();
    assert_eq!(ids, ["api", "claude", "codex", "opencode"]);
    assert_eq!(engines[0]["standing"], "built_in");
    for engine in &engines[1..] {
        assert_eq!(engine["standing"], "not_installed", "{engine}");
        assert!(engine["next"].as_str().unwrap().contains("npm install"));
    }
}

#[test]
fn the_json_satisfies_the_published_schema() {
    let repo = clean();
    let schema = ecr(&repo, &["schema", "doctor"]).exits(0).json();
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let mut report = doctor(&repo, &[]).json();
    assert!(validator.is_valid(&report), "{report}");
    repo.write(CONFIG, API);
    let named = doctor(&repo, &[("ANTHROPIC_API_KEY", "k")]).json();
    let errors: Vec<_> = validator
        .iter_errors(&named)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    report["doors"]["model"] = "yes".into();
    assert!(!validator.is_valid(&report));
}

#[test]
fn credentials_are_shown_by_name_only() {
    let repo = clean();
    repo.write(CONFIG, API);
    let canary = ["canary", "93b1"].join("-");
    let proxy = format!("http://user:{canary}@proxy.test:3128");
    let env = [
        ("ANTHROPIC_API_KEY", canary.as_str()),
        ("HTTPS_PROXY", proxy.as_str()),
        ("NO_PROXY", "intern.test"),
    ];
    let ran = doctor(&repo, &env).exits(0);
    let text = ecr_env(&repo, &env, &["doctor", "-v"]).exits(0);
    for said in [&ran.out, &ran.err, &text.out, &text.err] {
        assert!(!said.contains(&canary), "{said}");
    }
    let report = ran.json();
    let model = &report["models"][0];
    assert_eq!(model["id"], "anthropic/claude-opus-5-5");
    assert_eq!(model["engine"], "api");
    assert_eq!(model["address"], "https://api.anthropic.com/");
    assert_eq!(
        model["credential"],
        serde_json::json!({"mode": "api-key", "variable": "ANTHROPIC_API_KEY", "present": true})
    );
    assert_eq!(report["network"]["proxies"][0]["host"], "proxy.test:3128");
    assert_eq!(report["network"]["bypass"], "intern.test");
    let config = report["setup"]["config"].as_str().unwrap();
    assert!(config.ends_with(CONFIG), "{config}");
    // Odd, and no more: gateways have keys of every form.
    assert_eq!(areas(&report, "warnings"), ["model"]);
    let text = text.says("anthropic/claude-opus-5-5 by api at https://api.anthropic.com/;");
    text.says("A review as configured can run here.");
}

#[test]
fn what_stops_a_review_is_named_with_the_next_step() {
    let repo = clean();
    repo.write(CONFIG, API);
    let report = doctor(&repo, &[]).exits(2).json();
    assert_eq!(areas(&report, "problems"), ["model"]);
    let words = messages(&report, "problems");
    assert!(words.contains("ANTHROPIC_API_KEY is not set"), "{words}");
    assert_eq!(report["models"][0]["credential"]["present"], false);

    // The provider's own tool is not there.
    repo.write(CONFIG, r#"{ "model": "anthropic/claude-opus-5-5" }"#);
    let report = doctor(&repo, &[("ANTHROPIC_API_KEY", "k")]).exits(2).json();
    assert_eq!(areas(&report, "problems"), ["engine"]);
    let words = messages(&report, "problems");
    assert!(
        words.contains("npm install -g @anthropic-ai/claude-code"),
        "{words}"
    );
    assert!(words.contains("\\\"api\\\""), "{words}");
    assert_eq!(report["engines"][1]["needed"], true);

    repo.write(CONFIG, "{\n  \"chekcs\": {}\n}\n");
    let report = doctor(&repo, &[]).exits(2).json();
    assert_eq!(areas(&report, "problems"), ["setup"]);
    let words = messages(&report, "problems");
    assert!(words.contains(&format!("{CONFIG}:2:3")), "{words}");
    assert_eq!(report["setup"]["from"], "broken");

    repo.write(CONFIG, r#"{ "checks": { "enabled": false } }"#);
    let report = doctor(&repo, &[]).exits(2).json();
    assert!(messages(&report, "problems").contains("nobody would review"));
}

#[test]
fn outside_of_a_repository_and_without_git() {
    let repo = clean();
    let mut command = repo.command(ECR);
    let outside = tempfile::tempdir().unwrap();
    command
        .current_dir(outside.path())
        .args(["doctor", "--json"]);
    let report = run(&mut command).exits(2).json();
    assert_eq!(areas(&report, "problems"), ["git"]);
    assert!(report["git"]["path"].is_string());
    let ran = run(repo.command(ECR).env("PATH", outside.path()).arg("doctor")).exits(2);
    ran.says("problem (git): `git` is not on PATH")
        .says("A review as configured cannot run here.");
}

#[test]
fn the_lock_of_credentials_and_hosts_holds_for_everything() {
    let repo = clean();
    repo.write(
        CONFIG,
        r#"{ "model": "acme/big", "engines": { "acme": "api" }, "auth": { "providers": { "acme":
            { "mode": "api-key", "tokenEnv": "ACME_KEY", "baseUrl": "https://models.acme.test/v1" } } } }"#,
    );
    let with = |expected| [("ACME_KEY", "k"), ("ECR_EXPECTED_TOKEN_ENV", expected)];
    for held in ["ACME_KEY", "ACME_KEY@models.acme.test"] {
        let report = doctor(&repo, &with(held)).exits(0).json();
        assert_eq!(report["setup"]["locked"], true);
    }
    for (broken, words) in [
        ("OTHER", "ACME_KEY"),
        ("ACME_KEY,OTHER", "OTHER"),
        ("ACME_KEY@acme.test", "models.acme.test"),
        ("ACME_KEY@", "neither NAME nor NAME@host"),
    ] {
        let report = doctor(&repo, &with(broken)).exits(2).json();
        let said = messages(&report, "problems");
        assert!(said.contains(words), "{said}");
        ecr_env(&repo, &with(broken), &["--agents", "checks"])
            .refused("ECR_EXPECTED_TOKEN_ENV", "config.jsonc");
    }
}

//! The set-up folder, as the binary reads it.

use super::harness::{
    Ran, WARNING, WARNING_RULE, clean, critical, ecr, ecr_env, ecr_in, started, warned,
};
use crate::support::repo::TestRepo;

const CONFIG: &str = ".expo-code-review/config.jsonc";

fn findings(ran: &Ran) -> usize {
    ran.json()["findings"].as_array().map_or(0, Vec::len)
}

fn with_config(repo: &TestRepo, text: &str) -> Ran {
    repo.write(CONFIG, text);
    ecr(repo, &["--json"])
}

#[test]
fn what_is_wrong_is_shown_where_it_is() {
    let repo = warned();
    for (text, place, words) in [
        (
            "{\n  // a comment\n  \"chekcs\": {}\n}\n",
            ":3:3",
            "did you mean `checks`?",
        ),
        (
            "{ \"policy\": { \"maxFindings\": \"many\" } }",
            ":1:30",
            "maxFindings",
        ),
        ("{ \"checks\": {}, \"checks\": {} }", ":1:17", "checks"),
        ("{ \"checks\": ", ":1:", ""),
        ("[]", ":1:1", ""),
        (
            "{ \"checks\": { \"rules\": { \"a-rule\": \"loud\" } } }",
            ":1:",
            "warning",
        ),
    ] {
        repo.write(CONFIG, text);
        let ran = ecr(&repo, &[]).refused(&format!("{CONFIG}{place}"), words);
        assert!(!ran.err.contains("error: error"), "{ran:#?}");
    }
}

#[test]
fn rules_are_switched_off_and_raised() {
    let repo = warned();
    let rule =
        |level: &str| format!("{{\"checks\":{{\"rules\":{{\"{WARNING_RULE}\":\"{level}\"}}}}}}");
    assert_eq!(findings(&with_config(&repo, &rule("off")).exits(0)), 0);
    let ran = with_config(&repo, &rule("critical")).exits(1);
    assert_eq!(ran.json()["findings"][0]["severity"], "critical");
    let ran = with_config(&repo, &rule("warning")).exits(0);
    assert_eq!(findings(&ran), 1);
    assert_eq!(ran.err.matches("warning").count(), 0, "{ran:#?}");
}

#[test]
fn an_unknown_rule_is_a_warning_with_a_guess() {
    let repo = warned();
    let ran = with_config(
        &repo,
        "{\"checks\":{\"rules\":{\"tls-verification-of\":\"off\"}}}",
    );
    let ran = ran
        .exits(0)
        .talks("warning: checks.rules: there is no rule `tls-verification-of`");
    let ran = ran.talks("did you mean `tls-verification-off`?");
    assert_eq!(findings(&ran), 1);
    repo.write(CONFIG, "{\"checks\":{\"rules\":{\"zzz\":\"off\"}}}");
    let ran = ecr(&repo, &[]).exits(0).talks("no rule `zzz`");
    assert!(!ran.err.contains("did you mean"), "{ran:#?}");
}

#[test]
fn keys_of_later_versions_warn_once() {
    let repo = clean();
    let ran = with_config(&repo, "{ \"stack\": {}, \"inline\": {} }").exits(0);
    assert_eq!(ran.err.matches("`stack`").count(), 1, "{ran:#?}");
    assert_eq!(ran.err.matches("`inline`").count(), 1, "{ran:#?}");
}

#[test]
fn suggestions_are_hidden_until_asked_for() {
    let repo = started();
    repo.write(
        ".github/workflows/ci.yml",
        "on: push\npermissions: {}\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: someone/thing@v1\n",
    );
    let ran = ecr(&repo, &["--json"]).exits(0);
    let report = ran.json();
    assert_eq!(findings(&ran), 0);
    assert_eq!(report["dropped"][0]["stage"], "policy", "{report:#}");
    let ran = with_config(&repo, "{\"policy\":{\"includeSuggestions\":true}}").exits(0);
    let report = ran.json();
    assert_eq!(
        report["findings"][0]["severity"], "suggestion",
        "{report:#}"
    );
}

#[test]
fn reviewers_that_were_not_asked_for_are_no_missing_model() {
    let repo = warned();
    repo.write(
        CONFIG,
        "{\"model\":\"ollama/small\",\"engines\":{\"ollama\":\"api\"}}",
    );
    let ran = ecr(&repo, &["--agents", "checks", "--json"]).exits(0);
    let notes = ran.json()["notes"].to_string();
    assert!(
        notes.contains("--agents") && !notes.contains("No model is configured"),
        "{notes}"
    );
}

#[test]
fn patterns_are_checked_where_they_stand() {
    let repo = warned();
    let long = "a".repeat(5_000);
    let ignores = format!("{{\n\"noise\":{{\"additionalIgnores\":[\"ok\",\"{long}\"]}}}}");
    let never = format!("{{\n\n\"send\":{{\"never\":[\"{long}\"]}}}}");
    for (text, place) in [(ignores, ":2:"), (never, ":3:")] {
        repo.write(CONFIG, text);
        ecr(&repo, &["--json"]).refused(&format!("{CONFIG}{place}"), "too long");
    }
}

#[test]
fn noise_is_hidden_from_models_only() {
    let repo = warned();
    let ran = with_config(&repo, "{\"noise\":{\"additionalIgnores\":[\"fetch.py\"]}}").exits(0);
    let report = ran.json();
    let files = report["coverage"]["files"].as_array().expect("files");
    let file = files
        .iter()
        .find(|f| f["path"] == "fetch.py")
        .expect("listed");
    assert_eq!(file["outcome"], "filtered");
    assert_eq!(findings(&ran), 1, "the checks still run: {report:#}");
}

#[test]
fn the_older_folder_is_read_and_wins() {
    let repo = warned();
    let off = format!("{{\"checks\":{{\"rules\":{{\"{WARNING_RULE}\":\"off\"}}}}}}");
    repo.write(".expo-agents/code-review/config.json", &off);
    assert_eq!(findings(&ecr(&repo, &["--json"]).exits(0)), 0);
    repo.write(CONFIG, "{}");
    let ran = ecr(&repo, &["--json"])
        .exits(0)
        .talks("this setup folder is not used");
    assert_eq!(findings(&ran), 0);
}

#[test]
fn the_folder_can_be_named() {
    let repo = warned();
    let off = format!("{{\"checks\":{{\"rules\":{{\"{WARNING_RULE}\":\"off\"}}}}}}");
    repo.write("tools/review/config.jsonc", &off);
    let outside = repo.home().join("setup");
    std::fs::create_dir(&outside).expect("folder");
    std::fs::write(outside.join("config.jsonc"), &off).expect("write");
    let absolute = outside.to_str().expect("UTF-8");
    for folder in ["tools/review", "tools/review/", absolute] {
        let named = ecr(&repo, &["--config-dir", folder, "--json"]).exits(0);
        assert_eq!(findings(&named), 0, "{folder}");
        let variable = ecr_env(&repo, &[("ECR_CONFIG_DIR", folder)], &["--json"]).exits(0);
        assert_eq!(findings(&variable), 0, "{folder}");
    }
    // Relative to the root, wherever one stands; blank is unset; the option wins.
    let inside = repo.root().join("tools");
    let ran = ecr_in(&repo, &inside, &["--config-dir", "tools/review", "--json"]).exits(0);
    assert_eq!(findings(&ran), 0);
    assert_eq!(
        findings(&ecr_env(&repo, &[("ECR_CONFIG_DIR", " ")], &["--json"])),
        1
    );
    repo.write("loud/config.jsonc", "{}");
    let args = ["--config-dir", "loud", "--json"];
    let ran = ecr_env(&repo, &[("ECR_CONFIG_DIR", "tools/review")], &args).exits(0);
    assert_eq!(findings(&ran), 1);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let repo = warned();
    ecr(&repo, &["--config-dir", "gone"]).refused("gone: there is no such setup folder", "");
    ecr(&repo, &["--config-dir", "../out"]).refused("is not a folder of the repository", "help: ");
    ecr(&repo, &["--config-dir", "/no/such"]).refused("/no/such", "next: check --config-dir");
    ecr(&repo, &["--config-dir", "fetch.py"]).refused("fetch.py", "");
    ecr_env(&repo, &[("ECR_CONFIG_DIR", "gone")], &[]).refused("gone", "");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf8_is_not_passed_over() {
    use std::os::unix::ffi::OsStrExt as _;
    let repo = warned();
    for name in ["ECR_CONFIG_DIR", "REVIEWER_MODEL"] {
        let mut command = repo.command(super::harness::ECR);
        command.env(name, std::ffi::OsStr::from_bytes(b"x\xff"));
        super::harness::run(&mut command)
            .refused(&format!("{name}: the value is not UTF-8"), "next: ");
    }
}

#[test]
fn a_linked_setup_folder_is_refused() {
    let repo = warned();
    let outside = repo.home().join("setup");
    std::fs::create_dir(&outside).expect("folder");
    std::fs::write(outside.join("config.jsonc"), "{}").expect("write");
    std::os::unix::fs::symlink(&outside, repo.root().join(".expo-code-review")).expect("link");
    ecr(&repo, &[]).refused("symbolic link", "put the files themselves there");
    assert!(!outside.join(".runs").exists());
}

#[test]
fn a_model_that_cannot_be_called_is_an_error_and_never_a_review_without_it() {
    let repo = warned();
    let env = [("REVIEWER_MODEL", "openai/some-model")];
    for args in [&[][..], &["--json"], &["--plan"]] {
        ecr_env(&repo, &env, args).refused("openai/some-model", "\"engines\"");
    }
    for format in [
        "terminal", "json", "markdown", "github", "agent", "sarif", "gitlab", "rdjson",
    ] {
        let ran = ecr_env(&repo, &env, &["--agents", "checks", "--format", format]).exits(0);
        let lower = ran.out.to_lowercase();
        assert!(
            !lower.contains("approve") && !lower.contains("lgtm"),
            "{format}: {ran:#?}"
        );
    }
    let report = ecr_env(&repo, &env, &["--agents", "checks", "--json"]).json();
    assert_eq!(report["decision"], "checks_only");

    // Blank is unset; nonsense is an error; the flag wins over the variable.
    let report = ecr_env(&repo, &[("REVIEWER_MODEL", "  ")], &["--json"])
        .exits(0)
        .json();
    assert_eq!(report["decision"], "checks_only");
    ecr_env(&repo, &[("REVIEWER_MODEL", "two words")], &[]).refused("REVIEWER_MODEL", "");
    ecr_env(&repo, &env, &["--model", "acme/other"]).refused("acme/other", "\"engines\"");
    repo.write(CONFIG, "{ \"model\": \"anthropic/some-model\" }");
    ecr(&repo, &["--json"]).refused("anthropic/some-model", "\"engines\"");
}

#[test]
fn an_inline_directive_silences_a_warning_but_nothing_grave() {
    let repo = started();
    repo.write("fetch.py", WARNING);
    repo.write(
        "test/cart.test.js",
        "// expo-code-review-ignore: while I work on it\ntest.only(\"adds\", () => {});\n",
    );
    let report = ecr(&repo, &["--json"]).exits(0).json();
    let dropped = &report["dropped"][0];
    assert_eq!(dropped["stage"], "suppression", "{report:#}");
    assert!(
        dropped["reason"]
            .as_str()
            .is_some_and(|r| r.contains("while I work on it"))
    );
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1));

    let repo = critical();
    let workflow = super::harness::dangerous_workflow();
    let silenced = workflow.replace(
        "      - run:",
        "      # expo-code-review-ignore: trust me\n      - run:",
    );
    repo.write(".github/workflows/label.yml", silenced);
    let report = ecr(&repo, &["--json"]).exits(1).json();
    assert_eq!(report["decision"], "request_changes");
}

//! The other commands, and what the README promises.

use std::path::Path;
use std::process::Stdio;

use super::harness::{ECR, Ran, ecr, ecr_in, run, started, warned};

#[test]
fn version_and_help() {
    let repo = started();
    let version = ecr(&repo, &["--version"]).exits(0).out;
    assert_eq!(version, format!("ecr {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(ecr(&repo, &["-V"]).out, version);
    let help = ecr(&repo, &["-h"]).exits(0).out;
    assert!(help.lines().count() <= 36, "{help}");
    for word in [
        "review",
        "demo",
        "explain",
        "ref-check",
        "schema",
        "completions",
        "man",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
    for command in [
        "review",
        "demo",
        "explain",
        "ref-check",
        "schema",
        "completions",
        "man",
    ] {
        ecr(&repo, &[command, "--help"]).exits(0).says("Usage: ecr");
    }
}

#[test]
fn the_demo_shows_findings_and_succeeds() {
    let repo = started();
    let nowhere = repo.home();
    let ran = ecr_in(&repo, nowhere, &["demo"]).exits(0);
    let ran = ran
        .says("Changes requested")
        .says("critical: ")
        .says("src/orders.py:9");
    assert!(ran.err.starts_with("A sample repository"), "{ran:#?}");
    assert!(
        !repo.home().join("state").exists(),
        "a throw-away sample leaves no run"
    );
    let quiet = ecr_in(&repo, nowhere, &["demo", "-q"]).exits(0);
    assert_eq!(quiet.err, "");
}

#[test]
fn the_demo_can_be_kept() {
    let repo = started();
    let kept = repo.home().join("kept");
    ecr_in(&repo, repo.home(), &["demo", "--keep", "kept"])
        .exits(0)
        .talks("kept; what follows");
    ecr_in(&repo, repo.home(), &["demo", "--keep", "kept"]).refused(
        "is not empty",
        "next: name a folder that does not exist yet",
    );
    let report = ecr_in(&repo, &kept, &["--json"]).exits(1).json();
    let id = report["findings"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    ecr_in(&repo, &kept, &["explain", &id]).exits(0).says(&id);
    ecr(&repo, &["demo", "--keep", "app.py"]).refused("cannot make the sample repository", "");
    ecr(&repo, &["demo", "--keep", "app.py/x"]).refused("cannot make the sample repository", "");
}

#[test]
fn schemas_are_schemas() {
    let repo = started();
    for name in ["config", "routing", "output"] {
        let schema = ecr(&repo, &["schema", name]).exits(0).json();
        assert!(
            schema["$schema"]
                .as_str()
                .is_some_and(|s| s.contains("json-schema.org")),
            "{name}"
        );
        assert!(jsonschema::validator_for(&schema).is_ok(), "{name}");
    }
    let config = ecr(&repo, &["schema", "config"]).json();
    let config = jsonschema::validator_for(&config).expect("a schema");
    let good = serde_json::json!({ "checks": { "rules": { "sql-from-data": "off" } } });
    assert!(config.is_valid(&good));
    assert!(!config.is_valid(&serde_json::json!({ "chekcs": {} })));
}

/// Whether a program is there.
fn have(program: &str) -> bool {
    let there = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file());
    if !there {
        crate::support::skip::skipped(&format!("{program} is not installed"));
    }
    there
}

#[test]
fn completions_are_scripts_that_load() {
    let repo = started();
    for (shell, check) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = ecr(&repo, &["completions", shell]).exits(0).out;
        assert!(
            script.contains("ecr") && script.contains("staged"),
            "{shell}"
        );
        let file = repo.home().join(format!("ecr.{shell}"));
        std::fs::write(&file, script).expect("write");
        if have(shell) {
            run(repo.command(shell).arg(check).arg(&file)).exits(0);
        }
    }
    if have("bash") {
        let script = "source \"$HOME/ecr.bash\"; COMP_WORDS=(ecr dem); COMP_CWORD=1; _ecr ecr dem ecr; echo \"${COMPREPLY[@]}\"";
        run(repo.command("bash").args(["-c", script]))
            .exits(0)
            .says("demo");
    }
}

#[test]
fn help_and_manual_of_one_command() {
    let repo = started();
    let all = ecr(&repo, &["help"]).exits(0);
    assert_eq!(all.out, ecr(&repo, &["--help"]).exits(0).out);
    let one = ecr(&repo, &["help", "review"]).exits(0);
    assert_eq!(one.out, ecr(&repo, &["review", "--help"]).exits(0).out);
    let page = ecr(&repo, &["man", "review"]).exits(0).out;
    assert!(
        page.contains(".TH ecr-review 1") && page.contains("staged"),
        "{page}"
    );
    for word in ["help", "man"] {
        ecr(&repo, &[word, "nosuch"]).refused("no command `nosuch`", "ecr --help");
        ecr(&repo, &[word, "ci-worker"]).refused("no command", "ecr --help");
    }
}

#[test]
fn the_manual_renders() {
    let repo = started();
    let page = ecr(&repo, &["man"]).exits(0).out;
    assert!(page.contains(".TH ecr 1"), "{page}");
    let file = repo.home().join("ecr.1");
    std::fs::write(&file, page).expect("write");
    if have("man") && have("groff") {
        let output = repo
            .command("man")
            .args(["--warnings", "-E", "UTF-8", "-l"])
            .arg(&file)
            .env("MANPAGER", "cat")
            .output()
            .expect("man starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("ref-check"),
            "{output:?}"
        );
    }
}

#[test]
fn ref_check_finds_what_does_not_resolve() {
    let repo = started();
    ecr(&repo, &["ref-check"])
        .exits(0)
        .says("every citation resolves");
    assert_eq!(ecr(&repo, &["ref-check", "-q"]).exits(0).out, "");
    let report = ecr(&repo, &["ref-check", "--json"]).exits(0).json();
    assert_eq!(report["ok"], true);
    let mark = ["@", "ref"].concat();
    repo.write(
        "src/a.rs",
        format!("// {mark} LLP 0042#nowhere — gone\nfn a() {{}}\n"),
    );
    repo.write(
        "llp/0001-a.explainer.md",
        "# A\n\n**Type:** Explainer\n**Status:** Active\n**Systems:** a\n**Author:** A\n**Date:** 2026-01-01\n\n## One\n\nText.\n",
    );
    repo.commit_all("a citation");
    ecr(&repo, &["ref-check"]).exits(1).says("src/a.rs:1");
    ecr(&repo, &["ref-check", "-q"]).exits(1).says("src/a.rs:1");
    let report = ecr(&repo, &["ref-check", "--json"]).exits(1).json();
    assert_eq!(report["ok"], false);
    ecr(&repo, &["ref-check", "--root", "gone"]).refused("gone", "--root DIR");
    ecr_in(&repo, repo.home(), &["ref-check"]).refused("not inside a git repository", "--root DIR");
}

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    std::fs::read_to_string(path).expect("README.md")
}

/// The lines of fenced blocks that call ecr, without their comments.
fn readme_commands() -> Vec<String> {
    let text = readme();
    let mut commands = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && (line.starts_with("ecr ") || line.contains("| ecr ")) {
            commands.push(line.split("  #").next().unwrap_or(line).trim().to_owned());
        }
    }
    commands
}

#[test]
fn the_readme_names_the_two_commands_that_ci_runs() {
    let text = readme();
    for name in ["run", "test"] {
        let start = format!("    cargo {name} ");
        let named: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with(&start))
            .collect();
        assert_eq!(named.len(), 1, "cargo {name}: {named:?}");
        assert!(named[0].contains("--locked"), "{named:?}");
    }
}

#[test]
fn every_command_of_the_readme_works() {
    let repo = warned();
    repo.git(&["tag", "v1.2"]);
    repo.git(&["branch", "feature"]);
    let report = ecr(&repo, &["--json"]).exits(0).json();
    let id = report["findings"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let commands = readme_commands();
    assert!(commands.len() >= 6, "{commands:?}");
    for line in commands {
        let line = line.replace("explain 3f2a", &format!("explain {}", &id[..4]));
        let script = line.replace("ecr ", &format!("'{ECR}' "));
        let mut command = repo.command("bash");
        command.args(["-c", &script]).stdin(Stdio::null());
        let ran: Ran = run(&mut command);
        if line.contains("--pr ") {
            // There is no GitHub here; that these work is shown in `github`.
            ran.refused("", "next: ");
            continue;
        }
        assert_eq!(ran.code, Some(0), "{line}: {ran:#?}");
    }
}

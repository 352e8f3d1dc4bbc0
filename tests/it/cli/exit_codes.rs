//! The table of exit codes.

use super::harness::{
    CLEAN, Ran, clean, critical, dangerous_workflow, ecr, ecr_env, started, warned,
};
use crate::support::repo::TestRepo;

#[test]
fn nothing_to_review_is_0_and_says_what_was_compared() {
    let repo = started();
    for (args, words) in [
        (
            &[][..],
            "the working tree, untracked files included, equals",
        ),
        (&["--staged"], "nothing is staged"),
        (&["--base", "main"], "equals the base main"),
        (&["--base", "main", "--head", "HEAD"], "are the same commit"),
    ] {
        let ran = ecr(&repo, args)
            .exits(0)
            .says("Nothing to review")
            .says(words);
        assert!(!ran.out.to_lowercase().contains("approve"), "{ran:#?}");
        let mut args = args.to_vec();
        args.push("--json");
        let report = ecr(&repo, &args).exits(0).json();
        assert_eq!(report["decision"], "skipped");
        assert!(
            report["summary"]
                .as_str()
                .is_some_and(|s| s.contains(words))
        );
    }
}

#[test]
fn findings_that_do_not_block_are_0_and_no_approval() {
    for repo in [clean(), warned()] {
        let ran = ecr(&repo, &[]).exits(0).says("Built-in checks only");
        assert!(!ran.out.to_lowercase().contains("approve"), "{ran:#?}");
        let report = ecr(&repo, &["--json"]).exits(0).json();
        assert_eq!(report["decision"], "checks_only");
        assert_eq!(report["complete"], true);
    }
}

#[test]
fn request_changes_is_1() {
    let repo = critical();
    let report = ecr(&repo, &["--json"]).exits(1).json();
    assert_eq!(report["decision"], "request_changes");
    ecr(&repo, &["--fail-on", "request_changes"]).exits(1);
    ecr(&repo, &["--fail-on", "incomplete"]).exits(1);
    ecr(&repo, &["--fail-on", "never"])
        .exits(0)
        .says("Changes requested");
    ecr(&repo, &["--no-fail"])
        .exits(0)
        .says("Changes requested");
}

/// A checkout in which one file cannot be read in full by the checks.
fn partly() -> TestRepo {
    let repo = started();
    repo.write("sub/nested.py", CLEAN);
    repo.command("git")
        .args(["init", "-q", "sub"])
        .output()
        .expect("git starts");
    repo.write("app.py", "changed = True\n");
    repo
}

#[test]
fn a_gap_is_4_and_named() {
    let repo = partly();
    let ran = ecr(&repo, &["--json"]).exits(4);
    let report = ran.json();
    assert_eq!(report["complete"], false);
    assert_eq!(report["decision"], "checks_only");
    let ran = ecr(&repo, &[]).exits(4).says("incomplete: ").says("sub");
    assert!(
        ran.out.starts_with("Built-in checks only, and not on all"),
        "{ran:#?}"
    );
    ecr(&repo, &["--fail-on", "incomplete"]).exits(4);
    ecr(&repo, &["--fail-on", "request_changes"])
        .exits(0)
        .says("incomplete: ");
    ecr(&repo, &["--fail-on", "never"]).exits(0);
    ecr(&repo, &["--no-fail"]).exits(0);
    // A finding that blocks outranks the gap.
    repo.write(".github/workflows/label.yml", dangerous_workflow());
    ecr(&repo, &["--fail-on", "request_changes"]).exits(1);
    ecr(&repo, &[]).exits(1);
}

#[test]
fn no_pass_at_all_is_3() {
    let repo = warned();
    repo.write(
        ".expo-code-review/config.jsonc",
        "{ \"checks\": { \"enabled\": false } }",
    );
    let report = ecr(&repo, &["--json"]).exits(3).json();
    assert_eq!(report["decision"], "could_not_complete");
    assert_eq!(report["coverage"]["totals"]["reviewedLines"], 0);
    ecr(&repo, &["--fail-on", "incomplete"]).exits(3);
    for args in [
        &["--fail-on", "request_changes"][..],
        &["--fail-on", "never"],
        &["--no-fail"],
    ] {
        ecr(&repo, args)
            .exits(0)
            .says("says nothing about the code");
    }
}

#[test]
fn no_fail_hides_no_usage_error() {
    let repo = warned();
    ecr(&repo, &["--no-fail", "--base", "nope"]).exits(2);
    ecr(&repo, &["--fail-on", "never", "--agents", "nobody"]).exits(2);
}

#[test]
fn usage_errors_are_2_and_name_what_was_meant() {
    let repo = started();
    let tip = |args: &[&str], text: &str| {
        let ran = ecr(&repo, args).refused("", text);
        assert!(ran.err.lines().count() <= 8, "{ran:#?}");
    };
    tip(&["rewiev"], "'review'");
    tip(&["reviews"], "'review'");
    tip(&["--stagd"], "'--staged'");
    tip(&["demo", "--kep", "x"], "'--keep'");
    tip(&["--head", "x"], "--base <REF>");
    tip(&["--fail-on", "incomplet"], "'incomplete'");
    tip(&["--time-limit", "soon"], "for example 90s, 10m or 1h");
    tip(&["--time-limit", "0s"], "from 1s to 24h");
    tip(&["--no-fail", "--fail-on", "never"], "cannot be used with");
    tip(&["-q", "-v"], "cannot be used with");
    tip(&["--json", "--format", "sarif"], "cannot be used with");
    tip(&["schema", "outputs"], "'output'");
    tip(&["completions", "zshh"], "'zsh'");
    tip(&["explain"], "<ID>");
    tip(
        &["review", "src/app.py"],
        "unexpected argument 'src/app.py'",
    );
}

#[test]
fn a_report_that_cannot_be_written_is_2_before_anything_runs() {
    let repo = warned();
    let refused = |args: &[&str], message: &str, next: &str| {
        let ran = ecr(&repo, args).refused(message, next);
        assert!(!ran.err.contains("started"), "it ran first: {ran:#?}");
    };
    refused(&["--format", "html"], "unknown format \"html\"", "markdown");
    refused(&["--format", "sarif="], "no file name", "sarif=ecr.sarif");
    refused(
        &["--format", "json", "--format", "sarif"],
        "several formats would go to standard output",
        "--format sarif=ecr.sarif",
    );
    refused(
        &["--format", "json=no/such/x.json"],
        "no/such/x.json",
        "make the folder",
    );
    refused(&["--format", "json=."], "is a folder", "name a file");
    refused(
        &["--format", "json=x", "--format", "sarif=x"],
        "two reports would be written to x",
        "a file of its own",
    );
    assert!(!repo.root().join("x").exists());
}

#[test]
fn without_git_it_is_2_with_a_next_step() {
    let repo = warned();
    let empty = repo.home().to_str().expect("UTF-8").to_owned();
    ecr_env(&repo, &[("PATH", &empty)], &[]).refused("git", "install git");
}

#[test]
fn a_git_inside_the_reviewed_tree_is_never_run() {
    use std::os::unix::fs::PermissionsExt;
    let repo = warned();
    repo.write("bin/git", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\n");
    let git = repo.root().join("bin/git");
    std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let path = repo.root().join("bin");
    let path = path.to_str().expect("UTF-8");
    let system = std::env::var("PATH").expect("PATH");
    let _: Ran = ecr_env(&repo, &[("PATH", path)], &[]).exits(2);
    ecr_env(&repo, &[("PATH", &format!("{path}:{system}"))], &["-q"]);
    assert!(!repo.root().join("bin/ran").exists());
}

//! stdout is the product, stderr the talk; colour only where it is wanted.

use std::io::Read as _;
use std::process::Stdio;

use super::harness::{ECR, Ran, critical, ecr, ecr_env, ecr_stdin, run, started, warned};

const FORMATS: [&str; 8] = [
    "terminal", "json", "markdown", "sarif", "rdjson", "gitlab", "github", "agent",
];

#[test]
fn every_format_goes_to_stdout_without_the_talk() {
    let repo = critical();
    for format in FORMATS {
        let ran = ecr(&repo, &["--format", format]).exits(1);
        assert!(!ran.out.is_empty(), "{format}");
        assert!(!ran.out.contains("checks: started"), "{format}: {ran:#?}");
        assert!(
            ran.err.contains("ecr: checks: started"),
            "{format}: {ran:#?}"
        );
        assert!(
            ran.err.lines().all(|line| line.starts_with("ecr: ")),
            "{format}: {ran:#?}"
        );
        let quiet = ecr(&repo, &["--format", format, "-q"]).exits(1);
        assert_eq!(quiet.err, "", "{format}: -q says nothing without an error");
        assert!(!quiet.out.is_empty(), "{format}");
        let silent = ecr(&repo, &["--format", format, "--no-progress"]).exits(1);
        assert_eq!(silent.err, "", "{format}");
    }
}

#[test]
fn commands_that_only_print_say_nothing_on_stderr() {
    let repo = started();
    for args in [
        &["--version"][..],
        &["--help"],
        &["-h"],
        &["review", "--help"],
        &["schema", "config"],
        &["schema", "routing"],
        &["schema", "output"],
        &["completions", "bash"],
        &["man"],
        &["ref-check"],
        &["ref-check", "--json"],
    ] {
        let ran = ecr(&repo, args).exits(0);
        assert_eq!(ran.err, "", "{args:?}");
        assert!(
            ran.out.ends_with('\n') && !ran.out.ends_with("\n\n\n"),
            "{args:?}: {ran:#?}"
        );
    }
}

#[test]
fn a_closed_pipe_is_the_readers_choice() {
    let repo = critical();
    for args in [
        &["--no-fail"][..],
        &["--no-fail", "--json"],
        &["--plan"],
        &["demo"],
        &["--help"],
        &["schema", "config"],
        &["completions", "bash"],
        &["man"],
    ] {
        let mut command = repo.command(ECR);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // Nobody will read at all.
        drop(child.stdout.take());
        let mut err = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut err).expect("UTF-8");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{args:?}: {err}");
        assert!(!err.contains("error"), "{args:?}: {err}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return;
    };
    let repo = warned();
    let output = repo.command(ECR).stdout(full).output().expect("it starts");
    Ran::plain(output).exits(2).talks("could not be written");
}

#[test]
fn colour_only_where_it_is_asked_for() {
    let repo = warned();
    let coloured = |env: &[(&str, &str)], args: &[&str]| {
        let output = repo
            .command(ECR)
            .envs(env.iter().copied())
            .args(args)
            .output()
            .expect("it starts");
        Ran::any(output).out.contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]));
    assert!(coloured(&[], &["--color", "always"]));
    assert!(coloured(&[("NO_COLOR", "1")], &["--color", "always"]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "0")], &[]));
    assert!(!coloured(
        &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
        &[]
    ));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]));
    // A machine's format has no colour, whatever is asked for.
    for format in [
        "json", "sarif", "gitlab", "github", "agent", "markdown", "rdjson",
    ] {
        assert!(
            !coloured(&[], &["--color", "always", "--format", format]),
            "{format}"
        );
    }
}

#[test]
fn usage_errors_are_coloured_by_the_same_rules() {
    let repo = started();
    let coloured = |env: &[(&str, &str)], args: &[&str]| {
        let output = repo
            .command(ECR)
            .envs(env.iter().copied())
            .args(args)
            .output()
            .expect("it starts");
        Ran::any(output).exits(2).err.contains('\u{1b}')
    };
    assert!(!coloured(&[], &["--stagd"]));
    assert!(coloured(&[], &["--stagd", "--color", "always"]));
    assert!(coloured(&[], &["--color=always", "--stagd"]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &["--stagd"]));
    assert!(!coloured(
        &[("CLICOLOR_FORCE", "1")],
        &["--stagd", "--color", "never"]
    ));
    assert!(!coloured(
        &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
        &["--stagd"]
    ));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &["--base", "nope"]));
}

#[test]
fn in_ci_progress_is_one_plain_line_an_event() {
    let repo = warned();
    let ran = ecr_env(&repo, &[("CI", "true")], &[]).exits(0);
    let lines: Vec<_> = ran.err.lines().collect();
    assert!(lines.len() >= 3 && lines.len() <= 6, "{ran:#?}");
    assert!(
        lines.iter().all(|line| line.starts_with("ecr: ")),
        "{ran:#?}"
    );
    assert!(!ran.err.contains('\r'), "{ran:#?}");
}

#[test]
fn quiet_and_verbose() {
    let repo = warned();
    repo.write("Cargo.lock", "# generated\n");
    let normal = ecr(&repo, &[]).exits(0).says("-v lists them");
    let quiet = ecr(&repo, &["-q"]).exits(0).says("fetch.py:4");
    assert!(quiet.out.lines().count() < normal.out.lines().count());
    let verbose = ecr(&repo, &["-v"])
        .exits(0)
        .says("Filtered")
        .says("Cargo.lock")
        .says("Passes");
    assert!(!normal.out.contains("Cargo.lock"), "{normal:#?}");
    let by_variable = ecr_env(&repo, &[("ECR_VERBOSE", "1")], &[])
        .exits(0)
        .says("Filtered");
    assert_eq!(by_variable.out.lines().count(), verbose.out.lines().count());
    let off = ecr_env(&repo, &[("ECR_VERBOSE", "0")], &[]).exits(0);
    assert_eq!(off.out.lines().count(), normal.out.lines().count());
    ecr_env(&repo, &[("ECR_VERBOSE", "1")], &["-q"]).exits(0);
    // Errors are said even so.
    ecr(&repo, &["-q", "--base", "nope"]).refused("nope", "spelling");
}

#[test]
fn the_width_is_the_terminals_or_columns() {
    let repo = warned();
    for columns in ["40", "80", "1", "99999", "x", "-3"] {
        let ran = ecr_env(&repo, &[("COLUMNS", columns)], &[]).exits(0);
        let longest = ran
            .out
            .lines()
            .map(|l| l.chars().count())
            .max()
            .unwrap_or(0);
        assert!(longest <= 130, "{columns}: {longest}");
        if columns == "40" {
            assert!(longest <= 60, "{ran:#?}");
        }
    }
}

#[test]
fn closed_standard_streams_do_no_harm() {
    let repo = warned();
    let script =
        format!("'{ECR}' --json <&- 2>&- | head -c 20; '{ECR}' --no-fail >&- 2>&-; exit 0");
    run(repo.command("bash").args(["-c", &script]))
        .exits(0)
        .says("{\n  \"schemaVersion\"");
    ecr_stdin(&repo, b"", &["-q"]).exits(0);
}

//! The arguments, as clap types.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Review code before others have to: safe, quiet, right, fast, honest about what it did not do.
#[derive(Debug, Parser)]
#[command(
    name = "ecr",
    version,
    about,
    disable_help_subcommand = true,
    subcommand_required = true,
    override_usage = "ecr [COMMAND] [OPTIONS]",
    max_term_width = 100,
    after_help = "With no command, or with options only, `ecr` means `ecr review`.\n\
                  Exit codes: 0 fine, 1 request changes, 2 usage or set-up error, 3 could not review,\n\
                  4 partly reviewed, 70 bug, 130/143 interrupted."
)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,

    #[command(flatten)]
    pub(super) global: Global,
}

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
pub(super) struct Global {
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = false
    )]
    pub(super) color: ColorWhen,

    /// Say less on stderr: errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,

    /// Say more: filtered files, dropped findings, passes (also `ECR_VERBOSE=1`)
    #[arg(short, long, global = true)]
    pub(super) verbose: bool,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Review local changes, staged changes, a range of commits, a pull request or a patch
    Review(Box<ReviewArgs>),
    /// Review the current pull request in GitHub Actions and keep its one comment up to date
    Ci(CiArgs),
    /// Do the review of `ecr ci`, in a process of its own
    #[command(hide = true)]
    CiWorker {
        /// The folder with the job
        folder: PathBuf,
    },
    /// Hide findings of a pull request that do not hold; nothing is reviewed again
    Dismiss(DismissArgs),
    /// Show dismissed findings again
    Undismiss(DismissArgs),
    /// Run the whole pipeline on a small sample repository made on the spot
    Demo(DemoArgs),
    /// Say why a finding was reported, merged, dropped or suppressed
    Explain(ExplainArgs),
    /// Show what past runs found, cost and took
    Stats(StatsArgs),
    /// Say whether a review would work here, now, and what is missing; no network
    Doctor(DoctorArgs),
    /// Set ecr up in this repository: the set-up folder and the workflows
    Init(InitArgs),
    /// Check every configuration on the disk, before a credential is in reach; for workflows
    VerifyConfig {
        /// Print what was found as JSON
        #[arg(long)]
        json: bool,
    },
    /// Review labelled cases and say how right and how complete the findings are
    Eval(EvalArgs),
    /// Check that the citations in llp/, in code and in the review set-up still resolve
    RefCheck(RefCheckArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff), of ecr or of one command
    Man {
        /// The command
        command: Option<String>,
    },
    /// Print the help, of ecr or of one command
    Help {
        /// The command
        command: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(super) struct ReviewArgs {
    /// Review what is staged (`git add`) against HEAD
    #[arg(long, conflicts_with_all = ["base", "head", "diff"])]
    pub(super) staged: bool,

    /// Compare against this commit, branch or tag instead of the default branch
    #[arg(long, value_name = "REF", conflicts_with = "diff")]
    pub(super) base: Option<String>,

    /// Review this commit, branch or tag instead of the working tree
    #[arg(long, value_name = "REF", requires = "base", conflicts_with = "diff")]
    pub(super) head: Option<String>,

    /// Review a patch file, or standard input with `-`; there is no tree to read from
    #[arg(long, value_name = "FILE|-")]
    pub(super) diff: Option<PathBuf>,

    /// Review a pull request on GitHub: its number or address (`GH_TOKEN`, `GITHUB_TOKEN` or `gh auth login`)
    #[arg(long, value_name = "N|URL", conflicts_with_all = ["staged", "base", "head", "diff"])]
    pub(super) pr: Option<String>,

    /// The repository of `--pr`, where the checkout's `origin` is another
    #[arg(long, value_name = "OWNER/NAME", requires = "pr")]
    pub(super) repo: Option<String>,

    /// Only these reviewers, comma separated
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) agents: Vec<String>,

    /// The model of every reviewer, as provider/model (also `REVIEWER_MODEL`)
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,

    /// Write every model exchange to this folder, without keys, for --replay
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(super) record: Option<PathBuf>,

    /// Answer every model call from a folder that --record has written: no key, no network
    #[arg(long, value_name = "DIR")]
    pub(super) replay: Option<PathBuf>,

    /// Read the set-up from this folder (also `ECR_CONFIG_DIR`)
    #[arg(long, value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,

    /// Show what would be reviewed, by whom and at what cost; reviews nothing
    #[arg(long)]
    pub(super) plan: bool,

    /// Stop after this long and report what is known (`90s`, `10m`, `1h`)
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(super) time_limit: Option<Duration>,

    /// Let a model leave out reviewers whose concern the change does not touch
    #[arg(long)]
    pub(super) route: bool,

    /// A text file with what the reviewers should know about the change
    #[arg(long, value_name = "FILE")]
    pub(super) context_file: Option<PathBuf>,

    /// Stop before the model calls cost more than this, in US dollars
    #[arg(long, value_name = "USD", value_parser = parse_money)]
    pub(super) max_cost: Option<f64>,

    /// Output format, or FORMAT=FILE to write a file; repeatable: terminal, json, markdown, sarif,
    /// rdjson, gitlab, github, agent
    #[arg(long, value_name = "FORMAT[=FILE]")]
    pub(super) format: Vec<String>,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub(super) json: bool,

    /// What makes the exit code non-zero: `incomplete` is everything; `request_changes` lets
    /// incomplete reviews pass; `never` lets findings pass too
    #[arg(long, value_name = "WHEN", default_value = "incomplete")]
    pub(super) fail_on: FailOnArg,

    /// The same as `--fail-on never`
    #[arg(long, conflicts_with = "fail_on")]
    pub(super) no_fail: bool,

    /// No progress on stderr
    #[arg(long)]
    pub(super) no_progress: bool,
}

#[derive(Debug, Args)]
pub(super) struct CiArgs {
    /// Only these reviewers, comma separated
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) agents: Vec<String>,

    /// Let a model leave out reviewers whose concern the change does not touch
    #[arg(long)]
    pub(super) route: bool,

    /// A text file with what the reviewers should know about the change, beside its title and description
    #[arg(long, value_name = "FILE")]
    pub(super) context_file: Option<PathBuf>,

    /// Review although the trigger (`review.trigger`, drafts) says no, and although nothing has changed
    #[arg(long)]
    pub(super) force: bool,

    /// Obey a command in the comment that started the job (`issue_comment` events do so anyway)
    #[arg(long)]
    pub(super) comment_command: bool,

    /// Post the finished review that an earlier run could not post; no model is called
    #[arg(long, conflicts_with_all = ["agents", "route", "context_file", "force", "comment_command"])]
    pub(super) repost: bool,

    /// Print an annotation for each finding
    #[arg(long)]
    pub(super) annotate: bool,

    /// End with the exit codes of `ecr review` instead of always 0
    #[arg(long)]
    pub(super) strict: bool,
}

#[derive(Debug, Args)]
pub(super) struct DismissArgs {
    /// Ids of findings: 12 hexadecimal digits, `id:` before them does no harm
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,

    /// The pull request's number
    #[arg(long, value_name = "N")]
    pub(super) pr: u64,

    /// The repository, where the checkout's `origin` is another
    #[arg(long, value_name = "OWNER/NAME")]
    pub(super) repo: Option<String>,

    /// Why; critical findings and secrets are not dismissed without
    #[arg(long, value_name = "TEXT")]
    pub(super) reason: Option<String>,

    /// In whose name, where the token is not a person's
    #[arg(long, value_name = "LOGIN")]
    pub(super) by: Option<String>,
}

/// What makes the exit code non-zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum FailOnArg {
    RequestChanges,
    Incomplete,
    Never,
}

#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Make the sample repository here and keep it, instead of in a temporary folder
    #[arg(long, value_name = "DIR")]
    pub(super) keep: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct StatsArgs {
    /// Only runs since a day (2026-11-01) or a time back from now (30d, 2w, 12h)
    #[arg(long, value_name = "D")]
    pub(super) since: Option<String>,

    /// Write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,

    /// Print the figures as JSON
    #[arg(long)]
    pub(super) json: bool,

    /// The set-up folder that keeps the runs (also `ECR_CONFIG_DIR`)
    #[arg(long, value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// The model of every reviewer, as provider/model (also `REVIEWER_MODEL`)
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,

    /// Read the set-up from this folder (also `ECR_CONFIG_DIR`)
    #[arg(long, value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,

    /// Print the report as JSON (`ecr schema doctor`)
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct EvalArgs {
    /// A folder with one folder a case (`ecr schema eval-case`)
    pub(super) dataset: PathBuf,

    /// Only these cases, comma separated
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) only: Vec<String>,

    /// The folder of the clones that cases name
    #[arg(long, value_name = "DIR")]
    pub(super) repos: Option<PathBuf>,

    /// Keep the reviews here instead of in the user's state folder
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,

    /// Do not review again what is kept of the same case, set-up and version of ecr
    #[arg(long)]
    pub(super) resume: bool,

    /// Write every model exchange below this folder, a tape for each case
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub(super) record: Option<PathBuf>,

    /// Answer every model call from a folder that --record has written: no key, no network
    #[arg(long, value_name = "DIR")]
    pub(super) replay: Option<PathBuf>,

    /// Only these reviewers, comma separated
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) agents: Vec<String>,

    /// The model of every reviewer, as provider/model (also `REVIEWER_MODEL`)
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,

    /// Read the set-up from this folder (also `ECR_CONFIG_DIR`)
    #[arg(long, value_name = "DIR")]
    pub(super) config_dir: Option<PathBuf>,

    /// Stop before all cases together cost more than this, in US dollars
    #[arg(long, value_name = "USD", value_parser = parse_money)]
    pub(super) max_cost: Option<f64>,

    /// Lines that a finding may be away from a label
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) tolerance: u32,

    /// The least similarity of the words, 0 to 1, where the lines agree
    #[arg(long, value_name = "X", default_value_t = 0.2, value_parser = parse_share)]
    pub(super) similarity: f64,

    /// What the intervals are drawn with
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Print the figures as JSON (`ecr schema eval-report`)
    #[arg(long)]
    pub(super) json: bool,

    /// Make the data set from files of a public one instead of reviewing it
    #[arg(long, value_name = "SET", requires = "from", conflicts_with_all = ["resume", "record", "replay", "json"])]
    pub(super) import: Option<ImportArg>,

    /// The files to import, comma separated
    #[arg(
        long,
        value_name = "FILE,FILE",
        value_delimiter = ',',
        requires = "import"
    )]
    pub(super) from: Vec<PathBuf>,
}

/// The public sets that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ImportArg {
    /// Comments that experts confirmed or rejected: positive and negative samples
    AacrBench,
    /// Golden comments
    Martian,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The finding's id, or the beginning of it
    pub(super) id: String,

    /// A saved run (JSON) instead of the last one
    #[arg(long, value_name = "FILE")]
    pub(super) run: Option<PathBuf>,

    /// The set-up folder that keeps the runs (also `ECR_CONFIG_DIR`)
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    pub(super) config_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RefCheckArgs {
    /// Check this folder instead of the current repository
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,

    /// Print `{ok, problems}` as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Variables that hold credentials, comma separated; the workflows pass these secrets and no other
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(super) token_env: Vec<String>,

    /// Replace files that are there and differ
    #[arg(long)]
    pub(super) force: bool,

    /// The set-up folder only, no workflows
    #[arg(long)]
    pub(super) no_workflow: bool,
}

#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// Which schema
    pub(super) which: SchemaName,
}

/// The published schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaName {
    /// `.expo-code-review/config.jsonc`
    Config,
    /// `.expo-code-review/routing.jsonc`
    Routing,
    /// What `--format json` prints
    Output,
    /// A line of the run log
    RunLog,
    /// `case.jsonc` of an evaluation
    EvalCase,
    /// What `ecr eval --json` prints
    EvalReport,
    /// What `ecr doctor --json` prints
    Doctor,
}

/// A number from 0 to 1.
fn parse_share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1, for example 0.2".to_owned()),
    }
}

/// An amount of money, more than nothing.
fn parse_money(text: &str) -> Result<f64, String> {
    match text.trim().trim_start_matches('$').parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("expected an amount of US dollars over 0, for example 0.50".to_owned()),
    }
}

/// `90s`, `10m`, `1h`, or a number of seconds.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("`{text}` is not a duration; write for example 90s, 10m or 1h");
    let (digits, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(bad()),
    };
    match number.checked_mul(factor) {
        Some(seconds @ 1..=86_400) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("`{text}` is out of range: from 1s to 24h")),
    }
}

/// Puts `review` in front when the first argument is an option other than help and version, or
/// when there is none.
pub(super) fn with_default_command(
    args: impl IntoIterator<Item = std::ffi::OsString>,
) -> Vec<std::ffi::OsString> {
    let mut args: Vec<_> = args.into_iter().collect();
    let implied = match args.get(1).map(|arg| arg.to_string_lossy()) {
        None => true,
        Some(first) => {
            first.starts_with('-')
                && !matches!(first.as_ref(), "-h" | "--help" | "-V" | "--version")
        }
    };
    if implied {
        let at = args.len().min(1);
        args.insert(at, "review".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
        let args = std::iter::once("ecr")
            .chain(args.iter().copied())
            .map(Into::into);
        Cli::try_parse_from(with_default_command(args))
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn review_is_the_default_command() {
        for args in [&[][..], &["--staged"], &["-v"], &["--base", "main"]] {
            assert!(
                matches!(parse(args).unwrap().command, Command::Review(_)),
                "{args:?}"
            );
        }
        assert_eq!(
            parse(&["--version"]).unwrap_err().kind(),
            clap::error::ErrorKind::DisplayVersion
        );
        assert_eq!(
            parse(&["rewiev"]).unwrap_err().kind(),
            clap::error::ErrorKind::InvalidSubcommand
        );
    }

    #[test]
    fn selectors_exclude_each_other() {
        for args in [
            &["--staged", "--base", "x"][..],
            &["--staged", "--diff", "-"],
            &["--base", "x", "--diff", "-"],
            &["--head", "x"],
            &["--json", "--format", "sarif"],
            &["--no-fail", "--fail-on", "never"],
            &["--pr", "1", "--staged"],
            &["--repo", "o/r"],
        ] {
            assert!(parse(args).is_err(), "{args:?}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for bad in [
            "",
            "0",
            "m",
            "-1s",
            "1d",
            "25h",
            "99999999999999999999s",
            "1.5h",
        ] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }
}

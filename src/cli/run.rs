//! From arguments to an exit code.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _, ValueEnum as _};

use super::args::{
    CiArgs, Cli, ColorWhen, Command, DemoArgs, DismissArgs, DoctorArgs, ExplainArgs, FailOnArg,
    Global, RefCheckArgs, ReviewArgs, SchemaName, StatsArgs, with_default_command,
};
use super::exit::{self, EXIT_BUG, EXIT_OK, EXIT_REQUEST_CHANGES, EXIT_USAGE};
use super::stream::{self, Streams};
use crate::app::ci::{self, CiRequest, DismissRequest};
use crate::app::pull::{self, PullRequestObjects};
use crate::app::review::{self, Display, FailOn, Finished, Input, LocalInput, OutputSpec, Request};
use crate::app::schema::{self, Schema};
use crate::app::tape::TapeChoice;
use crate::app::{
    AppError, Environment, demo, doctor, explain, init, ref_check, stats, verify_config,
};
use crate::config::env::{ECR_VERBOSE, is_on};

/// Runs ecr with `args` (the program's name first) and gives the exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let args = with_default_command(args);
    std::panic::set_hook(Box::new(|info| {
        // The place is ours; the message may quote what is being reviewed, so it stays out.
        let place = info
            .location()
            .map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        stream::talk(&format!(
            "ecr: internal error{place}; please report it with the command you ran"
        ));
    }));
    std::panic::catch_unwind(|| run(&args)).unwrap_or_else(|_| {
        // A check must not turn red because of a bug of ours.
        let has = |word: &str| args.iter().skip(1).any(|arg| arg == word);
        if args.get(1).is_some_and(|command| command == "ci") && !has("--strict") {
            EXIT_OK
        } else {
            EXIT_BUG
        }
    })
}

fn run(args: &[OsString]) -> u8 {
    let mut cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, args),
    };
    let env = |name: &str| std::env::var(name).ok();
    cli.global.verbose |= !cli.global.quiet && is_on(env(ECR_VERBOSE.name).as_deref());
    let streams = Streams::detect(cli.global.color, &env);
    start_logging(streams.stderr_colour, env("ECR_LOG").as_deref());
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            stream::error(streams, &format!("cannot start: {error}"), None);
            return EXIT_USAGE;
        }
    };
    let outcome = match std::env::current_dir() {
        Ok(cwd) => {
            let environment = Environment::new(cwd, std::env::vars_os());
            runtime.block_on(dispatch(cli, streams, &environment))
        }
        Err(error) => Err(AppError::new(
            format!("the current folder cannot be read: {error}"),
            "change into a folder that exists",
        )),
    };
    // A blocking read that is still under way must not hold up the exit.
    runtime.shutdown_background();
    outcome.unwrap_or_else(|error| {
        stream::error(streams, &error.message, error.hint.as_deref());
        error.interrupt.map_or(EXIT_USAGE, exit::of_interrupt)
    })
}

/// Parses the arguments. A workflow outlives versions of ecr, so `ecr ci` only warns of an option that it does not know.
fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let mut args = args.to_vec();
    loop {
        let error = match Cli::try_parse_from(&args) {
            Ok(cli) => return Ok(cli),
            Err(error) => error,
        };
        let ci = args.get(1).is_some_and(|command| command == "ci");
        let unknown = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(name)) if error.kind() == ErrorKind::UnknownArgument => name,
            _ => return Err(error),
        };
        let same = |arg: &OsString| {
            arg.to_str()
                .is_some_and(|arg| arg == unknown || arg.split('=').next() == Some(unknown))
        };
        match args.iter().skip(2).position(same) {
            Some(at) if ci => {
                stream::talk(&format!(
                    "ecr: warning: `ecr ci` does not know {}, which is passed over",
                    crate::model::printable(unknown)
                ));
                args.remove(at + 2);
            }
            _ => return Err(error),
        }
    }
}

fn usage(error: &clap::Error, args: &[OsString]) -> u8 {
    let streams = Streams::detect(color_of(args), &|name| std::env::var(name).ok());
    let text = error.render();
    let text = |colour: bool| {
        if colour {
            text.ansi().to_string()
        } else {
            text.to_string()
        }
    };
    // clap decides the stream: help and version are the product, everything else is talk.
    if error.use_stderr() {
        stream::talk(text(streams.stderr_colour).trim_end());
        return EXIT_USAGE;
    }
    write_product(&text(streams.stdout_colour)).map_or(EXIT_USAGE, |()| EXIT_OK)
}

/// `--color` of arguments that could not be parsed as a whole.
fn color_of(args: &[OsString]) -> ColorWhen {
    let words: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let value = words.iter().enumerate().find_map(|(at, word)| {
        word.strip_prefix("--color=")
            .or_else(|| (*word == "--color").then(|| words.get(at + 1).copied())?)
    });
    value.map_or(ColorWhen::Auto, |value| {
        ColorWhen::from_str(value, false).unwrap_or(ColorWhen::Auto)
    })
}

pub(super) fn write_product(text: &str) -> Result<(), AppError> {
    stream::product(text)
        .map_err(|error| AppError::plain(format!("cannot write to standard output: {error}")))
}

/// `ECR_LOG` (a tracing filter such as `debug`) turns on a log on stderr, for bug reports.
fn start_logging(colour: bool, filter: Option<&str>) {
    let Some(filter) = filter.filter(|filter| !filter.is_empty()) else {
        return;
    };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colour)
        .try_init();
}

async fn dispatch(cli: Cli, streams: Streams, environment: &Environment) -> Result<u8, AppError> {
    let Cli { command, global } = cli;
    match command {
        Command::Review(args) => run_review(*args, &global, streams, environment).await,
        Command::Ci(args) => run_ci(args, environment).await,
        Command::CiWorker { folder } => {
            let display = display(&global, streams, false);
            let talk = Box::new(io::stderr());
            Ok(match ci::work(&folder, display, environment, talk).await? {
                Finished::Planned => EXIT_OK,
                Finished::Reviewed { review, interrupt } => {
                    exit::of_review(&review, interrupt, FailOn::Incomplete)
                }
            })
        }
        Command::Dismiss(args) => run_dismiss(args, true, environment).await,
        Command::Undismiss(args) => run_dismiss(args, false, environment).await,
        Command::Demo(args) => run_demo(args, &global, streams, environment).await,
        Command::Explain(ExplainArgs {
            id,
            run,
            config_dir,
        }) => {
            let display = display(&global, streams, true);
            let place = explain::Place { run, config_dir };
            write_product(&explain::run(&id, &place, &display, environment).await?)?;
            Ok(EXIT_OK)
        }
        Command::Stats(StatsArgs {
            since,
            html,
            json,
            config_dir,
        }) => {
            let display = display(&global, streams, true);
            let request = stats::Request {
                since,
                html,
                json,
                config_dir,
            };
            let report = stats::run(&request, &display, environment).await?;
            if !global.quiet {
                for line in &report.talk {
                    stream::talk(line);
                }
            }
            write_product(&report.product)?;
            Ok(EXIT_OK)
        }
        Command::Doctor(DoctorArgs {
            model,
            config_dir,
            json,
        }) => {
            let display = display(&global, streams, true);
            let request = doctor::Request {
                config_dir,
                model,
                json,
            };
            let report = doctor::run(&request, &display, environment).await?;
            write_product(&report.product)?;
            Ok(if report.ok { EXIT_OK } else { EXIT_USAGE })
        }
        Command::Init(args) => {
            let request = init::Request {
                token_env: args.token_env,
                force: args.force,
                no_workflow: args.no_workflow,
            };
            let text = init::run(request, environment).await?;
            if !global.quiet {
                write_product(&text)?;
            }
            Ok(EXIT_OK)
        }
        Command::VerifyConfig { json } => {
            let outcome = verify_config::run(json, environment).await?;
            if json || !outcome.ok || !global.quiet {
                write_product(&outcome.text)?;
            }
            Ok(if outcome.ok { EXIT_OK } else { EXIT_USAGE })
        }
        Command::Eval(args) => {
            super::eval::run(args, display(&global, streams, true), environment).await
        }
        Command::RefCheck(args) => run_ref_check(args, &global, environment).await,
        Command::Schema(args) => {
            write_product(&schema::run(match args.which {
                SchemaName::Config => Schema::Config,
                SchemaName::Routing => Schema::Routing,
                SchemaName::Output => Schema::Output,
                SchemaName::RunLog => Schema::RunLog,
                SchemaName::EvalCase => Schema::EvalCase,
                SchemaName::EvalReport => Schema::EvalReport,
                SchemaName::Doctor => Schema::Doctor,
            }))?;
            Ok(EXIT_OK)
        }
        Command::Completions { shell } => {
            // Into memory first: clap_complete panics on a closed pipe.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "ecr", &mut script);
            write_product(&String::from_utf8_lossy(&script))?;
            Ok(EXIT_OK)
        }
        Command::Help { command } => {
            command_named(command.as_deref())?;
            let args = std::iter::once("ecr").chain(command.as_deref());
            if let Err(help) = Cli::try_parse_from(args.chain(["--help"])) {
                let help = help.render();
                write_product(&if streams.stdout_colour {
                    help.ansi().to_string()
                } else {
                    help.to_string()
                })?;
            }
            Ok(EXIT_OK)
        }
        Command::Man { command } => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command_named(command.as_deref())?)
                .render(&mut page)
                .map_err(|error| AppError::plain(format!("cannot write the manual: {error}")))?;
            write_product(&String::from_utf8_lossy(&page))?;
            Ok(EXIT_OK)
        }
    }
}

/// ecr itself, or one of its commands under its full name.
fn command_named(name: Option<&str>) -> Result<clap::Command, AppError> {
    let mut ecr = Cli::command();
    let Some(name) = name else {
        return Ok(ecr);
    };
    // Building gives the commands their full usage lines.
    ecr.build();
    let known = ecr
        .get_subcommands()
        .find(|command| command.get_name() == name && !command.is_hide_set());
    let command = known.cloned().ok_or_else(|| {
        AppError::new(
            format!("there is no command `{}`", crate::model::printable(name)),
            "`ecr --help` lists the commands",
        )
    })?;
    Ok(command.display_name(format!("ecr-{name}")))
}

fn display(global: &Global, streams: Streams, no_progress: bool) -> Display {
    Display {
        width: streams.width,
        colour: streams.stdout_colour,
        hyperlinks: streams.hyperlinks,
        quiet: global.quiet,
        verbose: global.verbose,
        live_progress: streams.live_progress,
        no_progress,
    }
}

fn product_and_talk() -> review::Streams {
    review::Streams {
        product: Box::new(io::stdout()),
        talk: Box::new(io::stderr()),
    }
}

async fn run_review(
    args: ReviewArgs,
    global: &Global,
    streams: Streams,
    environment: &Environment,
) -> Result<u8, AppError> {
    let outputs = if args.json {
        vec!["json".to_owned()]
    } else {
        args.format
    };
    let outputs: Vec<OutputSpec> = outputs
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    review::check_outputs(&outputs, args.plan, environment)?;
    let pull = match &args.pr {
        Some(selector) => Some(pull::prepare(selector, args.repo.as_deref(), environment).await?),
        None => None,
    };
    let input = match (args.diff, args.staged, args.base) {
        _ if let Some(pull) = &pull => pull.input(),
        (Some(path), _, _) if path == Path::new("-") => Input::PatchBytes(read_stdin()?),
        (Some(path), _, _) => Input::PatchFile(path),
        (None, true, _) => Input::Local(LocalInput::Staged),
        (None, false, Some(base)) => Input::Local(LocalInput::Range {
            base,
            head: args.head,
        }),
        (None, false, None) => Input::Local(LocalInput::WorkTree),
    };
    let fail_on = match args.fail_on {
        _ if args.no_fail => FailOn::Never,
        FailOnArg::RequestChanges => FailOn::RequestChanges,
        FailOnArg::Incomplete => FailOn::Incomplete,
        FailOnArg::Never => FailOn::Never,
    };
    let request = Request {
        input,
        agents: args.agents,
        model: args.model,
        config_dir: args.config_dir,
        time_limit: args.time_limit,
        max_cost: args.max_cost,
        route: args.route,
        context_file: args.context_file,
        described: pull
            .as_ref()
            .map(PullRequestObjects::described)
            .unwrap_or_default(),
        plan_only: args.plan,
        outputs,
        display: display(global, streams, args.no_progress),
        save: true,
        tape: match (args.record, args.replay) {
            (Some(folder), _) => TapeChoice::Record(folder),
            (None, Some(folder)) => TapeChoice::Replay(folder),
            (None, None) => TapeChoice::Live,
        },
    };
    match review::review(request, environment, product_and_talk()).await? {
        Finished::Planned => Ok(EXIT_OK),
        Finished::Reviewed { review, interrupt } => {
            Ok(exit::of_review(&review, interrupt, fail_on))
        }
    }
}

async fn run_ci(args: CiArgs, environment: &Environment) -> Result<u8, AppError> {
    let request = CiRequest {
        agents: args.agents,
        force: args.force,
        comment_command: args.comment_command,
        repost: args.repost,
        annotate: args.annotate,
        route: args.route,
        context_file: args.context_file,
    };
    let log = ci::Log::new(Box::new(io::stderr()));
    match Box::pin(ci::run(&request, environment, &log)).await {
        Ok(ended) => {
            if !ended.annotations.is_empty() {
                write_product(&ended.annotations)?;
            }
            Ok(exit::of_ci(&ended, args.strict))
        }
        // A check must not turn red because the reviewer has a problem.
        Err(error) if !args.strict => {
            log.error(&error);
            Ok(EXIT_OK)
        }
        Err(error) => Err(error),
    }
}

async fn run_dismiss(
    args: DismissArgs,
    active: bool,
    environment: &Environment,
) -> Result<u8, AppError> {
    let request = DismissRequest {
        ids: args.ids,
        number: args.pr,
        repo: args.repo,
        reason: args.reason,
        by: args.by,
        active,
    };
    write_product(&ci::dismiss(&request, environment).await?)?;
    Ok(EXIT_OK)
}

fn read_stdin() -> Result<Arc<[u8]>, AppError> {
    let mut patch = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut patch)
        .map_err(|error| {
            AppError::plain(format!(
                "cannot read the patch from standard input: {error}"
            ))
        })?;
    Ok(patch.into())
}

async fn run_demo(
    args: DemoArgs,
    global: &Global,
    streams: Streams,
    environment: &Environment,
) -> Result<u8, AppError> {
    let sample = demo::prepare(args.keep.as_deref(), environment)?;
    if !global.quiet {
        let place = args
            .keep
            .as_ref()
            .map_or_else(String::new, |_| format!(" in {}", sample.root().display()));
        stream::talk(&format!(
            "A sample repository with an uncommitted change{place}; what follows is `ecr review` in it."
        ));
    }
    let request = Request {
        input: Input::Local(LocalInput::WorkTree),
        // Whatever model the environment names: the demonstration calls none.
        agents: vec!["checks".to_owned()],
        model: None,
        config_dir: None,
        time_limit: None,
        max_cost: None,
        route: false,
        context_file: None,
        described: String::new(),
        plan_only: false,
        outputs: Vec::new(),
        display: display(global, streams, false),
        save: args.keep.is_some(),
        tape: TapeChoice::Live,
    };
    let environment = environment.at(sample.root().to_path_buf());
    match review::review(request, &environment, product_and_talk()).await? {
        Finished::Reviewed {
            interrupt: Some(interrupt),
            ..
        } => Ok(exit::of_interrupt(interrupt)),
        // The sample is meant to have findings: showing them is success.
        Finished::Planned | Finished::Reviewed { .. } => Ok(EXIT_OK),
    }
}

async fn run_ref_check(
    args: RefCheckArgs,
    global: &Global,
    environment: &Environment,
) -> Result<u8, AppError> {
    let format = if args.json {
        ref_check::Format::Json
    } else {
        ref_check::Format::Text
    };
    let outcome = ref_check::run_on_disk(args.root.as_deref(), format, environment).await?;
    if args.json || !outcome.report.is_ok() || !global.quiet {
        write_product(&outcome.text)?;
    }
    Ok(if outcome.report.is_ok() {
        EXIT_OK
    } else {
        EXIT_REQUEST_CHANGES
    })
}

//! `ecr review`: one source, one plan, one run, reported and kept.

mod context;
mod output;
mod setup;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(super) use self::context::{ContextFile, described};
pub use self::output::check_outputs;
use self::output::{deliver, print_plan, save};
use self::setup::load_setup;
pub(super) use self::setup::{
    Checkout, Setup, Wanted, checkout, read_setup, setup_choice, setup_digest,
};
use super::engines::Confinement;
use super::signals::SignalWatch;
use super::tape::{Tape, TapeChoice};
use super::{AppError, Environment, models};
use crate::config::SandboxLevel;
use crate::diff::chunk::{ChunkLimits, pack};
use crate::diff::glob::Glob;
use crate::diff::noise::{FilterReason, NoiseSettings, filter};
use crate::finding::Policy;
use crate::git::HostEnv;
use crate::model::{
    AgentId, CoverageNote, Decision, EngineName, InputInfo, NoteKind, PassKind, RepoPath, Review,
};
use crate::pipeline::{
    EngineSet, Halving, Judges, Limits, Plan, PlanInput, PlannedAgent, Router, RunDeps, RunInput,
    plan, run, skipped,
};
use crate::port::{
    Progress, ProgressEvent, ReviewSource, SourceError, SourceInput, TreeUnderReview,
};
use crate::process::sandbox::Level;
use crate::render::{self, Format, RenderContext, TerminalOptions};
use crate::reporter::{ProgressMode, ProgressReporter};
use crate::source::{
    LocalSource, PatchInput, PatchSource, PullRequestInput, PullRequestSource, Selection,
};
use crate::tree::Tree;

/// What to review.
#[derive(Debug, Clone)]
pub enum Input {
    /// A selection of the repository around the current folder.
    Local(LocalInput),
    /// A patch file.
    PatchFile(PathBuf),
    /// A patch that was read from standard input.
    PatchBytes(Arc<[u8]>),
    /// A pull request whose objects were fetched.
    PullRequest(Box<PullRequestInput>, TrustedSide),
}

/// Where the configuration of a pull request's review comes from. Never its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustedSide {
    /// The tip of its base branch: in CI.
    Base,
    /// The checkout around the current folder: the developer's own.
    Checkout,
}

/// Changes of a local repository.
#[derive(Debug, Clone)]
pub enum LocalInput {
    /// Working tree and untracked files against the default branch.
    WorkTree,
    /// The index against `HEAD`.
    Staged,
    /// A range; without a head the working tree against `base`.
    Range {
        /// The ref compared with.
        base: String,
        /// The ref under review.
        head: Option<String>,
    },
}

/// What makes the exit code non-zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Only `request_changes`.
    RequestChanges,
    /// Also an incomplete review.
    Incomplete,
    /// Nothing.
    Never,
}

/// The signal that ended a run early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
}

/// A report to write: a format, and a file instead of stdout.
#[derive(Debug, Clone)]
pub struct OutputSpec {
    format: Format,
    path: Option<PathBuf>,
}

impl std::str::FromStr for OutputSpec {
    type Err = AppError;

    /// `FORMAT` or `FORMAT=FILE`.
    fn from_str(text: &str) -> Result<Self, AppError> {
        let (name, path) = match text.split_once('=') {
            Some((_, "")) => {
                return Err(AppError::new(
                    format!("--format {text}: there is no file name after `=`"),
                    "write for example --format sarif=ecr.sarif",
                ));
            }
            Some((name, path)) => (name, Some(PathBuf::from(path))),
            None => (text, None),
        };
        let format = name.parse().map_err(|error: render::UnknownFormat| {
            AppError::new(
                error.to_string(),
                "write --format NAME or --format NAME=FILE",
            )
        })?;
        Ok(Self { format, path })
    }
}

/// What the terminal can show, and how much to say.
#[derive(Debug, Clone)]
pub struct Display {
    /// Columns of stdout.
    pub width: usize,
    /// Colour on stdout.
    pub colour: bool,
    /// OSC 8 hyperlinks on stdout.
    pub hyperlinks: bool,
    /// `-q`.
    pub quiet: bool,
    /// `-v`.
    pub verbose: bool,
    /// A moving progress line may be drawn on stderr.
    pub live_progress: bool,
    /// `--no-progress`.
    pub no_progress: bool,
}

/// A review to do.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to review.
    pub input: Input,
    /// Only these reviewers; empty for all.
    pub agents: Vec<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--config-dir`.
    pub config_dir: Option<PathBuf>,
    /// `--time-limit`.
    pub time_limit: Option<Duration>,
    /// `--max-cost`, in US dollars; it wins over `policy.maxCostUsd`.
    pub max_cost: Option<f64>,
    /// `--route`.
    pub route: bool,
    /// `--context-file`.
    pub context_file: Option<PathBuf>,
    /// What a pull request says of itself; empty for nothing.
    pub described: String,
    /// `--plan`.
    pub plan_only: bool,
    /// The reports; empty for the terminal's.
    pub outputs: Vec<OutputSpec>,
    /// How to show it.
    pub display: Display,
    /// Keep the run for `ecr explain`.
    pub save: bool,
    /// `--record`, `--replay`.
    pub tape: TapeChoice,
}

/// Where the product goes and where the talk goes.
pub struct Streams {
    /// stdout.
    pub product: Box<dyn Write + Send>,
    /// stderr.
    pub talk: Box<dyn Write + Send>,
}

/// How it ended.
#[derive(Debug)]
pub enum Finished {
    /// `--plan`: printed, nothing was reviewed.
    Planned,
    /// A review, printed.
    Reviewed {
        /// The review.
        review: Box<Review>,
        /// The signal that cut it, if one did.
        interrupt: Option<Interrupt>,
    },
}

/// The time budgets when nothing else is said (llp/0004).
const PASSES_BUDGET: Duration = Duration::from_secs(55 * 60);
const PASS_BUDGET: Duration = Duration::from_secs(15 * 60);
const JUDGES_BUDGET: Duration = Duration::from_secs(15 * 60);

/// The agent that the built-in checks report as.
const CHECKS_AGENT: &str = "checks";

/// Reviews, reports and keeps the run.
pub async fn review(
    request: Request,
    environment: &Environment,
    streams: Streams,
) -> Result<Finished, AppError> {
    let started = Instant::now();
    let cancel = CancellationToken::new();
    let watch = SignalWatch::start(cancel.clone())
        .map_err(|error| AppError::plain(format!("cannot watch for signals: {error}")))?;
    let display = request.display.clone();
    let Streams { product, mut talk } = streams;

    let local = match &request.input {
        Input::Local(input) => Some(LocalSource::new(
            environment.variables().collect::<HostEnv>(),
            environment.cwd().to_path_buf(),
            selection(input),
            cancel.clone(),
        )),
        _ => None,
    };
    let pull = match &request.input {
        Input::PullRequest(input, _) => Some(PullRequestSource::new(
            environment.variables().collect::<HostEnv>(),
            input.as_ref().clone(),
            cancel.clone(),
        )),
        _ => None,
    };
    // Until there is a plan, there is nothing to report: a signal's error is the signal.
    let interrupted = |error| watch.interrupt().map_or(error, AppError::interrupted);
    let patch = match &request.input {
        Input::Local(_) | Input::PullRequest(..) => None,
        Input::PatchBytes(bytes) => Some(PatchInput::Bytes(Arc::clone(bytes))),
        Input::PatchFile(path) => Some(PatchInput::File(environment.cwd().join(path))),
    };
    let patch = patch.map(PatchSource::new);
    let source: &dyn ReviewSource = match (&local, &pull, &patch) {
        (Some(local), ..) => local,
        (_, Some(pull), _) => pull,
        (.., Some(patch)) => patch,
        (None, None, None) => return Err(AppError::plain("there is no source for this review")),
    };
    let mut setup = Box::pin(load_setup(
        &request,
        environment,
        (local.as_ref(), pull.as_ref()),
        &cancel,
    ));
    let mut loading = Box::pin(load(source, &request, started, &cancel));
    // git lists the work tree for the one while it compares trees for the other. A patch may come from a pipe that cannot be
    // read twice: it is left alone until the set-up is known to be good.
    let mut loaded = None;
    let setup = loop {
        tokio::select! {
            setup = &mut setup => break setup.map_err(interrupted)?,
            done = &mut loading, if local.is_some() && loaded.is_none() => loaded = Some(done),
        }
    };
    let file = request.context_file.as_deref();
    let file = file
        .map(|path| ContextFile::read(path, environment))
        .transpose()?;
    let context_text = context::told(file.as_ref(), &request.described);
    let tape = Tape::open(&request.tape, environment.cwd())?;
    if !tape.is_live() && setup.reviewers.is_empty() {
        return Err(AppError::new(
            "no model takes part in this run, so there is nothing to record or to replay",
            "name a model with --model, REVIEWER_MODEL or `model` in config.jsonc",
        ));
    }
    if !display.quiet {
        for warning in &setup.warnings {
            let _ = writeln!(talk, "{warning}");
        }
    }
    let context = RenderContext::new(terminal_options(&display, request.save, setup.root.clone()));
    let progress = Arc::new(ProgressReporter::new(progress_mode(&display), talk));
    let loaded = match loaded {
        Some(loaded) => loaded,
        None => loading.await,
    };
    let review = match loaded.map_err(interrupted)? {
        Loaded::Nothing(review) => *review,
        Loaded::Change(input) => {
            progress.event(ProgressEvent::Note(selection_line(&input)));
            tape.change(&input.info)?;
            let prepared = prepare(*input, source, &setup, &request)
                .await
                .map_err(interrupted)?;
            if request.plan_only {
                progress.finish();
                let prices = models::price_table(&setup.loaded);
                let task = models::tasks(&prepared.plan, tape.mark(), context_text);
                return print_plan(&prepared, &request, &context, (&prices, &task), product);
            }
            let deps = RunDeps {
                progress: Arc::clone(&progress) as Arc<dyn Progress>,
                cancel: cancel.clone(),
                ladder: Arc::new(Halving),
                tasks: Some(models::tasks(&prepared.plan, tape.mark(), context_text)),
                incoming: None,
            };
            let wires = (environment, &tape);
            execute(prepared, &setup, &request, wires, (started, deps)).await?
        }
    };
    progress.finish();
    let interrupt = watch.interrupt();
    if interrupt.is_none()
        && let Some(words) = tape.compare()?
        && !display.quiet
    {
        progress.event(ProgressEvent::Note(words));
    }

    // A run without findings to speak of must not take the place of the one before.
    if request.save
        && review.decision != Decision::Skipped
        && let Err(message) = save(&review, &context, &setup, environment)
        && !display.quiet
    {
        progress.event(ProgressEvent::Note(message));
    }
    deliver(&review, &request.outputs, &context, product, environment).await?;
    tape.finish()?;
    Ok(Finished::Reviewed {
        review: Box::new(review),
        interrupt,
    })
}

/// What there is to review.
enum Loaded {
    Change(Box<SourceInput>),
    Nothing(Box<Review>),
}

/// Reads the change. A patch may come through a pipe that nobody writes to, so neither a signal nor
/// the time limit waits for it.
async fn load(
    source: &dyn ReviewSource,
    request: &Request,
    started: Instant,
    cancel: &CancellationToken,
) -> Result<Loaded, AppError> {
    let limit = async {
        match request.time_limit {
            Some(limit) => {
                tokio::time::sleep_until(started + limit).await;
                limit
            }
            None => std::future::pending().await,
        }
    };
    let cancelled = || AppError::plain("cancelled before anything was reviewed");
    let loaded = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(cancelled()),
        loaded = source.load() => loaded,
        limit = limit => {
            return Err(AppError::new(
                format!("the change was not read within {}s; nothing was reviewed", limit.as_secs()),
                "raise --time-limit",
            ));
        }
    };
    match loaded {
        Ok(input) => Ok(Loaded::Change(Box::new(input))),
        Err(SourceError::Nothing { reason, info }) => {
            Ok(Loaded::Nothing(Box::new(skipped(*info, &reason))))
        }
        Err(error) => Err(source_error(error)),
    }
}

fn selection(input: &LocalInput) -> Selection {
    match input {
        LocalInput::WorkTree => Selection::WorkTree,
        LocalInput::Staged => Selection::Staged,
        LocalInput::Range { base, head } => Selection::Range {
            base: base.clone(),
            head: head.clone(),
        },
    }
}

fn selection_line(input: &SourceInput) -> String {
    let files = input.diff.files.len();
    let noun = if files == 1 { "file" } else { "files" };
    match (&input.info.base, &input.info.base_name) {
        (Some(base), Some(name)) if name != base.as_str() => {
            format!("{files} changed {noun} against {name} ({})", base.short())
        }
        (Some(base), _) => format!("{files} changed {noun} against {}", base.short()),
        (None, _) => format!("{files} changed {noun}"),
    }
}

fn source_error(error: SourceError) -> AppError {
    match error {
        SourceError::Invalid { message, hint } | SourceError::Failed { message, hint } => {
            AppError::new(message, hint)
        }
        SourceError::Nothing { reason, .. } => AppError::plain(reason),
    }
}

/// `kept` says that `ecr explain` will find the run.
pub(super) fn terminal_options(
    display: &Display,
    kept: bool,
    root: Option<PathBuf>,
) -> TerminalOptions {
    TerminalOptions {
        width: display.width,
        colour: display.colour,
        hyperlinks: display.hyperlinks,
        verbosity: match (display.quiet, display.verbose) {
            (true, _) => render::Verbosity::Quiet,
            (_, true) => render::Verbosity::Verbose,
            _ => render::Verbosity::Normal,
        },
        kept,
        root,
    }
}

fn progress_mode(display: &Display) -> ProgressMode {
    match display {
        Display { quiet: true, .. }
        | Display {
            no_progress: true, ..
        } => ProgressMode::Silent,
        Display {
            live_progress: true,
            ..
        } => ProgressMode::Bar,
        Display { verbose: true, .. } => ProgressMode::AllLines,
        _ => ProgressMode::Lines,
    }
}

/// A loaded change with its plan, which holds the diff.
struct Prepared {
    info: InputInfo,
    notes: Vec<CoverageNote>,
    tree: Option<Arc<dyn Tree>>,
    chunks: Vec<Vec<usize>>,
    plan: Plan,
}

async fn prepare(
    input: SourceInput,
    source: &dyn ReviewSource,
    setup: &Setup,
    request: &Request,
) -> Result<Prepared, AppError> {
    let tree = some_tree(source.tree().await.map_err(source_error)?);
    let base = some_tree(source.base_tree().await.map_err(source_error)?);
    let hidden = &setup.loaded.config.noise;
    let noise = NoiseSettings::new(&hidden.additional_ignores, &hidden.additional_markers)
        .map_err(|error| {
            AppError::new(
                format!("noise.additionalIgnores: {error}"),
                "mend the glob in config.jsonc",
            )
        })?;
    let limits = ChunkLimits {
        max_changed_lines: setup.loaded.config.chunk.max_changed_lines,
        max_files: setup.loaded.config.chunk.max_files,
    };
    let checks = setup.loaded.config.checks.enabled
        && (request.agents.is_empty() || request.agents.iter().any(|a| a == CHECKS_AGENT));
    let checks = if checks { Some(checks_agent()?) } else { None };
    let agents = setup.reviewers.clone();
    let cross_cutting = setup.roles.cross_cutting.clone();
    let never_sent = models::never_sent(&setup.loaded)?;
    let diff = Arc::new(input.diff);
    let head = tree.clone();
    // Both walk the diff and read through trees: not work for an async thread.
    let worked = tokio::task::spawn_blocking(move || {
        let reasons = filter(&diff, base.as_deref(), head.as_deref(), &noise);
        let (mut filtered, mut hidden) = (BTreeMap::new(), BTreeMap::new());
        for (at, reason) in reasons.into_iter().enumerate() {
            let file = &diff.files[at];
            let paths = [Some(&file.path), file.old_path.as_ref()];
            let held = |glob: &Glob| paths.iter().flatten().any(|p| glob.matches(p.as_bytes()));
            if never_sent.iter().any(held) {
                filtered.insert(at, "held back by send.never".to_owned());
                continue;
            }
            let Some(reason) = reason else { continue };
            let place = match reason {
                FilterReason::TextAsBinary => &mut hidden,
                _ => &mut filtered,
            };
            place.insert(at, reason.to_string());
        }
        let kept: Vec<usize> = (0..diff.files.len())
            .filter(|at| !filtered.contains_key(at) && !hidden.contains_key(at))
            .collect();
        let chunks = pack(&diff, &kept, limits);
        let planned = plan(&PlanInput {
            diff,
            filtered,
            hidden,
            checks,
            agents,
            chunks: chunks.clone(),
            cross_cutting,
        });
        (planned, chunks)
    });
    let (plan, chunks) = worked
        .await
        .map_err(|_| AppError::plain("planning the review was aborted"))?;
    let mut notes = input.notes;
    if setup.reviewers.is_empty() && !setup.loaded.models().is_empty() {
        notes.push(CoverageNote {
            kind: NoteKind::ChecksOnly,
            text: "None of the reviewers that have a model was asked for (--agents): only the built-in checks ran.".to_owned(),
        });
    }
    Ok(Prepared {
        info: input.info,
        notes,
        tree,
        chunks,
        plan,
    })
}

fn some_tree(tree: TreeUnderReview) -> Option<Arc<dyn Tree>> {
    match tree {
        TreeUnderReview::Tree(tree) => Some(tree),
        TreeUnderReview::None => None,
    }
}

fn checks_agent() -> Result<PlannedAgent, AppError> {
    Ok(PlannedAgent {
        id: AgentId::new(CHECKS_AGENT).map_err(|error| AppError::plain(error.to_string()))?,
        engine: EngineName::new("builtin"),
        model: None,
        system: Arc::from(""),
        always_run: true,
    })
}

async fn execute(
    prepared: Prepared,
    setup: &Setup,
    request: &Request,
    (environment, tape): (&Environment, &Tape),
    (started, deps): (Instant, RunDeps),
) -> Result<Review, AppError> {
    let config = &setup.loaded.config;
    let agents = setup.agents();
    let limits = limits(
        request.time_limit,
        models::concurrency(&setup.loaded, &agents),
    );
    let never_sent = models::never_sent(&setup.loaded)?;
    let mut engines = EngineSet::new();
    engines.insert(setup.builtin_engine());
    let wiring = models::Wiring {
        loaded: &setup.loaded,
        environment,
        concurrency: limits.concurrency,
        max_cost: request.max_cost.or(config.policy.max_cost_usd),
        confinement: confinement(setup, request),
        tape,
    };
    let connected = models::connect(&mut engines, &agents, &wiring).await?;
    for note in connected.notes {
        deps.progress.event(ProgressEvent::Note(note));
    }
    let mut plan = prepared.plan;
    // It runs beside all others, so it may take nearly as long as they do together.
    for pass in &mut plan.passes {
        if pass.kind == PassKind::CrossCutting {
            pass.limit = Some(limits.passes * 9 / 10);
        }
    }
    let input = RunInput {
        info: prepared.info,
        sandbox: connected.sandbox,
        plan,
        tree: prepared.tree,
        policy: Policy {
            include_suggestions: config.policy.include_suggestions,
            max_findings: config
                .policy
                .max_findings
                .and_then(|n| usize::try_from(n).ok()),
        },
        scope: None,
        limits,
        router: setup.roles.router.clone().map(|agent| Router {
            agent,
            concerns: setup.concerns(),
            mark: tape.mark(),
        }),
        judges: Judges {
            coordinator: setup.roles.coordinator.clone(),
            verifier: setup.roles.verifier.clone(),
            scope: config.verify.scope,
            parallel: usize::try_from(config.verify.parallel).unwrap_or(1),
            mark: tape.mark(),
            withheld: Arc::new(move |path: &RepoPath| {
                never_sent.iter().any(|glob| glob.matches(path.as_bytes()))
            }),
        },
        notes: prepared.notes,
        started,
    };
    Ok(run(input, &engines, deps).await)
}

/// The budgets: what is left of the run when the passes' time is over is for the judges.
fn limits(run: Option<Duration>, concurrency: usize) -> Limits {
    let run = run.unwrap_or(PASSES_BUDGET + JUDGES_BUDGET);
    let passes = PASSES_BUDGET.min(run.saturating_sub(JUDGES_BUDGET.min(run / 6)));
    Limits {
        concurrency,
        pass: PASS_BUDGET.min(passes),
        passes,
        run,
    }
}

/// How engine processes are confined: completely for other people's work, as configured for one's own.
fn confinement(setup: &Setup, request: &Request) -> Confinement {
    let require = match (&request.input, setup.loaded.config.sandbox_require) {
        (Input::PatchFile(_) | Input::PatchBytes(_) | Input::PullRequest(..), _)
        | (_, SandboxLevel::Full) => Level::Full,
        (Input::Local(_), SandboxLevel::Files) => Level::Files,
        (Input::Local(_), SandboxLevel::None) => Level::None,
    };
    Confinement {
        reviewed: setup.reviewed.clone(),
        require,
    }
}

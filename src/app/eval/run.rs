//! Reviews the cases one after the other, keeps each result, and scores them.
//!
//! @ref LLP 0017#results-are-kept — what a result is bound to

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::dataset::{self, Change, Loaded};
use super::store::{Store, key};
use crate::app::review::{self, Display, Input, Interrupt, Streams, TrustedSide};
use crate::app::signals::SignalWatch;
use crate::app::tape::TapeChoice;
use crate::app::{AppError, Environment};
use crate::eval::{self, Case, EvalReportV1, Reviewed, Settings, score};
use crate::gateway::tape::HEADER_FILE;
use crate::git::{GitError, HeadSide, HostEnv, Repository, TreeFile, commit_change};
use crate::model::{CommitId, printable};
use crate::render::{self, RenderContext, TerminalOptions};
use crate::source::PullRequestInput;
use crate::state::output::OutputV1;

/// An evaluation to do.
#[derive(Debug, Clone)]
pub struct Request {
    /// The data set's folder.
    pub dataset: PathBuf,
    /// Only these cases; empty for all.
    pub only: Vec<String>,
    /// Where clones are.
    pub repos: Option<PathBuf>,
    /// Where results are kept.
    pub out: Option<PathBuf>,
    /// Do not review again what is there.
    pub resume: bool,
    /// The folder with a tape for each case.
    pub tape: TapeChoice,
    /// Only these reviewers; empty for all.
    pub agents: Vec<String>,
    /// The model of every reviewer.
    pub model: Option<String>,
    /// The set-up.
    pub config_dir: Option<PathBuf>,
    /// What all reviews together may cost, in US dollars.
    pub max_cost: Option<f64>,
    /// How findings and labels are matched.
    pub settings: Settings,
    /// What the intervals are drawn with.
    pub seed: u64,
    /// How to show it; only `quiet` counts.
    pub display: Display,
}

/// How it ended.
#[derive(Debug)]
pub struct Finished {
    /// The figures over what was reviewed.
    pub report: EvalReportV1,
    /// The signal that ended it, if one did.
    pub interrupt: Option<Interrupt>,
}

/// The figures as JSON, or as text for a terminal.
pub fn render(report: &EvalReportV1, json: bool) -> String {
    if json {
        render::pretty_json(report)
    } else {
        eval::terminal(report)
    }
}

/// Reviews what has to be reviewed and scores all of it. `talk` takes a line a case.
pub async fn run(
    request: Request,
    environment: &Environment,
    mut talk: Box<dyn Write + Send>,
) -> Result<Finished, AppError> {
    let folder = environment.cwd().join(&request.dataset);
    let names = dataset::names(&folder, &request.only)?;
    let repos = request
        .repos
        .as_ref()
        .map(|repos| environment.cwd().join(repos));
    let mut cases = Vec::new();
    // All of them first: an error in the last one should not come after hours.
    for name in &names {
        cases.push(dataset::load(&folder, name, repos.as_deref())?);
    }
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let store = Store::open(request.out.as_deref(), &whole, environment)?;
    let setup = review::setup_digest(
        &review_request(&request, Input::PatchBytes(Arc::from([])), "", None),
        environment,
    )
    .await?;
    let mut say = |text: String| {
        if !request.display.quiet {
            let _ = writeln!(talk, "{text}");
        }
    };
    say(format!(
        "results are kept in {}",
        printable(&store.folder().to_string_lossy())
    ));

    let mut outputs = BTreeMap::new();
    let mut spent = 0.0;
    let mut interrupt = None;
    // A review watches for itself; this is for the time between two.
    let watch = SignalWatch::start(CancellationToken::new())
        .map_err(|error| AppError::plain(format!("cannot watch for signals: {error}")))?;
    for (at, loaded) in cases.iter().enumerate() {
        interrupt = watch.interrupt();
        if interrupt.is_some() {
            break;
        }
        let head = format!("[{}/{}] {}", at + 1, cases.len(), printable(&loaded.name));
        let key = key(&[
            env!("CARGO_PKG_VERSION"),
            &loaded.digest,
            &setup,
            &recording(&request.tape, &loaded.name, environment),
        ]);
        if request.resume
            && let Some(output) = store.find(&loaded.name, &key)
        {
            say(format!("{head}: kept from before, {}", summary(&output)));
            outputs.insert(loaded.name.as_str(), output);
            continue;
        }
        if let Change::Absent(reason) = &loaded.change {
            say(format!("{head}: not reviewed: {reason}"));
            continue;
        }
        let left = request.max_cost.map(|cap| cap - spent);
        if left.is_some_and(|left| left < 1e-6) {
            say(format!(
                "{head}: not reviewed: --max-cost is spent; raise it and go on with --resume"
            ));
            continue;
        }
        let (output, ended) = match one(&request, loaded, left, environment).await {
            Ok(done) => done,
            Err(error) if error.interrupt.is_some() => {
                interrupt = error.interrupt;
                break;
            }
            Err(error) => {
                return Err(AppError {
                    message: format!("case {}: {}", printable(&loaded.name), error.message),
                    ..error
                });
            }
        };
        spent += output.usage.cost_usd.unwrap_or(0.0);
        if ended.is_some() {
            // What a signal has cut is no result to go on from.
            interrupt = ended;
            break;
        }
        store.keep(&loaded.name, &key, &output)?;
        say(format!("{head}: {}", summary(&output)));
        outputs.insert(loaded.name.as_str(), output);
    }
    let reviewed: Vec<(&str, &Case, &OutputV1)> = cases
        .iter()
        .filter_map(|loaded| {
            let output = outputs.get(loaded.name.as_str())?;
            Some((loaded.name.as_str(), &loaded.case, output))
        })
        .collect();
    let reviewed: Vec<Reviewed<'_>> = reviewed
        .into_iter()
        .map(|(name, case, output)| Reviewed { name, case, output })
        .collect();
    let dataset = whole
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    Ok(Finished {
        report: score(
            &dataset,
            cases.len(),
            &reviewed,
            request.settings,
            request.seed,
        ),
        interrupt,
    })
}

/// What tells one recording from another: its header, in which the seed is drawn anew each time. Whether there is a tape
/// at all is the review's business.
fn recording(tape: &TapeChoice, case: &str, environment: &Environment) -> String {
    let TapeChoice::Replay(folder) = tape else {
        return "live".to_owned();
    };
    let header = environment.cwd().join(folder).join(case).join(HEADER_FILE);
    std::fs::read_to_string(header).unwrap_or_default()
}

fn summary(output: &OutputV1) -> String {
    let findings = match output.findings.len() {
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    };
    let incomplete = if output.complete { "" } else { ", incomplete" };
    format!(
        "{findings}{incomplete}, {:.1}s",
        output.timing.total_ms as f64 / 1_000.0
    )
}

fn review_request(
    request: &Request,
    input: Input,
    case: &str,
    max_cost: Option<f64>,
) -> review::Request {
    let tape = match &request.tape {
        TapeChoice::Live => TapeChoice::Live,
        TapeChoice::Record(folder) => TapeChoice::Record(folder.join(case)),
        TapeChoice::Replay(folder) => TapeChoice::Replay(folder.join(case)),
    };
    review::Request {
        input,
        agents: request.agents.clone(),
        model: request.model.clone(),
        config_dir: request.config_dir.clone(),
        time_limit: None,
        max_cost,
        route: false,
        context_file: None,
        described: String::new(),
        plan_only: false,
        outputs: Vec::new(),
        display: Display {
            quiet: true,
            ..request.display.clone()
        },
        save: false,
        tape,
    }
}

/// Reviews one case; its trees lie in a bare repository meanwhile.
async fn one(
    request: &Request,
    loaded: &Loaded,
    max_cost: Option<f64>,
    environment: &Environment,
) -> Result<(OutputV1, Option<Interrupt>), AppError> {
    let scratch = tempfile::Builder::new()
        .prefix("ecr-eval-")
        .tempdir()
        .map_err(|error| AppError::plain(format!("cannot make a folder for the case: {error}")))?;
    let input = match &loaded.change {
        Change::Trees(base, head) => made(scratch.path(), base, HeadSide::Files(head))?,
        Change::TreeAndPatch(base, patch) => made(scratch.path(), base, HeadSide::Patch(patch))?,
        Change::Patch(patch) => Input::PatchBytes(patch.as_slice().into()),
        Change::Clone { folder, base, head } => cloned(folder, base, head, environment).await?,
        Change::Absent(reason) => return Err(AppError::plain(reason.clone())),
    };
    let streams = Streams {
        product: Box::new(std::io::sink()),
        talk: Box::new(std::io::sink()),
    };
    let asked = review_request(request, input, &loaded.name, max_cost);
    match review::review(asked, environment, streams).await? {
        review::Finished::Reviewed { review, interrupt } => {
            let context = RenderContext::new(TerminalOptions::default());
            Ok((render::output(&review, &context), interrupt))
        }
        review::Finished::Planned => Err(AppError::plain("nothing was reviewed")),
    }
}

/// A stranger's change, whose commits are in `objects`.
fn pull_request(objects: &Path, (base, merge_base, head): (CommitId, CommitId, CommitId)) -> Input {
    let input = PullRequestInput {
        objects: objects.to_path_buf(),
        base,
        merge_base,
        head,
        repo: "ecr/eval".to_owned(),
        number: 0,
        base_name: "base".to_owned(),
    };
    Input::PullRequest(Box::new(input), TrustedSide::Checkout)
}

fn made(folder: &Path, base: &[TreeFile], head: HeadSide<'_>) -> Result<Input, AppError> {
    let (base, head) = commit_change(folder, base, head).map_err(|error| {
        AppError::new(
            format!("the change cannot be made: {error}"),
            "check that change.patch applies to `base`",
        )
    })?;
    Ok(pull_request(folder, (base.clone(), base, head)))
}

async fn cloned(
    folder: &Path,
    base: &str,
    head: &str,
    environment: &Environment,
) -> Result<Input, AppError> {
    let failed = |error: GitError| {
        AppError::new(
            printable(&error.to_string()),
            format!(
                "fetch both commits into {}",
                printable(&folder.to_string_lossy())
            ),
        )
    };
    let host = environment.variables().collect::<HostEnv>();
    let repository = Repository::discover(&host, folder, CancellationToken::new())
        .await
        .map_err(failed)?;
    let base = repository.resolve(base).await.map_err(failed)?;
    let head = repository.resolve(head).await.map_err(failed)?;
    let merge_base = repository.merge_base(&base, &head).await.map_err(failed)?;
    Ok(pull_request(folder, (base, merge_base, head)))
}

//! The second process: the same binary with the model credential and without the forge token.
//!
//! @ref LLP 0012#two-processes — who holds which credential

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::job::{ANNOTATIONS, Job};
use crate::app::forge::TOKEN_VARIABLES;
use crate::app::review::{self, Display, Finished, Input, Request, Streams, TrustedSide};
use crate::app::tape::TapeChoice;
use crate::app::{AppError, Environment, network};
use crate::config::{LoadedConfig, is_forbidden, key_env};
use crate::model::{Secret, printable};
use crate::process::{self, End, PrivateFolder, Spec, ToolPath};
use crate::render::comment::{Origin, store};
use crate::render::{self, RenderContext};
use crate::state::comment::StoredReview;
use crate::state::run_log::RunLine;

/// The hidden command.
pub(super) const COMMAND: &str = "ci-worker";
/// The longest that a review may take, its own limits included.
const DEADLINE: Duration = Duration::from_secs(75 * 60);
/// What a worker has to report what it knows when the job is cancelled.
const GRACE: Duration = Duration::from_secs(5);

/// Variables that a review may need; credentials come on top.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REVIEWER_MODEL",
    "ECR_CONFIG_DIR",
    "ECR_EXPECTED_TOKEN_ENV",
    "ECR_VERBOSE",
    "ECR_LOG",
    "CI",
    "GITHUB_ACTIONS",
    "GITHUB_WORKSPACE",
];

/// What came of it.
pub(super) struct Reviewed {
    /// The review.
    pub(super) review: StoredReview,
    /// Workflow commands, one a line.
    pub(super) annotations: String,
    /// For the run log.
    pub(super) log: Option<RunLine>,
}

/// The environment of the worker: an allowlist and the credentials that the set-up names, never the forge's.
fn worker_environment(
    environment: &Environment,
    loaded: &LoadedConfig,
) -> Vec<(OsString, OsString)> {
    let mut names: BTreeSet<String> = PASSED.iter().map(|name| (*name).to_owned()).collect();
    for entry in &loaded.config.auth {
        let real = entry.upstream.as_deref().unwrap_or(&entry.provider);
        names.extend(entry.token_env.clone());
        names.extend(key_env(real).map(str::to_owned));
        if real == "anthropic" {
            names.insert("CLAUDE_CODE_OAUTH_TOKEN".to_owned());
        }
    }
    let models = loaded.models();
    names.extend(
        models
            .iter()
            .filter_map(|model| key_env(model.provider()))
            .map(str::to_owned),
    );
    names
        .into_iter()
        .filter(|name| !is_forbidden(name) && !TOKEN_VARIABLES.contains(&name.as_str()))
        .filter_map(|name| {
            let value = environment.get(&name)?.to_owned();
            Some((name.into(), value))
        })
        .collect()
}

/// Starts the worker and waits for it. Its log goes to `talk`, line by line.
pub(super) async fn run(
    job: &Job,
    loaded: &LoadedConfig,
    token: Option<&Secret<String>>,
    environment: &Environment,
    (cancel, talk): (&CancellationToken, &(dyn Fn(&str) + Send + Sync)),
) -> Result<Reviewed, String> {
    let folder = PrivateFolder::new("job").map_err(|error| error.to_string())?;
    job.write(folder.path()).map_err(|error| error.message)?;
    let spec = spec(folder.path(), loaded, token, environment)?;
    let mut complaint = String::new();
    let capture = process::stream(spec, cancel, |line| {
        let text = String::from_utf8_lossy(line.bytes);
        let text = text.trim_end();
        if let Some(error) = text.strip_prefix("error: ") {
            error.clone_into(&mut complaint);
        }
        talk(text);
    })
    .await
    .map_err(|error| error.to_string())?;
    let result = job.result(folder.path());
    let review = match (result, capture.end) {
        // Cut short or not: what it wrote is whole, and says itself what is missing.
        (Ok(review), _) => review,
        (Err(_), End::Cancelled) => return Err("the job was cancelled".to_owned()),
        (Err(_), End::Deadline) => {
            return Err(format!(
                "it did not end within {} minutes",
                DEADLINE.as_secs() / 60
            ));
        }
        (Err(_), End::Exited(_)) if !complaint.is_empty() => {
            let line: String = complaint.chars().take(500).collect();
            return Err(printable(&line).into_owned());
        }
        (Err(problem), End::Exited(_)) => return Err(problem),
    };
    let annotations = std::fs::read_to_string(folder.path().join(ANNOTATIONS)).unwrap_or_default();
    Ok(Reviewed {
        review,
        annotations,
        log: Job::log(folder.path()),
    })
}

fn spec(
    folder: &Path,
    loaded: &LoadedConfig,
    token: Option<&Secret<String>>,
    environment: &Environment,
) -> Result<Spec, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let (Some(place), Some(name)) = (
        program.parent(),
        program.file_name().and_then(|name| name.to_str()),
    ) else {
        return Err("ecr does not know where it is itself".to_owned());
    };
    let tool = ToolPath::find(name, place.as_os_str(), &[]).map_err(|error| error.to_string())?;
    let mut spec = Spec::new(tool, folder);
    spec.args = vec![COMMAND.into(), folder.into()];
    spec.env = worker_environment(environment, loaded);
    spec.stdout_limit = 1 << 20;
    spec.stderr_limit = 1 << 20;
    spec.line_limit = 16 << 10;
    spec.deadline = Some(DEADLINE);
    spec.grace = GRACE;
    spec.forbidden = token.cloned().into_iter().collect();
    Ok(spec)
}

/// The worker's side: reviews the job in `folder` and leaves the result there.
pub async fn work(
    folder: &Path,
    display: Display,
    environment: &Environment,
    talk: Box<dyn std::io::Write + Send>,
) -> Result<Finished, AppError> {
    let job = Job::read(folder)?;
    let options = review::terminal_options(&display, false, None);
    let request = Request {
        input: Input::PullRequest(Box::new(job.input()?), TrustedSide::Base),
        agents: job.agents.clone(),
        model: None,
        config_dir: None,
        time_limit: None,
        max_cost: None,
        route: job.route,
        context_file: job.context_file.clone(),
        described: job.described.clone(),
        plan_only: false,
        outputs: vec![format!("github={}", folder.join(ANNOTATIONS).display()).parse()?],
        display,
        save: false,
        tape: TapeChoice::Live,
    };
    // Nothing is printed: the parent says what there is to say.
    let streams = Streams {
        product: Box::new(std::io::sink()),
        talk,
    };
    let finished = review::review(request, environment, streams).await?;
    if let Finished::Reviewed { review, interrupt } = &finished {
        let origin = Origin {
            at: i64::try_from(network::now()).unwrap_or_default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // The parent knows what the review was made of.
            inputs: None,
            interrupted: interrupt.is_some(),
        };
        let output = render::output(review, &RenderContext::new(options));
        Job::leave_log(folder, &RunLine::of(jiff::Timestamp::now(), &output));
        Job::leave(folder, &store(review, origin))?;
    }
    Ok(finished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, SetupLocation, load};
    use crate::model::RepoPath;
    use crate::tree::MemoryTree;

    #[test]
    fn the_worker_gets_the_models_credential_and_nothing_of_the_forge() {
        let mut tree = MemoryTree::new();
        let config = r#"{"model": "lab/big", "engines": {"lab": "api"},
            "auth": {"providers": {"lab": {"tokenEnv": "LAB_KEY", "baseUrl": "https://lab.test"}}}}"#;
        tree.insert(
            RepoPath::new(".expo-code-review/config.jsonc").unwrap(),
            config.as_bytes(),
        );
        let loaded = load(&tree, &SetupLocation::Discover, &Overrides::default()).unwrap();
        let variables = [
            ("PATH", "/bin"),
            ("LAB_KEY", "k"),
            ("OTHER_KEY", "x"),
            ("GH_TOKEN", "t"),
            ("GITHUB_TOKEN", "t"),
            ("ACTIONS_RUNTIME_TOKEN", "t"),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "t"),
            ("GITHUB_EVENT_PATH", "/e"),
            ("GITHUB_STEP_SUMMARY", "/s"),
            ("GITHUB_ENV", "/n"),
            ("HTTPS_PROXY", "http://p"),
        ];
        let environment = Environment::new(
            "/w".into(),
            variables.map(|(k, v)| (OsString::from(k), OsString::from(v))),
        );
        let passed: Vec<_> = worker_environment(&environment, &loaded)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect();
        assert_eq!(passed, ["HTTPS_PROXY", "LAB_KEY", "PATH"]);
    }
}

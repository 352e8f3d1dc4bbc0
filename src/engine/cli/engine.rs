//! One pass with a command-line tool.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::installed::{Installed, Standing, examine};
use super::jar::Jar;
use super::outcome::ended;
use super::{CliDialect, CliFacts, Exit, PassFacts, Version, shown};
use crate::engine::api::{Ended, Why, pass_outcome};
use crate::engine::doors::{Client, Doors, OpenDoors};
use crate::gateway::{Credential, Upstream};
use crate::model::{EngineName, ModelId};
use crate::port::{
    BoxFuture, Capabilities, EngineError, PassContext, PassOutcome, PassRequest, ProgressEvent,
    ReviewEngine,
};
use crate::process::sandbox::{Level, probe};
use crate::process::{Capture, End, ProcessError, Stream, stream};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// Where a tool is looked for and how well it has to be contained.
#[derive(Debug, Clone)]
pub struct CliSettings {
    /// The value of `PATH`; a folder alone looks there only.
    pub search: OsString,
    /// Folders of the tree under review: nothing in them is started.
    pub reviewed: Vec<PathBuf>,
    /// The least that the sandbox has to enforce; below it every pass is refused.
    pub require: Level,
}

/// Runs a command-line tool in the jar, one process a pass.
pub struct CliEngine {
    dialect: Arc<dyn CliDialect>,
    doors: Arc<Doors>,
    settings: CliSettings,
    installed: OnceCell<Installed>,
    /// It was said that the version was not tested.
    said: AtomicBool,
    room: Semaphore,
}

impl CliEngine {
    /// An engine behind these doors. Nothing is looked at or started yet.
    pub fn new(dialect: Arc<dyn CliDialect>, doors: Arc<Doors>, settings: CliSettings) -> Self {
        let room = Semaphore::new(dialect.facts().at_once.max(1));
        Self {
            dialect,
            doors,
            settings,
            installed: OnceCell::new(),
            said: AtomicBool::new(false),
            room,
        }
    }

    /// The tool, looked at once: the first call hashes the program and asks it for its version.
    pub async fn installed(&self) -> Result<&Installed, EngineError> {
        let facts = self.dialect.facts();
        self.installed
            .get_or_try_init(|| async {
                examine(facts, &self.settings)
                    .await
                    .map_err(|refused| EngineError::Unavailable(refused.to_string()))
            })
            .await
    }

    /// Where a model is, if this tool may be used with its credential.
    fn upstream(&self, model: &ModelId) -> Result<&Arc<Upstream>, EngineError> {
        let facts = self.dialect.facts();
        let upstream = self.doors.upstream(model)?;
        let owner = match upstream.credential {
            Credential::Oauth(_) => "claude",
            Credential::ChatGpt { .. } => "codex",
            Credential::None | Credential::ApiKey(_) | Credential::Bearer(_) => {
                return Ok(upstream);
            }
        };
        if facts.plan == Some(owner) {
            return Ok(upstream);
        }
        let provider = model.provider();
        Err(EngineError::Unavailable(format!(
            "the token of a plan belongs to its own tool and is not used with {}: set an API key for {provider}, \
             or engines.{provider} to \"{owner}\"",
            facts.title
        )))
    }

    async fn pass(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> Result<PassOutcome, EngineError> {
        let begun = Instant::now();
        let facts = self.dialect.facts();
        let model = request.model.as_ref().ok_or_else(|| {
            EngineError::Unavailable(format!("no model is named for {}", request.agent))
        })?;
        let upstream = self.upstream(model)?;
        self.contained()?;
        let ready = async {
            let room = self.room.acquire().await;
            let room = room.map_err(|_| EngineError::Cancelled)?;
            Ok((room, self.installed().await?))
        };
        let (_room, installed) = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(EngineError::Cancelled),
            () = sleep_until(context.deadline) => return Err(EngineError::Timeout(begun.elapsed())),
            ready = ready => ready?,
        };
        if installed.standing == Standing::Untested && !self.said.swap(true, Ordering::Relaxed) {
            let note = untested(facts, installed.version);
            context.progress.event(ProgressEvent::Note(note));
        }
        let unavailable = |error: &dyn std::fmt::Display| {
            EngineError::Unavailable(format!("{} cannot be started: {error}", facts.title))
        };
        if !installed.binary.is_unchanged() {
            let path = installed.binary.target().display();
            return Err(unavailable(&format!("{path} was changed while ecr ran")));
        }
        let client = Client {
            style: facts.style,
            spelling: facts.spelling,
            allowed: if request.schema.is_some() {
                facts.also_offered_with_schema
            } else {
                facts.also_offered
            },
        };
        let OpenDoors { port, tools } = self.doors.open(&request, &context, &client)?;
        let jar = Jar::with_doors(self.doors.gateway()).map_err(|error| unavailable(&error))?;
        let names: Vec<String> = tools
            .iter()
            .flat_map(|tools| tools.tools())
            .map(|tool| tool.name)
            .collect();
        let facts_of_pass = PassFacts {
            model,
            upstream,
            system: &request.system,
            task: &request.task,
            schema: request.schema.as_deref(),
            tools: &names,
            doors: jar.doors().unwrap_or_else(|| port.address()),
            placeholder: port.placeholder(),
            root: jar.root(),
            limits: self.doors.limits(),
            time: context.remaining(),
        };
        let launch = self.dialect.launch(&facts_of_pass)?;
        let reader = Mutex::new(self.dialect.reader(&facts_of_pass));
        let mut spec = jar
            .spec(&installed.binary, &installed.libraries, launch)
            .map_err(|error| unavailable(&error))?;
        spec.deadline = Some(context.remaining());
        spec.grace = GRACE;
        spec.forbidden.extend(upstream.credential.secret().cloned());
        let captured = stream(spec, &context.cancel, |line| {
            if line.stream == Stream::Stdout {
                let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(told) = reader.line(line.bytes, line.cut) {
                    let event = ProgressEvent::PassActivity(request.id.clone(), shown(&told));
                    context.progress.event(event);
                }
            }
        })
        .await;
        // The books first: whatever becomes of the pass, what it used and read is known.
        let ledger = port.close().await;
        let record = tools.map(|tools| tools.record()).unwrap_or_default();
        context.meter.saw(&request.id, &record.seen);
        let captured = captured.map_err(|error| match error {
            ProcessError::Cancelled => EngineError::Cancelled,
            error => unavailable(&error),
        })?;
        drop(jar);
        let ended = match code(&captured) {
            Err(End::Cancelled) => return Err(EngineError::Cancelled),
            Err(_) if !ledger.finished => return Err(EngineError::Timeout(begun.elapsed())),
            Err(_) => Ended {
                text: String::new(),
                why: Why::Finished,
            },
            Ok(code) => {
                let stderr = String::from_utf8_lossy(&captured.stderr);
                let exit = Exit {
                    code,
                    stderr: &stderr,
                };
                let mut reader = reader.into_inner().unwrap_or_else(PoisonError::into_inner);
                ended(facts.title, &ledger, reader.said(exit), exit)?
            }
        };
        pass_outcome(&request, &context, ended, ledger, &record)
    }

    /// Refuses a machine that cannot contain a process as well as is required.
    fn contained(&self) -> Result<(), EngineError> {
        probe()
            .require(self.settings.require)
            .map_err(|refusal| EngineError::Unavailable(refusal.to_string()))
    }
}

fn untested(facts: &CliFacts, version: Version) -> String {
    let (first, last) = facts.tested;
    let tested = if first == last {
        last.to_string()
    } else {
        format!("{first} to {last}")
    };
    format!(
        "{} {version} was not tested with ecr ({tested} was); it has the flags that confine it",
        facts.title
    )
}

/// The exit code, none for a signal; or why it was ended.
fn code(captured: &Capture) -> Result<Option<i32>, End> {
    match captured.end {
        End::Exited(status) => Ok(status.code()),
        other => Err(other),
    }
}

impl ReviewEngine for CliEngine {
    fn name(&self) -> EngineName {
        EngineName::new(self.dialect.facts().name)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            structured_output: self.dialect.facts().structured_output,
            usage_reporting: true,
            read_only: true,
            served_tools: true,
            prompt_caching: true,
            subagents: false,
        }
    }

    fn preflight<'a>(&'a self, models: &'a [ModelId]) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            models.iter().try_for_each(|m| self.upstream(m).map(drop))?;
            self.contained()?;
            self.installed().await.map(drop)
        })
    }

    fn run(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> BoxFuture<'_, Result<PassOutcome, EngineError>> {
        Box::pin(self.pass(request, context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claude::FACTS;

    #[test]
    fn an_untested_version_is_named_with_the_tested_ones() {
        let words = untested(&FACTS, Version(2, 9, 0));
        assert!(words.contains("Claude Code 2.9.0"), "{words}");
        assert!(words.contains(&FACTS.tested.1.to_string()), "{words}");
    }
}

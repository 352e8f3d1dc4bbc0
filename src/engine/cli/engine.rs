//! One pass with a command-line tool.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, sleep_until};

use super::installed::{Installed, Standing, examine};
use super::turn::pass;
use super::{CliDialect, CliFacts, Rehearsals, Version};
use crate::engine::doors::Doors;
use crate::gateway::{Credential, Upstream};
use crate::model::{EngineName, ModelId};
use crate::port::{
    BoxFuture, Capabilities, EngineError, PassContext, PassOutcome, PassRequest, ProgressEvent,
    ReviewEngine,
};
use crate::process::sandbox::{Level, probe};

/// Where a tool is looked for and how well it has to be contained.
#[derive(Debug, Clone)]
pub struct CliSettings {
    /// The value of `PATH`; a folder alone looks there only.
    pub search: OsString,
    /// Folders of the tree under review: nothing in them is started.
    pub reviewed: Vec<PathBuf>,
    /// The least that the sandbox has to enforce; below it every pass is refused.
    pub require: Level,
    /// The self-tests of versions that were not tested.
    pub rehearsals: Rehearsals,
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

    /// The tool, looked at once: the first call hashes the program, asks it for its version, and holds the rehearsal
    /// of one that was not tested.
    pub async fn installed(&self) -> Result<&Installed, EngineError> {
        self.installed
            .get_or_try_init(|| async {
                examine(&self.dialect, &self.settings)
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
        self.upstream(model)?;
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
        if installed.standing == Standing::Rehearsed && !self.said.swap(true, Ordering::Relaxed) {
            let note = untested(facts, installed.version);
            context.progress.event(ProgressEvent::Note(note));
        }
        let passed = pass(
            self.dialect.as_ref(),
            &self.doors,
            installed,
            request,
            &context,
        )
        .await;
        passed.map_err(|error| match error {
            EngineError::Timeout(_) => EngineError::Timeout(begun.elapsed()),
            error => error,
        })
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
        "{} {version} was not tested with ecr ({tested} was); it has the flags that confine it, and the self-test of the jar held",
        facts.title
    )
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

//! One pass with `OpenCode`.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::config::{ConfigSettings, config, spelled};
use super::event::{Reader, Said, complaint};
use super::launch::{arguments, environment};
use crate::engine::api::{Ended, Why, conclude, unexamined};
use crate::engine::doors::{Client, Doors, OpenDoors};
use crate::gateway::{Credential, FinalStyle, Upstream};
use crate::model::{EngineName, ModelId};
use crate::port::{
    BoxFuture, Capabilities, Completion, EngineError, PassContext, PassOutcome, PassRequest,
    ProgressEvent, ReviewEngine,
};
use crate::process::sandbox::SandboxPlan;
use crate::process::{Binary, End, ProcessError, RunFolders, Spec, Stream, runtime_files, stream};

/// Children at the same time: each takes a core to start and half a gigabyte.
const AT_ONCE: usize = 2;
const CLIENT: Client = Client {
    style: FinalStyle::OpenCode,
    spelling: spelled,
    allowed: &[],
};
/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// Runs the real `OpenCode`, once a pass.
pub struct OpenCodeEngine {
    doors: Arc<Doors>,
    binary: Binary,
    libraries: Vec<PathBuf>,
    room: Semaphore,
}

impl OpenCodeEngine {
    /// An engine that starts `binary`.
    pub fn new(doors: Arc<Doors>, binary: Binary) -> std::io::Result<Self> {
        Ok(Self {
            doors,
            libraries: runtime_files(binary.target())?,
            binary,
            room: Semaphore::new(AT_ONCE),
        })
    }

    fn upstream(&self, model: &ModelId) -> Result<&Arc<Upstream>, EngineError> {
        let upstream = self.doors.upstream(model)?;
        match upstream.credential {
            Credential::Oauth(_) | Credential::ChatGpt { .. } => {
                Err(EngineError::Unavailable(format!(
                    "the token of a plan belongs to its own tool and is not used with OpenCode: set an API key for {}",
                    model.provider()
                )))
            }
            Credential::None | Credential::ApiKey(_) | Credential::Bearer(_) => Ok(upstream),
        }
    }

    async fn pass(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> Result<PassOutcome, EngineError> {
        let begun = Instant::now();
        let model = request.model.as_ref().ok_or_else(|| {
            EngineError::Unavailable(format!("no model is named for {}", request.agent))
        })?;
        let protocol = self.upstream(model)?.protocol;
        let _room = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(EngineError::Cancelled),
            () = sleep_until(context.deadline) => return Err(EngineError::Timeout(begun.elapsed())),
            room = self.room.acquire() => room.map_err(|_| EngineError::Cancelled)?,
        };
        let OpenDoors { port, tools } = self.doors.open(&request, &context, &CLIENT)?;
        let names: Vec<_> = tools
            .iter()
            .flat_map(|tools| tools.tools())
            .map(|tool| spelled(&tool.name))
            .collect();
        let text = config(&ConfigSettings {
            doors: port.address(),
            placeholder: port.placeholder(),
            protocol,
            model: model.name(),
            system: &request.system,
            tools: &names,
            schema: request.schema.as_deref(),
            max_output: self.doors.limits().max_output_per_call,
            time: context.remaining(),
        });
        let folders = RunFolders::new().map_err(|e| unavailable(&e))?;
        let home = home(folders.root().path(), &text).map_err(|e| unavailable(&e))?;
        let spec = self.spec(&folders, &home, model, &request, &context);
        let reader = Mutex::new(Reader::default());
        let ended = stream(spec, &context.cancel, |line| {
            if line.stream == Stream::Stdout {
                let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(told) = reader.line(line.bytes, now()) {
                    let event = ProgressEvent::PassActivity(request.id.clone(), told);
                    context.progress.event(event);
                }
            }
        })
        .await;
        let reader = reader.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ledger = port.close().await;
        let record = tools.map(|tools| tools.record()).unwrap_or_default();
        context.meter.saw(&request.id, &record.seen);
        let captured = ended.map_err(|error| match error {
            ProcessError::Cancelled => EngineError::Cancelled,
            error => unavailable(&error),
        })?;
        let status = match captured.end {
            End::Exited(status) => status,
            End::Cancelled => return Err(EngineError::Cancelled),
            End::Deadline if ledger.finished => ExitStatus::default(),
            End::Deadline => return Err(EngineError::Timeout(begun.elapsed())),
        };
        let ended = if ledger.finished {
            Ended {
                text: String::new(),
                why: Why::Finished,
            }
        } else if context.remaining().is_zero() {
            return Err(EngineError::Timeout(begun.elapsed()));
        } else if let Some(error) = ledger.error {
            return Err(error);
        } else if let Some(cap) = ledger.cap {
            let text = match reader.said() {
                Said::Text(text) | Said::Cut(text) => text,
                Said::Nothing => String::new(),
            };
            Ended {
                text,
                why: Why::Cut(format!("{cap} used up")),
            }
        } else if let Some(error) = reader.error() {
            return Err(error.clone());
        } else {
            match reader.said() {
                Said::Text(text) if status.success() => Ended {
                    text,
                    why: Why::Spoke,
                },
                Said::Cut(text) if status.success() => Ended {
                    text,
                    why: Why::Cut("the model's answer was cut by the output limit".to_owned()),
                },
                _ => {
                    return Err(EngineError::Protocol(format!(
                        "OpenCode ended without an answer ({status}): {}",
                        complaint(&captured.stderr)
                    )));
                }
            }
        };
        let (completion, reply) = conclude(&request, &context, ended)?;
        let unexamined = if completion == Completion::Complete && request.schema.is_none() {
            unexamined(&request, &record)
        } else {
            Vec::new()
        };
        Ok(PassOutcome {
            completion,
            reply,
            usage: ledger.usage,
            model_answered: ledger.model_answered,
            tool_calls: record.calls,
            unexamined,
        })
    }

    fn spec(
        &self,
        folders: &RunFolders,
        home: &Path,
        model: &ModelId,
        request: &PassRequest,
        context: &PassContext,
    ) -> Spec {
        let root = folders.root().path();
        let mut spec = Spec::new(self.binary.tool().clone(), home);
        spec.args = arguments(model.name());
        spec.env = environment(root);
        spec.stdin = Some(request.task.as_bytes().to_vec());
        spec.stdout_limit = 64 * 1024 * 1024;
        spec.line_limit = 4 * 1024 * 1024;
        spec.deadline = Some(context.remaining());
        spec.grace = GRACE;
        let mut exec = self.libraries.clone();
        exec.push(self.binary.target().to_owned());
        spec.sandbox = Some(SandboxPlan {
            exec,
            read: vec!["/dev/urandom".into(), root.join("config")],
            write: ["cache", "data", "state", "tmp"]
                .iter()
                .map(|name| root.join(name))
                .collect(),
            proc_self: true,
            port: Some(self.doors.gateway().address().port()),
            ..SandboxPlan::default()
        });
        spec
    }
}

/// Makes the folder that it starts in, with its configuration.
fn home(root: &Path, config: &str) -> std::io::Result<PathBuf> {
    let home = root.join("config").join("opencode");
    std::fs::create_dir(&home)?;
    std::fs::write(home.join("opencode.json"), config)?;
    Ok(home)
}

fn unavailable(error: &dyn std::fmt::Display) -> EngineError {
    EngineError::Unavailable(format!("OpenCode cannot be started: {error}"))
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

impl ReviewEngine for OpenCodeEngine {
    fn name(&self) -> EngineName {
        EngineName::new("opencode")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            structured_output: false,
            usage_reporting: true,
            read_only: true,
            served_tools: true,
            prompt_caching: true,
            subagents: false,
        }
    }

    fn preflight<'a>(&'a self, models: &'a [ModelId]) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move { models.iter().try_for_each(|m| self.upstream(m).map(drop)) })
    }

    fn run(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> BoxFuture<'_, Result<PassOutcome, EngineError>> {
        Box::pin(self.pass(request, context))
    }
}

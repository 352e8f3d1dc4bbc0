//! One pass: doors open, private folders, one process, doors closed, and what came of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::installed::Installed;
use super::jar::Jar;
use super::outcome::ended;
use super::{CliDialect, Exit, PassFacts, shown};
use crate::engine::api::{Ended, Why, pass_outcome};
use crate::engine::doors::{Client, Doors, OpenDoors};
use crate::port::{EngineError, PassContext, PassOutcome, PassRequest, ProgressEvent};
use crate::process::{Capture, End, ProcessError, Stream, stream};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// Performs a pass with a tool that may be started.
pub(super) async fn pass(
    dialect: &dyn CliDialect,
    doors: &Doors,
    installed: &Installed,
    request: PassRequest,
    context: &PassContext,
) -> Result<PassOutcome, EngineError> {
    let begun = Instant::now();
    let facts = dialect.facts();
    let model = request.model.as_ref().ok_or_else(|| {
        EngineError::Unavailable(format!("no model is named for {}", request.agent))
    })?;
    let upstream = doors.upstream(model)?;
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
    let OpenDoors { port, tools } = doors.open(&request, context, &client)?;
    let jar = Jar::with_doors(doors.gateway()).map_err(|error| unavailable(&error))?;
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
        limits: doors.limits(),
        time: context.remaining(),
    };
    let launch = dialect.launch(&facts_of_pass)?;
    let reader = Mutex::new(dialect.reader(&facts_of_pass));
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
    pass_outcome(&request, context, ended, ledger, &record)
}

/// The exit code, none for a signal; or why it was ended.
fn code(captured: &Capture) -> Result<Option<i32>, End> {
    match captured.end {
        End::Exited(status) => Ok(status.code()),
        other => Err(other),
    }
}

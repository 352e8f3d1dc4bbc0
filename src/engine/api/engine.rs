//! The loop between a model and its tools.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::stream::{NoTurn, turn};
use super::wire::{Effort, Setting, ToolCall, Turn, TurnEnd, Wire, wire};
use crate::engine::doors::{Client, Doors, OpenDoors};
use crate::gateway::{
    Credential, DoorError, FinalStyle, ModelCall, ModelDoor, PassLedger, ToolAnswer, ToolRecord,
    ToolSession, Upstream,
};
use crate::model::{EngineName, ModelId, PassKind, RepoPath};
use crate::port::{
    BoxFuture, Capabilities, Completion, EngineError, PassContext, PassOutcome, PassRequest,
    ReviewEngine,
};
use crate::reply::{self, FindingsReply};

/// How often a model that stops without `finish` is asked to go on.
const REMINDERS: u32 = 2;
/// Reading tools that are served at the same time.
const PARALLEL_READS: usize = 8;

const REMINDER: &str = "The review is not finished: only `report` and `finish` count. \
    Report what is left with `report`, then call `finish` with the files you examined.";

const CLIENT: Client = Client {
    style: FinalStyle::Api,
    spelling: str::to_owned,
    allowed: &[],
};

/// How the engine asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ApiSettings {
    /// How much models think.
    pub effort: Effort,
}

/// Calls models over their provider's API, in this process.
pub struct ApiEngine {
    doors: Arc<Doors>,
    settings: ApiSettings,
}

impl ApiEngine {
    /// An engine behind these doors.
    pub fn new(doors: Arc<Doors>, settings: ApiSettings) -> Self {
        Self { doors, settings }
    }

    /// Where a model is, if this engine may call it.
    fn upstream(&self, model: &ModelId) -> Result<&Arc<Upstream>, EngineError> {
        let upstream = self.doors.upstream(model)?;
        let (plan, engine) = match upstream.credential {
            Credential::Oauth(_) => ("a Claude plan", "claude"),
            Credential::ChatGpt { .. } => ("a ChatGPT plan", "codex"),
            Credential::None | Credential::ApiKey(_) | Credential::Bearer(_) => {
                return Ok(upstream);
            }
        };
        Err(EngineError::Unavailable(format!(
            "the token of {plan} belongs to its own tool and is not sent by the engine `api`: \
             set an API key, or engines.{} to \"{engine}\"",
            model.provider()
        )))
    }

    async fn pass(
        &self,
        request: PassRequest,
        context: PassContext,
    ) -> Result<PassOutcome, EngineError> {
        if context.cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let begun = Instant::now();
        if context.remaining().is_zero() {
            return Err(EngineError::Timeout(context.remaining()));
        }
        let model = request.model.as_ref().ok_or_else(|| {
            EngineError::Unavailable(format!("no model is named for {}", request.agent))
        })?;
        let upstream = self.upstream(model)?;
        let OpenDoors { port, tools } = self.doors.open(&request, &context, &CLIENT)?;
        let limits = self.doors.limits();
        let wire = wire(
            upstream.protocol,
            Setting {
                model: model.name().to_owned(),
                provider: model.provider().to_owned(),
                system: Arc::clone(&request.system),
                task: Arc::clone(&request.task),
                tools: tools.iter().flat_map(|tools| tools.tools()).collect(),
                schema: request.schema.clone(),
                max_output: limits.max_output_per_call,
                effort: self.settings.effort,
            },
        );
        let conversation = Conversation {
            wire,
            door: &port,
            tools: tools.as_deref(),
            turns: limits.turns,
        };
        let ended = tokio::select! {
            biased;
            () = context.cancel.cancelled() => Err(EngineError::Cancelled),
            () = sleep_until(context.deadline) => Err(EngineError::Timeout(begun.elapsed())),
            ended = conversation.hold() => ended,
        };
        // The books first: whatever becomes of the pass, what it used and read is known.
        let ledger = port.close().await;
        let record = tools.map(|tools| tools.record()).unwrap_or_default();
        context.meter.saw(&request.id, &record.seen);
        let ended = match ended {
            Ok(ended) => ended,
            Err(error @ (EngineError::Cancelled | EngineError::Timeout(_))) => return Err(error),
            // The door saw more than the loop did.
            Err(error) => return Err(ledger.error.unwrap_or(error)),
        };
        pass_outcome(&request, &context, ended, ledger, &record)
    }
}

impl ReviewEngine for ApiEngine {
    fn name(&self) -> EngineName {
        EngineName::new("api")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            structured_output: true,
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

/// How a conversation ended.
pub(in crate::engine) struct Ended {
    /// The text of the last turn.
    pub(in crate::engine) text: String,
    pub(in crate::engine) why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Why {
    /// `finish` was received.
    Finished,
    /// The model said its last word in text.
    Spoke,
    /// It was cut.
    Cut(String),
}

struct Conversation<'a> {
    wire: Box<dyn Wire>,
    door: &'a dyn ModelDoor,
    tools: Option<&'a dyn ToolSession>,
    turns: u32,
}

impl Conversation<'_> {
    /// Talks until the model is done, or cannot go on.
    async fn hold(mut self) -> Result<Ended, EngineError> {
        let mut reminders = 0;
        let mut text = String::new();
        let cut = |text: String, why: String| Ended {
            text,
            why: Why::Cut(why),
        };
        for _ in 0..self.turns {
            let turn = match self.turn().await {
                Ok(turn) => turn,
                Err(NoTurn::Door(DoorError::Cap(cap))) => {
                    return Ok(cut(text, format!("{cap} used up")));
                }
                Err(NoTurn::Door(DoorError::Failed { error, .. }) | NoTurn::Answer(error)) => {
                    return Err(error);
                }
            };
            if let TurnEnd::Refused(words) = turn.end {
                return Err(EngineError::Refused(words));
            }
            let answers = self.serve(&turn.calls).await;
            if self.tools.is_some_and(ToolSession::finished) {
                return Ok(Ended {
                    text: turn.text,
                    why: Why::Finished,
                });
            }
            if turn.end == TurnEnd::Truncated {
                let why = "the model's answer was cut by the output limit".to_owned();
                return Ok(cut(turn.text, why));
            }
            self.wire.push_turn(&turn, &answers);
            text = turn.text;
            if turn.calls.is_empty() {
                if self.tools.is_none() || reminders == REMINDERS {
                    return Ok(Ended {
                        text,
                        why: Why::Spoke,
                    });
                }
                reminders += 1;
                self.wire.push_text(REMINDER);
            }
        }
        Ok(cut(
            text,
            format!("{} model calls were not enough", self.turns),
        ))
    }

    async fn turn(&self) -> Result<Turn, NoTurn> {
        let body = serde_json::to_vec(&self.wire.request())
            .map_err(|error| EngineError::Protocol(error.to_string()))?;
        let mut headers = self.wire.headers();
        headers.insert(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static("application/json"),
        );
        let call = ModelCall {
            path: self.wire.path().to_owned(),
            headers,
            body: body.into(),
        };
        let answer = self.door.call(call).await.map_err(NoTurn::Door)?;
        turn(answer, self.wire.reader()).await
    }

    /// Serves the calls of a turn: those that only read together, the others one by one in their place.
    async fn serve(&self, calls: &[ToolCall]) -> Vec<(String, ToolAnswer)> {
        let Some(tools) = self.tools else {
            let refuse = |call: &ToolCall| (call.id.clone(), failed("there are no tools"));
            return calls.iter().map(refuse).collect();
        };
        let reading: Vec<String> = tools
            .tools()
            .into_iter()
            .filter(|tool| tool.read_only)
            .map(|tool| tool.name)
            .collect();
        let reads = |call: &ToolCall| reading.contains(&call.name);
        let one = |call: &ToolCall| {
            let (id, name, arguments) =
                (call.id.clone(), call.name.clone(), call.arguments.clone());
            async move {
                let answer = match arguments {
                    Ok(arguments) => tools.call(&name, arguments).await,
                    Err(problem) => {
                        tools.unreadable(&name);
                        failed(&problem)
                    }
                };
                (id, answer)
            }
        };
        let mut answers = Vec::with_capacity(calls.len());
        for group in calls.chunk_by(|a, b| reads(a) && reads(b)) {
            let served = stream::iter(group.iter().map(one).collect::<Vec<_>>());
            answers.extend(served.buffered(PARALLEL_READS).collect::<Vec<_>>().await);
        }
        answers
    }
}

fn failed(problem: &str) -> ToolAnswer {
    ToolAnswer {
        text: problem.to_owned(),
        is_error: true,
    }
}

/// The outcome of a pass whose loop, or tool, has come to an end of its own, with what the doors know of it.
pub(in crate::engine) fn pass_outcome(
    request: &PassRequest,
    context: &PassContext,
    ended: Ended,
    ledger: PassLedger,
    record: &ToolRecord,
) -> Result<PassOutcome, EngineError> {
    let (completion, reply) = conclude(request, context, ended)?;
    let completion = match (completion, record.unread) {
        (Completion::Complete, 1..) => Completion::Truncated {
            reason: format!(
                "{} reported defects could not be read and were not sent again",
                record.unread
            ),
        },
        (completion, _) => completion,
    };
    let unexamined = if completion == Completion::Complete && request.schema.is_none() {
        unexamined(request, record)
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

/// What the end of a conversation means for the pass.
fn conclude(
    request: &PassRequest,
    context: &PassContext,
    ended: Ended,
) -> Result<(Completion, Option<Value>), EngineError> {
    let truncated = |reason: String| Completion::Truncated { reason };
    let reviews = matches!(request.kind, PassKind::Review | PassKind::CrossCutting);
    match (&request.schema, ended.why) {
        (_, Why::Finished) => Ok((Completion::Complete, None)),
        (None, why) => {
            // What a model only wrote down counts as reported; the pass is not complete for it.
            if let Ok(found) = reply::findings(&ended.text) {
                report(request, context, found);
            }
            let reason = match why {
                Why::Cut(reason) => reason,
                _ => "the model answered in text and never called `finish`".to_owned(),
            };
            Ok((truncated(reason), None))
        }
        (Some(_), why) if reviews => {
            let found = match (reply::findings(&ended.text), why) {
                (Err(_), Why::Cut(reason)) => return Ok((truncated(reason), None)),
                (Err(error), _) => return Err(EngineError::SchemaUnmet(error.to_string())),
                (Ok(found), Why::Cut(_)) => FindingsReply {
                    whole: false,
                    ..found
                },
                (Ok(found), _) => found,
            };
            let gap = match (found.whole, found.rejected.len()) {
                (false, _) => Some("the reply was cut".to_owned()),
                (true, 0) => None,
                (true, n) => Some(format!("{n} findings of the reply could not be read")),
            };
            report(request, context, found);
            Ok((gap.map_or(Completion::Complete, truncated), None))
        }
        (Some(schema), why) => {
            let required = required(schema);
            let key = required.first().copied().unwrap_or_default();
            let found = match (reply::object(&ended.text, key), why) {
                (Err(_), Why::Cut(reason)) => return Ok((truncated(reason), None)),
                (Err(error), _) => return Err(EngineError::SchemaUnmet(error.to_string())),
                (Ok(found), Why::Cut(reason)) => {
                    return Ok((truncated(reason), Some(Value::Object(found.object))));
                }
                (Ok(found), _) => found,
            };
            if let Some(key) = required
                .iter()
                .find(|key| !found.object.contains_key(**key))
            {
                return Err(EngineError::SchemaUnmet(format!("`{key}` is missing")));
            }
            let completion = if found.whole {
                Completion::Complete
            } else {
                truncated("the reply was cut".to_owned())
            };
            Ok((completion, Some(Value::Object(found.object))))
        }
    }
}

fn required(schema: &Value) -> Vec<&str> {
    let names = schema["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

/// Reports what a reply says. Nobody reads the sink's answers; what it would have had mended it keeps
/// where the evidence is, once the pass is over.
fn report(request: &PassRequest, context: &PassContext, found: FindingsReply) {
    for finding in found.findings {
        context.sink.report(&request.id, finding);
    }
}

/// Files of the pass that the model neither named as examined nor read.
fn unexamined(request: &PassRequest, record: &ToolRecord) -> Vec<(RepoPath, String)> {
    request
        .files
        .iter()
        .filter_map(|at| request.diff.files.get(*at))
        .filter(|file| {
            !record.examined.contains(&file.path) && !record.seen.contains_key(&file.path)
        })
        .map(|file| {
            let reason = "the reviewer neither read it nor named it as examined";
            (file.path.clone(), reason.to_owned())
        })
        .collect()
}

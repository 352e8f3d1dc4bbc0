//! The one door of a run: model calls and tool calls of every engine pass here, and nothing else gets out.

mod listener;
mod model;
mod run;
mod script;
mod seam;
pub mod tape;
pub mod tools;

pub use crate::ledger::Cap;
pub use model::{EventSink, Splitter, provider_error};
pub use run::{Gateway, GatewaySettings, ListenerGuard, PassPort};
pub use script::{ScriptTurn, ScriptedModel};
pub use seam::{
    AnswerEnd, Credential, DoorBody, DoorError, FinalStyle, Landing, ModelAnswer, ModelCall,
    ModelDoor, PassGrant, PassLedger, PassLimits, Protocol, RateLimitEvidence, ToolAnswer,
    ToolRecord, ToolService, ToolServiceFactory, ToolSession, ToolSpec, Upstream,
};

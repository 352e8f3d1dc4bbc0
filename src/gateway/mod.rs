//! The one door of a run: model calls and tool calls of every engine pass here, and nothing else gets out.

mod seam;

pub use seam::{
    AnswerEnd, Cap, Credential, DoorBody, DoorError, FinalStyle, Landing, ModelAnswer, ModelCall,
    ModelDoor, PassGrant, PassLedger, PassLimits, Protocol, RateLimitEvidence, ToolAnswer,
    ToolRecord, ToolService, ToolServiceFactory, ToolSession, ToolSpec, Upstream,
};

//! Model text → typed replies: JSON is found and mended, findings are taken one by one, and nothing that
//! is not an explicit answer counts as one.

mod extract;
mod findings;
mod judgement;
mod lenient;

pub use extract::{Extracted, ReplyError, object};
pub use findings::{FindingsReply, RejectedFinding, findings, findings_schema};
pub use judgement::{
    Coordination, Edit, Verdict, coordination, coordination_schema, route, route_schema, verdict,
    verdict_schema,
};

//! The model door: the only way to a model, metered, capped and repeated where that is right.

mod answer;
mod attempt;
mod breaker;
mod classify;
mod door;
mod headers;
mod meter;
mod operation;
mod refusal;
mod request;
mod retry;
mod scan;
mod sse;

pub use classify::provider_error;
pub(super) use door::{PassDoor, RunDoor, RunDoorSettings};
pub use sse::{EventSink, Splitter};

//! `ecr ci`: the parent holds the forge token, decides, fetches and posts; the worker reviews.
//!
//! @ref LLP 0012#ecr-ci — the road of a run

mod compose;
mod dismiss;
mod event;
mod gate;
mod inputs;
mod job;
mod journal;
mod pending;
mod publish;
mod run;
mod surface;
mod trusted;
mod worker;

pub use dismiss::{DismissRequest, dismiss};
pub use run::{CiRequest, Ended, run};
pub use surface::Log;
pub use worker::work;

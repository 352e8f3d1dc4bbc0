//! `ecr eval`: a data set of labelled cases, reviewed and scored.

mod dataset;
mod import;
mod run;
mod store;

pub use crate::eval::{PublicSet, Settings};
pub use import::import;
pub use run::{Finished, Request, render, run};

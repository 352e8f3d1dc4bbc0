//! One file a use case; everything below is wired together here.

pub mod demo;
mod environment;
mod error;
pub mod explain;
pub mod ref_check;
pub mod review;
mod runs;
pub mod schema;
mod signals;

pub use environment::Environment;
pub use error::AppError;

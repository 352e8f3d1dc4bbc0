//! One file a use case; everything below is wired together here.

pub mod ci;
mod credentials;
pub mod demo;
mod digest;
pub mod doctor;
mod engines;
mod environment;
mod error;
pub mod eval;
pub mod explain;
mod forge;
pub mod init;
mod models;
mod network;
pub mod pull;
pub mod ref_check;
pub mod review;
mod runs;
pub mod schema;
mod signals;
pub mod stats;
pub mod tape;
pub mod verify_config;

pub use environment::Environment;
pub use error::AppError;

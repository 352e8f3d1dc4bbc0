//! What ecr writes and reads back: the published output, saved reviews, the run log and what a comment on a pull
//! request carries, versioned, encode and decode.

pub mod comment;
pub mod doctor;
pub mod output;
pub mod run_log;
pub mod saved;

//! What ecr writes and reads back: the published output, saved reviews and the run log, versioned, encode and decode.

pub mod doctor;
pub mod output;
pub mod run_log;
pub mod saved;

//! What ecr writes and reads back: the published output and saved reviews, versioned, encode and decode.

pub mod output;
pub mod saved;

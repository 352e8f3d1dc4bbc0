//! Tapes: the model exchanges of a run, recorded and served back offline.
//!
//! @ref LLP 0010#tapes — what is on a tape, and what is left out when requests are compared

mod canonical;
mod file;
mod record;
mod replay;
mod scrub;

pub use file::{HEADER_FILE, Header, TAPE_VERSION, TapeError};
pub use record::Recorder;
pub use replay::Replay;

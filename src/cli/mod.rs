//! The command line: arguments, printing, exit codes.

mod args;
mod eval;
mod exit;
mod run;
mod stream;

pub use exit::{
    EXIT_BUG, EXIT_INTERRUPTED, EXIT_NOT_REVIEWED, EXIT_OK, EXIT_PARTIAL, EXIT_REQUEST_CHANGES,
    EXIT_TERMINATED, EXIT_USAGE,
};
pub use run::main;

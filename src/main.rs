//! The `ecr` binary: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ecr::cli::main(std::env::args_os()))
}

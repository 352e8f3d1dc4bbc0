//! What is `OpenCode`'s own: three protocols, a repository that knows it, and what the kernel saw of it.

#![cfg(target_os = "linux")]

mod evidence;
mod hostile;
mod review;
mod turns;

use std::path::PathBuf;

use ecr::engine::cli::locate;
use ecr::engine::opencode::FACTS;

use super::OPENCODE;
use super::install::installed;

/// The folder with its launcher, for a `PATH`.
fn folder() -> Option<PathBuf> {
    installed(&OPENCODE)
}

/// Its program.
fn program() -> Option<PathBuf> {
    let binary = locate(&FACTS, folder()?.as_os_str(), &[]).unwrap();
    Some(binary.target().to_owned())
}

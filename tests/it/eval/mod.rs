//! `ecr eval`: the own cases as a regression set, and the command around them.

mod command;
mod own_cases;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::support::repo::TestRepo;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/eval")
}

fn ecr(repo: &TestRepo, args: &[&str]) -> Output {
    let mut command = repo.command(env!("CARGO_BIN_EXE_ecr"));
    command.arg("eval").args(args).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

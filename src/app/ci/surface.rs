//! What a job shows besides the comment: its log, its step summary, its annotations.
//!
//! The runner takes lines of the log for commands when they begin with `::` (blanks before it do not matter) or hold
//! `##[`. What other people wrote never gets there in that form.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::app::runs::RunStore;
use crate::app::{AppError, Environment};
use crate::config::{LoadedConfig, SETUP_FOLDERS};
use crate::state::run_log::RunLine;

/// GitHub refuses a step's summary beyond 1 MiB.
const SUMMARY: usize = 1_000_000;

/// The log of the job.
pub struct Log {
    to: Mutex<Box<dyn std::io::Write + Send>>,
}

impl Log {
    /// Writes to `to`.
    pub fn new(to: Box<dyn std::io::Write + Send>) -> Self {
        Self { to: Mutex::new(to) }
    }

    /// One line of ours or somebody else's; nothing in it acts.
    pub(super) fn line(&self, text: &str) {
        let text = crate::render::printable_line(text).replace("##[", "# #[");
        self.write(&format!("ecr: {text}\n"));
    }

    /// An error, with what to do next.
    pub fn error(&self, error: &AppError) {
        self.line(&format!("error: {}", error.message));
        if let Some(hint) = &error.hint {
            self.line(&format!("next: {hint}"));
        }
    }

    /// A line of the worker's.
    pub(super) fn forward(&self, text: &str) {
        let text = crate::render::printable_line(text).replace("##[", "# #[");
        self.write(&format!("  | {text}\n"));
    }

    fn write(&self, text: &str) {
        if let Ok(mut to) = self.to.lock() {
            let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        }
    }
}

/// Adds Markdown to the step summary, where there is one. It never fails a run.
pub(super) fn add_summary(environment: &Environment, markdown: &str) {
    let Some(path) = environment.get("GITHUB_STEP_SUMMARY") else {
        return;
    };
    let mut end = markdown.len().min(SUMMARY);
    while !markdown.is_char_boundary(end) {
        end -= 1;
    }
    // The runner makes the file; a path that does not exist is not ours to make.
    let opened = std::fs::OpenOptions::new().append(true).open(path);
    if let Ok(mut file) = opened {
        let _ = file
            .write_all(&markdown.as_bytes()[..end])
            .and_then(|()| file.write_all(b"\n"));
    }
}

/// The lines of `text` that are annotations, and nothing else: other commands could change the job.
pub(super) fn annotations(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let harmless = ["::error ", "::warning ", "::notice "]
            .iter()
            .any(|command| line.starts_with(command));
        if harmless && !line.contains("##[") {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Adds a run to the log in the workspace's set-up folder, where there is one, for the workflow to upload.
pub(super) fn keep_run(
    line: &RunLine,
    loaded: &LoadedConfig,
    environment: &Environment,
) -> std::io::Result<()> {
    let Some(workspace) = environment.get("GITHUB_WORKSPACE").map(PathBuf::from) else {
        return Ok(());
    };
    let keep = usize::try_from(loaded.config.runs_kept).unwrap_or(usize::MAX);
    let store = SETUP_FOLDERS.iter().find_map(|name| {
        let folder = workspace.join(name);
        RunStore::of(&workspace, Some(&folder), environment, keep)
    });
    store.map_or(Ok(()), |store| store.append(line, jiff::Timestamp::now()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_line_of_the_log_is_a_command() {
        let sink = Sink::default();
        let log = Log::new(Box::new(sink.clone()));
        log.line("::set-output name=x::y\n::add-mask::a");
        log.forward("  ::error::x");
        log.forward("a ##[error]x \u{1b}[31m");
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("::"), "{line}");
            assert!(!line.contains("##["), "{line}");
        }
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn only_annotations_are_let_through() {
        let text = "::warning file=a::b\n::set-env name=x::y\nplain\n::error file=a::##[x]\n::notice file=b::c\n";
        assert_eq!(
            annotations(text),
            "::warning file=a::b\n::notice file=b::c\n"
        );
    }
}

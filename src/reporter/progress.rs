//! What a person following the run sees, on stderr.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::model::{PassId, PassOutcomeKind};
use crate::port::{Progress, ProgressEvent};
use crate::render::printable_line;

/// How to show progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressMode {
    /// Not at all (`-q`, `--no-progress`).
    Silent,
    /// One plain line an event, what passes do in between left out; for CI and pipes.
    Lines,
    /// As [`Self::Lines`], with what passes do in between (`-v`).
    AllLines,
    /// One moving line on a terminal.
    Bar,
}

/// Shows progress.
pub struct ProgressReporter {
    mode: ProgressMode,
    state: Mutex<State>,
}

struct State {
    out: Box<dyn Write + Send>,
    bar: Option<ProgressBar>,
    planned: usize,
    ended: usize,
}

impl ProgressReporter {
    /// Shows progress on `out`; [`ProgressMode::Bar`] draws on stderr itself and leaves `out` alone.
    pub fn new(mode: ProgressMode, out: Box<dyn Write + Send>) -> Self {
        let bar = (mode == ProgressMode::Bar).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                bar.set_style(style.tick_strings(&["-", "\\", "|", "/", " "]));
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self {
            mode,
            state: Mutex::new(State {
                out,
                bar,
                planned: 0,
                ended: 0,
            }),
        }
    }

    /// Takes the moving line away, so that something else can be printed. Events after this show nothing.
    pub fn finish(&self) {
        if let Some(bar) = self.state().bar.take() {
            bar.finish_and_clear();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Progress for ProgressReporter {
    fn event(&self, event: ProgressEvent) {
        if self.mode == ProgressMode::Silent {
            return;
        }
        let mut state = self.state();
        match &event {
            ProgressEvent::Planned { passes, .. } => state.planned = *passes,
            ProgressEvent::PassEnded(..) => {
                state.ended += 1;
                // Judges and smaller passes come on top of what was planned.
                state.planned = state.planned.max(state.ended);
            }
            ProgressEvent::PassActivity(..) if self.mode == ProgressMode::Lines => return,
            _ => {}
        }
        let text = words(&event);
        if self.mode == ProgressMode::Bar {
            let Some(bar) = &state.bar else { return };
            if state.planned > 0 {
                bar.set_message(format!("[{}/{}] {text}", state.ended, state.planned));
            } else {
                bar.set_message(text);
            }
            return;
        }
        // Progress is talk: when nobody can hear it, the run goes on.
        let _ = writeln!(state.out, "ecr: {text}");
    }
}

fn words(event: &ProgressEvent) -> String {
    let pass = |id: &PassId| printable_line(id.as_str());
    match event {
        ProgressEvent::Note(text) => printable_line(text),
        ProgressEvent::Planned { passes, files } => {
            format!("planned: passes {passes}, files {files}")
        }
        ProgressEvent::PassStarted(id) => format!("{}: started", pass(id)),
        ProgressEvent::PassActivity(id, text) => format!("{}: {}", pass(id), printable_line(text)),
        ProgressEvent::PassEnded(id, outcome) => {
            let outcome = match outcome {
                PassOutcomeKind::Complete => "done",
                PassOutcomeKind::Truncated => "cut short",
                PassOutcomeKind::Failed => "failed",
                PassOutcomeKind::Skipped => "skipped",
            };
            format!("{}: {outcome}", pass(id))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn shown(mode: ProgressMode) -> String {
        let out = Shared::default();
        let progress = ProgressReporter::new(mode, Box::new(out.clone()));
        let id = PassId::new("checks");
        progress.event(ProgressEvent::Note("base\u{1b}[2J is main\nx".into()));
        progress.event(ProgressEvent::Planned {
            passes: 1,
            files: 2,
        });
        progress.event(ProgressEvent::PassStarted(id.clone()));
        progress.event(ProgressEvent::PassActivity(id.clone(), "reads a.rs".into()));
        progress.event(ProgressEvent::PassEnded(id, PassOutcomeKind::Complete));
        let bytes = out.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn one_safe_line_an_event() {
        let lines = "ecr: base\\u{1b}[2J is main x\necr: planned: passes 1, files 2\necr: checks: started\n";
        assert_eq!(
            shown(ProgressMode::Lines),
            format!("{lines}ecr: checks: done\n")
        );
        assert_eq!(
            shown(ProgressMode::AllLines),
            format!("{lines}ecr: checks: reads a.rs\necr: checks: done\n")
        );
        assert_eq!(shown(ProgressMode::Silent), "");
        assert_eq!(shown(ProgressMode::Bar), "");
    }
}

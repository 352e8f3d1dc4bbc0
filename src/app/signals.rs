//! SIGINT and SIGTERM, handled once and in one place: they cancel the run, which drops its passes
//! (their guards end every child) and reports what is known.
//!
//! @ref LLP 0004#cancellation — how a run ends early

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio_util::sync::CancellationToken;

use super::review::Interrupt;

/// Watches for signals while it lives.
pub(super) struct SignalWatch {
    task: tokio::task::JoinHandle<()>,
    seen: Arc<AtomicU8>,
}

const NONE: u8 = 0;
const INT: u8 = 1;
const TERM: u8 = 2;

impl SignalWatch {
    /// Cancels `cancel` on the first signal. Needs a running tokio runtime.
    pub(super) fn start(cancel: CancellationToken) -> std::io::Result<Self> {
        let seen = Arc::new(AtomicU8::new(NONE));
        let record = Arc::clone(&seen);
        #[cfg(unix)]
        let task = {
            use tokio::signal::unix::{SignalKind, signal};
            let mut int = signal(SignalKind::interrupt())?;
            let mut term = signal(SignalKind::terminate())?;
            tokio::spawn(async move {
                let first = tokio::select! { _ = int.recv() => INT, _ = term.recv() => TERM };
                record.store(first, Ordering::SeqCst);
                cancel.cancel();
            })
        };
        #[cfg(not(unix))]
        let task = tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                record.store(INT, Ordering::SeqCst);
                cancel.cancel();
            }
        });
        Ok(Self { task, seen })
    }

    /// Which signal came, if any.
    pub(super) fn interrupt(&self) -> Option<Interrupt> {
        match self.seen.load(Ordering::SeqCst) {
            INT => Some(Interrupt::Int),
            TERM => Some(Interrupt::Term),
            _ => None,
        }
    }
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

//! The report on stdout.

use std::io::{ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

use crate::model::Review;
use crate::port::{BoxFuture, ReportError, Reporter};
use crate::render::{Format, RenderContext, render};

/// Writes a review to a stream, in any format.
pub struct TerminalReporter {
    format: Format,
    context: RenderContext,
    out: Mutex<Box<dyn Write + Send>>,
}

impl TerminalReporter {
    /// Reports to `out` (stdout, in the program).
    pub fn new(format: Format, context: RenderContext, out: Box<dyn Write + Send>) -> Self {
        Self {
            format,
            context,
            out: Mutex::new(out),
        }
    }
}

impl Reporter for TerminalReporter {
    fn report<'a>(&'a self, review: &'a Review) -> BoxFuture<'a, Result<(), ReportError>> {
        Box::pin(async move {
            let text = render(self.format, review, &self.context);
            let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                // Whoever reads has seen enough (`ecr | head`).
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                Err(error) => Err(ReportError {
                    message: format!("the report could not be written: {error}"),
                }),
                Ok(()) => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::TerminalOptions;
    use crate::reporter::file::tests::empty_review;

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        let review = empty_review();
        let report = |kind| {
            let context = RenderContext::new(TerminalOptions::default());
            TerminalReporter::new(Format::Json, context, Box::new(Failing(kind)))
        };
        assert!(report(ErrorKind::BrokenPipe).report(&review).await.is_ok());
        let error = report(ErrorKind::StorageFull).report(&review).await;
        assert!(error.unwrap_err().message.contains("could not be written"));
    }
}

//! The seams: what an engine, a source, a reporter and the pipeline promise each other.

mod engine;
mod report;
mod source;

pub use engine::{
    Capabilities, Completion, EngineError, LinesSeen, Meter, PassContext, PassOutcome, PassRequest,
    ReviewEngine,
};
pub use report::{FindingReceipt, FindingSink, Progress, ProgressEvent, ReportError, Reporter};
pub use source::{ReviewSource, SourceError, SourceInput, TreeUnderReview};

/// A boxed future, so that the seams stay usable as trait objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

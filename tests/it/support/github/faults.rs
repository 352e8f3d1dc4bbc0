//! What can go wrong, on request.

/// One way to go wrong.
#[derive(Debug, Clone)]
pub(crate) enum FaultKind {
    /// A status with a JSON message.
    Status(u16, &'static str),
    /// A 502 with a page of HTML.
    Html,
    /// The primary limit; it ends in so many seconds.
    Primary(u64),
    /// The secondary limit, with or without `retry-after`.
    Secondary(Option<u64>),
    /// The connection breaks before an answer.
    Reset,
    /// No answer, for ever.
    Hang,
    /// Half of the answer's body, then the connection breaks.
    Truncate,
    /// The request is carried out, and the answer is a 502.
    ApplyThenFail,
    /// The request is carried out, and nobody hears of it.
    ApplyThenHang,
    /// A list that lacks its newest element.
    Stale,
}

/// A fault for the next requests that match.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub(crate) method: &'static str,
    /// A part of the path.
    pub(crate) path: &'static str,
    pub(crate) kind: FaultKind,
    /// How many it hits.
    pub(crate) times: u32,
}

impl Fault {
    pub(crate) fn new(method: &'static str, path: &'static str, kind: FaultKind) -> Self {
        Self {
            method,
            path,
            kind,
            times: 1,
        }
    }

    pub(crate) fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }
}

/// The fault that hits this request, if one does.
pub(super) fn hit(faults: &mut [Fault], method: &str, path: &str) -> Option<FaultKind> {
    let fault = faults
        .iter_mut()
        .find(|f| f.times > 0 && f.method == method && path.contains(f.path))?;
    fault.times -= 1;
    Some(fault.kind.clone())
}

//! From what a reviewer says to what stands: identity, grounding, dedupe, policy, suppression, decision.
//! Pure and synchronous; the source is read through a `Tree`.

mod decision;
mod excerpt;
mod fold;
mod grounding;
mod identity;
mod lines;
mod policy;
mod quote;
mod set;
mod summary;
mod suppress;

pub use decision::{Facts, Remaining, blocks, decide, decide_again, requests_changes};
pub use fold::{fold, utf16_len};
pub use grounding::{Grounder, Grounding, Placed};
pub use identity::{fingerprint, fingerprint_with_title, scoped};
#[cfg(test)]
pub(crate) use policy::tests as testing;
pub use policy::{Policy, order};
pub use quote::{Presence, Quote};
pub use set::{FindingSet, Reporter, same_defect};
pub use summary::{SummaryFacts, Tally, summary};
pub use suppress::{Suppressor, directive};

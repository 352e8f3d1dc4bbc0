//! Recognisers of secrets and hostile text, used by checks, masking, rendering and auth. Pure.
//!
//! Two judgements with opposite errors: [`secrets()`] reports and errs to precision; [`mask()`] hides and
//! errs to caution, so it also takes what only looks like a credential.
//!
//! @ref LLP 0005#two-judgements-about-credentials — reporting and masking err on opposite sides

mod hostile;
mod mask;
mod secrets;

pub use hostile::{HostileKind, HostileMatch, hostile};
pub use mask::{mask, mask_lines, mask_patch};
pub use secrets::{SecretKind, SecretMatch, is_placeholder, secrets};

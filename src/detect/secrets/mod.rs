//! Strict recognition of credentials.

mod checksum;
mod formats;
mod keys;
mod kind;
mod placeholder;
mod scan;
mod structured;

pub(super) use formats::FORMATS;
pub(super) use keys::private_key_block;
pub use kind::SecretKind;
pub use placeholder::is_placeholder;
pub use scan::{SecretMatch, secrets};
pub(super) use structured::url_password_at;

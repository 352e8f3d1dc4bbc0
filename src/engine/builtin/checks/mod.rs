//! The text rules: what can be told from lines, paths and workflow files without parsing a language.

mod added;
mod all;
mod conflict;
mod files;
mod hostile;
mod path;
mod secrets;
mod tls;
mod workflow;

pub(super) use all::{check_file, check_text, rules};
pub(super) use files::{FileFacts, LARGE_BINARY, junk_root};
pub(super) use path::wants_content;

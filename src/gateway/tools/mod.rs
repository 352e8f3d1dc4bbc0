//! The tool door: the only way in which a model sees the tree and reports findings.
//!
//! A [`Session`] serves one pass; [`McpService`] speaks MCP over HTTP for it. Nothing here touches the file system: paths
//! become [`RepoPath`](crate::model::RepoPath)s and are looked up in a [`Tree`](crate::tree::Tree).

mod arguments;
mod cache;
mod content;
mod diff;
mod find;
mod grep;
mod mcp;
mod page;
mod path;
mod read;
mod record;
mod report;
mod session;
mod specs;

pub use cache::TreeCache;
pub use mcp::{McpService, mcp_service};
pub use path::{HeldBack, Withheld};
pub use session::{Session, SessionSettings};

//! A scripted model provider: Anthropic Messages, Responses and chat completions, over a socket or
//! in memory, with every fault that a provider can have. It records each request as it came.

mod memory;
mod reply;
mod script;
mod server;

pub(crate) use memory::MemoryProvider;
pub(crate) use reply::{Reply, ReplyUsage};
pub(crate) use script::{Gate, Piece, Recorded, Script, Step};
pub(crate) use server::ModelServer;

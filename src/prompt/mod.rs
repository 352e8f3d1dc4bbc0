//! Every string that a model sees and no stranger wrote: what the tools say of themselves, and the landing.

mod landing;
mod tools;

pub use landing::{landing_hint, landing_refusal};
pub use tools::{INSTRUCTIONS, ToolText, tool_text};

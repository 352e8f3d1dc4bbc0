//! The tool door: what it serves, what it refuses, and how MCP clients see it.

mod find;
mod gateway;
mod harness;
mod hostile;
mod landing;
mod mcp;
mod read;
mod report;

//! The way to GitHub that commands share: the client as the environment wants it, and a pull request's objects.

mod connect;
mod objects;

pub(super) use connect::{Forge, TOKEN_VARIABLES, git_hub_error};
pub(super) use objects::{Fetched, Scope, fetch};

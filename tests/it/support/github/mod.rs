//! A GitHub on a loopback socket, or in memory: state, permissions, faults, git over HTTP. Every request is
//! checked against GitHub's own description of its API (`tests/fixtures/github`, MIT).

mod faults;
mod git;
mod memory;
mod server;
mod spec;
mod world;

pub(crate) use faults::{Fault, FaultKind};
pub(crate) use memory::InMemory;
pub(crate) use server::FakeGitHub;
pub(crate) use world::{Actor, World};

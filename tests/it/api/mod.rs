//! The engine of our own: its protocols in memory, and whole reviews against a scripted provider.

mod faults;
mod protocols;
mod review;
pub(crate) mod rig;
mod settings;
mod tape;
mod whole;

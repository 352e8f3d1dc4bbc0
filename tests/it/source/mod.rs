//! The `source` module against real repositories.

mod local;
mod patch;
mod words;

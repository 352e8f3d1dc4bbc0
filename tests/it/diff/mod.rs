//! The diff module against real git.

mod fixtures;
mod mutated;
mod naive;
mod random;

//! The diff module against real git.

mod attributes;
mod fixtures;
mod mutated;
mod naive;
mod random;

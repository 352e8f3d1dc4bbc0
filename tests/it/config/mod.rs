//! Configuration: fixtures against the loader and the published schemas, and whole setups.

mod fixtures;
mod setup;

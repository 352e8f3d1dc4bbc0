//! The `ecr` binary.
fn main() {}

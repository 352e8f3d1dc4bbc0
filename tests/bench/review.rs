//! Benches of the whole review.
fn main() {}

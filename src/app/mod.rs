//! One module a use case.

pub mod ref_check;

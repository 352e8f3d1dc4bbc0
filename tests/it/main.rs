//! The one integration test binary (linking is the slow part of a test run).
#![allow(missing_docs)] // tests have names instead

mod structural;
mod support;

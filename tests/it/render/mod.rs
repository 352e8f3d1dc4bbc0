//! Every output format, on plain and on hostile reviews.
#![allow(clippy::expect_used, clippy::panic)] // the helpers of tests are tests

mod golden;
mod hostile;
mod markdown;
mod sample;
mod schemas;

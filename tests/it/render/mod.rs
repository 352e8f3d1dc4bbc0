//! Every output format, on plain and on hostile reviews.

mod golden;
mod hostile;
mod markdown;
mod sample;
mod schemas;

//! Every output format, on plain and on hostile reviews.

mod comment;
mod golden;
mod hostile;
mod markdown;
mod sample;
mod schemas;

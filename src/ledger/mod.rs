//! Time, tokens and money: reservations, caps and prices. Pure: no clock, no I/O.

mod books;
mod price;

pub use books::{Books, Cap, Estimate, PassCaps, Reservation, RunCaps, Spent, estimated_tokens};
pub use price::{AS_OF, PriceTable, Prices, Rates};

//! The one HTTP client: TLS with the machine's own roots, explicit proxies, no redirect, no surprises.

mod client;
mod transport;

pub use client::{HttpClient, HttpError, HttpSettings, ProxySettings};
pub use transport::{Outgoing, Transport, TransportAnswer, TransportError};

//! Sending one request, as a seam: the client is one implementation, tests and tapes are others.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::{HeaderMap, Method, StatusCode};
use reqwest::Url;

/// A request that is ready to go.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// Its method.
    pub method: Method,
    /// The full address.
    pub url: Url,
    /// Headers, `host` and `content-length` left out.
    pub headers: HeaderMap,
    /// The body; cheap to clone, so that a request can be repeated.
    pub body: Bytes,
}

/// An answer whose head has arrived.
pub struct TransportAnswer {
    /// Its status, redirects included: nothing is followed.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body in the pieces in which it arrives. Dropping it closes the connection.
    pub body: BoxStream<'static, Result<Bytes, TransportError>>,
}

/// Why an exchange failed. The texts name no header, no body and no credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The client cannot do this at all; nothing was sent.
    #[error("{0}")]
    Unusable(String),
    /// No connection was made; nothing was sent.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The connection broke; the request may have been received.
    #[error("connection lost: {0}")]
    Lost(String),
}

/// Sends one request.
pub trait Transport: Send + Sync {
    /// Resolves when the head of the answer has arrived. Dropping the future cancels the request.
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>>;
}

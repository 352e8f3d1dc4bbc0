//! Our HTTP client as the service under octocrab: bounded in time and size, no redirect, no retry.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::header::{CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use octocrab::OctoBody;
use tower_service::Service;

use crate::http::{Outgoing, Transport, TransportError};

/// Sends one request over a [`Transport`].
#[derive(Clone)]
pub(super) struct Wire {
    transport: Arc<dyn Transport>,
    /// Longest time for a whole exchange.
    timeout: Duration,
    /// Largest answer, bytes.
    limit: usize,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(super) struct WireError {
    pub(super) message: String,
    /// The request may have reached GitHub.
    pub(super) sent: bool,
    /// Trying again may help.
    pub(super) transient: bool,
}

impl Wire {
    pub(super) fn new(transport: Arc<dyn Transport>, timeout: Duration, limit: usize) -> Self {
        Self {
            transport,
            timeout,
            limit,
        }
    }

    async fn exchange(
        self,
        request: Request<OctoBody>,
    ) -> Result<Response<Full<Bytes>>, WireError> {
        let (parts, body) = request.into_parts();
        let unusable = |message: String| WireError {
            message,
            sent: false,
            transient: false,
        };
        let url = parts
            .uri
            .to_string()
            .parse()
            .map_err(|_| unusable("the request has no usable address".to_owned()))?;
        let body = body
            .collect()
            .await
            .map_err(|_| unusable("the request's body cannot be read".to_owned()))?
            .to_bytes();
        let mut headers = parts.headers;
        headers.remove(HOST);
        headers.remove(CONTENT_LENGTH);
        // GitHub refuses requests without one.
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("ecr/", env!("CARGO_PKG_VERSION"))),
        );
        let outgoing = Outgoing {
            method: parts.method,
            url,
            headers,
            body,
        };
        let timeout = self.timeout;
        match tokio::time::timeout(timeout, self.answer(outgoing)).await {
            Ok(answer) => answer,
            Err(_) => Err(WireError {
                message: format!("no answer within {}s", timeout.as_secs()),
                sent: true,
                transient: true,
            }),
        }
    }

    async fn answer(&self, outgoing: Outgoing) -> Result<Response<Full<Bytes>>, WireError> {
        let mut answer = self.transport.send(outgoing).await.map_err(|e| lost(&e))?;
        let mut body = BytesMut::new();
        while let Some(piece) = answer.body.next().await {
            let piece = piece.map_err(|e| lost(&e))?;
            if body.len() + piece.len() > self.limit {
                return Err(WireError {
                    message: format!("the answer is larger than {} bytes", self.limit),
                    sent: true,
                    transient: false,
                });
            }
            body.extend_from_slice(&piece);
        }
        let mut response = Response::new(Full::new(body.freeze()));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}

fn lost(error: &TransportError) -> WireError {
    WireError {
        message: error.to_string(),
        sent: matches!(error, TransportError::Lost(_)),
        transient: !matches!(error, TransportError::Unusable(_)),
    }
}

impl Service<Request<OctoBody>> for Wire {
    type Response = Response<Full<Bytes>>;
    type Error = WireError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<OctoBody>) -> Self::Future {
        Box::pin(self.clone().exchange(request))
    }
}

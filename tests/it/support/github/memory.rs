//! The fake without a socket: for the client's timers on a paused clock.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ecr::http::{Outgoing, Transport, TransportAnswer, TransportError};
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{HeaderMap, HeaderName, StatusCode};

use super::World;
use super::world::{Asked, End};

/// The clock of the fake and of clients under test: it stands still.
pub(crate) fn now() -> u64 {
    1_800_000_000
}

/// Carries requests into a world.
#[derive(Clone)]
pub(crate) struct InMemory(pub(crate) Arc<Mutex<World>>);

impl Transport for InMemory {
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>> {
        Box::pin(async move {
            let asked = Asked {
                method: request.method.to_string(),
                path: request.url.path().to_owned(),
                query: request.url.query().unwrap_or_default().to_owned(),
                headers: request
                    .headers
                    .iter()
                    .map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned()))
                    .collect(),
                body: request.body.to_vec(),
            };
            let answer = self.0.lock().unwrap().answer(&asked);
            let lost = || TransportError::Lost("connection reset".to_owned());
            match answer.end {
                End::Reset => return Err(lost()),
                End::Hang => std::future::pending().await,
                End::Whole | End::Cut => {}
            }
            let mut headers = HeaderMap::new();
            for (name, value) in &answer.headers {
                headers.insert(
                    HeaderName::from_bytes(name.as_bytes()).unwrap(),
                    value.parse().unwrap(),
                );
            }
            let mut pieces = vec![Ok(Bytes::from(answer.body))];
            if answer.end == End::Cut {
                pieces.push(Err(lost()));
            }
            Ok(TransportAnswer {
                status: StatusCode::from_u16(answer.status).unwrap(),
                headers,
                body: stream::iter(pieces).boxed(),
            })
        })
    }
}

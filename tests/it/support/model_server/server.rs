//! The provider on a loopback socket.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::memory::GivenUp;
use super::script::Act;
use super::{Piece, Recorded, Script};

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A provider that listens on 127.0.0.1 until it is dropped.
pub(crate) struct ModelServer {
    address: SocketAddr,
    script: Script,
    accepting: JoinHandle<()>,
}

impl ModelServer {
    /// Listens and plays `script`.
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let played = script.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let script = played.clone();
                stream.set_nodelay(true).unwrap();
                tokio::spawn(async move {
                    let service = service_fn(move |request| answer(script.clone(), request));
                    let serving =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                    // A broken connection is what some scripts ask for.
                    let _ = serving.await;
                });
            }
        });
        Self {
            address,
            script,
            accepting,
        }
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it plays.
    pub(crate) fn script(&self) -> &Script {
        &self.script
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn answer(
    script: Script,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(std::io::Error::other)?
        .to_bytes();
    let action = script.next(Recorded {
        path: head
            .uri
            .path_and_query()
            .map_or(String::new(), ToString::to_string),
        headers: head.headers,
        body,
    });
    let unfinished = GivenUp(Some(script));
    for gate in &action.gates {
        gate.wait().await;
    }
    let raw = match action.act {
        Act::Reset => {
            unfinished.finished();
            return Err(std::io::Error::other("reset by the script"));
        }
        Act::Hang => std::future::pending().await,
        Act::Answer(raw) => raw,
    };
    let pieces = stream::unfold(
        (raw.body.into_iter(), unfinished),
        |(mut pieces, unfinished)| async move {
            loop {
                let item = match pieces.next() {
                    None => {
                        unfinished.finished();
                        return None;
                    }
                    Some(Piece::Data(bytes)) => Ok(Frame::data(bytes)),
                    Some(Piece::Wait(gate)) => {
                        gate.wait().await;
                        continue;
                    }
                    Some(Piece::Hang) => std::future::pending().await,
                    Some(Piece::Cut) => Err(std::io::Error::other("cut by the script")),
                };
                return Some((item, (pieces, unfinished)));
            }
        },
    );
    let mut response = Response::new(StreamBody::new(pieces.boxed()).boxed_unsync());
    *response.status_mut() = raw.status;
    *response.headers_mut() = raw.headers;
    Ok(response)
}

//! The loopback listener: who may speak, how much, and for how long.
//!
//! A connection that has not shown a live placeholder is worth little: there are few of them, the
//! oldest makes room for the newest, and each has seconds. So neither 10,000 silent connections nor
//! a slow one keep a child with a placeholder out.
//!
//! @ref LLP 0010#one-port-one-placeholder — strangers are bounded, placeholders die with their pass

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::model::PassDoor;
use super::run::{Pass, Passes};
use super::seam::{DoorError, ModelCall};

/// Connections that have not shown a placeholder yet.
const STRANGERS: usize = 256;
/// How long a connection may take to show one.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// Connections of one pass.
const CONNECTIONS: usize = 64;
/// Bytes of a request's head.
const HEAD: usize = 64 * 1024;
/// Headers of a request.
const HEADERS: usize = 100;
/// Bytes of a model request.
const MODEL_BODY: usize = 32 * 1024 * 1024;
/// Bytes of a tool request.
const TOOL_BODY: usize = 1024 * 1024;
/// How long a request's body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

type Body = UnsyncBoxBody<Bytes, DoorError>;

/// The connections of one listener that have not introduced themselves, oldest first.
#[derive(Default)]
struct Strangers(Mutex<VecDeque<CancellationToken>>);

impl Strangers {
    /// Lets a connection in; the oldest goes when there are too many.
    fn admit(&self, cut: CancellationToken) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that left or introduced themselves do not count.
        if waiting.len() >= STRANGERS {
            waiting.retain(|other| !other.is_cancelled());
        }
        if waiting.len() >= STRANGERS
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.cancel();
        }
        waiting.push_back(cut);
    }
}

/// Accepts connections until `stop` fires; the connections end with it.
pub(super) async fn serve(listener: TcpListener, passes: Arc<Passes>, stop: CancellationToken) {
    let strangers = Strangers::default();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let stranger = CancellationToken::new();
                strangers.admit(stranger.clone());
                let connection = Arc::new(Connection {
                    passes: Arc::clone(&passes),
                    stranger,
                    pass: OnceLock::new(),
                });
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = connection.run(stream) => {}
                    }
                });
            }
            // Out of descriptors, most likely: the connections that are there need a moment to end.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// One connection. It belongs to the pass whose placeholder it showed first, for good.
struct Connection {
    passes: Arc<Passes>,
    /// Fires when the connection is to go because it never introduced itself; also used to say
    /// that it is no stranger any more.
    stranger: CancellationToken,
    pass: OnceLock<Arc<Pass>>,
}

impl Connection {
    async fn run(self: Arc<Self>, stream: TcpStream) {
        // One write an answer and no waiting for more: 40 ms a tool call otherwise.
        let _ = stream.set_nodelay(true);
        let this = Arc::clone(&self);
        let service = service_fn(move |request| {
            let this = Arc::clone(&this);
            async move { Ok::<_, std::convert::Infallible>(this.answer(request).await) }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            // Idle kept-alive connections may stay; strangers have a time limit of their own.
            .header_read_timeout(None)
            .max_headers(HEADERS)
            .max_buf_size(HEAD);
        let serving = builder.serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            _ = serving => {}
            () = self.overdue() => {}
        }
        self.stranger.cancel();
    }

    /// Resolves when the connection has to go.
    async fn overdue(&self) {
        tokio::select! {
            () = self.stranger.cancelled() => {}
            () = tokio::time::sleep(INTRODUCTION) => {}
        }
        if let Some(pass) = self.pass.get() {
            pass.door.closed().cancelled().await;
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let Some(pass) = self.authenticate(request.headers()) else {
            return empty(StatusCode::UNAUTHORIZED, true);
        };
        let path = request.uri().path();
        if path == "/mcp" {
            return tools(&pass, request).await;
        }
        if !PassDoor::serves(path) {
            return empty(StatusCode::NOT_FOUND, false);
        }
        if request.method() != Method::POST {
            return empty(StatusCode::METHOD_NOT_ALLOWED, false);
        }
        model(&pass, request).await
    }

    fn authenticate(&self, headers: &HeaderMap) -> Option<Arc<Pass>> {
        let pass = self.passes.find(shown(headers)?)?;
        if let Some(known) = self.pass.get() {
            // A connection does not change hands.
            return Arc::ptr_eq(known, &pass).then_some(pass);
        }
        if pass
            .connections
            .fetch_add(1, std::sync::atomic::Ordering::AcqRel)
            >= CONNECTIONS
            || self.pass.set(Arc::clone(&pass)).is_err()
        {
            pass.connections
                .fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
            return None;
        }
        self.stranger.cancel();
        Some(pass)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.get() {
            pass.connections
                .fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
        }
    }
}

/// The placeholder that a request shows: `x-api-key`, or a bearer token.
fn shown(headers: &HeaderMap) -> Option<&str> {
    if let Some(bearer) = headers.get(header::AUTHORIZATION) {
        let text = bearer.to_str().ok()?;
        let (scheme, token) = text.split_once(' ')?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then_some(token.trim());
    }
    headers.get("x-api-key")?.to_str().ok()
}

async fn tools(pass: &Pass, request: Request<Incoming>) -> Response<Body> {
    let Some(service) = &pass.tools else {
        return empty(StatusCode::NOT_FOUND, false);
    };
    let (mut head, body) = request.into_parts();
    let body = match read(body, TOOL_BODY).await {
        Ok(body) => body,
        Err(status) => return empty(status, true),
    };
    // The service has no use for the credential.
    head.headers.remove(header::AUTHORIZATION);
    head.headers.remove("x-api-key");
    let closed = pass.door.closed();
    let served = tokio::select! {
        () = closed.cancelled() => return empty(StatusCode::UNAUTHORIZED, true),
        served = service.handle(Request::from_parts(head, body)) => served,
    };
    served.map(|body| body.map_err(|never| match never {}).boxed_unsync())
}

async fn model(pass: &Pass, request: Request<Incoming>) -> Response<Body> {
    // Held until the answer begins: from then on the body is not needed any more.
    let Ok(_room) = pass.bodies.acquire().await else {
        return empty(StatusCode::UNAUTHORIZED, true);
    };
    let (head, body) = request.into_parts();
    let body = match read(body, MODEL_BODY).await {
        Ok(body) => body,
        Err(status) => return empty(status, true),
    };
    let path = head
        .uri
        .path_and_query()
        .map_or_else(|| head.uri.path().to_owned(), ToString::to_string);
    let call = ModelCall {
        path,
        headers: head.headers,
        body,
    };
    match pass.door.call(call).await {
        Ok(answer) => {
            let body = StreamBody::new(answer.body.map_ok(Frame::data));
            let mut response = Response::new(body.boxed_unsync());
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            response
        }
        Err(error) => {
            let (status, body) = pass.door.refusal(&error);
            let mut response = full(body);
            *response.status_mut() = status;
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            // The clients that retry by themselves obey this.
            response
                .headers_mut()
                .insert("x-should-retry", HeaderValue::from_static("false"));
            response
        }
    }
}

async fn read(body: Incoming, limit: usize) -> Result<Bytes, StatusCode> {
    let whole = Limited::new(body, limit).collect();
    match tokio::time::timeout(BODY_TIME, whole).await {
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            Err(StatusCode::PAYLOAD_TOO_LARGE)
        }
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
    }
}

fn full(body: Bytes) -> Response<Body> {
    Response::new(
        Full::new(body)
            .map_err(|never| match never {})
            .boxed_unsync(),
    )
}

/// A status and nothing else. `close` ends the connection: its body may be unread.
fn empty(status: StatusCode, close: bool) -> Response<Body> {
    let mut response = full(Bytes::new());
    *response.status_mut() = status;
    if close {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

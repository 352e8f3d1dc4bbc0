//! The fake on a loopback socket, in a thread of its own, so that plain tests can start subprocesses against it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::World;
use super::world::{Asked, End};

/// A GitHub that listens on 127.0.0.1 until it is dropped.
pub(crate) struct FakeGitHub {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl FakeGitHub {
    /// Listens.
    pub(crate) fn start(mut world: World) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        world.url = format!("http://{address}");
        let world = Arc::new(Mutex::new(world));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let shared = Arc::clone(&world);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = accept(listener, shared) => {}
                    _ = stopped => {}
                }
            });
            runtime.shutdown_background();
        });
        Self {
            address,
            world,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Its address: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its state.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

impl Drop for FakeGitHub {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, world: Arc<Mutex<World>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&world), request));
            // A broken connection is what some faults ask for.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>;

async fn answer(
    world: Arc<Mutex<World>>,
    request: Request<Incoming>,
) -> Result<Response<Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(std::io::Error::other)?
        .to_bytes();
    let asked = Asked {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head
            .headers
            .iter()
            .map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned()))
            .collect(),
        body: body.to_vec(),
    };
    let answered = tokio::task::spawn_blocking(move || world.lock().unwrap().answer(&asked)).await;
    let answer = answered.map_err(std::io::Error::other)?;
    let broken = || std::io::Error::other("cut by a fault");
    match answer.end {
        End::Reset => return Err(broken()),
        End::Hang => std::future::pending().await,
        End::Whole | End::Cut => {}
    }
    let mut pieces = vec![Ok(Frame::data(Bytes::from(answer.body)))];
    if answer.end == End::Cut {
        pieces.push(Err(broken()));
    }
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    response
        .body(StreamBody::new(stream::iter(pieces)).boxed_unsync())
        .map_err(std::io::Error::other)
}

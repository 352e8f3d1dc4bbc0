//! MCP over HTTP as the three CLIs speak it. The requests are rewritten from what was recorded of them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use ecr::gateway::tools::{Session, mcp_service};
use ecr::gateway::{DoorBody, ToolService, ToolServiceFactory, ToolSession};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};

use super::harness::session;

/// A client that sends what a CLI sends.
pub(super) struct Client {
    service: Arc<dyn ToolService>,
    agent: &'static str,
    version: Option<&'static str>,
    next: u64,
}

impl Client {
    pub(super) fn new(session: Arc<Session>, agent: &'static str) -> Self {
        let factory: ToolServiceFactory = mcp_service;
        Self {
            service: factory(session),
            agent,
            version: None,
            next: 0,
        }
    }

    fn request(&self, method: Method, body: impl Into<Bytes>) -> Request<Bytes> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "127.0.0.1:40123")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("user-agent", self.agent)
            .header("authorization", "Bearer placeholder");
        if let Some(version) = self.version {
            request = request.header("mcp-protocol-version", version);
        }
        request.body(body.into()).unwrap()
    }

    async fn send(&self, method: Method, body: impl Into<Bytes>) -> Response<DoorBody> {
        self.service.handle(self.request(method, body)).await
    }

    /// Sends a body; gives the status, and the answer where it is JSON.
    pub(super) async fn post(&self, body: impl Into<Bytes>) -> (StatusCode, Value) {
        let response = self.send(Method::POST, body).await;
        let status = response.status();
        let is_json = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind == "application/json");
        let body = one_write(response).await;
        let value = if is_json {
            serde_json::from_slice(&body).expect("JSON")
        } else {
            Value::String(String::from_utf8_lossy(&body).into_owned())
        };
        (status, value)
    }

    /// One JSON-RPC request; gives its answer.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let body = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        let (status, answer) = self.post(body.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{method}: {answer}");
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!(self.next))
        );
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": self.next,
            "claudecode/toolUseId": "toolu_1", "callId": "call_1", "threadId": "t"}});
        let answer = self.ask("tools/call", params).await;
        let result = &answer["result"];
        assert!(
            result.get("structuredContent").is_none(),
            "it would stand for the text: {answer}"
        );
        let content = result["content"].as_array().expect("content");
        assert_eq!(content.len(), 1);
        assert_eq!(content[0]["type"], "text");
        (
            content[0]["text"].as_str().expect("text").to_owned(),
            result["isError"] == json!(true),
        )
    }
}

/// The body of an answer that is one piece of known length, which makes one write of it.
async fn one_write(response: Response<DoorBody>) -> Bytes {
    use http_body::Body as _;
    let mut body = response.into_body();
    let size = body.size_hint().exact().expect("a known length");
    let Some(frame) = body.frame().await else {
        assert_eq!(size, 0);
        return Bytes::new();
    };
    let data = frame.unwrap().into_data().expect("data");
    assert!(body.frame().await.is_none(), "one frame");
    assert_eq!(data.len() as u64, size);
    data
}

fn served() -> Arc<Session> {
    Arc::new(session(&[
        ("src/main.rs", b"fn main() {}\n"),
        ("README.md", b"hello\n"),
    ]))
}

/// The start that all three make, then a few calls.
async fn start(client: &mut Client, version: &'static str, capabilities: Value) {
    let hello = json!({"protocolVersion": version, "capabilities": capabilities,
        "clientInfo": {"name": "cli", "title": "CLI", "version": "1.0"}});
    let answer = client.ask("initialize", hello).await;
    let result = &answer["result"];
    assert_eq!(result["protocolVersion"], version);
    assert_eq!(result["serverInfo"]["name"], "tree");
    assert!(result["capabilities"]["tools"].is_object());
    assert!(
        result["capabilities"].get("resources").is_none(),
        "opencode would add tools of its own"
    );
    client.version = Some(version);
    let (status, body) = client
        .post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())
        .await;
    assert_eq!((status, body), (StatusCode::ACCEPTED, json!("")));
    let stream = client.send(Method::GET, "").await;
    assert_eq!(stream.status(), StatusCode::METHOD_NOT_ALLOWED);

    let answer = client.ask("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().expect("tools");
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "read", "grep", "glob", "list", "diff", "report", "retract", "finish"
        ]
    );
    for tool in tools {
        let reads = !["report", "retract", "finish"].contains(&tool["name"].as_str().unwrap());
        let hints = &tool["annotations"];
        assert_eq!(hints["readOnlyHint"], reads, "{tool}");
        assert_eq!(hints["openWorldHint"], false, "{tool}");
        if !reads {
            assert_eq!(
                hints["destructiveHint"], false,
                "codex asks for approval otherwise: {tool}"
            );
        }
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert!(tool.get("outputSchema").is_none());
    }
}

#[tokio::test]
async fn claude() {
    let session = served();
    let mut client = Client::new(Arc::clone(&session), "claude-code/2.1.332 (sdk-cli)");
    // It first asks whether a newer protocol is spoken; any answer will do, the next request is `initialize`.
    let mut probe = client.request(
        Method::POST,
        json!({"jsonrpc": "2.0", "id": "probe", "method": "server/discover", "params": {}})
            .to_string(),
    );
    probe
        .headers_mut()
        .insert("mcp-method", "server/discover".parse().unwrap());
    probe
        .headers_mut()
        .insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    let answer = client.service.handle(probe).await;
    assert!(answer.status().is_client_error() || answer.status().is_success());
    start(
        &mut client,
        "2025-11-25",
        json!({"roots": {"listChanged": true}}),
    )
    .await;
    let (text, error) = client.call("read", json!({"path": "src/main.rs"})).await;
    assert_eq!((text.as_str(), error), ("1\tfn main() {}", false));
    let (text, error) = client.call("read", json!({"path": 5})).await;
    assert_eq!(
        (text.as_str(), error),
        ("path is a number: send a string", true)
    );
    let (_, error) = client.call("finish", json!({"examined": []})).await;
    assert!(!error && session.finished());
    assert_eq!(session.record().calls, 3);
}

#[tokio::test]
async fn codex() {
    let mut client = Client::new(served(), "codex-mcp-client/0.171.0");
    start(&mut client, "2025-06-18", json!({"elicitation": {}})).await;
    for method in [
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
    ] {
        let params = if method == "resources/read" {
            json!({"uri": "file:///etc/passwd"})
        } else {
            json!({})
        };
        let answer = client.ask(method, params).await;
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
    }
    let (text, _) = client.call("grep", json!({"pattern": "main"})).await;
    assert_eq!(text, "src/main.rs\n1:\tfn main() {}");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": "timeout"}});
    assert_eq!(
        client.post(cancel.to_string()).await.0,
        StatusCode::ACCEPTED
    );
    assert_eq!(
        client.send(Method::DELETE, "").await.status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}

#[tokio::test]
async fn opencode() {
    let mut client = Client::new(served(), "opencode/1.18.33");
    start(&mut client, "2025-11-25", json!({"roots": {}})).await;
    let (text, _) = client.call("list", json!({"path": ""})).await;
    assert_eq!(text, "README.md\nsrc/");
    let (text, error) = client.call("tree_nosuch", json!({})).await;
    assert!(
        error && text.starts_with("no tool \"tree_nosuch\": there is read, grep,"),
        "{text}"
    );
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn unknown_versions_fall_back_and_older_ones_are_spoken() {
    for (asked, spoken) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let mut client = Client::new(served(), "x");
        let hello = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let answer = client.ask("initialize", hello).await;
        assert_eq!(answer["result"]["protocolVersion"], spoken, "{asked}");
    }
}

#[tokio::test]
async fn what_is_no_request_is_refused_cleanly() {
    let client = Client::new(served(), "x");
    for body in [
        String::new(),
        "{".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        "\u{0}".to_owned(),
        "[".repeat(100_000),
        "{\"a\":".repeat(100_000),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": "x"}).to_string(),
        json!({"jsonrpc": "1.0", "id": 1, "method": "tools/list"}).to_string(),
        json!([{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]).to_string(),
        format!("\"{}\"", "x".repeat(2 << 20)),
    ] {
        let (status, answer) = client.post(body.clone()).await;
        let refused = status.is_client_error() || answer.get("error").is_some();
        assert!(refused, "{body:.80}: {status} {answer}");
        assert!(answer.to_string().len() < 2_000);
    }
    for (header, value) in [
        ("content-type", "text/plain"),
        ("accept", "text/html"),
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("mcp-protocol-version", "x"),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let mut request = client.request(Method::POST, body);
        request.headers_mut().insert(header, value.parse().unwrap());
        let status = client.service.handle(request).await.status();
        assert!(status.is_client_error(), "{header}: {status}");
    }
    for method in [Method::PUT, Method::OPTIONS, Method::HEAD, Method::PATCH] {
        assert_eq!(
            client.send(method, "").await.status(),
            StatusCode::METHOD_NOT_ALLOWED
        );
    }
}

#[tokio::test]
async fn thousands_of_calls_leave_nothing_behind() {
    let session = served();
    let client = Client::new(Arc::clone(&session), "x");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "read", "arguments": {"path": "README.md"}}})
    .to_string();
    for round in 0..20 {
        let calls = (0..100).map(|_| client.post(call.clone()));
        for (status, answer) in futures_util::future::join_all(calls).await {
            assert_eq!(status, StatusCode::OK);
            assert_eq!(
                answer["result"]["content"][0]["text"], "1\thello",
                "{round}"
            );
        }
        // A client that hangs up at once.
        let request = client.request(Method::POST, call.clone());
        let mut gone = client.service.handle(request);
        assert!(futures_util::poll!(&mut gone).is_pending());
        drop(gone);
    }
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    for _ in 0..1_000 {
        if alive() == 0 {
            break;
        }
        // What a task waits for may be another thread, which a busy machine lets wait.
        std::thread::sleep(std::time::Duration::from_millis(5));
        tokio::task::yield_now().await;
    }
    assert_eq!(alive(), 0, "no task is left");
    assert!((2_000..=2_020).contains(&session.record().calls));
}

/// A connection that counts what is written to it.
struct Counting {
    inner: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for Counting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        // As `writev` does: all of them at once.
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        Pin::new(&mut self.inner).poll_write(cx, &all)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn an_answer_is_one_write() {
    let text = "a line of ordinary length\n".repeat(1_200);
    let service = mcp_service(Arc::new(session(&[("big", text.as_bytes())])));
    let (mut near, far) = tokio::io::duplex(1 << 20);
    let writes = Arc::<AtomicUsize>::default();
    let io = TokioIo::new(Counting {
        inner: far,
        writes: Arc::clone(&writes),
    });
    let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
        let service = Arc::clone(&service);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>(service.handle(Request::from_parts(parts, body)).await)
        }
    });
    let server =
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, answer));
    for path in ["big", "nope"] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "read", "arguments": {"path": path}}})
        .to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{call}",
            call.len()
        );
        near.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            assert!(near.read_buf(&mut answer).await.unwrap() > 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(
            writes.swap(0, Ordering::SeqCst),
            1,
            "{path}: {} bytes",
            answer.len()
        );
    }
    drop(near);
    server.await.unwrap().unwrap();
}

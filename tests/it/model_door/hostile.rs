//! Clients that mean harm: nothing leaks, nothing is served, memory stays bounded.

use std::fmt::Write as _;
use std::time::Duration;

use ecr::gateway::{PassPort, Protocol};
use ecr::model::PassId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::rig::{Rig, body, key};
use crate::support::alone::alone;
use crate::support::model_server::{Reply, Script};

const CHAT: Protocol = Protocol::OpenAiChat;
const PATH: &str = "/v1/chat/completions";

/// Sends bytes and reads until the other side closes.
async fn exchange(port: &PassPort, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(port.address()).await.unwrap();
    // The other side may close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(path: &str, headers: &[String], body: &str) -> Vec<u8> {
    let mut text = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    let _ = write!(text, "content-length: {}\r\n\r\n{body}", body.len());
    text.into_bytes()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

#[tokio::test]
async fn only_the_live_placeholder_of_the_pass_opens_the_door() {
    let rig = Rig::on_sockets(Script::new([Reply::text("x").into()])).await;
    let port = rig.open(CHAT);
    let mut grant = rig.grant(CHAT);
    grant.pass = PassId::new("dead");
    let dead = rig.gateway.open_pass(grant).unwrap();
    let dead_token = dead.placeholder().expose().clone();
    dead.close().await;
    let live = port.placeholder().expose().clone();
    assert!(live.len() > 40 && live != dead_token);
    let body = body(true).to_string();
    let wrong: Vec<Vec<String>> = vec![
        vec![],
        vec![format!("authorization: Bearer {dead_token}")],
        vec![format!("authorization: Bearer {}", key())],
        vec![format!("authorization: Bearer {live}x")],
        vec![format!("authorization: Bearer {}", &live[..live.len() - 1])],
        vec![format!("authorization: Basic {live}")],
        vec![format!("authorization: {live}")],
        vec!["authorization: Bearer ".to_owned()],
        vec![format!("cookie: token={live}")],
        vec![format!("x-api-key: {dead_token}")],
        // A wrong bearer is not mended by a right key.
        vec![
            format!("authorization: Bearer {dead_token}"),
            format!("x-api-key: {live}"),
        ],
    ];
    for headers in wrong {
        for path in [PATH, "/mcp", "/", "/v1/models", "/../etc/passwd"] {
            let answer = exchange(&port, &post(path, &headers, &body)).await;
            assert_eq!(status(&answer), "401", "{headers:?} {path}");
            let (_, rest) = answer.split_once("\r\n\r\n").unwrap();
            assert_eq!(rest, "", "nothing but the status");
            assert!(!answer.contains("ecr"), "{answer}");
        }
    }
    assert!(rig.script.requests().is_empty());
    let right = vec![format!("authorization: bearer {live}")];
    assert_eq!(
        status(&exchange(&port, &post(PATH, &right, &body)).await),
        "200"
    );
    for path in [
        "/mcp",
        "/",
        "/v1/models",
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/%2e%2e/v1",
    ] {
        assert_eq!(
            status(&exchange(&port, &post(path, &right, "{}")).await),
            "404",
            "{path}"
        );
    }
    let get = format!(
        "GET {PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{}\r\n\r\n",
        right[0]
    );
    assert_eq!(status(&exchange(&port, get.as_bytes()).await), "405");
    assert_eq!(rig.script.requests().len(), 1);
}

#[tokio::test]
async fn a_connection_does_not_change_hands() {
    let rig = Rig::on_sockets(Script::new([
        Reply::text("x").into(),
        Reply::text("x").into(),
    ]))
    .await;
    let port = rig.open(CHAT);
    let mut grant = rig.grant(CHAT);
    grant.pass = PassId::new("other");
    let other = rig.gateway.open_pass(grant).unwrap();
    let request = |port: &PassPort, close| {
        let body = body(false).to_string();
        format!(
            "POST {PATH} HTTP/1.1\r\nhost: x\r\nconnection: {close}\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n{body}",
            port.placeholder().expose(),
            body.len()
        )
    };
    let both = request(&port, "keep-alive") + &request(&other, "close");
    let answer = exchange(&port, both.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("HTTP/1.1 401"),
        "{answer}"
    );
    assert_eq!(other.close().await.requests, 0);
}

#[tokio::test]
async fn heads_and_bodies_are_bounded() {
    let rig = Rig::on_sockets(Script::new([])).await;
    let port = rig.open(CHAT);
    let token = format!("x-api-key: {}", port.placeholder().expose());
    let huge_header = post(
        PATH,
        &[token.clone(), format!("x: {}", "y".repeat(200_000))],
        "{}",
    );
    assert!(matches!(
        status(&exchange(&port, &huge_header).await),
        "431" | "400" | "none"
    ));
    let many: Vec<String> = (0..500).map(|n| format!("x-{n}: 1")).collect();
    assert!(matches!(
        status(&exchange(&port, &post(PATH, &many, "{}")).await),
        "431" | "400" | "none"
    ));
    // Announced or not, a body over the limit is not taken.
    let announced = format!(
        "POST {PATH} HTTP/1.1\r\nhost: x\r\n{token}\r\ncontent-length: {}\r\n\r\n",
        1u64 << 40
    );
    let mut bytes = announced.into_bytes();
    bytes.resize(bytes.len() + 33 * 1024 * 1024, b'x');
    assert!(matches!(
        status(&exchange(&port, &bytes).await),
        "413" | "none"
    ));
    let mut chunked =
        format!("POST {PATH} HTTP/1.1\r\nhost: x\r\n{token}\r\ntransfer-encoding: chunked\r\n\r\n")
            .into_bytes();
    for _ in 0..34 {
        chunked.extend_from_slice(b"100000\r\n");
        chunked.resize(chunked.len() + 0x10_0000, b'x');
        chunked.extend_from_slice(b"\r\n");
    }
    assert!(matches!(
        status(&exchange(&port, &chunked).await),
        "413" | "none"
    ));
    for garbage in [
        &b"\x16\x03\x01\x02\x00"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
    ] {
        let answer = exchange(&port, &[garbage, b"\r\n\r\n"].concat()).await;
        assert!(
            matches!(status(&answer), "400" | "401" | "505" | "none"),
            "{answer}"
        );
    }
    assert!(rig.script.requests().is_empty());
}

/// On the paused clock, real sockets included: time only moves when nothing else can.
#[tokio::test(start_paused = true)]
async fn the_slow_are_cut_off() {
    let rig = Rig::in_memory(Script::new([])).await;
    let port = rig.open(CHAT);
    let token = port.placeholder().expose();
    let mut silent = TcpStream::connect(port.address()).await.unwrap();
    let mut slow_head = TcpStream::connect(port.address()).await.unwrap();
    slow_head
        .write_all(b"POST / HTTP/1.1\r\nhost:")
        .await
        .unwrap();
    let start = tokio::time::Instant::now();
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).await.unwrap();
    slow_head.read_to_end(&mut rest).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 10);

    let mut slow_body = TcpStream::connect(port.address()).await.unwrap();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nhost: x\r\nx-api-key: {token}\r\ncontent-length: 100\r\n\r\n{{"
    );
    slow_body.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    slow_body.read_to_string(&mut answer).await.unwrap();
    assert_eq!(status(&answer), "408");
    assert!(start.elapsed() < Duration::from_secs(60));
}

/// Bytes of memory of this process.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn ten_thousand_connections_keep_nobody_out() {
    let name = "model_door::hostile::ten_thousand_connections_keep_nobody_out";
    if !alone(name, &[]) {
        return;
    }
    let rig = Rig::on_sockets(Script::new([
        Reply::text("x").into(),
        Reply::text("x").into(),
    ]))
    .await;
    let port = rig.open(CHAT);
    let token = vec![format!("x-api-key: {}", port.placeholder().expose())];
    let body = body(true).to_string();
    let good = post(PATH, &token, &body);
    assert_eq!(status(&exchange(&port, &good).await), "200");
    let before = resident();
    // As many at once as this process may hold, in waves of 10,000 in all. Each says half a head.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let room = limit.current.unwrap_or(1 << 20).saturating_sub(600) / 2;
    let wave = usize::try_from(room.clamp(100, 5000)).unwrap();
    let mut made = 0;
    while made < 10_000 {
        let mut held = Vec::with_capacity(wave);
        for _ in 0..wave {
            let mut stream = TcpStream::connect(port.address()).await.unwrap();
            let _ = stream
                .write_all(b"POST /v1/messages HTTP/1.1\r\nx-api-key: ")
                .await;
            held.push(stream);
            made += 1;
        }
        // In the middle of it all, one who belongs here.
        if made <= wave {
            assert_eq!(status(&exchange(&port, &good).await), "200");
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    assert_eq!(port.close().await.turns, 2);
}

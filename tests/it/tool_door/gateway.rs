//! The tool door behind the listener of a run: a socket, a placeholder, a pass.

use std::sync::Arc;
use std::time::Duration;

use ecr::gateway::tools::{Session, mcp_service};
use ecr::gateway::{
    Credential, FinalStyle, Gateway, GatewaySettings, Landing, PassGrant, PassLimits, PassPort,
    Protocol, ToolSession, Upstream,
};
use ecr::ledger::{PriceTable, RunCaps};
use ecr::model::{ModelId, PassId, Usage};
use ecr::port::{Meter, Progress, ProgressEvent};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::harness::{path, session};
use crate::support::model_server::{MemoryProvider, Script};

struct Nobody;

impl Meter for Nobody {
    fn add(&self, _pass: &PassId, _usage: Usage) {}
}

impl Progress for Nobody {
    fn event(&self, _event: ProgressEvent) {}
}

async fn gateway() -> Gateway {
    Gateway::start(GatewaySettings {
        transport: Arc::new(MemoryProvider::new(Script::new([]))),
        tools: Some(mcp_service),
        caps: RunCaps::default(),
        prices: PriceTable::default(),
        concurrent_calls: 1,
        clock: || 0,
    })
    .await
    .unwrap()
}

fn open(gateway: &Gateway, pass: &str, tools: Arc<Session>) -> PassPort {
    let deadline = Instant::now() + Duration::from_secs(600);
    let grant = PassGrant {
        pass: PassId::new(pass),
        model: ModelId::new("p/m").unwrap(),
        upstream: Arc::new(Upstream {
            provider: "p".to_owned(),
            protocol: Protocol::AnthropicMessages,
            base_url: "http://127.0.0.1:9".parse().unwrap(),
            credential: Credential::None,
        }),
        style: FinalStyle::Claude,
        tools: Some(tools),
        expected_tools: Vec::new(),
        allowed_tools: Vec::new(),
        limits: PassLimits::default(),
        deadline,
        landing: Arc::new(Landing::new(deadline, Duration::from_secs(60))),
        cancel: CancellationToken::new(),
        progress: Arc::new(Nobody),
        meter: Arc::new(Nobody),
    };
    gateway.open_pass(grant).unwrap()
}

/// One tool call on a connection of its own; gives the whole answer.
async fn call(port: &PassPort, token: &str, tool: &str, arguments: serde_json::Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
    .to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        port.address(),
        body.len()
    );
    let mut stream = TcpStream::connect(port.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_placeholder_opens_its_own_tree_only() {
    let gateway = gateway().await;
    let one = Arc::new(session(&[("f", b"of the first\n")]));
    let two = Arc::new(session(&[("f", b"of the second\n")]));
    let first = open(&gateway, "one/1", Arc::clone(&one));
    let second = open(&gateway, "two/1", Arc::clone(&two));
    let token = |port: &PassPort| port.placeholder().expose().clone();
    let read = json!({"path": "f"});
    let answer = call(&first, &token(&first), "read", read.clone()).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("1\\tof the first"),
        "{answer}"
    );
    let answer = call(&first, &token(&second), "read", read.clone()).await;
    assert!(answer.contains("1\\tof the second"), "{answer}");
    let answer = call(&first, "guess", "read", read.clone()).await;
    assert!(
        answer.starts_with("HTTP/1.1 401") && !answer.contains("of the"),
        "{answer}"
    );

    let answer = call(&first, &token(&first), "finish", json!({"examined": []})).await;
    assert!(answer.contains("end your turn"), "{answer}");
    let ledger = first.ledger();
    assert!(ledger.finished);
    assert_eq!(ledger.tool_calls, 2);
    assert!(!second.ledger().finished);
    assert_eq!(two.record().seen[&path("f")], [1..=1]);
}

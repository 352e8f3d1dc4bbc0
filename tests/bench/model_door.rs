//! What the model door adds: time to the first byte, time an event, throughput of a stream. A client and
//! a provider on loopback, once directly and once through the door. Prints; no assertion.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)] // a bench prints, and may fail

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ecr::gateway::{
    Credential, FinalStyle, Gateway, GatewaySettings, Landing, PassGrant, PassLimits, Protocol,
    Upstream,
};
use ecr::http::{HttpClient, HttpSettings, Outgoing, Transport as _};
use ecr::ledger::{PriceTable, RunCaps};
use ecr::model::{ModelId, PassId, Secret, Usage};
use ecr::port::{Meter, Progress, ProgressEvent};
use futures_util::StreamExt as _;
use http::{HeaderMap, Method};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;

const CALLS: usize = 400;
const EVENTS: usize = 2000;
const STREAM: usize = 512 << 20;

struct Silent;

impl Meter for Silent {
    fn add(&self, _: &PassId, _: Usage) {}
}

impl Progress for Silent {
    fn event(&self, _: ProgressEvent) {}
}

/// A chunk of an HTTP answer.
fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

fn event(text: &str) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    )
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n";
const END: &str = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Answers requests on one connection by the word in their body: `short`, `ticks` (an event each
/// time a byte arrives out of band), `flood`.
async fn provide(mut stream: TcpStream, ticks: Arc<Mutex<UnboundedReceiver<()>>>) {
    stream.set_nodelay(true).unwrap();
    let mut request = Vec::new();
    let mut piece = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut piece).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        request.extend_from_slice(&piece[..read]);
        if !request.ends_with(b"}]}") {
            continue;
        }
        let has = |word: &str| memchr::memmem::find(&request, word.as_bytes()).is_some();
        let mut first = HEAD.to_vec();
        first.extend(chunk(START));
        stream.write_all(&first).await.unwrap();
        if has("\"ticks\"") {
            for _ in 0..EVENTS {
                ticks.lock().await.recv().await;
                stream.write_all(&chunk(&event("tick"))).await.unwrap();
            }
        } else if has("\"flood\"") {
            let block: String =
                std::iter::repeat_n(event(&"lorem ipsum ".repeat(10)), 64).collect();
            let block = chunk(&block);
            for _ in 0..STREAM / block.len() {
                stream.write_all(&block).await.unwrap();
            }
        }
        let mut last = chunk(END);
        last.extend_from_slice(b"0\r\n\r\n");
        stream.write_all(&last).await.unwrap();
        request.clear();
    }
}

struct Side {
    name: &'static str,
    base: String,
    token: String,
}

fn request(side: &Side, kind: &str) -> Outgoing {
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", side.token.parse().unwrap());
    Outgoing {
        method: Method::POST,
        url: format!("{}/v1/messages", side.base).parse().unwrap(),
        headers,
        // A prompt of ordinary size.
        body: Bytes::from(format!(
            "{{\"model\":\"m\",\"stream\":true,\"kind\":\"{kind}\",\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}]}}",
            "some code to review; ".repeat(5000)
        )),
    }
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

async fn measure(side: &Side, ticks: &UnboundedSender<()>) {
    let client = HttpClient::new(&HttpSettings::default()).unwrap();
    let mut firsts = Vec::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        let mut answer = client.send(request(side, "short")).await.unwrap();
        answer.body.next().await.unwrap().unwrap();
        firsts.push(start.elapsed());
        while answer.body.next().await.is_some() {}
    }
    println!(
        "{:<8} first byte, 100 KB prompt: median {:?}, p99 {:?}",
        side.name,
        percentile(&mut firsts, 50),
        percentile(&mut firsts, 99)
    );

    let mut answer = client.send(request(side, "ticks")).await.unwrap();
    answer.body.next().await.unwrap().unwrap();
    let mut events = Vec::new();
    for _ in 0..EVENTS {
        let start = Instant::now();
        ticks.send(()).unwrap();
        answer.body.next().await.unwrap().unwrap();
        events.push(start.elapsed());
    }
    while answer.body.next().await.is_some() {}
    println!(
        "{:<8} one event: median {:?}, p99 {:?}",
        side.name,
        percentile(&mut events, 50),
        percentile(&mut events, 99)
    );

    let mut answer = client.send(request(side, "flood")).await.unwrap();
    let start = Instant::now();
    let mut bytes = 0;
    while let Some(piece) = answer.body.next().await {
        bytes += piece.unwrap().len();
    }
    println!(
        "{:<8} stream: {:.0} MB/s",
        side.name,
        bytes as f64 / 1e6 / start.elapsed().as_secs_f64()
    );
}

async fn provider() -> (String, UnboundedSender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let (send, receive) = unbounded_channel();
    let ticks = Arc::new(Mutex::new(receive));
    tokio::spawn(async move {
        // Several: a client does not always find its last connection idle again in time.
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(provide(stream, Arc::clone(&ticks)));
        }
    });
    (base, send)
}

#[tokio::main(flavor = "multi_thread")]
async fn main() {
    let (base, ticks) = provider().await;
    let direct = Side {
        name: "direct",
        base,
        token: "none".to_owned(),
    };
    measure(&direct, &ticks).await;

    let (base, ticks) = provider().await;
    let gateway = Gateway::start(GatewaySettings {
        transport: Arc::new(HttpClient::new(&HttpSettings::default()).unwrap()),
        tools: None,
        caps: RunCaps::default(),
        prices: PriceTable::default(),
        concurrent_calls: 4,
        clock: || 0,
    })
    .await
    .unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(600);
    let port = gateway
        .open_pass(PassGrant {
            pass: PassId::new("bench"),
            model: ModelId::new("p/m").unwrap(),
            upstream: Arc::new(Upstream {
                provider: "p".to_owned(),
                protocol: Protocol::AnthropicMessages,
                base_url: base.parse().unwrap(),
                credential: Credential::ApiKey(Secret::new("key".to_owned())),
            }),
            style: FinalStyle::Claude,
            tools: None,
            expected_tools: Vec::new(),
            allowed_tools: Vec::new(),
            limits: PassLimits {
                turns: u32::MAX,
                input_tokens: u64::MAX,
                output_tokens: u64::MAX,
                ..PassLimits::default()
            },
            deadline,
            landing: Arc::new(Landing::new(deadline, Duration::ZERO)),
            cancel: CancellationToken::new(),
            progress: Arc::new(Silent),
            meter: Arc::new(Silent),
        })
        .unwrap();
    let through = Side {
        name: "door",
        base: format!("http://{}", port.address()),
        token: port.placeholder().expose().clone(),
    };
    measure(&through, &ticks).await;
    println!("books: {:?}", port.close().await.usage);
}

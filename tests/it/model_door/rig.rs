//! A gateway with one scripted provider behind it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use ecr::gateway::{
    Credential, DoorError, FinalStyle, Gateway, GatewaySettings, Landing, ModelCall,
    ModelDoor as _, PassGrant, PassLedger, PassLimits, PassPort, Protocol, ToolAnswer, ToolRecord,
    ToolSession, ToolSpec, Upstream,
};
use ecr::http::{HttpClient, HttpSettings, Transport};
use ecr::ledger::{PriceTable, Prices, Rates, RunCaps};
use ecr::model::{ModelId, PassId, Secret, Usage};
use ecr::port::{BoxFuture, EngineError, Meter, Progress, ProgressEvent};
use futures_util::StreamExt as _;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::model_server::{MemoryProvider, ModelServer, Script};

/// The credential of every rig, assembled so that no scanner takes it for one.
pub(super) fn key() -> String {
    ["the", "real", "key", "4711"].join("-")
}

/// 2027-01-15T08:00:00Z.
pub(super) const NOW: u64 = 1_800_000_000;

/// Keeps what it is told.
#[derive(Default)]
pub(super) struct Notebook {
    pub(super) usages: Mutex<Vec<Usage>>,
    pub(super) said: Mutex<Vec<String>>,
}

impl Meter for Notebook {
    fn add(&self, _: &PassId, usage: Usage) {
        self.usages.lock().unwrap().push(usage);
    }
}

impl Progress for Notebook {
    fn event(&self, event: ProgressEvent) {
        if let ProgressEvent::PassActivity(_, text) = event {
            self.said.lock().unwrap().push(text);
        }
    }
}

/// A tool session that does nothing but count.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) calls: Mutex<u32>,
}

impl ToolSession for Tools {
    fn tools(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn call(&self, _: &str, _: Value) -> BoxFuture<'_, ToolAnswer> {
        *self.calls.lock().unwrap() += 1;
        Box::pin(async {
            ToolAnswer {
                text: String::new(),
                is_error: false,
            }
        })
    }

    fn unreadable(&self, _: &str) {}

    fn finished(&self) -> bool {
        false
    }

    fn record(&self) -> ToolRecord {
        ToolRecord {
            calls: *self.calls.lock().unwrap(),
            ..ToolRecord::default()
        }
    }
}

/// A price of one micro-dollar an input token and ten an output token, for the model `m`.
pub(super) fn prices() -> PriceTable {
    let price = Prices::flat(Rates {
        input: 1.0,
        output: 10.0,
        cache_read: 0.0,
        cache_write: 1.0,
    });
    PriceTable::new([("m".to_owned(), price)].into())
}

pub(super) struct Rig {
    pub(super) gateway: Gateway,
    pub(super) script: Script,
    pub(super) notebook: Arc<Notebook>,
    pub(super) base: String,
    _server: Option<ModelServer>,
}

impl Rig {
    /// Over memory, for the paused clock.
    pub(super) async fn in_memory(script: Script) -> Self {
        Self::with_caps(script, RunCaps::default()).await
    }

    pub(super) async fn with_caps(script: Script, caps: RunCaps) -> Self {
        let transport = Arc::new(MemoryProvider::new(script.clone()));
        Self::new(script, transport, caps, None).await
    }

    /// Over sockets on both sides.
    pub(super) async fn on_sockets(script: Script) -> Self {
        let server = ModelServer::start(script.clone()).await;
        let client = HttpClient::new(&HttpSettings::default()).unwrap();
        Self::new(script, Arc::new(client), RunCaps::default(), Some(server)).await
    }

    async fn new(
        script: Script,
        transport: Arc<dyn Transport>,
        caps: RunCaps,
        server: Option<ModelServer>,
    ) -> Self {
        let gateway = Gateway::start(GatewaySettings {
            transport,
            tools: None,
            caps,
            prices: prices(),
            concurrent_calls: 8,
            clock: || NOW,
        })
        .await
        .unwrap();
        Self {
            gateway,
            script,
            notebook: Arc::default(),
            base: server
                .as_ref()
                .map_or("http://provider.test".to_owned(), ModelServer::url),
            _server: server,
        }
    }

    /// A grant without tools, with time and tokens to spare.
    pub(super) fn grant(&self, protocol: Protocol) -> PassGrant {
        let deadline = Instant::now() + Duration::from_secs(3600);
        PassGrant {
            pass: PassId::new("pass-1"),
            model: ModelId::new("p/m").unwrap(),
            upstream: Arc::new(Upstream {
                provider: "p".to_owned(),
                protocol,
                base_url: self.base.parse().unwrap(),
                credential: Credential::ApiKey(Secret::new(key())),
            }),
            style: FinalStyle::Api,
            tools: None,
            expected_tools: Vec::new(),
            allowed_tools: Vec::new(),
            limits: PassLimits {
                stall: Duration::from_secs(60),
                ..PassLimits::default()
            },
            deadline,
            landing: Arc::new(Landing::new(deadline, Duration::from_secs(60))),
            cancel: CancellationToken::new(),
            progress: Arc::clone(&self.notebook) as _,
            meter: Arc::clone(&self.notebook) as _,
        }
    }

    pub(super) fn open(&self, protocol: Protocol) -> PassPort {
        self.gateway.open_pass(self.grant(protocol)).unwrap()
    }
}

pub(super) const PROTOCOLS: [Protocol; 3] = [
    Protocol::AnthropicMessages,
    Protocol::OpenAiResponses,
    Protocol::OpenAiChat,
];

pub(super) fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::AnthropicMessages => "/v1/messages?beta=true",
        Protocol::OpenAiResponses => "/v1/responses",
        Protocol::OpenAiChat => "/v1/chat/completions",
    }
}

pub(super) fn body(stream: bool) -> Value {
    json!({"model": "m", "max_tokens": 100, "max_output_tokens": 100, "stream": stream, "messages": [], "input": "x"})
}

pub(super) fn call(protocol: Protocol, stream: bool) -> ModelCall {
    ModelCall {
        path: path(protocol).to_owned(),
        headers: HeaderMap::new(),
        body: Bytes::from(body(stream).to_string()),
    }
}

/// Performs a call and reads the answer whole.
pub(super) async fn ask(port: &PassPort, call: ModelCall) -> Result<String, DoorError> {
    let mut answer = port.call(call).await?;
    let mut text = Vec::new();
    while let Some(piece) = answer.body.next().await {
        text.extend_from_slice(&piece?);
    }
    Ok(String::from_utf8(text).unwrap())
}

/// The class of a failed call.
pub(super) fn class(result: Result<String, DoorError>) -> EngineError {
    match result {
        Err(DoorError::Failed { error, .. }) => error,
        other => panic!("expected a failure, got {other:?}"),
    }
}

/// Input and output tokens, and whether they are exact.
pub(super) fn counts(ledger: &PassLedger) -> (u64, u64, bool) {
    let tokens = ledger.usage.tokens().unwrap();
    (
        tokens.input,
        tokens.output,
        matches!(ledger.usage, Usage::Exact(..)),
    )
}

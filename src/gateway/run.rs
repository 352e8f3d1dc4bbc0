//! The gateway of a run: its listener, its passes, its books.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::listener;
use super::model::{PassDoor, RunDoor, RunDoorSettings};
use super::script::ScriptedModel;
use super::seam::{
    DoorError, ModelAnswer, ModelCall, ModelDoor, PassGrant, PassLedger, ToolService,
    ToolServiceFactory,
};
use super::tools::mcp_service;
use crate::http::Transport;
use crate::ledger::{PriceTable, RunCaps};
use crate::model::{Cost, Secret};
use crate::port::{BoxFuture, EngineError};

/// What a gateway needs.
pub struct GatewaySettings {
    /// Sends the model calls: the HTTP client, a tape, a test's own.
    pub transport: Arc<dyn Transport>,
    /// Makes the MCP service of a pass; without it `/mcp` answers 404.
    pub tools: Option<ToolServiceFactory>,
    /// Caps of the run.
    pub caps: RunCaps,
    /// What models cost.
    pub prices: PriceTable,
    /// Model calls of the run at the same time; others wait.
    pub concurrent_calls: usize,
    /// Seconds since the Unix epoch, for the resets that providers name.
    pub clock: fn() -> u64,
}

/// One pass as the listener knows it.
pub(super) struct Pass {
    pub(super) door: Arc<PassDoor>,
    pub(super) tools: Option<Arc<dyn ToolService>>,
    /// Its connections at the listeners.
    pub(super) connections: AtomicUsize,
    /// Requests whose body may be in memory at the same time.
    pub(super) bodies: Semaphore,
}

/// The open passes, by the digest of their placeholder. Looking up a digest says nothing about how
/// much of a wrong placeholder was right, so the comparison needs no constant time of its own.
#[derive(Default)]
pub(super) struct Passes {
    open: Mutex<HashMap<[u8; 32], Arc<Pass>>>,
}

impl Passes {
    fn insert(&self, placeholder: &str, pass: Arc<Pass>) {
        self.lock().insert(digest(placeholder), pass);
    }

    fn remove(&self, placeholder: &str) {
        self.lock().remove(&digest(placeholder));
    }

    /// The pass that a placeholder opens.
    pub(super) fn find(&self, placeholder: &str) -> Option<Arc<Pass>> {
        self.lock().get(&digest(placeholder)).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Arc<Pass>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// The one door of a run. Dropping it closes the listener and every connection.
pub struct Gateway {
    address: SocketAddr,
    run: Arc<RunDoor>,
    passes: Arc<Passes>,
    tools: Option<ToolServiceFactory>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Gateway {
    /// Listens on a random port of 127.0.0.1.
    pub async fn start(settings: GatewaySettings) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let stop = CancellationToken::new();
        let gateway = Self {
            address: listener.local_addr()?,
            run: Arc::new(RunDoor::new(RunDoorSettings {
                transport: settings.transport,
                caps: settings.caps,
                prices: settings.prices,
                concurrent_calls: settings.concurrent_calls,
                clock: settings.clock,
            })),
            passes: Arc::new(Passes::default()),
            tools: settings.tools,
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        };
        tokio::spawn(listener::serve(
            listener,
            Arc::clone(&gateway.passes),
            gateway.stop.clone(),
        ));
        Ok(gateway)
    }

    /// One for rehearsals: its provider is a script, nothing costs anything and nothing is capped for the run.
    pub async fn scripted(model: Arc<ScriptedModel>) -> std::io::Result<Self> {
        Self::start(GatewaySettings {
            transport: model,
            tools: Some(mcp_service),
            caps: RunCaps::default(),
            prices: PriceTable::default(),
            concurrent_calls: 4,
            clock: || 0,
        })
        .await
    }

    /// The listener's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves a listener made elsewhere besides (inside of a child's network namespace), until the
    /// guard is dropped.
    pub fn serve(&self, listener: std::net::TcpListener) -> std::io::Result<ListenerGuard> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let stop = self.stop.child_token();
        tokio::spawn(listener::serve(
            listener,
            Arc::clone(&self.passes),
            stop.clone(),
        ));
        Ok(ListenerGuard {
            address,
            _stop: stop.drop_guard(),
        })
    }

    /// Opens the doors for a pass.
    pub fn open_pass(&self, grant: PassGrant) -> Result<PassPort, EngineError> {
        let placeholder = placeholder()?;
        let tools = match (&grant.tools, self.tools) {
            (Some(session), Some(service)) => Some(service(Arc::clone(session))),
            _ => None,
        };
        let bodies = grant.limits.concurrent_calls.max(1) as usize;
        let door = Arc::new(PassDoor::open(
            Arc::clone(&self.run),
            grant,
            placeholder.clone(),
        ));
        self.passes.insert(
            placeholder.expose(),
            Arc::new(Pass {
                door: Arc::clone(&door),
                tools,
                connections: AtomicUsize::new(0),
                bodies: Semaphore::new(bodies),
            }),
        );
        Ok(PassPort {
            address: self.address,
            door,
            passes: Arc::clone(&self.passes),
        })
    }

    /// Tokens of the run, spent and reserved.
    pub fn tokens(&self) -> u64 {
        self.run.books().tokens()
    }

    /// Money of the run, spent and reserved, of the calls whose price is known.
    pub fn cost(&self) -> Cost {
        self.run.books().cost()
    }

    /// Calls whose price is not known: no money cap held for them.
    pub fn unpriced_calls(&self) -> u32 {
        self.run.books().unpriced_calls()
    }
}

/// A listener that is served besides the run's own, until this is dropped.
pub struct ListenerGuard {
    address: SocketAddr,
    _stop: DropGuard,
}

impl ListenerGuard {
    /// Its address, as its own network namespace sees it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The doors of one pass. Dropping it closes them.
pub struct PassPort {
    address: SocketAddr,
    door: Arc<PassDoor>,
    passes: Arc<Passes>,
}

impl PassPort {
    /// Where the child finds both doors.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes the place of a key and of the tool door's token. Useless elsewhere, dead after `close`.
    pub fn placeholder(&self) -> &Secret<String> {
        self.door.placeholder()
    }

    /// The books as they stand.
    pub fn ledger(&self) -> PassLedger {
        self.door.ledger()
    }

    /// Ends the pass: cuts open calls, settles them, and gives the books.
    pub async fn close(self) -> PassLedger {
        self.passes.remove(self.door.placeholder().expose());
        self.door.close().await
    }
}

impl ModelDoor for PassPort {
    fn call(&self, call: ModelCall) -> BoxFuture<'_, Result<ModelAnswer, DoorError>> {
        Box::pin(self.door.call(call))
    }
}

impl Drop for PassPort {
    fn drop(&mut self) {
        self.passes.remove(self.door.placeholder().expose());
        self.door.abandon();
    }
}

/// 256 random bits. The shape is unlike any provider's key, so that no scanner takes it for one.
fn placeholder() -> Result<Secret<String>, EngineError> {
    let mut bytes = [0; 32];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| EngineError::Unavailable("the system gives no random numbers".to_owned()))?;
    Ok(Secret::new(format!(
        "ecr-pass-{}",
        URL_SAFE_NO_PAD.encode(bytes)
    )))
}

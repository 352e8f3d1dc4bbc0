//! The engine with the real CLI; its provider plays a script in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::engine::opencode::OpenCodeEngine;
use ecr::engine::{Doors, DoorsSettings};
use ecr::gateway::tools::mcp_service;
use ecr::gateway::{Credential, Gateway, GatewaySettings, PassLimits, Protocol, Upstream};
use ecr::ledger::{PriceTable, RunCaps};
use ecr::model::{AgentId, ModelId, PassId, PassKind, Secret};
use ecr::port::{
    EngineError, FindingSink, Meter, PassContext, PassOutcome, PassRequest, Progress,
    ProgressEvent, ReviewEngine,
};
use ecr::process::{Binary, ToolPath};
use serde_json::{Value, json};
use tokio::sync::MutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::api::rig::{Notebook, diff, tree};
use crate::support::model_server::{MemoryProvider, Reply, Script};

/// The provider's key: a canary that may stand in the requests' credential header and nowhere else.
pub(super) fn key() -> String {
    ["canary", "key", "4be1"].join("-")
}

/// Two of these at the same time are all that two cores can do.
static ROOM: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

pub(super) fn opencode() -> Option<PathBuf> {
    Some("/work/cache/opencode-cli/node_modules/opencode-linux-x64/bin/opencode".into())
}

/// Takes what is told.
#[derive(Default)]
pub(super) struct Told(pub(super) Mutex<Vec<String>>);

impl Progress for Told {
    fn event(&self, event: ProgressEvent) {
        if let ProgressEvent::PassActivity(_, text) = event {
            self.0.lock().unwrap().push(text);
        }
    }
}

pub(super) struct Rig {
    pub(super) engine: Arc<OpenCodeEngine>,
    pub(super) doors: Arc<Doors>,
    pub(super) binary: PathBuf,
    pub(super) script: Script,
    pub(super) notebook: Arc<Notebook>,
    pub(super) told: Arc<Told>,
    pub(super) schema: Option<Arc<Value>>,
    pub(super) kind: PassKind,
    pub(super) task: String,
    pub(super) system: String,
    pub(super) cancel: CancellationToken,
    pub(super) time: Duration,
    _room: MutexGuard<'static, ()>,
}

impl Rig {
    /// `None` where there is no `OpenCode`.
    pub(super) async fn new(protocol: Protocol, script: Script) -> Option<Self> {
        let limits = PassLimits {
            stall: Duration::from_secs(2),
            ..PassLimits::default()
        };
        Self::with(protocol, script, limits).await
    }

    pub(super) async fn with(
        protocol: Protocol,
        script: Script,
        limits: PassLimits,
    ) -> Option<Self> {
        let path = opencode()?;
        let room = ROOM.lock().await;
        let gateway = Gateway::start(GatewaySettings {
            transport: Arc::new(MemoryProvider::new(script.clone())),
            tools: Some(mcp_service),
            caps: RunCaps::default(),
            prices: PriceTable::default(),
            concurrent_calls: 8,
            clock: || 1_800_000_000,
        })
        .await
        .unwrap();
        let upstream = Upstream {
            provider: "acme".to_owned(),
            protocol,
            base_url: "http://127.0.0.1:9/v1".parse().unwrap(),
            credential: Credential::ApiKey(Secret::new(key())),
        };
        let doors = Arc::new(Doors::new(DoorsSettings {
            gateway: Arc::new(gateway),
            upstreams: [("acme".to_owned(), Arc::new(upstream))].into(),
            withheld: Arc::default(),
            limits,
        }));
        let folder = path.parent().unwrap().as_os_str();
        let tool = ToolPath::find("opencode", folder, &[]).unwrap();
        let binary = Binary::examine(tool).unwrap();
        Some(Self {
            engine: Arc::new(OpenCodeEngine::new(Arc::clone(&doors), binary).unwrap()),
            doors,
            binary: path.canonicalize().unwrap(),
            script,
            notebook: Arc::default(),
            told: Arc::default(),
            schema: None,
            kind: PassKind::Review,
            task: "The task.".to_owned(),
            system: "You review.".to_owned(),
            cancel: CancellationToken::new(),
            time: Duration::from_secs(90),
            _room: room,
        })
    }

    /// One pass, and a look at what it leaves.
    pub(super) async fn run(&self) -> Result<PassOutcome, EngineError> {
        let result = self.pass("one/1").await;
        self.nothing_is_left();
        result
    }

    pub(super) async fn pass(&self, id: &str) -> Result<PassOutcome, EngineError> {
        let diff = diff();
        let request = PassRequest {
            id: PassId::new(id),
            kind: self.kind,
            agent: AgentId::new("one").unwrap(),
            model: Some(ModelId::new("acme/org/big").unwrap()),
            files: (0..diff.files.len()).collect(),
            diff,
            system: self.system.as_str().into(),
            task: self.task.as_str().into(),
            schema: self.schema.clone(),
        };
        let context = PassContext {
            tree: Some(tree()),
            sink: Arc::clone(&self.notebook) as Arc<dyn FindingSink>,
            meter: Arc::clone(&self.notebook) as Arc<dyn Meter>,
            progress: Arc::clone(&self.told) as Arc<dyn Progress>,
            cancel: self.cancel.clone(),
            deadline: Instant::now() + self.time,
        };
        self.engine.run(request, context).await
    }

    /// No process of the binary that belongs to this test process, and no folder that a request named.
    pub(super) fn nothing_is_left(&self) {
        assert_eq!(children(&self.binary), [] as [u32; 0]);
        for folder in self.folders() {
            assert!(!folder.exists(), "{} is left", folder.display());
        }
    }

    /// The folders that children said they work in.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let requests = self.script.requests();
        let named = requests.iter().filter_map(|request| {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            let (_, rest) = text.split_once("Working directory: ")?;
            Some(PathBuf::from(rest.split('\\').next()?))
        });
        named.collect()
    }

    pub(super) fn titles(&self) -> Vec<String> {
        let findings = self.notebook.findings.lock().unwrap();
        findings.iter().map(|f| f.title.clone()).collect()
    }

    /// The body of request number `at`.
    pub(super) fn body(&self, at: usize) -> Value {
        serde_json::from_slice(&self.script.requests()[at].body).unwrap()
    }
}

/// Running processes of `binary` that descend from this process.
pub(super) fn children(binary: &Path) -> Vec<u32> {
    let me = std::process::id();
    let parent = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok()
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|&pid| {
        let runs = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == binary);
        runs && std::iter::successors(Some(pid), |&pid| parent(pid)).any(|pid| pid == me)
    })
    .collect()
}

pub(super) fn look() -> Reply {
    Reply::default().tool("tree_read", json!({"path": "src/a.rs"}))
}

pub(super) fn finish() -> Reply {
    Reply::default().tool("tree_finish", json!({"examined": ["src/a.rs"]}))
}

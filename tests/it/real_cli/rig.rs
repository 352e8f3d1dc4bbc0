//! The engine with the real program; its provider plays a script in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::engine::cli::{CliEngine, CliSettings, Rehearsals};
use ecr::engine::{Doors, DoorsSettings};
use ecr::gateway::tools::mcp_service;
use ecr::gateway::{
    Credential, Gateway, GatewaySettings, PassLimits, Protocol, ToolServiceFactory, Upstream,
};
use ecr::ledger::{PriceTable, RunCaps};
use ecr::model::{AgentId, ModelId, PassId, PassKind, Secret};
use ecr::port::{
    Completion, EngineError, FindingSink, Meter, PassContext, PassOutcome, PassRequest, Progress,
    ProgressEvent, ReviewEngine,
};
use ecr::process::sandbox::{Level, probe};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Subject;
use super::install::installed;
use crate::api::rig::{Notebook, diff, tree};
use crate::support::model_server::{MemoryProvider, Reply, Script};

/// The provider's key: a canary that may stand in the requests' credential header and nowhere else.
pub(super) fn key() -> String {
    ["canary", "key", "4be1"].join("-")
}

/// A few of these at the same time are all that two cores can do.
static ROOM: tokio::sync::Semaphore = tokio::sync::Semaphore::const_new(1);

/// Waits for one of them: for what starts a real tool without a rig.
pub(super) async fn room() -> tokio::sync::SemaphorePermit<'static> {
    ROOM.acquire().await.unwrap()
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

pub(crate) struct Rig {
    pub(super) subject: &'static Subject,
    pub(super) engine: Arc<CliEngine>,
    pub(super) doors: Arc<Doors>,
    pub(super) script: Script,
    pub(super) notebook: Arc<Notebook>,
    pub(super) told: Arc<Told>,
    pub(super) schema: Option<Arc<Value>>,
    pub(super) kind: PassKind,
    pub(super) task: String,
    pub(super) system: String,
    pub(super) cancel: CancellationToken,
    pub(super) time: Duration,
    _room: tokio::sync::SemaphorePermit<'static>,
}

impl Rig {
    /// The engine itself, for the rules that all engines have to keep.
    pub(crate) fn engine(&self) -> Arc<dyn ReviewEngine> {
        Arc::clone(&self.engine) as Arc<dyn ReviewEngine>
    }

    /// `None` where there is no such program.
    pub(crate) async fn new(subject: &'static Subject, script: Script) -> Option<Self> {
        let limits = PassLimits {
            stall: Duration::from_secs(2),
            ..PassLimits::default()
        };
        Self::with(subject, script, limits).await
    }

    pub(super) async fn with(
        subject: &'static Subject,
        script: Script,
        limits: PassLimits,
    ) -> Option<Self> {
        Self::behind(subject, script, limits, Some(mcp_service)).await
    }

    /// With a gateway that answers tool calls by `tools`, or with a status 404.
    pub(super) async fn behind(
        subject: &'static Subject,
        script: Script,
        limits: PassLimits,
        tools: Option<ToolServiceFactory>,
    ) -> Option<Self> {
        let search = installed(subject)?;
        let room = room().await;
        let gateway = Gateway::start(GatewaySettings {
            transport: Arc::new(MemoryProvider::new(script.clone())),
            tools,
            caps: RunCaps::default(),
            prices: PriceTable::default(),
            concurrent_calls: 8,
            clock: || 1_800_000_000,
        })
        .await
        .unwrap();
        let upstream = Upstream {
            provider: "acme".to_owned(),
            protocol: subject.protocol,
            base_url: "http://127.0.0.1:9/v1".parse().unwrap(),
            credential: Credential::ApiKey(Secret::new(key())),
        };
        let doors = Arc::new(Doors::new(DoorsSettings {
            gateway: Arc::new(gateway),
            upstreams: [("acme".to_owned(), Arc::new(upstream))].into(),
            withheld: Arc::default(),
            limits,
        }));
        // The level of other people's work, wherever it can be had.
        let require = if cfg!(target_os = "linux") {
            Level::Full.min(probe().level)
        } else {
            Level::None
        };
        let settings = CliSettings {
            search: search.into(),
            reviewed: Vec::new(),
            require,
            rehearsals: Rehearsals::default(),
        };
        Some(Self {
            subject,
            engine: Arc::new(CliEngine::new(
                (subject.dialect)(),
                Arc::clone(&doors),
                settings,
            )),
            doors,
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
        self.nothing_is_left().await;
        result
    }

    pub(super) async fn pass(&self, id: &str) -> Result<PassOutcome, EngineError> {
        let diff = diff();
        let request = PassRequest {
            id: PassId::new(id),
            kind: self.kind,
            agent: AgentId::new("one").unwrap(),
            model: Some(ModelId::new(&format!("acme/{}", self.subject.model)).unwrap()),
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

    /// The program itself.
    pub(super) async fn program(&self) -> PathBuf {
        let installed = self.engine.installed().await.unwrap();
        installed.binary.target().to_owned()
    }

    /// No process of the program that belongs to this test process, and no folder that a request named.
    pub(super) async fn nothing_is_left(&self) {
        assert_eq!(children(&self.program().await), [] as [u32; 0]);
        for folder in self.folders() {
            assert!(!folder.exists(), "{} is left", folder.display());
        }
    }

    /// The private folders that requests name.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        let base = std::env::temp_dir();
        let requests = self.script.requests();
        let named = requests.iter().filter_map(|request| {
            let text = String::from_utf8_lossy(&request.body).into_owned();
            let (_, rest) = text.split_once("/ecr-run-")?;
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
            Some(base.join(format!("ecr-run-{name}")))
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

    /// The name of a served tool as the model calls it.
    pub(super) fn spelled(&self, tool: &str) -> String {
        ((self.subject.dialect)().facts().spelling)(tool)
    }
}

/// A served tool as `subject`'s model calls it.
pub(super) fn spelled(subject: &Subject, tool: &str) -> String {
    ((subject.dialect)().facts().spelling)(tool)
}

/// Running processes of `program` that descend from this process; those of an `ecr` that another test has started
/// are not its own.
pub(super) fn children(program: &Path) -> Vec<u32> {
    let me = std::process::id();
    let parent = |pid: u32| -> Option<u32> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        line.trim().parse().ok()
    };
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let runs = |pid: u32, program: &Path| {
        std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
    };
    let ecr = Path::new(env!("CARGO_BIN_EXE_ecr"));
    pids.filter(|&pid| {
        let mut above = std::iter::successors(Some(pid), |&pid| parent(pid));
        runs(pid, program) && above.find(|&pid| pid == me || runs(pid, ecr)) == Some(me)
    })
    .collect()
}

pub(super) fn look(subject: &Subject) -> Reply {
    Reply::default().tool(&spelled(subject, "read"), json!({"path": "src/a.rs"}))
}

pub(super) fn finish(subject: &Subject) -> Reply {
    let examined = json!({"examined": ["src/a.rs"]});
    Reply::default().tool(&spelled(subject, "finish"), examined)
}

/// What a verifier answers.
pub(super) fn confirmed(subject: &Subject) -> Reply {
    let verdict = json!({"verdict": "confirmed", "reason": "The source shows it."});
    match subject.answer_tool {
        Some(tool) => Reply::default().tool(tool, verdict),
        None => Reply::text(&verdict.to_string()),
    }
}

/// What became of a pass, in a word.
pub(super) fn class(result: &Result<PassOutcome, EngineError>) -> &'static str {
    match result {
        Ok(outcome) if outcome.completion == Completion::Complete => "complete",
        Ok(_) => "truncated",
        Err(error) => match error {
            EngineError::Unavailable(_) => "unavailable",
            EngineError::Auth(_) => "auth",
            EngineError::RateLimited { .. } => "rate",
            EngineError::UsageLimited { .. } => "usage",
            EngineError::Overloaded => "overloaded",
            EngineError::Transient(_) => "transient",
            EngineError::ContextOverflow => "overflow",
            EngineError::Refused(_) => "refused",
            EngineError::SchemaUnmet(_) => "schema",
            EngineError::Stalled(_) => "stalled",
            EngineError::Timeout(_) => "timeout",
            EngineError::Protocol(_) => "protocol",
            EngineError::Cancelled => "cancelled",
        },
    }
}

/// Whether `subject` speaks this protocol: events as they stand are of one protocol only.
pub(super) fn speaks(subject: &Subject, protocol: Protocol) -> bool {
    subject.protocol == protocol
}

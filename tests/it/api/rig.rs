//! The engine over a gateway whose provider plays a script in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecr::diff::Diff;
use ecr::engine::api::{ApiEngine, ApiSettings};
use ecr::engine::{Doors, DoorsSettings};
use ecr::gateway::{Credential, Gateway, GatewaySettings, PassLimits, Protocol, Upstream};
use ecr::ledger::{PriceTable, RunCaps};
use ecr::model::{
    AgentId, FindingReport, Fingerprint, ModelId, PassId, PassKind, RepoPath, Secret, Usage,
};
use ecr::port::{
    EngineError, FindingReceipt, FindingSink, LinesSeen, Meter, PassContext, PassOutcome,
    PassRequest, Progress, ProgressEvent, ReviewEngine as _,
};
use ecr::tree::{MemoryTree, Tree};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::model_server::{MemoryProvider, Reply, Script};

pub(crate) const PROTOCOLS: [Protocol; 3] = [
    Protocol::AnthropicMessages,
    Protocol::OpenAiResponses,
    Protocol::OpenAiChat,
];

/// A change of `src/a.rs`, whose second line is new.
pub(crate) fn diff() -> Arc<Diff> {
    let patch = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +1,3 @@\n fn a() {\n+    let total = 1;\n }\n";
    Arc::new(ecr::diff::parse_patch(Arc::from(patch.as_bytes())).unwrap())
}

pub(crate) fn tree() -> Arc<dyn Tree> {
    let mut tree = MemoryTree::new();
    let path = |text: &str| RepoPath::new(text).unwrap();
    tree.insert(path("src/a.rs"), &b"fn a() {\n    let total = 1;\n}\n"[..]);
    tree.insert(path("src/b.rs"), &b"fn b() {}\n"[..]);
    Arc::new(tree)
}

/// Takes all that a pass says; findings whose title begins with `bad` are refused.
#[derive(Default)]
pub(crate) struct Notebook {
    pub(crate) findings: Mutex<Vec<FindingReport>>,
    pub(crate) metered: Mutex<Vec<Usage>>,
    pub(crate) seen: Mutex<LinesSeen>,
}

impl FindingSink for Notebook {
    fn report(&self, _: &PassId, finding: FindingReport) -> FindingReceipt {
        if finding.title.starts_with("bad") {
            return FindingReceipt::Rejected(
                "evidence not at line 9; the only match is line 2".into(),
            );
        }
        let mut findings = self.findings.lock().unwrap();
        findings.push(finding);
        let id = format!("{:012x}", findings.len());
        FindingReceipt::Accepted(Fingerprint::new(&id).unwrap())
    }

    fn retract(&self, _: &PassId, _: &Fingerprint, _: &str) -> bool {
        true
    }
}

impl Meter for Notebook {
    fn add(&self, _: &PassId, usage: Usage) {
        self.metered.lock().unwrap().push(usage);
    }

    fn saw(&self, _: &PassId, lines: &LinesSeen) {
        self.seen.lock().unwrap().extend(lines.clone());
    }
}

impl Progress for Notebook {
    fn event(&self, _: ProgressEvent) {}
}

pub(crate) struct Rig {
    pub(crate) engine: Arc<ApiEngine>,
    pub(crate) script: Script,
    pub(crate) notebook: Arc<Notebook>,
    pub(crate) schema: Option<Arc<Value>>,
    pub(crate) kind: PassKind,
    pub(crate) cancel: CancellationToken,
    pub(crate) time: Duration,
}

impl Rig {
    pub(crate) async fn new(protocol: Protocol, script: Script) -> Self {
        let key = Credential::ApiKey(Secret::new(["k", "1"].concat()));
        Self::with(protocol, key, script, PassLimits::default()).await
    }

    pub(crate) async fn with(
        protocol: Protocol,
        credential: Credential,
        script: Script,
        limits: PassLimits,
    ) -> Self {
        let gateway = Gateway::start(GatewaySettings {
            transport: Arc::new(MemoryProvider::new(script.clone())),
            tools: None,
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
            credential,
        };
        let doors = Doors::new(DoorsSettings {
            gateway: Arc::new(gateway),
            upstreams: [("acme".to_owned(), Arc::new(upstream))].into(),
            withheld: Arc::default(),
            limits,
        });
        Self {
            engine: Arc::new(ApiEngine::new(Arc::new(doors), ApiSettings::default())),
            script,
            notebook: Arc::default(),
            schema: None,
            kind: PassKind::Review,
            cancel: CancellationToken::new(),
            time: Duration::from_secs(3_600),
        }
    }

    pub(crate) async fn run(&self) -> Result<PassOutcome, EngineError> {
        let diff = diff();
        let request = PassRequest {
            id: PassId::new("one/1"),
            kind: self.kind,
            agent: AgentId::new("one").unwrap(),
            model: Some(ModelId::new("acme/big").unwrap()),
            files: (0..diff.files.len()).collect(),
            diff,
            system: "You review.".into(),
            task: "The task.".into(),
            schema: self.schema.clone(),
        };
        let context = PassContext {
            tree: Some(tree()),
            sink: Arc::clone(&self.notebook) as Arc<dyn FindingSink>,
            meter: Arc::clone(&self.notebook) as Arc<dyn Meter>,
            progress: Arc::clone(&self.notebook) as Arc<dyn Progress>,
            cancel: self.cancel.clone(),
            deadline: Instant::now() + self.time,
        };
        self.engine.run(request, context).await
    }

    pub(crate) fn titles(&self) -> Vec<String> {
        let findings = self.notebook.findings.lock().unwrap();
        findings.iter().map(|f| f.title.clone()).collect()
    }

    /// The body of request number `at`.
    pub(crate) fn body(&self, at: usize) -> Value {
        serde_json::from_slice(&self.script.requests()[at].body).unwrap()
    }
}

pub(crate) fn report(title: &str, line: u32) -> Value {
    json!({"severity": "warning", "category": "correctness", "file": "src/a.rs", "line": line, "side": "new",
        "title": title, "consequence": "The sum is wrong.", "evidence": "    let total = 1;"})
}

pub(crate) fn finish() -> Reply {
    Reply::default().tool("finish", json!({"examined": ["src/a.rs"]}))
}

//! A stage for rehearsals: real doors, a small change, and a model that plays a script.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::doors::{Doors, DoorsSettings};
use crate::diff::parse_patch;
use crate::gateway::{Credential, Gateway, PassLimits, Protocol, ScriptedModel, Upstream};
use crate::model::{
    AgentId, FindingReport, Fingerprint, ModelId, PassId, PassKind, RepoPath, Usage,
};
use crate::port::{
    FindingReceipt, FindingSink, Meter, PassContext, PassRequest, Progress, ProgressEvent,
};
use crate::tree::MemoryTree;

/// The one file of the stage's tree.
pub const STAGE_FILE: &str = "stage.txt";
/// What stands in it.
pub const STAGE_TEXT: &str = "a line of the stage\n";
/// The provider of the stage's model.
const PROVIDER: &str = "stage";

/// Where a pass can be tried out: nothing of it leaves the process but what goes through a loopback port.
pub struct Stage {
    /// Its doors.
    pub doors: Arc<Doors>,
    /// Its model.
    pub model: Arc<ScriptedModel>,
    /// Calls that were metered.
    pub metered: Arc<AtomicUsize>,
    id: ModelId,
}

impl Stage {
    /// A stage whose model is called `name` and speaks `protocol`.
    pub async fn new(protocol: Protocol, name: &str, model: ScriptedModel) -> io::Result<Self> {
        let model = Arc::new(model);
        let gateway = Gateway::scripted(Arc::clone(&model)).await?;
        let base_url = "http://127.0.0.1:9".parse();
        let upstream = Upstream {
            provider: PROVIDER.to_owned(),
            protocol,
            // Never connected to: the script stands in between.
            base_url: base_url.map_err(io::Error::other)?,
            credential: Credential::None,
        };
        let doors = Doors::new(DoorsSettings {
            gateway: Arc::new(gateway),
            upstreams: [(PROVIDER.to_owned(), Arc::new(upstream))].into(),
            withheld: Arc::default(),
            limits: PassLimits::default(),
        });
        Ok(Self {
            doors: Arc::new(doors),
            model,
            metered: Arc::default(),
            id: ModelId::new(&format!("{PROVIDER}/{name}")).map_err(io::Error::other)?,
        })
    }

    /// A pass over the stage's change.
    pub fn request(&self) -> io::Result<PassRequest> {
        let patch = format!(
            "diff --git a/{STAGE_FILE} b/{STAGE_FILE}\nnew file mode 100644\n--- /dev/null\n+++ b/{STAGE_FILE}\n\
             @@ -0,0 +1 @@\n+{STAGE_TEXT}"
        );
        let diff = parse_patch(patch.into_bytes().into()).map_err(io::Error::other)?;
        Ok(PassRequest {
            id: PassId::new("stage/1"),
            kind: PassKind::Review,
            agent: AgentId::new("stage").map_err(io::Error::other)?,
            model: Some(self.id.clone()),
            files: (0..diff.files.len()).collect(),
            diff: Arc::new(diff),
            system: "This is a rehearsal.".into(),
            task: "Rehearse.".into(),
            schema: None,
        })
    }

    /// What that pass may use, for `time`.
    pub fn context(&self, time: Duration) -> io::Result<PassContext> {
        let mut tree = MemoryTree::new();
        let path = RepoPath::new(STAGE_FILE).map_err(io::Error::other)?;
        tree.insert(path, STAGE_TEXT.as_bytes());
        Ok(PassContext {
            tree: Some(Arc::new(tree)),
            sink: Arc::new(Nobody),
            meter: Arc::new(Count(Arc::clone(&self.metered))),
            progress: Arc::new(Nobody),
            cancel: CancellationToken::new(),
            deadline: Instant::now() + time,
        })
    }
}

/// Takes nothing: there is nothing to find on the stage.
struct Nobody;

impl FindingSink for Nobody {
    fn report(&self, _pass: &PassId, _finding: FindingReport) -> FindingReceipt {
        FindingReceipt::Rejected("nothing is reported in a rehearsal".to_owned())
    }

    fn retract(&self, _pass: &PassId, _id: &Fingerprint, _reason: &str) -> bool {
        false
    }
}

impl Progress for Nobody {
    fn event(&self, _event: ProgressEvent) {}
}

/// Counts calls.
struct Count(Arc<AtomicUsize>);

impl Meter for Count {
    fn add(&self, _pass: &PassId, _usage: Usage) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

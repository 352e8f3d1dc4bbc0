//! Opening both doors of the gateway for a pass, the same way for every engine that calls a model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::gateway::tools::{Session, SessionSettings, TreeCache, Withheld};
use crate::gateway::{
    FinalStyle, Gateway, Landing, PassGrant, PassLimits, PassPort, ToolSession, Upstream,
};
use crate::model::ModelId;
use crate::port::{EngineError, PassContext, PassRequest};
use crate::tree::Tree;

/// The landing begins this long before the deadline, at the earliest.
const LANDING: Duration = Duration::from_secs(90);

/// What the engines of a run share.
pub struct DoorsSettings {
    /// The run's gateway.
    pub gateway: Arc<Gateway>,
    /// Where the models of each provider are, by provider id.
    pub upstreams: BTreeMap<String, Arc<Upstream>>,
    /// Files whose content is never served.
    pub withheld: Arc<Withheld>,
    /// The caps of each pass.
    pub limits: PassLimits,
}

/// Opens passes at the run's gateway.
pub struct Doors {
    settings: DoorsSettings,
    /// The tree served last, with its cache: the passes of a run have the same one.
    tree: Mutex<Option<CachedTree>>,
}

/// A tree and its cache.
type CachedTree = (Arc<dyn Tree>, Arc<TreeCache>);

/// Who speaks at the doors.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    /// How a final error is worded for it.
    pub style: FinalStyle,
    /// Turns a tool's name into the one that it offers to its model.
    pub spelling: fn(&str) -> String,
    /// Tools that it may offer besides.
    pub allowed: &'static [&'static str],
}

/// The open doors of one pass.
pub struct OpenDoors {
    /// The model door; closing it gives the books.
    pub port: PassPort,
    /// The tool door; none for a pass that answers by a schema.
    pub tools: Option<Arc<dyn ToolSession>>,
}

impl Doors {
    /// Doors that share one gateway.
    pub fn new(settings: DoorsSettings) -> Self {
        Self {
            settings,
            tree: Mutex::new(None),
        }
    }

    /// The run's gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.settings.gateway
    }

    /// The caps of each pass.
    pub fn limits(&self) -> &PassLimits {
        &self.settings.limits
    }

    /// Where a model is.
    pub fn upstream(&self, model: &ModelId) -> Result<&Arc<Upstream>, EngineError> {
        self.settings
            .upstreams
            .get(model.provider())
            .ok_or_else(|| {
                EngineError::Unavailable(format!("no address is set up for {}", model.provider()))
            })
    }

    /// Opens both doors for a pass. A pass with a schema gets no tools.
    pub fn open(
        &self,
        request: &PassRequest,
        context: &PassContext,
        client: &Client,
    ) -> Result<OpenDoors, EngineError> {
        let model = request.model.clone().ok_or_else(|| {
            EngineError::Unavailable(format!("no model is named for {}", request.agent))
        })?;
        let upstream = Arc::clone(self.upstream(&model)?);
        let landing = Arc::new(Landing::new(
            context.deadline,
            LANDING.min(context.remaining() / 6),
        ));
        let tools = request.schema.is_none().then(|| {
            Arc::new(Session::new(SessionSettings {
                pass: request.id.clone(),
                tree: context.tree.as_ref().map(|tree| self.cached(tree)),
                diff: Arc::clone(&request.diff),
                withheld: Arc::clone(&self.settings.withheld),
                sink: Arc::clone(&context.sink),
                landing: Arc::clone(&landing),
                tool_calls: self.settings.limits.tool_calls,
            })) as Arc<dyn ToolSession>
        });
        let expected_tools = tools
            .iter()
            .flat_map(|tools| tools.tools())
            .map(|tool| (client.spelling)(&tool.name))
            .collect();
        let port = self.settings.gateway.open_pass(PassGrant {
            pass: request.id.clone(),
            model,
            upstream,
            style: client.style,
            tools: tools.clone(),
            expected_tools,
            allowed_tools: client.allowed.iter().map(ToString::to_string).collect(),
            limits: self.settings.limits.clone(),
            deadline: context.deadline,
            landing,
            cancel: context.cancel.clone(),
            progress: Arc::clone(&context.progress),
            meter: Arc::clone(&context.meter),
        })?;
        Ok(OpenDoors { port, tools })
    }

    fn cached(&self, tree: &Arc<dyn Tree>) -> Arc<TreeCache> {
        let mut slot = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        match &*slot {
            Some((known, cache)) if Arc::ptr_eq(known, tree) => Arc::clone(cache),
            _ => {
                let cache = Arc::new(TreeCache::new(Arc::clone(tree)));
                *slot = Some((Arc::clone(tree), Arc::clone(&cache)));
                cache
            }
        }
    }
}

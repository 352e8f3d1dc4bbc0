//! Routing: which reviewers a change needs. It errs towards inclusion, and whoever is left out is named.
//!
//! @ref LLP 0004#routing — who may be left out

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::dispatch::{Shared, dispatch, feed};
use super::plan::{Plan, PlannedAgent, PlannedPass};
use super::run::EngineSet;
use super::step::{Budget, Dispatcher, Limits, Settled};
use crate::model::{AgentId, CoverageNote, NoteKind, PassId, PassKind};
use crate::prompt::route_task;
use crate::reply::{route, route_schema};

/// Who picks the reviewers, and what there is to pick from.
#[derive(Clone)]
pub struct Router {
    /// Who picks.
    pub agent: PlannedAgent,
    /// What each reviewer looks for.
    pub concerns: Vec<(AgentId, String)>,
    /// The run's mark, which bounds strangers' text in the task.
    pub mark: String,
}

/// How a routing went.
#[derive(Default)]
pub(super) struct Routed {
    /// Its pass.
    pub(super) settled: Vec<Settled>,
    /// Who was left out.
    pub(super) notes: Vec<CoverageNote>,
}

/// Asks who has to review, and takes the others out of `plan`. A router that fails, or names nobody that we know, leaves
/// everybody in.
pub(super) async fn narrow(
    plan: &mut Plan,
    router: &Router,
    (shared, engines): (&Shared, &EngineSet),
    dispatcher: &mut Dispatcher,
    limits: Limits,
) -> Routed {
    let fixed: BTreeSet<AgentId> = plan
        .passes
        .iter()
        .filter(|pass| pass.kind != PassKind::Review || pass.agent.always_run)
        .map(|pass| pass.agent.id.clone())
        .collect();
    let open: Vec<_> = router
        .concerns
        .iter()
        .filter(|(id, _)| plan.agents.contains(id) && !fixed.contains(id))
        .collect();
    if open.len() + fixed.iter().filter(|id| plan.agents.contains(id)).count() < 2
        || open.is_empty()
    {
        return Routed::default();
    }
    let changed = (plan.diff.files.iter().zip(&plan.filtered))
        .filter(|(_, filtered)| filtered.is_none())
        .map(|(file, _)| file);
    let pass = PlannedPass {
        id: PassId::new("route"),
        kind: PassKind::Route,
        agent: Arc::new(router.agent.clone()),
        files: Arc::from([]),
        lines: 0,
        task: Some(route_task(&open, changed, &router.mark).into()),
        schema: Some(Arc::new(route_schema())),
        limit: None,
    };
    let now = Instant::now();
    dispatcher.allow(Budget::new(&limits, now, now));
    let mut nothing = feed().1;
    dispatch(shared, engines, dispatcher, vec![pass], &mut nothing).await;
    let settled = dispatcher.take_settled();
    let named = settled
        .first()
        .and_then(|settled| settled.reply.as_ref())
        .map(route)
        .unwrap_or_default();
    let mut notes = Vec::new();
    if open.iter().any(|(id, _)| named.contains(id)) {
        let out: Vec<AgentId> = open
            .into_iter()
            .filter(|(id, _)| !named.contains(id))
            .map(|(id, _)| id.clone())
            .collect();
        plan.agents.retain(|id| !out.contains(id));
        plan.passes
            .retain(|pass| pass.kind != PassKind::Review || !out.contains(&pass.agent.id));
        if !out.is_empty() {
            let names: Vec<_> = out.iter().map(AgentId::as_str).collect();
            notes.push(CoverageNote {
                kind: NoteKind::Info,
                text: format!(
                    "not needed for this change, says the router (--route): {}",
                    names.join(", ")
                ),
            });
        }
    }
    Routed { settled, notes }
}

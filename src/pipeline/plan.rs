//! Which passes a run needs. Pure: `--plan` prints what this gives and calls nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::diff::Diff;
use crate::model::{AgentId, EngineName, ModelId, PassId, PassKind};

/// Why a file without text is not reviewed.
pub const BINARY: &str = "binary file (no textual diff)";

/// A reviewer as configured: who, on which engine, with which model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedAgent {
    /// Its id.
    pub id: AgentId,
    /// The engine that runs it.
    pub engine: EngineName,
    /// The model; none for an engine without models.
    pub model: Option<ModelId>,
    /// The system prompt, byte-stable within the run; empty for an engine without models.
    pub system: Arc<str>,
    /// The router may not leave it out.
    pub always_run: bool,
}

/// What a plan is made from.
#[derive(Debug, Clone)]
pub struct PlanInput {
    /// The change.
    pub diff: Arc<Diff>,
    /// Files hidden from models, by index in `diff.files`, with the reason.
    pub filtered: BTreeMap<usize, String>,
    /// Files whose text the diff does not show although they have one, with the reason: no model can
    /// review them, and that is a gap.
    pub hidden: BTreeMap<usize, String>,
    /// The built-in checks, unless they are turned off.
    pub checks: Option<PlannedAgent>,
    /// The model reviewers.
    pub agents: Vec<PlannedAgent>,
    /// Indices in `diff.files`, chunk by chunk; each file in one chunk.
    pub chunks: Vec<Vec<usize>>,
    /// Who looks at the connections when there is more than one chunk.
    pub cross_cutting: Option<PlannedAgent>,
}

/// One pass of a plan.
#[derive(Debug, Clone)]
pub struct PlannedPass {
    /// Unique within the run: `checks`, `correctness/2`, `cross-cutting`; halves add `.a` and `.b`.
    pub id: PassId,
    /// What it is for.
    pub kind: PassKind,
    /// Who reviews.
    pub agent: Arc<PlannedAgent>,
    /// Indices in `diff.files`, ascending.
    pub files: Arc<[usize]>,
    /// Changed lines of these files: the estimate of its length.
    pub lines: u64,
    /// The task, where it is not written from the files when the pass starts.
    pub task: Option<Arc<str>>,
    /// The schema of its reply, for a pass without tools.
    pub schema: Option<Arc<serde_json::Value>>,
    /// Its own time limit, instead of the run's limit for a pass.
    pub limit: Option<Duration>,
}

impl PlannedPass {
    /// True when it takes one of the places that `Limits::concurrency` gives out: everything but the
    /// checks, which wait for no provider.
    pub fn takes_slot(&self) -> bool {
        self.kind != PassKind::Checks
    }

    /// A pass like this one over other files.
    #[must_use]
    pub fn over(&self, id: PassId, files: Arc<[usize]>, diff: &Diff) -> Self {
        Self {
            id,
            lines: lines_of(diff, &files),
            files,
            ..self.clone()
        }
    }
}

/// The passes of a run and what they have to cover.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The change.
    pub diff: Arc<Diff>,
    /// In starting order: the checks, then the longest first.
    pub passes: Vec<PlannedPass>,
    /// One entry a file of the diff: why it is hidden from models.
    pub filtered: Vec<Option<String>>,
    /// Files whose text the diff does not show although they have one, by index, with the reason.
    pub hidden: BTreeMap<usize, String>,
    /// The reviewer that runs the checks, if any.
    pub checks: Option<AgentId>,
    /// The model reviewers that every unfiltered file is assigned to.
    pub agents: Vec<AgentId>,
}

impl Plan {
    /// How many passes call a model.
    pub fn model_passes(&self) -> usize {
        self.passes.iter().filter(|p| p.takes_slot()).count()
    }

    /// False when models have nothing to do with the file at `index`: it has no changed line.
    pub(super) fn needs_models(&self, index: usize) -> bool {
        let file = &self.diff.files[index];
        file.added > 0 || file.deleted > 0 || self.hidden.contains_key(&index)
    }
}

fn lines_of(diff: &Diff, files: &[usize]) -> u64 {
    let of = |file: &crate::diff::FileDiff| u64::from(file.added) + u64::from(file.deleted);
    files
        .iter()
        .filter_map(|at| diff.files.get(*at))
        .map(of)
        .sum()
}

/// Makes the plan: the checks over every file, whatever is filtered; every agent over every chunk; one
/// cross-cutting pass when there is more than one chunk.
pub fn plan(input: &PlanInput) -> Plan {
    let diff = &input.diff;
    let filtered: Vec<Option<String>> = diff
        .files
        .iter()
        .enumerate()
        .map(|(at, file)| match input.filtered.get(&at) {
            Some(reason) => Some(reason.clone()),
            None => (file.binary && !input.hidden.contains_key(&at)).then(|| BINARY.to_owned()),
        })
        .collect();
    let mut chunks: Vec<Arc<[usize]>> = Vec::new();
    let mut taken = vec![false; diff.files.len()];
    for chunk in &input.chunks {
        let mut files: Vec<usize> = chunk.clone();
        files.retain(|at| {
            let wanted = filtered.get(*at).is_some_and(Option::is_none)
                && !input.hidden.contains_key(at)
                && !taken[*at];
            if wanted {
                taken[*at] = true;
            }
            wanted
        });
        files.sort_unstable();
        if !files.is_empty() {
            chunks.push(files.into());
        }
    }
    let pass = |id: String, kind, agent: &Arc<PlannedAgent>, files: &Arc<[usize]>| PlannedPass {
        id: PassId::new(id),
        kind,
        agent: Arc::clone(agent),
        files: Arc::clone(files),
        lines: lines_of(diff, files),
        task: None,
        schema: None,
        limit: None,
    };
    let mut passes = Vec::new();
    for agent in &input.agents {
        let agent = Arc::new(agent.clone());
        for (number, files) in chunks.iter().enumerate() {
            let id = format!("{}/{}", agent.id, number + 1);
            passes.push(pass(id, PassKind::Review, &agent, files));
        }
    }
    if chunks.len() > 1
        && let Some(agent) = &input.cross_cutting
    {
        let mut all: Vec<usize> = chunks.iter().flat_map(|c| c.iter().copied()).collect();
        all.sort_unstable();
        let id = "cross-cutting".to_owned();
        let agent = Arc::new(agent.clone());
        passes.push(pass(id, PassKind::CrossCutting, &agent, &all.into()));
    }
    passes.sort_by_key(|pass| Reverse(pass.lines));
    if let Some(agent) = &input.checks
        && !diff.files.is_empty()
    {
        let all: Arc<[usize]> = (0..diff.files.len()).collect();
        let agent = Arc::new(agent.clone());
        passes.insert(0, pass("checks".into(), PassKind::Checks, &agent, &all));
    }
    Plan {
        diff: Arc::clone(diff),
        passes,
        filtered,
        hidden: input.hidden.clone(),
        checks: input.checks.as_ref().map(|agent| agent.id.clone()),
        agents: input.agents.iter().map(|agent| agent.id.clone()).collect(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::diff::{FileDiff, FileMode};
    use crate::model::{ChangeStatus, RepoPath};

    /// A diff of text files `f0`, `f1`, … with the given numbers of added lines.
    pub(crate) fn diff_with(added: &[u32]) -> Arc<Diff> {
        let files = added.iter().enumerate().map(|(at, added)| FileDiff {
            path: RepoPath::new(format!("f{at}")).unwrap(),
            old_path: None,
            status: ChangeStatus::Modified,
            score: None,
            old_mode: FileMode(0o100_644),
            new_mode: FileMode(0o100_644),
            old_id: None,
            new_id: None,
            added: *added,
            deleted: 0,
            binary: false,
            section: 0..0,
            hunks: Vec::new(),
        });
        Arc::new(Diff {
            patch: bytes::Bytes::new(),
            files: files.collect(),
        })
    }

    pub(crate) fn agent(id: &str) -> PlannedAgent {
        PlannedAgent {
            id: AgentId::new(id).unwrap(),
            engine: EngineName::new("fake"),
            model: Some(ModelId::new("acme/one").unwrap()),
            system: "".into(),
            always_run: false,
        }
    }

    #[test]
    fn agents_times_chunks_plus_cross_cutting_longest_first() {
        let mut diff = diff_with(&[1, 50, 3, 0]);
        Arc::make_mut(&mut diff).files[3].binary = true;
        let plan = plan(&PlanInput {
            hidden: BTreeMap::new(),
            diff,
            filtered: BTreeMap::from([(2, "lockfile".to_owned())]),
            checks: Some(agent("checks")),
            agents: vec![agent("one"), agent("two")],
            chunks: vec![vec![0, 2, 99], vec![1, 1, 3, 0]],
            cross_cutting: Some(agent("one")),
        });
        let ids: Vec<_> = plan.passes.iter().map(|p| p.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "checks",
                "cross-cutting",
                "one/2",
                "two/2",
                "one/1",
                "two/1"
            ]
        );
        assert_eq!(plan.passes[0].files[..], [0, 1, 2, 3], "noise and all");
        assert_eq!(plan.passes[2].files[..], [1]);
        assert_eq!(plan.passes[4].files[..], [0]);
        assert_eq!(plan.filtered[2].as_deref(), Some("lockfile"));
        assert_eq!(plan.filtered[3].as_deref(), Some(BINARY));
        assert_eq!(plan.model_passes(), 5);
    }

    #[test]
    fn one_chunk_needs_no_cross_cutting_pass_and_no_files_need_no_pass() {
        let input = |added: &[u32], chunks| PlanInput {
            hidden: BTreeMap::new(),
            diff: diff_with(added),
            filtered: BTreeMap::new(),
            checks: Some(agent("checks")),
            agents: vec![agent("one")],
            chunks,
            cross_cutting: Some(agent("one")),
        };
        assert_eq!(plan(&input(&[1], vec![vec![0]])).passes.len(), 2);
        assert!(plan(&input(&[], vec![])).passes.is_empty());
    }
}

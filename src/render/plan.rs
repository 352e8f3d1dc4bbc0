//! What a run would do (`--plan`): calls nothing, so every number is an estimate.

use serde::Serialize;

use super::layout::{Page, Paint, TerminalOptions, Verbosity};
use super::safe::{printable_line, printable_path};
use super::words;
use crate::model::{
    AgentId, ChangeStatus, Cost, EngineName, InputInfo, ModelId, PassId, PassKind, RepoPath,
};

/// Files listed without `-v`.
const LISTED: usize = 20;

/// A changed file in the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// Path after the change.
    pub path: RepoPath,
    /// What happened to it.
    pub status: ChangeStatus,
    /// Added lines.
    pub added: u32,
    /// Deleted lines.
    pub deleted: u32,
    /// Why it is hidden from the reviewers; `None` when it is kept.
    pub filtered: Option<String>,
}

/// A group of files that is reviewed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChunk {
    /// Indices into [`PlanView::files`].
    pub files: Vec<usize>,
    /// Changed lines.
    pub lines: u64,
}

/// A pass that would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanPass {
    /// Its id.
    pub id: PassId,
    /// What it is for.
    pub kind: PassKind,
    /// Who reviews.
    pub agent: AgentId,
    /// The engine that would run it.
    pub engine: EngineName,
    /// The model; none for the built-in checks.
    pub model: Option<ModelId>,
    /// How many files it covers.
    pub files: usize,
    /// Estimated input tokens of its first call; 0 without a model.
    pub tokens: u64,
    /// Estimated money, where a price is known.
    pub cost: Option<Cost>,
}

/// A whole plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanView {
    /// What would be reviewed.
    pub input: InputInfo,
    /// Every changed file, in the order of the diff.
    pub files: Vec<PlanFile>,
    /// The chunks.
    pub chunks: Vec<PlanChunk>,
    /// The passes.
    pub passes: Vec<PlanPass>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

impl PlanView {
    fn tokens(&self) -> u64 {
        self.passes
            .iter()
            .fold(0, |sum, pass| sum.saturating_add(pass.tokens))
    }

    /// The sum, when every pass with a model has a price.
    fn cost(&self) -> Option<Cost> {
        let mut sum = 0_u64;
        for pass in self.passes.iter().filter(|pass| pass.model.is_some()) {
            sum = sum.saturating_add(pass.cost?.0);
        }
        Some(Cost(sum))
    }

    fn calls_models(&self) -> bool {
        self.passes.iter().any(|pass| pass.model.is_some())
    }
}

/// The plan for a person.
pub fn plan_terminal(plan: &PlanView, options: &TerminalOptions) -> String {
    let mut page = Page::new(options);
    let kept: Vec<_> = plan.files.iter().filter(|f| f.filtered.is_none()).collect();
    let filtered = plan.files.len() - kept.len();
    let lines: u64 = kept
        .iter()
        .map(|f| u64::from(f.added) + u64::from(f.deleted))
        .sum();
    page.wrapped((Paint::Plain, ""), Paint::Strong, "Plan: nothing is called");
    let text = format!(
        "{}; {} to review ({}), {filtered} filtered; {}, {}",
        words::input(&plan.input),
        words::count(kept.len() as u64, "file"),
        words::count(lines, "changed line"),
        words::count(plan.chunks.len() as u64, "chunk"),
        passes(plan.passes.len()),
    );
    page.wrapped((Paint::Plain, "  "), Paint::Plain, &text);
    page.gap();
    let title = page.paint(Paint::Strong, "Files");
    page.line(&title);
    let listed = match options.verbosity {
        Verbosity::Verbose => plan.files.len(),
        Verbosity::Normal => LISTED,
        Verbosity::Quiet => 0,
    };
    for file in plan.files.iter().take(listed) {
        page.line(&format!("  {}", printable_path(&file.path)));
        let fate = file.filtered.as_deref().map_or_else(
            || "kept".to_owned(),
            |reason| format!("filtered: {}", printable_line(reason)),
        );
        let text = format!(
            "{fate} ({}, +{} -{})",
            words::status(file.status),
            file.added,
            file.deleted
        );
        page.wrapped((Paint::Plain, "    "), Paint::Faint, &text);
    }
    if plan.files.len() > listed {
        let text = format!("and {} more; -v lists them", plan.files.len() - listed);
        page.wrapped((Paint::Plain, "  "), Paint::Faint, &text);
    }
    page.gap();
    let title = page.paint(Paint::Strong, "Passes");
    page.line(&title);
    for pass in &plan.passes {
        let model = pass.model.as_ref().map_or_else(String::new, |model| {
            let cost = pass
                .cost
                .map_or_else(String::new, |cost| format!(", US$ {:.4}", cost.usd()));
            format!(
                " with {model}, first call about {} tokens{cost}",
                pass.tokens
            )
        });
        let text = format!(
            "{}: {} by {}, {}{model}",
            printable_line(pass.id.as_str()),
            pass.kind,
            printable_line(pass.engine.as_str()),
            words::count(pass.files as u64, "file"),
        );
        page.wrapped((Paint::Plain, "  "), Paint::Plain, &text);
    }
    page.gap();
    let estimate = match (plan.calls_models(), plan.cost()) {
        (false, _) => "no model is called".to_owned(),
        (true, Some(cost)) => format!(
            "the first calls send about {} tokens, US$ {:.4} at most; further turns and the judges come on top",
            plan.tokens(),
            cost.usd()
        ),
        (true, None) => format!(
            "the first calls send about {} tokens, and a price is not known; further turns and the judges come on top",
            plan.tokens()
        ),
    };
    page.wrapped((Paint::Blue, "estimate: "), Paint::Plain, &estimate);
    for note in &plan.notes {
        page.wrapped((Paint::Blue, "note: "), Paint::Plain, &printable_line(note));
    }
    page.finish()
}

fn passes(n: usize) -> String {
    if n == 1 {
        "1 pass".to_owned()
    } else {
        format!("{n} passes")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanV1 {
    schema_version: u32,
    files: Vec<FileV1>,
    chunks: Vec<ChunkV1>,
    passes: Vec<PassV1>,
    estimate: EstimateV1,
    notes: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileV1 {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_encoding: Option<&'static str>,
    status: &'static str,
    added: u32,
    deleted: u32,
    kept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct ChunkV1 {
    files: Vec<usize>,
    lines: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PassV1 {
    id: String,
    kind: &'static str,
    agent: String,
    engine: String,
    model: Option<String>,
    files: usize,
    input_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EstimateV1 {
    input_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
}

/// The plan for a program, version 1; chunks hold indices into `files`.
pub fn plan_json(plan: &PlanView) -> String {
    let file = |file: &PlanFile| {
        let (path, escaped) = file.path.to_wire();
        FileV1 {
            path,
            path_encoding: escaped.then_some("bytes"),
            status: file.status.as_str(),
            added: file.added,
            deleted: file.deleted,
            kept: file.filtered.is_none(),
            reason: file.filtered.clone(),
        }
    };
    let pass = |pass: &PlanPass| PassV1 {
        id: pass.id.to_string(),
        kind: pass.kind.as_str(),
        agent: pass.agent.to_string(),
        engine: pass.engine.to_string(),
        model: pass.model.as_ref().map(ToString::to_string),
        files: pass.files,
        input_tokens: pass.tokens,
        cost_usd: pass.cost.map(Cost::usd),
    };
    super::json::pretty(&PlanV1 {
        schema_version: 1,
        files: plan.files.iter().map(file).collect(),
        chunks: plan
            .chunks
            .iter()
            .map(|chunk| ChunkV1 {
                files: chunk.files.clone(),
                lines: chunk.lines,
            })
            .collect(),
        passes: plan.passes.iter().map(pass).collect(),
        estimate: EstimateV1 {
            input_tokens: plan.tokens(),
            cost_usd: plan.cost().map(Cost::usd),
        },
        notes: plan.notes.clone(),
    })
}

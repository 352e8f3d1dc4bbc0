//! From candidates to findings: the coordinator merges and ranks, the verifier looks at what matters.
//!
//! @ref LLP 0016 — who judges what

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::collect::Collected;
use super::coordinate::{self, Coordinated, SAME};
use super::dispatch::{Shared, dispatch, feed};
use super::plan::{PlannedAgent, PlannedPass};
use super::run::EngineSet;
use super::step::{Budget, Dispatcher, Limits, Settled};
use super::verify::{self, Fate, Look};
use crate::config::VerifyScope;
use crate::finding::order;
use crate::model::{
    CoverageNote, DropStage, DroppedFinding, Finding, Fingerprint, NoteKind, PassId, PassKind,
    PassOutcomeKind, RepoPath, VerificationStatus,
};
use crate::port::ProgressEvent;
use crate::prompt::{VerifyTask, coordinate_task};
use crate::reply::{Verdict, coordination, coordination_schema, verdict, verdict_schema};

/// Says whether the content of a file goes to no provider.
pub type Withholds = Arc<dyn Fn(&RepoPath) -> bool + Send + Sync>;

/// Who judges what the reviewers found, and how much of it.
#[derive(Clone)]
pub struct Judges {
    /// Merges and ranks, when there are several findings.
    pub coordinator: Option<PlannedAgent>,
    /// Checks single findings against the source.
    pub verifier: Option<PlannedAgent>,
    /// Which findings are verified.
    pub scope: VerifyScope,
    /// Verifications at the same time; `Limits::concurrency` bounds them too.
    pub parallel: usize,
    /// The run's mark, which bounds strangers' text in the tasks.
    pub mark: String,
    /// Files that are not shown.
    pub withheld: Withholds,
}

impl Judges {
    /// Nobody judges: the findings stand as they were grounded.
    pub fn none() -> Self {
        Self {
            coordinator: None,
            verifier: None,
            scope: VerifyScope::default(),
            parallel: 1,
            mark: String::new(),
            withheld: Arc::new(|_| false),
        }
    }
}

/// Bytes of findings that the coordinator sees.
const MAX_CANDIDATES: usize = 120_000;
/// Findings that are verified; beyond it the gravest go first.
const MAX_VERIFIED: usize = 200;
/// The longest that one judgement may take.
const ONE_JUDGEMENT: Duration = Duration::from_secs(5 * 60);

/// What the judges did to the candidates.
#[derive(Default)]
pub(super) struct Judged {
    /// Their passes.
    pub(super) settled: Vec<Settled>,
    /// What the coordinator says would go wrong, while its findings are still the ones that stand; may be empty.
    pub(super) overview: String,
    /// How long at least one of them was running.
    pub(super) model_time: Duration,
    /// What they could not do, beside what their passes say.
    pub(super) notes: Vec<CoverageNote>,
}

/// What the judges work with.
pub(super) struct Court<'a> {
    pub(super) judges: &'a Judges,
    pub(super) shared: &'a Shared,
    pub(super) engines: &'a EngineSet,
    pub(super) dispatcher: &'a mut Dispatcher,
    pub(super) limits: Limits,
    /// When the run began.
    pub(super) started: Instant,
}

impl Court<'_> {
    /// Judges `collected` in place.
    pub(super) async fn judge(mut self, collected: &mut Collected) -> Judged {
        let mut judged = Judged::default();
        if self.shared.cancel.is_cancelled() {
            return judged;
        }
        let before = collected.findings.len();
        let (doubted, overview) = self.coordinate(collected, &mut judged).await;
        self.verify(collected, &doubted, &mut judged).await;
        // What it says of the whole holds while the whole is what it saw.
        if !overview.is_empty() && collected.findings.len() + merged(collected) == before {
            judged.overview = overview;
        }
        judged
    }

    /// Runs `passes`, `parallel` at a time, within what is left of the run; gives how each of them ended, by id.
    async fn run(
        &mut self,
        passes: Vec<PlannedPass>,
        parallel: usize,
        judged: &mut Judged,
    ) -> HashMap<PassId, Settled> {
        let limits = Limits {
            concurrency: parallel.min(self.limits.concurrency),
            pass: ONE_JUDGEMENT.min(self.limits.pass),
            passes: self.limits.run,
            run: self.limits.run,
        };
        self.dispatcher
            .allow(Budget::new(&limits, self.started, Instant::now()));
        let mut nothing = feed().1;
        judged.model_time += dispatch(
            self.shared,
            self.engines,
            self.dispatcher,
            passes,
            &mut nothing,
        )
        .await;
        let settled = self.dispatcher.take_settled();
        judged.settled.extend(settled.iter().cloned());
        settled
            .into_iter()
            .map(|settled| (settled.pass.id.clone(), settled))
            .collect()
    }

    /// Lets the coordinator merge and rank; gives what it doubts, and its summary.
    async fn coordinate(
        &mut self,
        collected: &mut Collected,
        judged: &mut Judged,
    ) -> (HashMap<Fingerprint, String>, String) {
        let nothing = (HashMap::new(), String::new());
        let opinions = collected.findings.iter().filter(|f| f.rule.is_none());
        let Some(agent) = &self.judges.coordinator else {
            return nothing;
        };
        // One opinion leaves nothing to merge and nothing to weigh against another.
        if opinions.count() < 2 {
            return nothing;
        }
        order(&mut collected.findings);
        let candidates: Vec<&Finding> = collected.findings.iter().collect();
        let (task, _) = coordinate_task(&candidates, &self.judges.mark, MAX_CANDIDATES);
        let pass = judgement(
            PassId::new("coordinate"),
            PassKind::Coordinate,
            agent,
            (crate::detect::mask(&task).into(), coordination_schema()),
        );
        let id = pass.id.clone();
        let ended = self.run(vec![pass], 1, judged).await;
        let reply = ended.get(&id).and_then(|settled| settled.reply.as_ref());
        let Some(reply) = reply else {
            return nothing;
        };
        let wanted = coordination(reply);
        let Coordinated {
            findings,
            dropped,
            doubted,
            refused,
        } = coordinate::apply(std::mem::take(&mut collected.findings), &wanted);
        collected.findings = findings;
        collected.dropped.extend(dropped);
        if refused > 0 {
            let text = format!("the coordinator asked for {refused} changes that it may not make");
            self.shared.progress.event(ProgressEvent::Note(text));
        }
        (doubted, wanted.summary)
    }

    /// Looks at what matters, a second time where the first look refuted something grave.
    async fn verify(
        &mut self,
        collected: &mut Collected,
        doubted: &HashMap<Fingerprint, String>,
        judged: &mut Judged,
    ) {
        let Some(agent) = self.judges.verifier.clone() else {
            return;
        };
        // A critical finding that its reviewer took back is looked at all the same, and comes back when it is confirmed.
        let (retracted, dropped): (Vec<_>, Vec<_>) = std::mem::take(&mut collected.dropped)
            .into_iter()
            .partition(|d| d.stage == DropStage::Retracted && verify::needs_two(&d.finding));
        collected.dropped = dropped;

        order(&mut collected.findings);
        let scope = self.judges.scope;
        let wanted = |f: &Finding| doubted.contains_key(&f.id) || verify::wanted(f, scope);
        let mut chosen: Vec<usize> = (0..collected.findings.len())
            .filter(|at| wanted(&collected.findings[*at]))
            .collect();
        if chosen.len() > MAX_VERIFIED {
            let text = format!(
                "{} findings were too many to be verified",
                chosen.len() - MAX_VERIFIED
            );
            judged.notes.push(CoverageNote {
                kind: NoteKind::Budget,
                text,
            });
        }
        chosen.truncate(MAX_VERIFIED);
        if chosen.is_empty() && retracted.is_empty() {
            collected.dropped.extend(retracted);
            return;
        }
        let standing = chosen.iter().map(|at| &collected.findings[*at]);
        let all: Vec<Finding> = standing
            .chain(retracted.iter().take(MAX_VERIFIED).map(|d| &d.finding))
            .cloned()
            .collect();
        self.shared.progress.event(ProgressEvent::Note(format!(
            "verifying findings: {}",
            all.len()
        )));

        let mut looks: BTreeMap<usize, Vec<Look>> = BTreeMap::new();
        let first: Vec<usize> = (0..all.len()).collect();
        self.look(&all, &first, (&agent, false), &mut looks, judged)
            .await;
        let grave = |at: &usize| {
            let refuted = matches!(looks[at].first(), Some(Look::Judged(Verdict::Refuted, _)));
            refuted && *at < chosen.len() && verify::needs_two(&all[*at])
        };
        let again: Vec<usize> = first.iter().copied().filter(grave).collect();
        if !again.is_empty() && !self.shared.cancel.is_cancelled() {
            self.look(&all, &again, (&agent, true), &mut looks, judged)
                .await;
        }

        let mut slots: Vec<Option<Finding>> = std::mem::take(&mut collected.findings)
            .into_iter()
            .map(Some)
            .collect();
        for (number, at) in chosen.iter().enumerate() {
            let Some(finding) = slots[*at].take() else {
                continue;
            };
            let doubt = doubted.get(&finding.id).map(String::as_str);
            match verify::fate(finding, &looks[&number], doubt) {
                Fate::Stands(finding) => slots[*at] = Some(*finding),
                Fate::Falls(dropped) => collected.dropped.push(*dropped),
            }
        }
        collected.findings = slots.into_iter().flatten().collect();
        for (number, mut dropped) in retracted.into_iter().enumerate() {
            let look = looks.get(&(chosen.len() + number)).and_then(|l| l.first());
            if let Some(Look::Judged(Verdict::Confirmed, reason)) = look {
                dropped.finding.verification.status = VerificationStatus::Verified;
                dropped.finding.verification.reason = Some(format!(
                    "its reviewer took it back ({}), a second look confirmed it: {reason}",
                    dropped.reason
                ));
                collected.findings.push(dropped.finding);
            } else {
                collected.dropped.push(dropped);
            }
        }
    }

    /// One look at each of `which` of `all`.
    async fn look(
        &mut self,
        all: &[Finding],
        which: &[usize],
        (agent, second): (&PlannedAgent, bool),
        looks: &mut BTreeMap<usize, Vec<Look>>,
        judged: &mut Judged,
    ) {
        let name = |at: usize| {
            let id = &all[at].id;
            let round = if second { "/2" } else { "" };
            PassId::new(format!("verify/{id}{round}"))
        };
        let shown = self.shown(all, which).await;
        let mut passes = Vec::new();
        for (at, (change, source)) in which.iter().zip(&shown) {
            let finding = &all[*at];
            let task = VerifyTask {
                finding,
                change,
                source,
                ungrounded: finding.verification.status != VerificationStatus::Grounded,
                second,
                mark: &self.judges.mark,
            };
            // The change and the source are masked as what they are; this is for the claim and the quoted line.
            let text = crate::detect::mask_lines(&task.text()).into_owned();
            let schema = verdict_schema();
            let pass = judgement(name(*at), PassKind::Verify, agent, (text, schema));
            passes.push(self.about(&pass, finding));
        }
        let ended = self.run(passes, self.judges.parallel, judged).await;
        for at in which {
            let name = name(*at);
            let settled = ended.get(&name);
            let look = settled.map_or_else(|| Look::Failed("not verified".to_owned()), look_of);
            if let Look::Failed(problem) = &look
                && settled.is_some_and(|settled| settled.reason.is_none())
            {
                judged.notes.push(CoverageNote {
                    kind: NoteKind::PassFailed,
                    text: format!("{name}: failed: {problem}"),
                });
            }
            looks.entry(*at).or_default().push(look);
        }
    }

    /// The pass with the file of `finding`, where the file is changed, for the record.
    fn about(&self, pass: &PlannedPass, finding: &Finding) -> PlannedPass {
        let diff = &self.shared.diff;
        let file = &finding.location.file;
        let at = diff
            .files
            .iter()
            .position(|f| f.path == *file || f.old_path.as_ref() == Some(file));
        let id = pass.id.clone();
        pass.over(id, at.into_iter().collect(), diff)
    }

    /// What the verifier is shown of each: the change, and the source. Reading the tree is no work for an async thread.
    async fn shown(&self, all: &[Finding], which: &[usize]) -> Vec<(String, String)> {
        let findings: Vec<Finding> = which.iter().map(|at| all[*at].clone()).collect();
        let nothing = vec![(String::new(), String::new()); findings.len()];
        let (diff, tree) = (Arc::clone(&self.shared.diff), self.shared.tree.clone());
        let withheld = Arc::clone(&self.judges.withheld);
        let work = tokio::task::spawn_blocking(move || {
            let show = |finding: &Finding| {
                if withheld(&finding.location.file) {
                    return (String::new(), String::new());
                }
                let source = tree
                    .as_ref()
                    .map(|tree| verify::source(tree.as_ref(), finding));
                (verify::change(&diff, finding), source.unwrap_or_default())
            };
            findings.iter().map(show).collect()
        });
        work.await.unwrap_or(nothing)
    }
}

/// How many findings the coordinator merged into others.
fn merged(collected: &Collected) -> usize {
    let merged = |d: &&DroppedFinding| d.stage == DropStage::Dedupe && d.reason.starts_with(SAME);
    collected.dropped.iter().filter(merged).count()
}

fn look_of(settled: &Settled) -> Look {
    let reason = settled.reason.as_ref().map(|(_, reason)| reason.clone());
    match (&settled.reply, settled.outcome) {
        (Some(reply), PassOutcomeKind::Complete) => match verdict(reply) {
            Ok((verdict, reason)) => Look::Judged(verdict, super::notes::plain(&reason)),
            Err(problem) => Look::Failed(problem),
        },
        _ => Look::Failed(super::notes::plain(
            &reason.unwrap_or_else(|| "the verifier gave no verdict".to_owned()),
        )),
    }
}

fn judgement(
    id: PassId,
    kind: PassKind,
    agent: &PlannedAgent,
    (task, schema): (String, serde_json::Value),
) -> PlannedPass {
    PlannedPass {
        id,
        kind,
        agent: Arc::new(agent.clone()),
        files: Arc::from([]),
        lines: 0,
        task: Some(task.into()),
        schema: Some(Arc::new(schema)),
        limit: None,
    }
}

//! The run log: one JSON line a run, for `ecr stats`. It holds counts, times, models and money, and nothing of the
//! code: no path, no title, no text of a finding. Encode and decode only; where the file lies is the caller's business.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use super::output::{
    Decision, FindingStatus, InputKind, OutputV1, PassKind, PassOutcomeKind, Severity, UsageNumbers,
};

/// The version of this format. Fields may be added within a version.
pub const RUN_LOG_VERSION: u32 = 1;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunLine {
    /// The version of this line.
    pub log_version: u32,
    /// When the run ended, RFC 3339 in UTC.
    pub at: String,
    /// The version of ecr.
    pub ecr_version: String,
    /// Where the diff came from.
    pub input: InputKind,
    /// The verdict.
    pub decision: Decision,
    /// Every changed line that is not filtered was reviewed by everybody assigned to it.
    pub complete: bool,
    /// Wall clock in milliseconds.
    pub duration_ms: u64,
    /// Changed files.
    pub files: u64,
    /// Files reviewed completely.
    pub reviewed_files: u64,
    /// Changed lines.
    pub changed_lines: u64,
    /// Changed lines reviewed.
    pub reviewed_lines: u64,
    /// Open findings by severity.
    pub findings: FindingCounts,
    /// Findings that are listed and do not decide.
    pub disputed: u64,
    /// Findings that did not hold.
    pub dropped: u64,
    /// Findings that a maintainer has dismissed.
    pub dismissed: u64,
    /// The passes.
    pub passes: Vec<PassLine>,
    /// What the run used.
    pub usage: UsageNumbers,
}

/// Findings by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FindingCounts {
    /// Must be fixed before merging.
    pub critical: u64,
    /// Real problems that do not block.
    pub warning: u64,
    /// Worth knowing.
    pub suggestion: u64,
}

impl FindingCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.critical
            .saturating_add(self.warning)
            .saturating_add(self.suggestion)
    }
}

/// One pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassLine {
    /// What it was for.
    pub kind: PassKind,
    /// Who reviewed.
    pub agent: String,
    /// The engine that ran it.
    pub engine: String,
    /// The model that answered, else the one asked for; null without one.
    pub model: Option<String>,
    /// How it ended.
    pub outcome: PassOutcomeKind,
    /// How often it was started.
    pub attempts: u32,
    /// Wall clock in milliseconds.
    pub duration_ms: u64,
    /// Open findings that name this reviewer.
    pub findings: u64,
    /// What it used.
    pub usage: UsageNumbers,
}

impl RunLine {
    /// What the log keeps of a run that ended at `at`.
    pub fn of(at: jiff::Timestamp, output: &OutputV1) -> Self {
        let open = || {
            output
                .findings
                .iter()
                .filter(|f| f.status == FindingStatus::Open)
        };
        let of = |severity| count(open().filter(|f| f.severity == severity));
        Self {
            log_version: RUN_LOG_VERSION,
            at: at.to_string(),
            ecr_version: output.tool.version.clone(),
            input: output.input.kind,
            decision: output.decision,
            complete: output.complete,
            duration_ms: output.timing.total_ms,
            files: output.coverage.totals.files,
            reviewed_files: output.coverage.totals.reviewed_files,
            changed_lines: output.coverage.totals.changed_lines,
            reviewed_lines: output.coverage.totals.reviewed_lines,
            findings: FindingCounts {
                critical: of(Severity::Critical),
                warning: of(Severity::Warning),
                suggestion: of(Severity::Suggestion),
            },
            disputed: count(
                output
                    .findings
                    .iter()
                    .filter(|f| f.status == FindingStatus::Disputed),
            ),
            dropped: output.dropped.len() as u64,
            dismissed: output.dismissed.len() as u64,
            passes: output
                .passes
                .iter()
                .map(|pass| PassLine {
                    kind: pass.kind,
                    agent: pass.agent.clone(),
                    engine: pass.engine.clone(),
                    model: pass
                        .model_answered
                        .clone()
                        .or_else(|| pass.model_configured.clone()),
                    outcome: pass.outcome,
                    attempts: pass.attempts,
                    duration_ms: pass.duration_ms,
                    findings: count(open().filter(|f| f.agents.contains(&pass.agent))),
                    usage: pass.usage.clone(),
                })
                .collect(),
            usage: output.usage.clone(),
        }
    }

    /// When the run ended; `None` when the line does not say so in a readable form.
    pub fn ended(&self) -> Option<jiff::Timestamp> {
        self.at.parse().ok()
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u64 {
    items.count() as u64
}

/// The line of a run, with its line break.
pub fn encode(line: &RunLine) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    Ok(text)
}

/// A log as it was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunLog {
    /// The runs, in the order of the log.
    pub runs: Vec<RunLine>,
    /// Lines that are no run: cut by a crash, or damaged.
    pub damaged: usize,
    /// Lines that a newer ecr wrote.
    pub newer: usize,
}

/// Reads a log. One unreadable line costs no other.
pub fn decode(text: &str) -> RunLog {
    let mut log = RunLog::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let version = serde_json::from_str::<serde_json::Value>(line)
            .ok()
            .and_then(|value| value.get("logVersion")?.as_u64());
        match version {
            Some(version) if version > u64::from(RUN_LOG_VERSION) => log.newer += 1,
            Some(1..) => match serde_json::from_str(line) {
                Ok(run) => log.runs.push(run),
                Err(_) => log.damaged += 1,
            },
            _ => log.damaged += 1,
        }
    }
    log
}

/// `text` without its oldest lines, such that at most `keep` remain, and none that ended before `oldest`. Lines that
/// cannot be read go; those of a newer ecr stay. `None` when nothing has to go.
pub fn prune(text: &str, keep: usize, oldest: jiff::Timestamp) -> Option<String> {
    let stays = |line: &&str| {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else {
            return false;
        };
        value
            .get("at")
            .and_then(|at| at.as_str()?.parse::<jiff::Timestamp>().ok())
            .is_some_and(|at| at >= oldest)
    };
    let all = text.lines().count();
    let lines: Vec<&str> = text.lines().filter(stays).collect();
    let from = lines.len().saturating_sub(keep);
    if lines.len() == all && from == 0 {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for line in &lines[from..] {
        out.push_str(line);
        out.push('\n');
    }
    Some(out)
}

/// The JSON Schema of a line.
pub fn schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<RunLine>()
        .to_value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::output::UsageConfidence;

    fn line(at: &str) -> RunLine {
        RunLine {
            log_version: RUN_LOG_VERSION,
            at: at.to_owned(),
            ecr_version: "0.1.0".to_owned(),
            input: InputKind::Range,
            decision: Decision::ChecksOnly,
            complete: true,
            duration_ms: 12,
            files: 2,
            reviewed_files: 2,
            changed_lines: 30,
            reviewed_lines: 30,
            findings: FindingCounts::default(),
            disputed: 0,
            dropped: 1,
            dismissed: 0,
            passes: Vec::new(),
            usage: UsageNumbers {
                input: Some(0),
                output: Some(0),
                cache_read: Some(0),
                cache_write: Some(0),
                reasoning: Some(0),
                cost_usd: Some(0.0),
                confidence: UsageConfidence::Exact,
            },
        }
    }

    #[test]
    fn what_is_written_is_read_and_follows_the_schema() {
        let line = line("2026-12-01T10:00:00Z");
        let text = encode(&line).unwrap();
        assert_eq!(text.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        jsonschema::validate(&schema(), &value).unwrap();
        assert_eq!(decode(&text).runs, [line]);
    }

    #[test]
    fn an_unreadable_line_costs_no_other() {
        let good = encode(&line("2026-12-01T10:00:00Z")).unwrap();
        let cut = &good[..good.len() / 2];
        let newer = good.replace("\"logVersion\":1", "\"logVersion\":2");
        let text = format!("{good}{cut}\nnull\n{{\"logVersion\":1}}\n{newer}\n{good}");
        let log = decode(&text);
        assert_eq!((log.runs.len(), log.damaged, log.newer), (2, 3, 1));
    }

    #[test]
    fn prunes_by_count_and_by_age() {
        let text: String = (1..=5)
            .map(|day| encode(&line(&format!("2026-11-0{day}T00:00:00Z"))).unwrap())
            .collect();
        let oldest: jiff::Timestamp = "2026-11-02T00:00:00Z".parse().unwrap();
        let days = |text: &str| -> Vec<String> {
            let runs = decode(text).runs;
            runs.iter().map(|run| run.at[8..10].to_owned()).collect()
        };
        assert_eq!(prune(&text, 5, jiff::Timestamp::UNIX_EPOCH), None);
        assert_eq!(
            days(&prune(&text, 9, oldest).unwrap()),
            ["02", "03", "04", "05"]
        );
        assert_eq!(days(&prune(&text, 2, oldest).unwrap()), ["04", "05"]);
        assert_eq!(
            days(&prune(&format!("{text}garbage\n"), 9, oldest).unwrap()).len(),
            4
        );
    }
}

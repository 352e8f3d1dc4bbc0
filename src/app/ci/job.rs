//! What the parent hands to the worker, and what it takes back: two files of one private folder.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::inputs::Wanted;
use crate::app::AppError;
use crate::model::{CommitId, Fingerprint};
use crate::source::PullRequestInput;
use crate::state::comment::StoredReview;
use crate::state::run_log::{self, RunLine};

/// The job.
const JOB: &str = "job.json";
/// The result: the review as a comment keeps it.
const RESULT: &str = "result.json";
/// The run's line for the log, which the worker has no place to keep.
const LOG: &str = "run.json";
/// A longer line is not taken.
const LONGEST_LINE: u64 = 1 << 20;
/// Workflow commands.
pub(super) const ANNOTATIONS: &str = "annotations.txt";
/// A result larger than this is refused.
const LARGEST: u64 = 64 << 20;

/// What to review. Both sides are the same binary: there is no version to keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Job {
    pub(super) objects: PathBuf,
    pub(super) base: String,
    pub(super) merge_base: String,
    pub(super) head: String,
    pub(super) repo: String,
    pub(super) number: u64,
    pub(super) base_name: String,
    pub(super) agents: Vec<String>,
    pub(super) route: bool,
    /// Where it is; the worker reads it itself.
    pub(super) context_file: Option<PathBuf>,
    /// The pull request's title and description.
    pub(super) described: String,
}

impl Job {
    pub(super) fn new(input: &PullRequestInput, wanted: &Wanted<'_>, described: String) -> Self {
        Self {
            objects: input.objects.clone(),
            base: input.base.as_str().to_owned(),
            merge_base: input.merge_base.as_str().to_owned(),
            head: input.head.as_str().to_owned(),
            repo: input.repo.clone(),
            number: input.number,
            base_name: input.base_name.clone(),
            agents: wanted.agents.to_vec(),
            route: wanted.route,
            context_file: wanted.context.map(|file| file.path.clone()),
            described,
        }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), AppError> {
        let text = serde_json::to_vec(self).map_err(|error| AppError::plain(error.to_string()))?;
        std::fs::write(folder.join(JOB), text)
            .map_err(|error| AppError::plain(format!("cannot write the job: {error}")))
    }

    pub(super) fn read(folder: &Path) -> Result<Self, AppError> {
        let odd = |problem: String| {
            AppError::new(
                format!("this is no job of `ecr ci`: {problem}"),
                "run `ecr ci`, which starts this command itself",
            )
        };
        let text = std::fs::read(folder.join(JOB)).map_err(|error| odd(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| odd(error.to_string()))
    }

    /// What it is about, as the source wants it.
    pub(super) fn input(&self) -> Result<PullRequestInput, AppError> {
        let commit =
            |text: &str| CommitId::new(text).map_err(|error| AppError::plain(error.to_string()));
        Ok(PullRequestInput {
            objects: self.objects.clone(),
            base: commit(&self.base)?,
            merge_base: commit(&self.merge_base)?,
            head: commit(&self.head)?,
            repo: self.repo.clone(),
            number: self.number,
            base_name: self.base_name.clone(),
        })
    }

    /// Leaves the result, whole or not at all.
    pub(super) fn leave(folder: &Path, review: &StoredReview) -> Result<(), AppError> {
        let failed = |error: &dyn std::fmt::Display| {
            AppError::plain(format!("cannot write the result: {error}"))
        };
        let text = serde_json::to_vec(review).map_err(|error| failed(&error))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
        file.write_all(&text).map_err(|error| failed(&error))?;
        file.persist(folder.join(RESULT))
            .map_err(|error| failed(&error.error))?;
        Ok(())
    }

    /// Leaves the line for the run log. A log is no reason to fail.
    pub(super) fn leave_log(folder: &Path, line: &RunLine) {
        if let Ok(text) = run_log::encode(line) {
            let _ = std::fs::write(folder.join(LOG), text);
        }
    }

    /// The worker's line for the run log, if it is one.
    pub(super) fn log(folder: &Path) -> Option<RunLine> {
        let path = folder.join(LOG);
        let meta = std::fs::symlink_metadata(&path).ok()?;
        if !meta.is_file() || meta.len() > LONGEST_LINE {
            return None;
        }
        serde_json::from_slice(&std::fs::read(&path).ok()?).ok()
    }

    /// The worker's result, if it is one about this job. The worker has listened to a model: what it says is checked.
    pub(super) fn result(&self, folder: &Path) -> Result<StoredReview, String> {
        let path = folder.join(RESULT);
        let meta =
            std::fs::symlink_metadata(&path).map_err(|_| "the review left no result".to_owned())?;
        if !meta.is_file() || meta.len() > LARGEST {
            return Err("the review's result is no file of a sensible size".to_owned());
        }
        let text = std::fs::read(&path).map_err(|error| error.to_string())?;
        let review: StoredReview = serde_json::from_slice(&text)
            .map_err(|error| format!("the review's result cannot be read: {error}"))?;
        check(&review, &self.head)?;
        if review.base.as_deref() != Some(self.merge_base.as_str()) {
            return Err("the review's result is about another base".to_owned());
        }
        Ok(review)
    }
}

/// That a review is one of `head`, and that its ids are ids.
pub(super) fn check(review: &StoredReview, head: &str) -> Result<(), String> {
    if review.head.as_deref() != Some(head) {
        return Err("the review's result is about another commit".to_owned());
    }
    for finding in &review.findings {
        Fingerprint::new(&finding.id).map_err(|error| format!("the review's result: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job() -> Job {
        Job {
            objects: "/o".into(),
            base: "a".repeat(40),
            merge_base: "b".repeat(40),
            head: "c".repeat(40),
            repo: "o/r".to_owned(),
            number: 1,
            base_name: "main".to_owned(),
            agents: Vec::new(),
            route: true,
            context_file: Some("/c".into()),
            described: "A change".to_owned(),
        }
    }

    fn review() -> Value {
        json!({
            "at": 1, "version": "0", "head": "c".repeat(40), "base": "b".repeat(40), "decision": "approve", "complete": true,
            "summary": "", "totals": {"files": 0, "reviewedFiles": 0, "changedLines": 0, "reviewedLines": 0}, "files": [],
            "findings": [{"id": "0123456789ab", "severity": "warning", "category": "quality", "status": "open", "side": "new",
                "verification": "grounded"}],
            "agents": [], "models": [], "toolCalls": 0, "usage": {"confidence": "unavailable"}, "totalMs": 1,
        })
    }

    #[test]
    fn only_a_result_about_this_job_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let take = |value: &Value| {
            std::fs::write(folder.path().join(RESULT), value.to_string()).unwrap();
            job().result(folder.path())
        };
        assert!(job().result(folder.path()).is_err(), "there is none");
        assert!(take(&review()).is_ok());
        for (pointer, value) in [
            ("/head", json!("d".repeat(40))),
            ("/head", json!(null)),
            ("/base", json!("d".repeat(40))),
            ("/decision", json!("merge it")),
            ("/findings/0/id", json!("../../etc")),
            ("/findings/0/severity", json!(7)),
        ] {
            let mut changed = review();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert!(take(&changed).is_err(), "{pointer}");
        }
        std::fs::remove_file(folder.path().join(RESULT)).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join(RESULT)).unwrap();
        assert!(job().result(folder.path()).is_err(), "a link");
    }

    #[test]
    fn a_job_survives_its_file() {
        let folder = tempfile::tempdir().unwrap();
        job().write(folder.path()).unwrap();
        assert_eq!(Job::read(folder.path()).unwrap(), job());
    }
}

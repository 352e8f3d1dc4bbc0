//! What the parent hands to the worker, and what it takes back: two files of one private folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::app::AppError;
use crate::model::{CommitId, Fingerprint};
use crate::source::PullRequestInput;
use crate::state::output::{InputKind, OutputV1};
use crate::state::saved;

/// The job.
const JOB: &str = "job.json";
/// The result, a document of `--format json`.
pub(super) const RESULT: &str = "result.json";
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
}

impl Job {
    pub(super) fn new(input: &PullRequestInput, agents: &[String]) -> Self {
        Self {
            objects: input.objects.clone(),
            base: input.base.as_str().to_owned(),
            merge_base: input.merge_base.as_str().to_owned(),
            head: input.head.as_str().to_owned(),
            repo: input.repo.clone(),
            number: input.number,
            base_name: input.base_name.clone(),
            agents: agents.to_vec(),
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

    /// The worker's result, if it is one about this job. The worker has listened to a model: what it says is checked.
    pub(super) fn result(&self, folder: &Path) -> Result<OutputV1, String> {
        let path = folder.join(RESULT);
        let meta = std::fs::symlink_metadata(&path)
            .map_err(|_| "the review left no result".to_owned())?;
        if !meta.is_file() || meta.len() > LARGEST {
            return Err("the review's result is no file of a sensible size".to_owned());
        }
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let output = saved::decode(&text)
            .map_err(|error| format!("the review's result cannot be read: {error}"))?
            .output;
        let input = &output.input;
        let ours = input.kind == InputKind::PullRequest
            && input.pr == Some(self.number)
            && input.repo.as_deref() == Some(self.repo.as_str())
            && input.head.as_deref() == Some(self.head.as_str())
            && input.base.as_deref() == Some(self.merge_base.as_str());
        if !ours {
            return Err("the review's result is about something else".to_owned());
        }
        let ids = output.findings.iter().map(|finding| &finding.id);
        for id in ids {
            Fingerprint::new(id).map_err(|error| format!("the review's result: {error}"))?;
        }
        Ok(output)
    }
}

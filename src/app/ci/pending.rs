//! Finished reviews that are not posted yet. A review costs money and minutes, posting costs seconds: the first is
//! never lost because the second failed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::job::check;
use crate::app::runs::create_private_folder;
use crate::app::{AppError, Environment};
use crate::github::RepoName;
use crate::state::comment::StoredReview;

/// The version of the file.
const VERSION: u32 = 1;
/// A file larger than this is not read.
const LARGEST: u64 = 64 << 20;

/// A review that waits to be posted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pending {
    #[serde(rename = "pendingVersion")]
    version: u32,
    /// `owner/name`.
    pub(super) repo: String,
    /// The pull request.
    pub(super) number: u64,
    /// The head that was reviewed, full id.
    pub(super) head: String,
    /// The tag of its comment.
    pub(super) tag: String,
    /// The review.
    pub(super) review: StoredReview,
}

/// Where they are kept.
pub(super) struct PendingStore(PathBuf);

impl Pending {
    pub(super) fn new(
        (repo, number): (&RepoName, u64),
        head: &str,
        tag: &str,
        review: StoredReview,
    ) -> Self {
        Self {
            version: VERSION,
            repo: repo.to_string(),
            number,
            head: head.to_owned(),
            tag: tag.to_owned(),
            review,
        }
    }
}

impl PendingStore {
    /// In `.runs/pending` of the workspace's set-up folder, where there is one, else in the user's state folder.
    /// A link on the way is not followed: a checkout must not choose where we write.
    pub(super) fn of(environment: &Environment) -> Option<Self> {
        let workspace = environment
            .get("GITHUB_WORKSPACE")
            .map_or_else(|| environment.cwd().to_owned(), PathBuf::from);
        for name in crate::config::SETUP_FOLDERS {
            let mut part = workspace.clone();
            let plain = Path::new(name).components().all(|component| {
                part.push(component);
                fs::symlink_metadata(&part).is_ok_and(|meta| meta.is_dir())
            });
            let runs = part.join(".runs");
            let taken = fs::symlink_metadata(&runs).is_ok_and(|meta| !meta.is_dir());
            let pending = runs.join("pending");
            let linked = fs::symlink_metadata(&pending).is_ok_and(|meta| !meta.is_dir());
            if plain && !taken && !linked {
                return Some(Self(pending));
            }
        }
        Some(Self(environment.state_folder()?.join("pending")))
    }

    fn file(&self, repo: &RepoName, number: u64) -> PathBuf {
        self.0
            .join(format!("{}--{}--{number}.json", repo.owner(), repo.name()))
    }

    /// Keeps `pending` (mode 0600), in the place of an earlier one of the same pull request; gives the file.
    pub(super) fn save(&self, repo: &RepoName, pending: &Pending) -> io::Result<PathBuf> {
        create_private_folder(&self.0)?;
        let ignore = self.0.join(".gitignore");
        match fs::File::create_new(&ignore) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?.write_all(b"*\n")?,
        }
        let text = serde_json::to_vec(pending)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.0)?;
        file.write_all(&text)?;
        let path = self.file(repo, pending.number);
        file.persist(&path).map_err(|error| error.error)?;
        Ok(path)
    }

    /// The one of a pull request; `None` when there is none.
    pub(super) fn load(&self, repo: &RepoName, number: u64) -> Result<Option<Pending>, AppError> {
        let path = self.file(repo, number);
        let bad = |problem: String| {
            AppError::new(
                format!("{}: {problem}", path.display()),
                "remove the file, and review again with `ecr ci`",
            )
        };
        let meta = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            meta => meta.map_err(|error| bad(error.to_string()))?,
        };
        if !meta.is_file() || meta.len() > LARGEST {
            return Err(bad("it is no regular file of a sensible size".to_owned()));
        }
        let text = fs::read_to_string(&path).map_err(|error| bad(error.to_string()))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if value.get("pendingVersion") != Some(&VERSION.into()) {
            return Err(bad("another version of ecr wrote it".to_owned()));
        }
        let pending: Pending =
            serde_json::from_value(value).map_err(|error| bad(error.to_string()))?;
        if pending.repo != repo.to_string() || pending.number != number {
            return Err(bad("it is about another pull request".to_owned()));
        }
        check(&pending.review, &pending.head).map_err(bad)?;
        Ok(Some(pending))
    }

    /// Forgets the one of a pull request: it is posted.
    pub(super) fn remove(&self, repo: &RepoName, number: u64) {
        let _ = fs::remove_file(self.file(repo, number));
    }
}

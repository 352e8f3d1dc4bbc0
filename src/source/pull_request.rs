//! A pull request whose objects were fetched.
//!
//! @ref LLP 0012#objects — the diff is made here, from objects, for a change of any size

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::words::{failed, from_census, from_git, invalid};
use crate::diff::parse_git;
use crate::git::{HostEnv, Repository};
use crate::model::{CommitId, InputInfo, InputKind, ObjectId};
use crate::port::{BoxFuture, ReviewSource, SourceError, SourceInput, TreeUnderReview};
use crate::tree::Tree;

/// Which pull request, and where its objects are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestInput {
    /// A git folder that holds the three commits with their trees.
    pub objects: PathBuf,
    /// The live tip of the branch that it is to be merged into: where trusted configuration comes from.
    pub base: CommitId,
    /// Where the change left that branch: what it is compared with.
    pub merge_base: CommitId,
    /// The commit under review.
    pub head: CommitId,
    /// `owner/name`.
    pub repo: String,
    /// The pull request's number.
    pub number: u64,
    /// The branch's name.
    pub base_name: String,
}

/// A stranger's change: compared with its merge base, read from objects, never checked out.
pub struct PullRequestSource {
    host: HostEnv,
    input: PullRequestInput,
    cancel: CancellationToken,
    repository: OnceCell<Repository>,
}

impl PullRequestSource {
    /// A review of `input`.
    pub fn new(host: HostEnv, input: PullRequestInput, cancel: CancellationToken) -> Self {
        Self {
            host,
            input,
            cancel,
            repository: OnceCell::new(),
        }
    }

    /// The tip of the base branch. A commit that is not there is an error, never an empty tree.
    pub async fn trusted_tree(&self) -> Result<Arc<dyn Tree>, SourceError> {
        self.tree_of(&self.input.base).await
    }

    async fn repository(&self) -> Result<&Repository, SourceError> {
        let open = || async {
            Repository::discover(&self.host, &self.input.objects, self.cancel.clone())
                .await
                .map_err(from_git)
        };
        self.repository.get_or_try_init(open).await
    }

    async fn tree_of(&self, commit: &CommitId) -> Result<Arc<dyn Tree>, SourceError> {
        let tree = self
            .repository()
            .await?
            .commit_tree(commit)
            .map_err(from_git)?;
        let tree: Arc<dyn Tree> = Arc::new(tree);
        // Reading the root proves that the commit is here: whoever asks for a file alone would take "no such
        // commit" for "no such file".
        let probe = Arc::clone(&tree);
        let listed = tokio::task::spawn_blocking(move || probe.list(None).map(drop)).await;
        match listed {
            Ok(Ok(())) => Ok(tree),
            Ok(Err(error)) => Err(failed(
                format!("commit {} cannot be read: {error}", commit.short()),
                "nothing was reviewed; run it again",
            )),
            Err(_) => Err(failed("reading the objects was aborted", "run it again")),
        }
    }

    fn info(&self) -> InputInfo {
        InputInfo {
            kind: InputKind::PullRequest,
            base: Some(self.input.merge_base.clone()),
            head: Some(self.input.head.clone()),
            base_name: Some(self.input.base_name.clone()),
            repo: Some(self.input.repo.clone()),
            pr: Some(self.input.number),
        }
    }

    async fn read(&self) -> Result<SourceInput, SourceError> {
        let nothing = |reason: &str| SourceError::Nothing {
            reason: reason.to_owned(),
            info: Box::new(self.info()),
        };
        if self.input.merge_base == self.input.head {
            return Err(nothing("every commit of the head is already in the base"));
        }
        let raw = self
            .repository()
            .await?
            .diff(&object(&self.input.merge_base)?, &object(&self.input.head)?)
            .await
            .map_err(from_git)?;
        let parsed = tokio::task::spawn_blocking(move || {
            parse_git(&raw.raw_z, &raw.numstat_z, raw.patch.into())
                .map_err(|error| from_census(&error))
        });
        let diff = parsed
            .await
            .map_err(|_| failed("reading the diff was aborted", "run it again"))??;
        if diff.files.is_empty() {
            return Err(nothing("the commits change no file"));
        }
        Ok(SourceInput {
            info: self.info(),
            diff,
            own_work: false,
            notes: Vec::new(),
        })
    }
}

fn object(commit: &CommitId) -> Result<ObjectId, SourceError> {
    ObjectId::new(commit.as_str()).map_err(|error| invalid(error.to_string(), "run it again"))
}

impl ReviewSource for PullRequestSource {
    fn load(&self) -> BoxFuture<'_, Result<SourceInput, SourceError>> {
        Box::pin(self.read())
    }

    /// The head commit.
    fn tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>> {
        Box::pin(async {
            let tree = self.tree_of(&self.input.head).await?;
            Ok(TreeUnderReview::Tree(tree))
        })
    }

    /// The merge base: what the author started from.
    fn base_tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>> {
        Box::pin(async {
            let tree = self.tree_of(&self.input.merge_base).await?;
            Ok(TreeUnderReview::Tree(tree))
        })
    }
}

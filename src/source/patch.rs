//! A patch without a repository.

use std::path::PathBuf;
use std::sync::Arc;

use super::words::{from_patch, invalid};
use crate::diff::parse_patch;
use crate::model::{CoverageNote, InputInfo, InputKind, NoteKind};
use crate::port::{BoxFuture, ReviewSource, SourceError, SourceInput, TreeUnderReview};

/// Where the patch is.
#[derive(Debug, Clone)]
pub enum PatchInput {
    /// In a file.
    File(PathBuf),
    /// Already read, from standard input.
    Bytes(Arc<[u8]>),
}

/// Reviews a patch that somebody gave us: there is no tree, and it is a stranger's.
#[derive(Debug, Clone)]
pub struct PatchSource {
    input: PatchInput,
}

impl PatchSource {
    /// A review of `input`.
    pub fn new(input: PatchInput) -> Self {
        Self { input }
    }

    fn name(&self) -> String {
        match &self.input {
            PatchInput::File(path) => path.display().to_string(),
            PatchInput::Bytes(_) => "standard input".to_owned(),
        }
    }

    async fn bytes(&self) -> Result<Arc<[u8]>, SourceError> {
        match &self.input {
            PatchInput::Bytes(bytes) => Ok(Arc::clone(bytes)),
            PatchInput::File(path) => match tokio::fs::read(path).await {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(invalid(
                    format!("cannot read the patch {}: {error}", path.display()),
                    "give a file, or `-` for standard input",
                )),
            },
        }
    }

    async fn read(&self) -> Result<SourceInput, SourceError> {
        let name = self.name();
        let bytes = self.bytes().await?;
        let info = InputInfo {
            kind: InputKind::Patch,
            base: None,
            head: None,
            base_name: None,
            repo: None,
            pr: None,
        };
        let parsed = tokio::task::spawn_blocking(move || parse_patch(bytes)).await;
        let diff = match parsed {
            Ok(Ok(diff)) => diff,
            Ok(Err(error)) => return Err(from_patch(&name, &error)),
            Err(_) => {
                return Err(super::words::failed(
                    "reading the patch was aborted",
                    "run it again",
                ));
            }
        };
        if diff.files.is_empty() {
            return Err(SourceError::Nothing {
                reason: format!("the patch from {name} is empty: it changes no file"),
                info: Box::new(info),
            });
        }
        Ok(SourceInput {
            info,
            diff,
            own_work: false,
            notes: vec![CoverageNote {
                kind: NoteKind::Info,
                text: "a patch alone was reviewed: the code around it was not to be seen, and the checks that need a whole file (syntax, workflows) saw new files only"
                    .to_owned(),
            }],
        })
    }
}

impl ReviewSource for PatchSource {
    fn load(&self) -> BoxFuture<'_, Result<SourceInput, SourceError>> {
        Box::pin(self.read())
    }

    fn tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>> {
        Box::pin(async { Ok(TreeUnderReview::None) })
    }

    fn base_tree(&self) -> BoxFuture<'_, Result<TreeUnderReview, SourceError>> {
        Box::pin(async { Ok(TreeUnderReview::None) })
    }
}

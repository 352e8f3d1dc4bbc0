//! The reviews of an evaluation, one file a case, so that it can go on where it was interrupted.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::app::digest::PartDigest;
use crate::app::runs::create_private_folder;
use crate::app::{AppError, Environment};
use crate::model::printable;
use crate::state::output::OutputV1;

/// The version of a result's file.
const RESULT_VERSION: u32 = 1;
const MAX_RESULT: u64 = 64 << 20;

/// A review that is kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    result_version: u32,
    /// The case, the set-up and the version of ecr that it is of.
    key: String,
    output: OutputV1,
}

/// The folder with the results.
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    /// `asked`, or a folder of the data set's own below the user's state folder. It is made when it is not there.
    pub(super) fn open(
        asked: Option<&Path>,
        dataset: &Path,
        environment: &Environment,
    ) -> Result<Self, AppError> {
        let folder = if let Some(folder) = asked {
            environment.cwd().join(folder)
        } else {
            let state = environment.state_folder().ok_or_else(|| {
                AppError::new(
                    "there is no folder to keep the results in: neither HOME nor XDG_STATE_HOME is set",
                    "name one with --out",
                )
            })?;
            let name = dataset
                .file_name()
                .map_or_else(|| "dataset".into(), |name| name.to_string_lossy());
            let mut id = PartDigest::default();
            id.add(dataset.as_os_str().as_encoded_bytes());
            state
                .join("eval")
                .join(format!("{name}-{}", &id.hex()[..8]))
        };
        create_private_folder(&folder).map_err(|error| problem(&folder, &error))?;
        Ok(Self { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self, case: &str) -> PathBuf {
        self.folder.join(format!("{case}.json"))
    }

    /// The kept review of a case, when it is of exactly this key. What cannot be read is as good as not there.
    pub(super) fn find(&self, case: &str, key: &str) -> Option<OutputV1> {
        let file = self.file(case);
        if fs::metadata(&file).ok()?.len() > MAX_RESULT {
            return None;
        }
        let kept: Kept = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        (kept.result_version == RESULT_VERSION && kept.key == key).then_some(kept.output)
    }

    /// Keeps a review; a reader sees all of it or nothing.
    pub(super) fn keep(&self, case: &str, key: &str, output: &OutputV1) -> Result<(), AppError> {
        let path = self.file(case);
        let save = || -> std::io::Result<()> {
            let kept = Kept {
                result_version: RESULT_VERSION,
                key: key.to_owned(),
                output: output.clone(),
            };
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            serde_json::to_writer_pretty(&mut file, &kept)?;
            file.write_all(b"\n")?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        save().map_err(|error| problem(&path, &error))
    }
}

fn problem(path: &Path, error: &std::io::Error) -> AppError {
    AppError::new(
        format!("{}: {error}", printable(&path.to_string_lossy())),
        "name a folder that can be written to with --out",
    )
}

/// What a result is bound to.
pub(super) fn key(parts: &[&str]) -> String {
    let mut digest = PartDigest::default();
    for part in parts {
        digest.add(part);
    }
    digest.hex()
}

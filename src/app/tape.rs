//! Recording a run's model exchanges, and replaying them offline.
//!
//! @ref LLP 0010#tapes — why a replay needs neither key nor network

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::{AppError, models};
use crate::gateway::tape::{Header, Recorder, Replay, TAPE_VERSION, TapeError};
use crate::http::Transport;
use crate::model::InputInfo;

/// What a run does with its model exchanges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TapeChoice {
    /// They go to the provider.
    #[default]
    Live,
    /// They are written down, too.
    Record(PathBuf),
    /// They are answered from a recording.
    Replay(PathBuf),
}

/// A tape in use.
pub(super) enum Tape {
    Live,
    Record {
        folder: PathBuf,
        seed: String,
        change: OnceLock<(Option<String>, Option<String>)>,
        recorder: OnceLock<Arc<Recorder>>,
    },
    Replay {
        folder: PathBuf,
        replay: Arc<Replay>,
    },
}

impl Tape {
    /// Opens what was asked for; a recording is begun when the change is known.
    pub(super) fn open(choice: &TapeChoice, cwd: &Path) -> Result<Self, AppError> {
        Ok(match choice {
            TapeChoice::Live => Self::Live,
            TapeChoice::Record(folder) => Self::Record {
                folder: cwd.join(folder),
                seed: models::mark(),
                change: OnceLock::new(),
                recorder: OnceLock::new(),
            },
            TapeChoice::Replay(folder) => {
                let folder = cwd.join(folder);
                let replay = Replay::open(&folder).map_err(problem)?;
                let seed = &replay.header().seed;
                if seed.is_empty()
                    || seed.len() > 64
                    || !seed.bytes().all(|b| b.is_ascii_hexdigit())
                {
                    return Err(AppError::new(
                        format!(
                            "{}: its seed is not one that ecr has drawn",
                            folder.display()
                        ),
                        "record the run again with --record",
                    ));
                }
                Self::Replay {
                    folder,
                    replay: Arc::new(replay),
                }
            }
        })
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Live)
    }

    pub(super) fn is_replay(&self) -> bool {
        matches!(self, Self::Replay { .. })
    }

    /// The mark of this run's prompts.
    pub(super) fn mark(&self) -> String {
        match self {
            Self::Live => models::mark(),
            Self::Record { seed, .. } => seed.clone(),
            Self::Replay { replay, .. } => replay.header().seed.clone(),
        }
    }

    /// Notes the change of a recording; refuses to replay another change than the recorded one.
    pub(super) fn change(&self, info: &InputInfo) -> Result<(), AppError> {
        let now = (
            info.base.as_ref().map(ToString::to_string),
            info.head.as_ref().map(ToString::to_string),
        );
        match self {
            Self::Live => Ok(()),
            Self::Record { change, .. } => {
                let _ = change.set(now);
                Ok(())
            }
            Self::Replay { folder, replay } => {
                let header = replay.header();
                let then = (header.base.clone(), header.head.clone());
                if then == now {
                    return Ok(());
                }
                let words = |(base, head): &(Option<String>, Option<String>)| {
                    let name = |id: &Option<String>| {
                        id.as_deref()
                            .map_or("none", |id| id.get(..12).unwrap_or(id))
                            .to_owned()
                    };
                    format!("base {}, head {}", name(base), name(head))
                };
                Err(AppError::new(
                    format!(
                        "{} is of another change: recorded were {}, here are {}",
                        folder.display(),
                        crate::model::printable(&words(&then)),
                        words(&now)
                    ),
                    "name the recorded commits with --base and --head",
                ))
            }
        }
    }

    /// What the model calls go through. `client` makes the one that reaches the provider.
    pub(super) fn transport(
        &self,
        client: impl FnOnce() -> Result<Arc<dyn Transport>, AppError>,
    ) -> Result<Arc<dyn Transport>, AppError> {
        Ok(match self {
            Self::Live => client()?,
            Self::Record {
                folder,
                seed,
                change,
                recorder,
            } => {
                let (base, head) = change.get().cloned().unwrap_or_default();
                let header = Header {
                    tape_version: TAPE_VERSION,
                    ecr_version: env!("CARGO_PKG_VERSION").to_owned(),
                    seed: seed.clone(),
                    base,
                    head,
                };
                let begun = Recorder::begin(folder, &header, client()?).map_err(problem)?;
                let begun = Arc::new(begun);
                let _ = recorder.set(Arc::clone(&begun));
                begun
            }
            Self::Replay { replay, .. } => Arc::clone(replay) as Arc<dyn Transport>,
        })
    }

    /// What is to be said about a replay beside its result; an error when it was not the recorded run.
    pub(super) fn compare(&self) -> Result<Option<String>, AppError> {
        let Self::Replay { folder, replay } = self else {
            return Ok(None);
        };
        let mismatches = replay.mismatches();
        if let Some(first) = mismatches.first() {
            let more = match mismatches.len() - 1 {
                0 => String::new(),
                n => format!("\n(and {n} more)"),
            };
            return Err(AppError::new(
                format!(
                    "this run is not the recorded one in {}; {first}{more}",
                    folder.display()
                ),
                "replay with the change, the set-up and the ecr of the recording, or record it again",
            ));
        }
        Ok(match replay.unused() {
            0 => None,
            n => Some(format!("replay: {n} recorded exchanges were not asked for")),
        })
    }

    /// An error when a recording is not whole.
    pub(super) fn finish(&self) -> Result<(), AppError> {
        match self {
            Self::Record { recorder, .. } => recorder
                .get()
                .and_then(|recorder| recorder.problem())
                .map_or(Ok(()), |error| {
                    Err(AppError::new(
                        format!("the recording is not whole: {error}"),
                        "record again, to a folder with room",
                    ))
                }),
            _ => Ok(()),
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // for map_err
fn problem(error: TapeError) -> AppError {
    let hint = match &error {
        TapeError::NotEmpty(_) => "name a folder that is not there yet",
        TapeError::None(_) => "name a folder that `ecr review --record` has written",
        TapeError::Newer { .. } => "update ecr",
        TapeError::Damaged { .. } => "record the run again with --record",
        TapeError::Io { .. } => "check the folder and its permissions",
    };
    AppError::new(error.to_string(), hint)
}

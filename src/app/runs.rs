//! Saved runs: one JSON file a run and a line each in the run log, in the set-up folder's `.runs/` or in the user's
//! state folder.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use super::review::setup_choice;
use super::{AppError, Environment};
use crate::config::{SetupChoice, find_setup_folder};
use crate::git::{HostEnv, Repository};
use crate::state::run_log::{self, RunLine};

const PREFIX: &str = "review-";
/// The run log: one line a run.
const LOG: &str = "reviews.jsonl";
/// Runs that the log keeps; a line is about a kilobyte.
const LOG_RUNS: usize = 5_000;
/// Days that it keeps them.
const LOG_DAYS: i64 = 400;
/// A log larger than this is not read.
const LOG_BYTES: u64 = 256 << 20;

/// The folder that keeps the runs of one repository.
#[derive(Debug, Clone)]
pub(super) struct RunStore {
    folder: PathBuf,
    keep: usize,
}

impl RunStore {
    /// The store of the repository at `root`: `<setup>/.runs` when it has a set-up folder, else
    /// `<state>/runs/<name>-<hash of the path>`. `None` when neither place exists, or when the
    /// set-up folder or `.runs` is a symbolic link: a checkout must not choose where we write.
    pub(super) fn of(
        root: &Path,
        setup: Option<&Path>,
        environment: &Environment,
        keep: usize,
    ) -> Option<Self> {
        let folder = if let Some(setup) = setup {
            let mut part = root.to_path_buf();
            for component in setup.strip_prefix(root).ok()?.components() {
                part.push(component);
                if !fs::symlink_metadata(&part).is_ok_and(|meta| meta.is_dir()) {
                    return None;
                }
            }
            let runs = part.join(".runs");
            match fs::symlink_metadata(&runs) {
                Ok(meta) if !meta.is_dir() => return None,
                _ => runs,
            }
        } else {
            let hash = sha_hex(root.as_os_str().as_encoded_bytes());
            let name: String = root
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default()
                .chars()
                .map(|c| {
                    if c.is_ascii_alphanumeric() || c == '-' {
                        c
                    } else {
                        '_'
                    }
                })
                .take(40)
                .collect();
            environment
                .state_folder()?
                .join("runs")
                .join(format!("{name}-{}", &hash[..12]))
        };
        Some(Self {
            folder,
            keep: keep.max(1),
        })
    }

    /// The store of the repository around the current folder; `None` where it has none.
    pub(super) async fn here(
        config_dir: Option<&Path>,
        environment: &Environment,
    ) -> Result<Option<Self>, AppError> {
        let host = environment.variables().collect::<HostEnv>();
        let repository = Repository::discover(&host, environment.cwd(), CancellationToken::new())
            .await
            .map_err(|error| {
                AppError::new(
                    error.to_string(),
                    "run it inside the repository that was reviewed, or name a file (`ecr explain --run FILE`)",
                )
            })?;
        let Some(root) = repository.work_tree() else {
            return Ok(None);
        };
        let tree = repository
            .work_tree_view()
            .await
            .map_err(|error| AppError::plain(error.to_string()))?;
        let folder = match setup_choice(config_dir, environment)? {
            SetupChoice::Discover => {
                find_setup_folder(&tree, None)
                    .map_err(|problem| AppError::rendered(&problem.render(false)))?
                    .0
            }
            SetupChoice::InRepository(folder) => folder,
            SetupChoice::Absolute(_) => None,
        };
        let folder = folder.and_then(|folder| folder.as_str().map(|folder| root.join(folder)));
        Ok(Self::of(root, folder.as_deref(), environment, 1))
    }

    /// Makes the folder, and has git ignore what is in it.
    fn prepare(&self) -> io::Result<()> {
        create_private_folder(&self.folder)?;
        // `create_new` follows no link: a checkout may hold one under this name.
        let ignore = self.folder.join(".gitignore");
        match fs::File::create_new(&ignore) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?.write_all(b"*\n")?,
        }
        Ok(())
    }

    /// Where the run log lies.
    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// The run log's text; empty when there is none. It is a regular file of bounded size or an error: a checkout may
    /// bring anything under this name.
    pub(super) fn log(&self) -> io::Result<String> {
        let path = self.log_path();
        let meta = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            meta => meta?,
        };
        if !meta.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if meta.len() > LOG_BYTES {
            return Err(io::Error::other(format!(
                "it is larger than {LOG_BYTES} bytes"
            )));
        }
        Ok(String::from_utf8_lossy(&fs::read(&path)?).into_owned())
    }

    /// Adds a run to the log, and removes what is too old or too many. Runs at the same time wait for each other.
    pub(super) fn append(&self, line: &RunLine, now: jiff::Timestamp) -> io::Result<()> {
        self.prepare()?;
        let lock = self.folder.join(".lock");
        if fs::symlink_metadata(&lock).is_ok_and(|meta| !meta.is_file()) {
            return Err(io::Error::other(".lock is not a regular file"));
        }
        let lock = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(lock)?;
        lock.lock()?;
        let mut text = self.log()?;
        if !text.is_empty() && !text.ends_with('\n') {
            // A crash has cut the last line.
            text.push('\n');
        }
        text.push_str(&run_log::encode(line)?);
        let oldest = now
            .checked_sub(jiff::SignedDuration::from_hours(24 * LOG_DAYS))
            .unwrap_or(jiff::Timestamp::MIN);
        let text = run_log::prune(&text, LOG_RUNS, oldest).unwrap_or(text);
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(self.log_path()).map_err(|error| error.error)?;
        Ok(())
    }

    /// Writes a run (mode 0600, atomically) and removes the oldest ones over the limit.
    pub(super) fn save(&self, json: &str) -> io::Result<PathBuf> {
        self.prepare()?;
        let stamp = jiff::Timestamp::now()
            .strftime("%Y%m%dT%H%M%S%3fZ")
            .to_string();
        let path = self
            .folder
            .join(format!("{PREFIX}{stamp}-{}.json", std::process::id()));
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(json.as_bytes())?;
        file.persist(&path).map_err(|error| error.error)?;
        for old in self.all()?.iter().rev().skip(self.keep) {
            // Another run may have removed it first; this one is saved all the same.
            let _ = fs::remove_file(old);
        }
        Ok(path)
    }

    /// The newest saved run.
    pub(super) fn latest(&self) -> io::Result<Option<PathBuf>> {
        Ok(self.all()?.pop())
    }

    /// Saved runs, oldest first: the stamp in the name sorts by time.
    fn all(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut runs = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            if name.starts_with(PREFIX) && path.extension().is_some_and(|ext| ext == "json") {
                runs.push(path);
            }
        }
        runs.sort();
        Ok(runs)
    }
}

pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder)
}

fn sha_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    use sha2::Digest as _;
    let mut hex = String::with_capacity(64);
    for byte in sha2::Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_newest_and_never_follows_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join(".expo-code-review")).unwrap();
        let setup = root.join(".expo-code-review");
        let store = RunStore::of(root, Some(&setup), &Environment::default(), 2).unwrap();
        assert_eq!(store.latest().unwrap(), None);
        for n in 0..4 {
            // Names carry milliseconds; a run a millisecond is more than anyone starts.
            std::thread::sleep(std::time::Duration::from_millis(2));
            store.save(&format!("{{\"n\":{n}}}")).unwrap();
        }
        assert_eq!(store.all().unwrap().len(), 2);
        let latest = store.latest().unwrap().unwrap();
        assert_eq!(fs::read_to_string(latest).unwrap(), "{\"n\":3}");
        #[cfg(unix)]
        {
            fs::remove_dir_all(setup.join(".runs")).unwrap();
            std::os::unix::fs::symlink("/tmp", setup.join(".runs")).unwrap();
            assert!(RunStore::of(root, Some(&setup), &Environment::default(), 2).is_none());
        }
    }

    #[test]
    fn without_a_setup_folder_runs_go_to_the_state_folder() {
        let env = Environment::new("/w".into(), [("XDG_STATE_HOME".into(), "/s".into())]);
        let store = RunStore::of(Path::new("/w/my repo"), None, &env, 5).unwrap();
        let folder = store.folder.to_string_lossy().into_owned();
        assert!(folder.starts_with("/s/ecr/runs/my_repo-"), "{folder}");
        assert!(RunStore::of(Path::new("/w"), None, &Environment::default(), 5).is_none());
    }

    #[test]
    fn runs_at_the_same_time_all_get_into_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let store = RunStore {
            folder: dir.path().join("runs"),
            keep: 3,
        };
        let now: jiff::Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let output = serde_json::from_value(serde_json::json!({
            "schemaVersion": 1, "tool": {"name": "ecr", "version": "0"},
            "input": {"kind": "range", "base": null, "head": null},
            "sandbox": {"level": "none", "missing": []}, "decision": "skipped", "complete": true, "summary": "",
            "findings": [], "dismissed": [], "dropped": [], "notes": [], "passes": [],
            "coverage": {"files": [], "totals": {"files": 0, "reviewedFiles": 0, "changedLines": 0, "reviewedLines": 0}},
            "usage": {"confidence": "unavailable"}, "timing": {"totalMs": 1, "overheadMs": 1},
        }))
        .unwrap();
        let line = RunLine::of(now, &output);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| store.append(&line, now).unwrap());
            }
        });
        assert_eq!(run_log::decode(&store.log().unwrap()).runs.len(), 8);

        // What a crash has cut costs one line, and only until it is pruned.
        let text = store.log().unwrap();
        fs::write(store.log_path(), &text[..text.len() - 20]).unwrap();
        store.append(&line, now).unwrap();
        let log = run_log::decode(&store.log().unwrap());
        assert_eq!((log.runs.len(), log.damaged), (8, 0));
    }

    #[cfg(unix)]
    #[test]
    fn a_log_that_is_a_link_is_neither_read_nor_followed() {
        let dir = tempfile::tempdir().unwrap();
        let store = RunStore {
            folder: dir.path().join("runs"),
            keep: 3,
        };
        store.prepare().unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "secret").unwrap();
        std::os::unix::fs::symlink(&target, store.log_path()).unwrap();
        assert!(store.log().is_err());
    }
}

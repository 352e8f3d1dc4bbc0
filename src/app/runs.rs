//! Saved runs: one JSON file a run, in the set-up folder's `.runs/` or in the user's state folder.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Environment;

const PREFIX: &str = "review-";

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

    /// Writes a run (mode 0600, atomically) and removes the oldest ones over the limit.
    pub(super) fn save(&self, json: &str) -> io::Result<PathBuf> {
        create_private_folder(&self.folder)?;
        // `create_new` follows no link: a checkout may hold one under this name.
        let ignore = self.folder.join(".gitignore");
        match fs::File::create_new(&ignore) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => created?.write_all(b"*\n")?,
        }
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

fn create_private_folder(folder: &Path) -> io::Result<()> {
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
}

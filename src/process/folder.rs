//! Folders of one run that only we can enter, and that do not outlive it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use super::remove::remove_tree;

/// A folder of mode 0700 under the system's temporary folder; removed on drop with all that is in it.
///
/// One whose owner was killed is removed by the next start of ecr: the file `owner` in it is locked for as long
/// as the owner lives. The kernel lets go of such a lock when the process dies, and, unlike process ids, it means the
/// same in every container that shares the folder.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    _owner: File,
}

const PREFIX: &str = "ecr-";
const OWNER: &str = "owner";
/// A folder without its `owner` file is still being made when it is younger than this.
const BEING_MADE: Duration = Duration::from_secs(3600);

impl PrivateFolder {
    /// Makes one with `kind` in its name. The first call of a process also removes what killed ones left.
    pub fn new(kind: &str) -> io::Result<Self> {
        static SWEPT: Once = Once::new();
        let base = std::env::temp_dir();
        SWEPT.call_once(|| sweep(&base));
        Self::new_in(&base, kind)
    }

    /// Makes one in `base`.
    fn new_in(base: &Path, kind: &str) -> io::Result<Self> {
        loop {
            let path = tempfile::Builder::new()
                .prefix(&format!("{PREFIX}{kind}-"))
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir_in(base)?
                .keep();
            if let Some(owner) = own(&path)? {
                return Ok(Self {
                    path,
                    _owner: owner,
                });
            }
            // Somebody who cleans up was faster than the lock: it is gone, or will be.
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it, as private as itself.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Makes a file of mode 0600 in it: the way for a secret that has to be read from a path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.path) {
            tracing::warn!("{} is left behind: {error}", self.path.display());
        }
    }
}

/// Locks the folder for this process; `None` when it was taken away in between.
fn own(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(OWNER);
    let made = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let file = match made {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let same = path
        .symlink_metadata()
        .is_ok_and(|there| file.metadata().is_ok_and(|ours| there.ino() == ours.ino()));
    Ok((locked && same).then_some(file))
}

/// Removes the folders in `base` that are ours and whose owner is dead. What cannot be removed stays.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else {
        return;
    };
    let me = geteuid().as_raw();
    for entry in entries.flatten() {
        let name = entry.file_name();
        // `DirEntry::metadata` does not follow links.
        let ours = name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry
                .metadata()
                .is_ok_and(|meta| meta.is_dir() && meta.uid() == me);
        if ours && let Found::Dead(_lock) = look(&entry.path()) {
            let _ = remove_tree(&entry.path());
        }
    }
}

/// What a folder with our prefix turned out to be.
enum Found {
    /// Its owner lives, or it is none of ours.
    Alive,
    /// Its owner is dead; the lock, if there is a file for it, is ours now.
    Dead(Option<File>),
}

fn look(folder: &Path) -> Found {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    match File::options()
        .read(true)
        .custom_flags(flags)
        .open(folder.join(OWNER))
    {
        Ok(file) if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() => {
            Found::Dead(Some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = folder.metadata().and_then(|meta| meta.modified());
            let age = made.map(|made| SystemTime::now().duration_since(made));
            match age {
                Ok(Ok(age)) if age > BEING_MADE => Found::Dead(None),
                _ => Found::Alive,
            }
        }
        _ => Found::Alive,
    }
}

/// The private folders of a contained child: HOME, configuration, cache, state, data, temporary files, and an empty
/// one to start in.
#[derive(Debug)]
pub struct RunFolders {
    root: PrivateFolder,
}

/// Folder names, and the variable that leads a program there. The first is where it starts.
const FOLDERS: &[(&str, Option<&str>)] = &[
    ("cwd", None),
    ("home", Some("HOME")),
    ("config", Some("XDG_CONFIG_HOME")),
    ("cache", Some("XDG_CACHE_HOME")),
    ("data", Some("XDG_DATA_HOME")),
    ("state", Some("XDG_STATE_HOME")),
    ("tmp", Some("TMPDIR")),
];

impl RunFolders {
    /// Makes them; all go when this is dropped.
    pub fn new() -> io::Result<Self> {
        let root = PrivateFolder::new("run")?;
        for (name, _) in FOLDERS {
            root.folder(name)?;
        }
        Ok(Self { root })
    }

    /// The folder that holds them; files made here are outside what the child may write.
    pub fn root(&self) -> &PrivateFolder {
        &self.root
    }

    /// The folder to start in.
    pub fn cwd(&self) -> PathBuf {
        self.root.path().join("cwd")
    }

    /// The variables that name them.
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        FOLDERS
            .iter()
            .filter_map(|(name, variable)| {
                Some(((*variable)?.into(), self.root.path().join(name).into()))
            })
            .collect()
    }

    /// The folders that a child needs to write: all but the one it starts in.
    pub fn writable(&self) -> Vec<PathBuf> {
        FOLDERS
            .iter()
            .filter(|(_, variable)| variable.is_some())
            .map(|(name, _)| self.root.path().join(name))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn private_and_gone_afterwards() {
        let base = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::new_in(base.path(), "test").unwrap();
        let path = folder.path().to_owned();
        let inner = folder.folder("inner").unwrap();
        let file = folder.file("secret", b"x").unwrap();
        assert_eq!(
            (mode(&path), mode(&inner), mode(&file)),
            (0o700, 0o700, 0o600)
        );
        assert!(folder.file("secret", b"y").is_err());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn only_those_of_the_dead_are_swept() {
        let base = tempfile::tempdir().unwrap();
        let living = PrivateFolder::new_in(base.path(), "git").unwrap();
        // What a killed owner leaves: the file, and no lock on it.
        let dead = base.path().join("ecr-run-dead");
        fs::create_dir_all(dead.join("home")).unwrap();
        fs::write(dead.join(OWNER), "").unwrap();
        let being_made = base.path().join("ecr-run-young");
        fs::create_dir(&being_made).unwrap();
        let other = base.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(OWNER), "").unwrap();
        let link = base.path().join("ecr-link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        sweep(base.path());
        assert!(!dead.exists());
        assert!(living.path().exists() && being_made.exists());
        assert!(other.join(OWNER).exists() && link.symlink_metadata().is_ok());
    }

    #[test]
    fn an_old_folder_without_an_owner_is_swept() {
        let base = tempfile::tempdir().unwrap();
        let old = base.path().join("ecr-run-old");
        fs::create_dir(&old).unwrap();
        let long_ago = SystemTime::now() - 2 * BEING_MADE;
        File::open(&old).unwrap().set_modified(long_ago).unwrap();
        sweep(base.path());
        assert!(!old.exists());
    }

    #[test]
    fn a_run_has_folders_for_everything() {
        let folders = RunFolders::new().unwrap();
        assert_eq!(fs::read_dir(folders.cwd()).unwrap().count(), 0);
        assert!(!folders.writable().contains(&folders.cwd()));
        for (name, value) in folders.env() {
            let path = PathBuf::from(value);
            assert_eq!(mode(&path), 0o700, "{}", name.display());
            assert!(folders.writable().contains(&path));
        }
    }
}

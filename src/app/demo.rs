//! `ecr demo`: the whole pipeline on a small sample repository made on the spot.

use std::fs;
use std::path::{Path, PathBuf};

use super::{AppError, Environment};
use crate::git;

/// One file of the sample: where it goes, before and after the change.
struct Sample {
    path: &'static str,
    base: &'static str,
    head: &'static str,
}

macro_rules! sample {
    ($path:literal, $file:literal) => {
        Sample {
            path: $path,
            base: include_str!(concat!("../../templates/demo/base/", $file)),
            head: include_str!(concat!("../../templates/demo/head/", $file)),
        }
    };
}

const SAMPLES: &[Sample] = &[
    sample!(".github/workflows/label.yml", "label.yml.txt"),
    sample!("NOTES.md", "NOTES.md.txt"),
    sample!("src/orders.py", "orders.py.txt"),
    sample!("src/settings.js", "settings.js.txt"),
    sample!("test/cart.test.js", "cart.test.js.txt"),
    sample!("yarn.lock", "yarn.lock.txt"),
];

/// A sample repository; a temporary one is removed on drop.
pub struct SampleRepository {
    root: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl SampleRepository {
    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Makes the sample repository: `base` as the only commit on `main`, the change in the working tree.
/// `keep` must not exist yet or be empty.
pub fn prepare(
    keep: Option<&Path>,
    environment: &Environment,
) -> Result<SampleRepository, AppError> {
    let failed = |error: std::io::Error| {
        AppError::plain(format!("cannot make the sample repository: {error}"))
    };
    let (root, temporary) = if let Some(folder) = keep {
        let folder = environment.cwd().join(folder);
        fs::create_dir_all(&folder).map_err(failed)?;
        if fs::read_dir(&folder).map_err(failed)?.next().is_some() {
            return Err(AppError::new(
                format!("{} is not empty", folder.display()),
                "name a folder that does not exist yet",
            ));
        }
        (folder, None)
    } else {
        let dir = tempfile::Builder::new()
            .prefix("ecr-demo-")
            .tempdir()
            .map_err(failed)?;
        (dir.path().to_path_buf(), Some(dir))
    };
    let root = root.canonicalize().map_err(failed)?;
    write(&root, |sample| sample.base.to_owned()).map_err(failed)?;
    git::commit_sample(&root, "The shop as it was")
        .map_err(|error| AppError::plain(format!("cannot make the sample repository: {error}")))?;
    let credential = sample_credential();
    write(&root, |sample| {
        sample.head.replace("%CREDENTIAL%", &credential)
    })
    .map_err(failed)?;
    Ok(SampleRepository {
        root,
        _temporary: temporary,
    })
}

fn write(root: &Path, content: impl Fn(&Sample) -> String) -> std::io::Result<()> {
    for sample in SAMPLES {
        let path = root.join(sample.path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, content(sample))?;
    }
    Ok(())
}

/// A made-up secret key in a payment provider's form. Assembled here so that no scanner trips over
/// the source.
fn sample_credential() -> String {
    ["sk", "_live_", "Qx7B2hTw", "5Jr4M6Zn", "9Lk3Vp8s"].concat()
}

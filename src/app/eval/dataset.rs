//! A data set on disk: a folder with one folder a case.

use std::fs;
use std::path::{Path, PathBuf};

use crate::app::AppError;
use crate::app::digest::PartDigest;
use crate::config::Source;
use crate::eval::{Case, LabelSide, Lines, parse_case};
use crate::git::TreeFile;
use crate::model::{RepoPath, printable};

/// The names under which a case's labels may lie.
const CASE_FILES: [&str; 2] = ["case.jsonc", "case.json"];
const PATCH: &str = "change.patch";
const MAX_CASE_FILE: u64 = 4 << 20;
const MAX_PATCH: u64 = 64 << 20;
/// All files of a tree together, and how many.
const MAX_TREE: u64 = 256 << 20;
const MAX_FILES: usize = 20_000;
const MAX_CASES: usize = 100_000;

/// A case with its change.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) case: Case,
    pub(super) change: Change,
    /// Of the labels and the change; what a clone holds is bound by its commits.
    pub(super) digest: String,
}

/// Where the change of a case is.
#[derive(Debug)]
pub(super) enum Change {
    Trees(Vec<TreeFile>, Vec<TreeFile>),
    TreeAndPatch(Vec<TreeFile>, Vec<u8>),
    Patch(Vec<u8>),
    Clone {
        folder: PathBuf,
        base: String,
        head: String,
    },
    /// It is not here; why, and what to do.
    Absent(String),
}

/// The names of the cases of a data set, sorted; only those asked for, if any.
pub(super) fn names(folder: &Path, only: &[String]) -> Result<Vec<String>, AppError> {
    let shown = printable(&folder.to_string_lossy()).into_owned();
    let failed = |error: &std::io::Error| {
        AppError::new(
            format!("cannot read the data set {shown}: {error}"),
            "name a folder with one folder a case, each with a case.jsonc",
        )
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| failed(&error))? {
        let entry = entry.map_err(|error| failed(&error))?;
        let holds_case = CASE_FILES
            .iter()
            .any(|file| entry.path().join(file).is_file());
        if holds_case {
            let name = entry.file_name().into_string().map_err(|name| {
                AppError::new(
                    format!(
                        "{shown}: the name of the case {} is not UTF-8",
                        printable(&name.to_string_lossy())
                    ),
                    "rename the folder",
                )
            })?;
            names.push(name);
        }
        if names.len() > MAX_CASES {
            return Err(AppError::plain(format!(
                "{shown} holds more than {MAX_CASES} cases"
            )));
        }
    }
    names.sort();
    if let Some(name) = only.iter().find(|name| !names.contains(name)) {
        return Err(AppError::new(
            format!("--only: {shown} has no case `{}`", printable(name)),
            "name folders of the data set, comma separated",
        ));
    }
    if !only.is_empty() {
        names.retain(|name| only.contains(name));
    }
    if names.is_empty() {
        return Err(AppError::new(
            format!("{shown} holds no case"),
            "name a folder with one folder a case, each with a case.jsonc (`ecr schema eval-case`)",
        ));
    }
    Ok(names)
}

/// Reads one case. `repos` is where clones are.
pub(super) fn load(dataset: &Path, name: &str, repos: Option<&Path>) -> Result<Loaded, AppError> {
    let folder = dataset.join(name);
    let file = CASE_FILES
        .iter()
        .map(|file| folder.join(file))
        .find(|path| path.is_file());
    let file =
        file.ok_or_else(|| AppError::plain(format!("the case {} is gone", printable(name))))?;
    let bytes = read(&file, MAX_CASE_FILE)?;
    let origin = file.to_string_lossy();
    let base = tree(&folder.join("base"))?;
    let head = tree(&folder.join("head"))?;
    let patch = folder.join(PATCH);
    let patch = if patch.is_file() {
        Some(read(&patch, MAX_PATCH)?)
    } else {
        None
    };

    // With a patch, the new side is known only when it has been applied.
    let lines = |side: LabelSide, path: &RepoPath| {
        let files = match (side, &base, &head) {
            (LabelSide::Old, Some(base), _) => base,
            (LabelSide::New, Some(_), Some(head)) if patch.is_none() => head,
            _ => return Lines::Unknown,
        };
        files
            .iter()
            .find(|file| file.path == *path)
            .map_or(Lines::NoFile, |file| {
                let ends = memchr::memchr_iter(b'\n', &file.content).count();
                let open = file.content.last().is_some_and(|last| *last != b'\n');
                Lines::Are(u32::try_from(ends + usize::from(open)).unwrap_or(u32::MAX))
            })
    };
    let case = Source::from_bytes(&origin, &bytes)
        .map_err(Into::into)
        .and_then(|source| parse_case(&source, &lines))
        .map_err(|errors| AppError::rendered(&errors.render(false)))?;

    let mut digest = PartDigest::default();
    digest.add(&bytes);
    for (side, files) in [("base", &base), ("head", &head)] {
        digest.add(side);
        for file in files.iter().flatten() {
            digest.add(file.path.as_bytes());
            digest.add(if file.executable { "x" } else { "-" });
            digest.add(&file.content);
        }
    }
    digest.add(patch.as_deref().unwrap_or_default());

    let change = match (&case.repository, base, head, patch) {
        (None, Some(base), Some(head), None) => Change::Trees(base, head),
        (None, Some(base), None, Some(patch)) => Change::TreeAndPatch(base, patch),
        (None, None, None, Some(patch)) => Change::Patch(patch),
        (Some(repository), None, None, None) => {
            clone(&repository.name, repos).map_or_else(Change::Absent, |folder| Change::Clone {
                folder,
                base: repository.base.clone(),
                head: repository.head.clone(),
            })
        }
        (None, None, None, None) => {
            let from = case.origin.as_deref().unwrap_or("where it comes from");
            Change::Absent(format!(
                "there is no change beside {}: put {PATCH} there ({})",
                printable(&origin),
                printable(from)
            ))
        }
        _ => {
            return Err(AppError::new(
                format!(
                    "{}: it is not clear what the change is",
                    printable(&folder.to_string_lossy())
                ),
                "have `base` and `head`, or `base` and `change.patch`, or `change.patch`, or `repository` in the case file",
            ));
        }
    };
    Ok(Loaded {
        name: name.to_owned(),
        case,
        change,
        digest: digest.hex(),
    })
}

/// The clone of that name; a reason where there is none.
fn clone(name: &str, repos: Option<&Path>) -> Result<PathBuf, String> {
    let Some(repos) = repos else {
        return Err(format!(
            "it needs a clone of {}: name the folder of clones with --repos",
            printable(name)
        ));
    };
    // A name from a data set is data: it stays below the folder.
    let inside = RepoPath::new(name)
        .ok()
        .and_then(|path| path.as_str().map(|path| repos.join(path)));
    match inside {
        Some(folder) if folder.is_dir() => Ok(folder),
        _ => Err(format!(
            "there is no clone of {} below {}",
            printable(name),
            printable(&repos.to_string_lossy())
        )),
    }
}

fn read(path: &Path, limit: u64) -> Result<Vec<u8>, AppError> {
    let shown = || printable(&path.to_string_lossy()).into_owned();
    let failed = |error: std::io::Error| {
        AppError::new(
            format!("cannot read {}: {error}", shown()),
            "check the data set",
        )
    };
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > limit {
        return Err(AppError::new(
            format!("{}: {size} bytes is over {limit}", shown()),
            "make the case smaller",
        ));
    }
    fs::read(path).map_err(failed)
}

/// The files below `folder`, sorted; `None` where there is no such folder. Links are not followed and not taken.
fn tree(folder: &Path) -> Result<Option<Vec<TreeFile>>, AppError> {
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut files = Vec::new();
    let mut left = MAX_TREE;
    let mut pending = vec![(folder.to_path_buf(), Vec::new())];
    while let Some((place, prefix)) = pending.pop() {
        let failed = |error: std::io::Error| {
            AppError::new(
                format!(
                    "cannot read {}: {error}",
                    printable(&place.to_string_lossy())
                ),
                "check the data set",
            )
        };
        for entry in fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let mut inside: Vec<u8> = prefix.clone();
            inside.extend_from_slice(entry.file_name().as_encoded_bytes());
            if kind.is_dir() {
                inside.push(b'/');
                pending.push((entry.path(), inside));
                continue;
            }
            let shown = || printable(&entry.path().to_string_lossy()).into_owned();
            if !kind.is_file() {
                return Err(AppError::new(
                    format!("{} is neither a file nor a folder", shown()),
                    "a case's trees hold plain files only",
                ));
            }
            let path = RepoPath::new(&inside)
                .map_err(|error| AppError::plain(format!("{}: {error}", shown())))?;
            let content = read(&entry.path(), left)?;
            left = left.saturating_sub(content.len() as u64);
            if files.len() == MAX_FILES {
                return Err(AppError::new(
                    format!(
                        "{} holds more than {MAX_FILES} files",
                        printable(&folder.to_string_lossy())
                    ),
                    "make the case smaller",
                ));
            }
            files.push(TreeFile {
                path,
                content,
                executable: is_executable(&entry.metadata().map_err(failed)?),
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Some(files))
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata) -> bool {
    false
}

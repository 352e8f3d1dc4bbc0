//! Makes a data set from the files of a public one.

use std::fs;
use std::path::{Path, PathBuf};

use crate::app::{AppError, Environment};
use crate::eval::{ImportedCase, PublicSet};
use crate::model::printable;

const MAX_FILE: u64 = 256 << 20;

/// Writes a case folder for each change in `files` into `dataset`, which is new or empty. Gives what to say.
pub fn import(
    dataset: &Path,
    set: PublicSet,
    files: &[PathBuf],
    environment: &Environment,
) -> Result<String, AppError> {
    let shown = |path: &Path| printable(&path.to_string_lossy()).into_owned();
    let mut texts = Vec::new();
    for file in files {
        let path = environment.cwd().join(file);
        let failed = |problem: String| {
            AppError::new(
                format!("--from {}: {problem}", shown(file)),
                "name a JSON file of the set",
            )
        };
        let size = fs::metadata(&path)
            .map_err(|error| failed(error.to_string()))?
            .len();
        if size > MAX_FILE {
            return Err(failed(format!("{size} bytes is over {MAX_FILE}")));
        }
        let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
        texts.push((file.to_string_lossy().into_owned(), text));
    }
    let cases = set.import(&texts).map_err(|error| {
        AppError::new(
            error.to_string(),
            "name a JSON file of the set that --import names",
        )
    })?;
    let folder = environment.cwd().join(dataset);
    let failed = |error: std::io::Error| AppError::plain(format!("{}: {error}", shown(&folder)));
    fs::create_dir_all(&folder).map_err(failed)?;
    if fs::read_dir(&folder).map_err(failed)?.next().is_some() {
        return Err(AppError::new(
            format!("{} is not empty", shown(&folder)),
            "name a folder that does not exist yet",
        ));
    }
    for ImportedCase { name, case } in &cases {
        let place = folder.join(name);
        fs::create_dir(&place).map_err(failed)?;
        let mut text = serde_json::to_string_pretty(case)
            .map_err(|error| AppError::plain(format!("{}: {error}", shown(&place))))?;
        text.push('\n');
        fs::write(place.join("case.jsonc"), text).map_err(failed)?;
    }
    let labels = |pick: fn(&ImportedCase) -> usize| cases.iter().map(pick).sum::<usize>();
    let next = match set {
        PublicSet::AacrBench => {
            "clone the repositories into one folder as owner/name and name it with --repos"
        }
        PublicSet::Martian => {
            "put each change beside its case.jsonc as change.patch (the address in `origin`, with .diff behind it)"
        }
    };
    Ok(format!(
        "{} cases with {} known findings and {} known non-findings in {}\nnext: {next}\n",
        cases.len(),
        labels(|one| one.case.findings.len()),
        labels(|one| one.case.non_findings.len()),
        shown(dataset)
    ))
}

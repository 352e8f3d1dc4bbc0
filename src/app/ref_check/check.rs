//! The check as a whole.

use super::index::Index;
use super::llp::Documents;
use super::report::{Format, Outcome, Report};
use super::{code, setup, structure};
use crate::model::RepoPath;
use crate::tree::{Tree, TreeError};

/// What to check beyond what is found by name.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A review-setup folder under another name (`--config-dir`).
    pub setup_folder: Option<RepoPath>,
}

/// Checks every citation of a tree. Reads only through `files`.
pub fn check(files: &dyn Tree, options: &Options) -> Result<Report, TreeError> {
    let index = Index::new(files)?;
    let mut problems = Vec::new();
    let documents = Documents::load(&index, &mut problems)?;
    let folders = setup::folders(&index, options.setup_folder.as_ref());
    let in_setup = |path: &[u8]| {
        folders.iter().any(|folder| {
            path.strip_prefix(folder.as_bytes())
                .is_some_and(|rest| rest.first() == Some(&b'/'))
        })
    };
    let code_refs = code::check(&index, &documents, in_setup, &mut problems)?;
    let mut setup_refs = 0;
    for folder in &folders {
        setup_refs += setup::check(&index, &documents, folder, &mut problems)?;
        structure::check(&index, folder, &mut problems)?;
    }
    problems.sort();
    Ok(Report {
        problems,
        documents: documents.len(),
        code_refs,
        setup_folders: folders.len(),
        setup_refs,
    })
}

/// Checks a tree and prints the result. An error means that the tree could not be read: exit code 2.
pub fn run(files: &dyn Tree, options: &Options, format: Format) -> Result<Outcome, TreeError> {
    Ok(Outcome::new(check(files, options)?, format))
}

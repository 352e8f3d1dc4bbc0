//! A repository made on the spot, for `ecr demo`.

use std::path::Path;

use super::GitError;

/// `git init` with `main` as its branch and one commit of everything in `folder`. Neither the user's
/// configuration nor a hook takes part.
pub fn commit_sample(folder: &Path, message: &str) -> Result<(), GitError> {
    commit(folder, message).map_err(|error| GitError::Failed {
        action: "commit".to_owned(),
        message: error.message().to_owned(),
    })
}

fn commit(folder: &Path, message: &str) -> Result<(), git2::Error> {
    let mut options = git2::RepositoryInitOptions::new();
    options
        .initial_head("main")
        .no_reinit(true)
        .external_template(false);
    let repository = git2::Repository::init_opts(folder, &options)?;
    let mut index = repository.index()?;
    index.add_all(["*"], git2::IndexAddOption::DEFAULT, None)?;
    index.write()?;
    let tree = repository.find_tree(index.write_tree()?)?;
    let author = git2::Signature::now("ecr demo", "demo@example.com")?;
    repository.commit(Some("HEAD"), &author, &author, message, &tree, &[])?;
    Ok(())
}

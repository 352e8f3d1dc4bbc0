//! A repository made of two trees, for `ecr eval`.

use std::path::Path;

use git2::{Diff, Oid, Repository, RepositoryInitOptions, Signature, Time, Tree};

use super::GitError;
use crate::model::{CommitId, RepoPath};

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Where it is.
    pub path: RepoPath,
    /// Its content.
    pub content: Vec<u8>,
    /// It can be executed.
    pub executable: bool,
}

/// The side under review.
#[derive(Debug, Clone, Copy)]
pub enum HeadSide<'a> {
    /// A whole tree.
    Files(&'a [TreeFile]),
    /// The base with this patch applied.
    Patch(&'a [u8]),
}

/// Makes a bare repository in the empty `folder` with two commits, and gives their ids: `base`, and `head` on top of it.
/// They depend on the content alone. Neither the user's configuration nor a hook takes part.
pub fn commit_change(
    folder: &Path,
    base: &[TreeFile],
    head: HeadSide<'_>,
) -> Result<(CommitId, CommitId), GitError> {
    let made = make(folder, base, head).map_err(|error| error.message().to_owned());
    let failed = |message: String| GitError::Failed {
        action: "commit".to_owned(),
        message,
    };
    let (base, head) = made.map_err(failed)?;
    let id = |oid: Oid| CommitId::new(&oid.to_string()).map_err(|error| failed(error.to_string()));
    Ok((id(base)?, id(head)?))
}

fn make(folder: &Path, base: &[TreeFile], head: HeadSide<'_>) -> Result<(Oid, Oid), git2::Error> {
    let mut options = RepositoryInitOptions::new();
    options
        .bare(true)
        .initial_head("main")
        .no_reinit(true)
        .external_template(false);
    let repository = Repository::init_opts(folder, &options)?;
    let base = repository.find_tree(write(&repository, base)?)?;
    let head = match head {
        HeadSide::Files(files) => write(&repository, files)?,
        HeadSide::Patch(patch) => {
            let diff = Diff::from_buffer(patch)?;
            let mut index = repository.apply_to_tree(&base, &diff, None)?;
            index.write_tree_to(&repository)?
        }
    };
    let head = repository.find_tree(head)?;
    let first = commit(&repository, &base, "before", &[])?;
    let second = commit(&repository, &head, "after", &[first])?;
    repository.reference("refs/heads/main", second, true, "eval")?;
    Ok((first, second))
}

fn commit(
    repository: &Repository,
    tree: &Tree<'_>,
    message: &str,
    parents: &[Oid],
) -> Result<Oid, git2::Error> {
    // A fixed time: equal cases have equal commits, which is what a tape is bound to.
    let author = Signature::new("ecr eval", "eval@example.com", &Time::new(1_767_225_600, 0))?;
    let parents = parents
        .iter()
        .map(|id| repository.find_commit(*id))
        .collect::<Result<Vec<_>, _>>()?;
    let parents: Vec<_> = parents.iter().collect();
    repository.commit(None, &author, &author, message, tree, &parents)
}

fn write(repository: &Repository, files: &[TreeFile]) -> Result<Oid, git2::Error> {
    let mut index = git2::Index::new()?;
    for file in files {
        let id = repository.blob(&file.content)?;
        index.add(&git2::IndexEntry {
            ctime: git2::IndexTime::new(0, 0),
            mtime: git2::IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode: if file.executable {
                0o100_755
            } else {
                0o100_644
            },
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path: file.path.as_bytes().to_vec(),
        })?;
    }
    index.write_tree_to(repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> TreeFile {
        TreeFile {
            path: RepoPath::new(path).unwrap(),
            content: content.as_bytes().to_vec(),
            executable: false,
        }
    }

    #[test]
    fn a_tree_and_a_patch_make_the_same_commits_as_two_trees() {
        let base = [file("a/b.txt", "one\ntwo\n"), file("c.txt", "x\n")];
        let head = [file("a/b.txt", "one\n2\n"), file("c.txt", "x\n")];
        let patch = b"--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
        let made = |head: HeadSide<'_>| {
            let dir = tempfile::tempdir().unwrap();
            commit_change(dir.path(), &base, head)
        };
        let two = made(HeadSide::Files(&head)).unwrap();
        assert_ne!(two.0, two.1);
        assert_eq!(two, made(HeadSide::Files(&head)).unwrap());
        let diff = [
            "diff --git a/a/b.txt b/a/b.txt\n",
            std::str::from_utf8(patch).unwrap(),
        ]
        .concat();
        assert_eq!(two, made(HeadSide::Patch(diff.as_bytes())).unwrap());
        assert!(made(HeadSide::Patch(&diff.replace("two", "three").into_bytes())).is_err());
    }
}

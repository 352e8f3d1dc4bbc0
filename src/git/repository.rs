//! A repository: where it is and what its refs mean.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::GitError;
use super::command::{Call, Git, HostEnv};
use super::error::one_line;
use super::object_tree::ObjectTree;
use super::objects::ObjectStore;
use super::scratch::{Scratch, system_path};
use super::snapshot::quiet_settings;
use crate::model::{CommitId, ObjectId};

/// The oldest git that has everything we use (`GIT_CONFIG_COUNT`, `--path-format`), released in March 2021.
const OLDEST: (u32, u32) = (2, 31);
const OLDEST_TEXT: &str = "2.31";

/// The hash that names objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HashFormat {
    Sha1,
    Sha256,
}

/// The remote that a partial clone takes missing objects from.
#[derive(Debug)]
pub(super) struct Promisor {
    pub(super) url: OsString,
}

impl Promisor {
    /// Makes an address that is a relative path absolute: the scratch folder lies elsewhere.
    fn anchor(&mut self, root: &Path) {
        let path = Path::new(&self.url);
        // `host:path` and `scheme://…` are no paths.
        if path.is_relative() && !self.url.as_encoded_bytes().contains(&b':') {
            self.url = root.join(path).into_os_string();
        }
    }
}

/// What the repository answers about itself.
#[derive(Debug)]
struct Layout {
    git_dir: PathBuf,
    objects: PathBuf,
    index: PathBuf,
    work_tree: Option<PathBuf>,
    shallow: bool,
    format: HashFormat,
}

/// The branch that changes are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultBranch {
    /// As a person says it: `origin/main`.
    pub name: String,
    /// Its tip.
    pub commit: CommitId,
}

/// A repository on this machine. Nothing in it is ever changed.
pub struct Repository {
    git: Git,
    layout: Layout,
    settings: Vec<(OsString, OsString)>,
    filters: BTreeSet<Vec<u8>>,
    partial: bool,
    scratch: Arc<Scratch>,
}

impl Repository {
    /// Finds the repository around `folder`. git's own variables (`GIT_DIR`, …) in `host` are ignored.
    pub async fn discover(
        host: &HostEnv,
        folder: &Path,
        cancel: CancellationToken,
    ) -> Result<Self, GitError> {
        let folder = folder.canonicalize().map_err(|source| GitError::NoFolder {
            folder: folder.to_owned(),
            source,
        })?;
        let git = Git::find(host, &[enclosing_checkout(&folder)], cancel)?;
        let (version, layout, config) = tokio::join!(
            git.stdout(&folder, Call::new(&["version"])),
            layout(&git, &folder),
            git.run(&folder, Call::new(&["config", "--list", "-z"])),
        );
        check_version(&version?)?;
        let layout = layout?;
        let config = config?;
        if !config.status.success() {
            return Err(GitError::Failed {
                action: "config".to_owned(),
                message: one_line(&config.stderr),
            });
        }
        // `core.worktree` may put the tree somewhere else than where we looked first.
        if let Some(tree) = &layout.work_tree
            && git.path().starts_with(tree)
        {
            return Err(GitError::Tool(crate::process::ToolError::Untrusted {
                name: "git".to_owned(),
                path: git.path().to_owned(),
            }));
        }
        let mut config = Config::read(&config.stdout);
        if let Some(promisor) = &mut config.promisor {
            promisor.anchor(layout.work_tree.as_deref().unwrap_or(&layout.git_dir));
        }
        let scratch = Scratch::new(&layout.objects, layout.format, config.promisor.as_ref())?;
        Ok(Self {
            git,
            layout,
            settings: quiet_settings(&config.filters),
            filters: config.filters,
            partial: config.promisor.is_some(),
            scratch: Arc::new(scratch),
        })
    }

    /// The git that would be used in `folder`: its path, and its version in its own words. A version that is too old is
    /// an error.
    pub async fn program(
        host: &HostEnv,
        folder: &Path,
        cancel: CancellationToken,
    ) -> Result<(PathBuf, String), GitError> {
        let git = Git::find(host, &[enclosing_checkout(folder)], cancel)?;
        let said = git.stdout(folder, Call::new(&["version"])).await?;
        check_version(&said)?;
        let text = one_line(&said);
        let number = text.strip_prefix("git version ").unwrap_or(&text);
        Ok((git.path().to_owned(), number.to_owned()))
    }

    /// The root of the work tree, when there is one around the folder we began in.
    pub fn work_tree(&self) -> Option<&Path> {
        self.layout.work_tree.as_deref()
    }

    /// True when history was cut off while cloning.
    pub fn is_shallow(&self) -> bool {
        self.layout.shallow
    }

    /// The tree object that holds nothing.
    pub fn empty_tree(&self) -> Result<ObjectId, GitError> {
        let text = match self.layout.format {
            HashFormat::Sha1 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            HashFormat::Sha256 => {
                "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
            }
        };
        object_id("hash-object", text.as_bytes())
    }

    /// The commit that `name` means: a branch, a tag, an id or any revision expression of git's.
    pub async fn resolve(&self, name: &str) -> Result<CommitId, GitError> {
        let bad = |problem| GitError::BadRef {
            name: name.to_owned(),
            problem,
        };
        if name.is_empty() {
            return Err(bad("it is empty"));
        }
        if name.starts_with('-') {
            return Err(bad("it starts with `-`"));
        }
        if name.chars().any(char::is_control) {
            return Err(bad("it holds a control character"));
        }
        if name.starts_with('^') {
            return Err(bad("it starts with `^`"));
        }
        // Ranges (`a..b`) are refused by `--verify` itself.
        let spec = format!("{name}^{{commit}}");
        let call = Call::new(&["rev-parse", "--verify", "--end-of-options", &spec]);
        let warns = ("core.warnAmbiguousRefs".into(), "true".into());
        let output = self.output(call.settings(&[warns])).await?;
        if !output.status.success() {
            return Err(GitError::UnknownRef {
                name: name.to_owned(),
            });
        }
        // git would take the tag before the branch, and tags arrive with a fetch from whoever may push them. `HEAD`
        // and full ids win over refs of that name.
        let certain = name == "HEAD" || CommitId::new(name).is_ok();
        if !certain && memchr::memmem::find(&output.stderr, b"is ambiguous").is_some() {
            return Err(bad(
                "it is ambiguous (refs/heads/…, refs/tags/… and refs/remotes/… are not)",
            ));
        }
        commit_id("rev-parse", &output.stdout)
    }

    /// The address of a remote as configured; `None` when there is no such remote, or its address is not UTF-8.
    pub async fn remote_url(&self, remote: &str) -> Result<Option<String>, GitError> {
        let key = format!("remote.{remote}.url");
        let output = self
            .output(Call::new(&["config", "--get", "-z", &key]))
            .await?;
        let url = output.stdout.split(|b| *b == 0).next().unwrap_or_default();
        let url = String::from_utf8(url.to_vec()).ok();
        Ok(url.filter(|url| output.status.success() && !url.is_empty()))
    }

    /// The commit checked out; `None` before the first commit.
    pub async fn head(&self) -> Result<Option<CommitId>, GitError> {
        match self.resolve("HEAD").await {
            Ok(id) => Ok(Some(id)),
            Err(GitError::UnknownRef { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The best common ancestor of two commits.
    pub async fn merge_base(&self, one: &CommitId, other: &CommitId) -> Result<CommitId, GitError> {
        let output = self
            .output(Call::new(&["merge-base", one.as_str(), other.as_str()]))
            .await?;
        match output.status.code() {
            Some(0) => commit_id("merge-base", &output.stdout),
            Some(1) => Err(GitError::NoMergeBase {
                one: one.short().to_owned(),
                other: other.short().to_owned(),
                shallow: self.layout.shallow,
            }),
            _ => Err(GitError::Failed {
                action: "merge-base".to_owned(),
                message: one_line(&output.stderr),
            }),
        }
    }

    /// The branch that work here starts from: what `origin/HEAD` points to, then `origin/main`, `origin/master`, and only
    /// then the local `main` and `master`, which may be stale. `None` when none of them exists.
    pub async fn default_branch(&self) -> Result<Option<DefaultBranch>, GitError> {
        const CANDIDATES: [&str; 5] = [
            "refs/remotes/origin/HEAD",
            "refs/remotes/origin/main",
            "refs/remotes/origin/master",
            "refs/heads/main",
            "refs/heads/master",
        ];
        let mut args = vec![
            "for-each-ref",
            "--format=%(refname) %(objecttype) %(objectname) %(symref)",
        ];
        args.extend(CANDIDATES);
        let listed = self.stdout(self.root(), Call::new(&args)).await?;
        let listed = String::from_utf8_lossy(&listed);
        for candidate in CANDIDATES {
            let found = listed.lines().find_map(|line| {
                let mut fields = line.split(' ');
                let matches = fields.next()? == candidate && fields.next()? == "commit";
                let id = fields.next()?;
                let target = fields.next().filter(|t| !t.is_empty());
                matches.then_some((id, target.unwrap_or(candidate)))
            });
            if let Some((id, refname)) = found {
                let name = refname
                    .strip_prefix("refs/remotes/")
                    .or_else(|| refname.strip_prefix("refs/heads/"))
                    .unwrap_or(refname);
                return Ok(Some(DefaultBranch {
                    name: name.to_owned(),
                    commit: commit_id("for-each-ref", id.as_bytes())?,
                }));
            }
        }
        Ok(None)
    }

    /// The tree of a commit, or a tree by its own id. Reading it may block.
    pub fn tree(&self, id: &ObjectId) -> ObjectTree {
        let spec = self.git.spec(
            self.scratch.git_dir(),
            self.scratch_call(Call::new(&["cat-file", "--batch"])),
        );
        let store = ObjectStore::new(Arc::clone(&self.scratch), self.layout.format, spec);
        ObjectTree::new(store, id.clone())
    }

    /// The tree of a commit.
    pub fn commit_tree(&self, id: &CommitId) -> Result<ObjectTree, GitError> {
        Ok(self.tree(&object_id("rev-parse", id.as_str().as_bytes())?))
    }

    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    pub(super) fn scratch(&self) -> &Arc<Scratch> {
        &self.scratch
    }

    pub(super) fn index_file(&self) -> &Path {
        &self.layout.index
    }

    pub(super) fn is_partial(&self) -> bool {
        self.partial
    }

    /// Names of the configured filters, all of them switched off.
    pub(super) fn filters(&self) -> &BTreeSet<Vec<u8>> {
        &self.filters
    }

    fn root(&self) -> &Path {
        self.work_tree().unwrap_or(&self.layout.git_dir)
    }

    /// Asks the user's repository, with everything that could start a program switched off.
    pub(super) async fn stdout(&self, folder: &Path, call: Call) -> Result<Vec<u8>, GitError> {
        self.git.stdout(folder, call.settings(&self.settings)).await
    }

    /// The same, whatever the exit status.
    pub(super) async fn output(&self, call: Call) -> Result<crate::process::Output, GitError> {
        self.git
            .run(self.root(), call.settings(&self.settings))
            .await
    }
}

/// The nearest folder upwards that looks like a checkout, else `folder` itself. Only to know what
/// must not be trusted before git can be asked.
fn enclosing_checkout(folder: &Path) -> &Path {
    folder
        .ancestors()
        .find(|f| f.join(".git").symlink_metadata().is_ok())
        .unwrap_or(folder)
}

async fn layout(git: &Git, folder: &Path) -> Result<Layout, GitError> {
    let call = Call::new(&[
        "rev-parse",
        "--is-bare-repository",
        "--is-inside-work-tree",
        "--is-shallow-repository",
        "--show-object-format",
        "--path-format=absolute",
        "--git-dir",
        "--git-path",
        "objects",
        "--git-path",
        "index",
        "--show-toplevel",
    ])
    .settings(&quiet_settings([]));
    let output = git.run(folder, call).await?;
    let lines: Vec<&[u8]> = output.stdout.split(|b| *b == b'\n').collect();
    // Without a work tree git prints everything but the last line, and then fails.
    let [
        bare,
        inside,
        shallow,
        format,
        git_dir,
        objects,
        index,
        rest @ ..,
    ] = &lines[..]
    else {
        return Err(refusal(folder, &output.stderr));
    };
    let odd = |message: &str| GitError::Protocol {
        action: "rev-parse",
        message: message.to_owned(),
    };
    let has_tree = *bare == b"false" && *inside == b"true";
    // A work tree that is elsewhere (`core.worktree`) is printed, too, and is none of this folder's.
    let last = rest.iter().filter(|l| !l.is_empty()).count();
    if last > 1 || (has_tree && last != 1) {
        return Err(odd("the repository's path holds a line break"));
    }
    Ok(Layout {
        git_dir: system_path(git_dir),
        objects: system_path(objects),
        index: system_path(index),
        work_tree: has_tree.then(|| system_path(rest[0])),
        shallow: *shallow == b"true",
        format: match *format {
            b"sha1" => HashFormat::Sha1,
            b"sha256" => HashFormat::Sha256,
            _ => return Err(odd("an unknown object format")),
        },
    })
}

/// Why git will not work here, from its own words (in English: `LC_ALL` is ours).
fn refusal(folder: &Path, stderr: &[u8]) -> GitError {
    let text = String::from_utf8_lossy(stderr);
    let folder = folder.to_owned();
    if text.contains("dubious ownership") || text.contains("unsafe repository") {
        return GitError::DubiousOwnership { folder };
    }
    if text.contains("not a git repository") {
        return GitError::NotARepository { folder };
    }
    GitError::Failed {
        action: "rev-parse".to_owned(),
        message: one_line(stderr),
    }
}

fn check_version(answer: &[u8]) -> Result<(), GitError> {
    let text = one_line(answer);
    let number = text.strip_prefix("git version ").unwrap_or(&text);
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) >= OLDEST => Ok(()),
        _ => Err(GitError::TooOld {
            found: number.to_owned(),
            needed: OLDEST_TEXT,
        }),
    }
}

/// The few settings that matter to us.
#[derive(Debug, Default)]
struct Config {
    filters: BTreeSet<Vec<u8>>,
    promisor: Option<Promisor>,
}

impl Config {
    /// Reads `config --list -z`: `key`, line feed, value, NUL.
    fn read(listed: &[u8]) -> Self {
        use std::os::unix::ffi::OsStringExt;
        let mut config = Self::default();
        let mut promisor = None;
        let mut urls = Vec::new();
        for entry in listed.split(|b| *b == 0).filter(|e| !e.is_empty()) {
            let mut halves = entry.splitn(2, |b| *b == b'\n');
            let (key, value) = (halves.next().unwrap_or_default(), halves.next());
            let Some((section, name, variable)) = key_parts(key) else {
                continue;
            };
            match (section, variable) {
                (b"filter", _) => {
                    config.filters.insert(name.to_vec());
                }
                (b"remote", b"promisor") if value != Some(b"false") => promisor = Some(name),
                (b"remote", b"url") => urls.push((name, value.unwrap_or_default())),
                _ => {}
            }
        }
        config.promisor = promisor.and_then(|remote| {
            let (_, url) = urls.iter().find(|(name, _)| *name == remote)?;
            Some(Promisor {
                url: OsString::from_vec(url.to_vec()),
            })
        });
        config
    }
}

/// `section.name.variable`, where the name may hold dots itself.
fn key_parts(key: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let first = key.iter().position(|b| *b == b'.')?;
    let last = key.iter().rposition(|b| *b == b'.')?;
    (first < last).then(|| (&key[..first], &key[first + 1..last], &key[last + 1..]))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

pub(super) fn object_id(action: &'static str, answer: &[u8]) -> Result<ObjectId, GitError> {
    ObjectId::new(&text(answer)).map_err(|error| GitError::Protocol {
        action,
        message: error.to_string(),
    })
}

fn commit_id(action: &'static str, answer: &[u8]) -> Result<CommitId, GitError> {
    CommitId::new(&text(answer)).map_err(|error| GitError::Protocol {
        action,
        message: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for good in [
            "git version 2.31.0\n",
            "git version 2.47.3 (Apple Git-154)",
            "git version 3.0.0-rc1",
            "git version 2.39.5.windows.1",
        ] {
            assert!(check_version(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["git version 2.9.5", "git version 1.99.0", "nonsense", ""] {
            assert!(
                matches!(check_version(bad.as_bytes()), Err(GitError::TooOld { .. })),
                "{bad}"
            );
        }
    }

    #[test]
    fn filters_and_the_promisor_are_found_whatever_their_names() {
        let config = Config::read(
            b"core.bare\nfalse\0filter.a.b=c.clean\ntouch x\0remote.up.promisor\0remote.up.url\nfile:///x\0remote.o.url\ny\0",
        );
        assert_eq!(config.filters, BTreeSet::from([b"a.b=c".to_vec()]));
        assert_eq!(config.promisor.unwrap().url, "file:///x");
        let none = Config::read(b"remote.up.promisor\nfalse\0remote.up.url\nx\0");
        assert!(none.promisor.is_none());
    }

    #[test]
    fn refusals_have_their_own_kinds() {
        let at = |text: &str| refusal(Path::new("/r"), text.as_bytes());
        assert!(matches!(
            at("fatal: detected dubious ownership in repository at '/r'"),
            GitError::DubiousOwnership { .. }
        ));
        assert!(matches!(
            at("fatal: not a git repository (or any of the parent directories): .git"),
            GitError::NotARepository { .. }
        ));
        assert!(
            matches!(at("fatal: bad config\x1b[31m"), GitError::Failed { message, .. } if message == "bad config [31m")
        );
    }
}

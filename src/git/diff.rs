//! The diff of two trees, made where no configuration can reach it.
//!
//! @ref LLP 0001#hardened-git — no configuration takes part in the diff

use super::command::Call;
use super::{GitError, Repository};
use crate::model::ObjectId;

/// How git is asked. Renames from 50 % similarity, as `git diff -M`; the limit is git's default, so that a hostile
/// change cannot make the search quadratic.
const OPTIONS: &[&str] = &[
    "diff-tree",
    "-r",
    "--find-renames=50%",
    "-l1000",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--inter-hunk-context=0",
    "--diff-algorithm=default",
    "--indent-heuristic",
    "--submodule=short",
    "--ignore-submodules=none",
    "--full-index",
    "--no-abbrev",
];

/// Settings of the user's own file that plumbing still listens to (it is read for partial clones only).
const NEUTRAL: &[(&str, &str)] = &[
    ("core.attributesFile", "/dev/null"),
    ("core.quotePath", "true"),
    ("core.hooksPath", "/dev/null"),
    ("core.bigFileThreshold", "512m"),
    ("diff.suppressBlankEmpty", "false"),
    ("diff.wsErrorHighlight", "none"),
    ("core.pager", "cat"),
];

/// A diff as git printed it; nothing is parsed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDiff {
    /// `--raw -z`: modes, ids, status and names.
    pub raw_z: Vec<u8>,
    /// `--numstat -z`: the counts that ours have to equal.
    pub numstat_z: Vec<u8>,
    /// The patch.
    pub patch: Vec<u8>,
}

impl Repository {
    /// Diffs two trees or commits by id. Two processes at once: the names and counts, and the patch.
    pub async fn diff(&self, base: &ObjectId, target: &ObjectId) -> Result<RawDiff, GitError> {
        let (summary, patch) = tokio::try_join!(
            // `--unified` would add a patch here, and `-z` would leave names in the patch unquoted.
            self.diff_tree(&["--raw", "--numstat", "-z"], base, target),
            self.diff_tree(&["--patch", "--unified=3"], base, target),
        )?;
        let at = raw_end(&summary).ok_or(GitError::Protocol {
            action: "diff-tree",
            message: "a cut raw record".to_owned(),
        })?;
        let mut raw_z = summary;
        let numstat_z = raw_z.split_off(at);
        Ok(RawDiff {
            raw_z,
            numstat_z,
            patch,
        })
    }

    /// What changed between two trees or commits, as `--raw -z`: modes, content ids and names.
    pub async fn changes(&self, base: &ObjectId, target: &ObjectId) -> Result<Vec<u8>, GitError> {
        self.diff_tree(&["--raw", "-z"], base, target).await
    }

    async fn diff_tree(
        &self,
        kind: &[&str],
        base: &ObjectId,
        target: &ObjectId,
    ) -> Result<Vec<u8>, GitError> {
        let mut args = OPTIONS.to_vec();
        args.extend_from_slice(kind);
        args.extend_from_slice(&[base.as_str(), target.as_str()]);
        self.scratch_stdout(Call::new(&args)).await
    }

    /// Runs a command that only needs objects, in the scratch folder.
    pub(super) async fn scratch_stdout(&self, call: Call) -> Result<Vec<u8>, GitError> {
        let call = self.scratch_call(call);
        self.git().stdout(self.scratch().git_dir(), call).await
    }

    /// Points `call` at the scratch folder and away from every configuration that can be spared.
    pub(super) fn scratch_call(&self, call: Call) -> Call {
        let settings: Vec<_> = NEUTRAL
            .iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        let call = call
            .settings(&settings)
            .env("GIT_DIR", self.scratch().git_dir());
        if self.is_partial() {
            // Fetching needs the user's credential helpers, proxies and address rewrites.
            return call
                .network(true)
                .env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh");
        }
        call.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
    }
}

/// Where the raw records end and the counts begin; `None` when the last raw record is cut.
fn raw_end(summary: &[u8]) -> Option<usize> {
    let mut at = 0;
    let field = |from: usize| Some(from + memchr::memchr(0, summary.get(from..)?)?);
    while summary.get(at) == Some(&b':') {
        let header = field(at)?;
        let status = summary[at..header].rsplit(|b| *b == b' ').next()?;
        at = field(header + 1)? + 1;
        if matches!(status.first(), Some(b'R' | b'C')) {
            at = field(at)? + 1;
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::raw_end;

    #[test]
    fn names_that_look_like_records_do_not_move_the_border() {
        let raw = b":100644 100644 aa bb M\0:x\0:100644 100644 aa bb R090\0:a\x001\t1\tb\0";
        let counts = b"1\t1\t:x\0";
        let all = [&raw[..], counts].concat();
        assert_eq!(raw_end(&all), Some(raw.len()));
        assert_eq!(raw_end(b""), Some(0));
        assert_eq!(raw_end(b":100644 100644 aa bb R090\0one\0"), None);
    }
}

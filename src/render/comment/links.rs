//! Links into the pull request. Only these are ever live in a comment.

use std::fmt::Write as _; // writing to a String cannot fail

use sha2::{Digest, Sha256};

use crate::model::RepoPath;
use crate::state::comment::{StoredFinding, StoredReview};
use crate::state::output::Side;

/// Where the pull request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrFacts {
    /// The server, `https://github.com` (`GITHUB_SERVER_URL`), without a trailing `/`.
    pub server: String,
    /// `owner/name`.
    pub repo: String,
    /// Its number.
    pub number: u64,
    /// The commit it is at now, full id, where that is known.
    pub live_head: Option<String>,
}

impl PrFacts {
    /// The start of every link; `None` when the server or the name is not of the usual shape, and then there are no links.
    fn base(&self) -> Option<String> {
        let host = self
            .server
            .strip_prefix("https://")
            .or_else(|| self.server.strip_prefix("http://"))?;
        let plain = |text: &str, more: &[u8]| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
        };
        let (owner, name) = self.repo.split_once('/')?;
        (plain(host, b".-:") && plain(owner, b"-_.") && plain(name, b"-_."))
            .then(|| format!("{}/{}", self.server, self.repo))
    }

    /// True when the pull request is known to be at another commit than the reviewed one.
    pub(super) fn moved(&self, review: &StoredReview) -> bool {
        matches!((&self.live_head, &review.head), (Some(live), Some(head)) if live != head)
    }
}

/// The address of a finding: its place in the diff when the diff shows it (and is still the reviewed one), else in the file at the
/// commit that the line number counts in.
pub(super) fn finding(
    pr: &PrFacts,
    review: &StoredReview,
    finding: &StoredFinding,
) -> Option<String> {
    let base = pr.base()?;
    let lines = |first: &str, between: &str| {
        let line = finding.line?;
        Some(match finding.end_line.filter(|end| *end > line) {
            Some(end) => format!("{first}{line}-{between}{end}"),
            None => format!("{first}{line}"),
        })
    };
    let changed = |file: &str| review.files.iter().any(|f| f.path == file);
    let shown = finding.in_diff || (finding.line.is_none() && changed(&finding.file));
    if shown && !pr.moved(review) {
        let path = finding.path_in_diff()?;
        let side = if finding.side == Side::Old { "L" } else { "R" };
        let lines = lines(side, side).unwrap_or_default();
        let file = digest(&path);
        return Some(format!(
            "{base}/pull/{}/files#diff-{file}{lines}",
            pr.number
        ));
    }
    let commit = match finding.side {
        Side::Old => review.base.as_ref(),
        Side::New => review.head.as_ref(),
    }?;
    let path = finding.path()?;
    // The rendered view of a document has no lines.
    let source = match path.extension() {
        Some(b"md" | b"markdown" | b"mdx" | b"rst" | b"adoc" | b"org" | b"ipynb" | b"svg") => {
            "?plain=1"
        }
        _ => "",
    };
    let lines = lines("#L", "L").unwrap_or_default();
    Some(format!(
        "{base}/blob/{commit}/{}{source}{lines}",
        encode(&path)
    ))
}

/// How GitHub names a file's part of the diff.
fn digest(path: &RepoPath) -> String {
    let mut out = String::with_capacity(64);
    for byte in Sha256::digest(path.as_bytes()) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// The path with everything escaped that means something in an address or in Markdown.
fn encode(path: &RepoPath) -> String {
    let mut out = String::with_capacity(path.as_bytes().len() + 16);
    for &byte in path.as_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_github_names_them() {
        let readme = RepoPath::new("README.md").unwrap();
        let name = digest(&readme);
        assert!(
            name.starts_with("b3356305") && name.ends_with("5106870f5"),
            "{name}"
        );
        let odd = RepoPath::new(b"a b/#?%()[]\xff.rs").unwrap();
        assert_eq!(encode(&odd), "a%20b/%23%3F%25%28%29%5B%5D%FF.rs");
    }

    #[test]
    fn only_links_to_where_the_pull_request_is() {
        let facts = |server: &str, repo: &str| PrFacts {
            server: server.to_owned(),
            repo: repo.to_owned(),
            number: 1,
            live_head: None,
        };
        assert!(
            facts("https://github.example:8443", "o-x/r.y")
                .base()
                .is_some()
        );
        for (server, repo) in [
            ("javascript:alert(1)", "o/r"),
            ("https://h/)x", "o/r"),
            ("https://", "o/r"),
            ("https://h", "o"),
            ("https://h", "o/r/x"),
            ("https://h", "o/r)[x"),
        ] {
            assert!(facts(server, repo).base().is_none(), "{server} {repo}");
        }
    }
}

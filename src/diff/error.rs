//! What can be wrong with a diff.

use crate::model::PathError;

/// Why a diff was refused. A file is never skipped: whatever does not add up is one of these.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// One of git's NUL-separated listings is malformed.
    #[error("git's {part} listing is malformed at byte {at}: {problem}")]
    Listing {
        /// `raw` or `numstat`.
        part: &'static str,
        /// Byte offset in that listing.
        at: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// A name is not a path inside the repository.
    #[error("{file}: not a usable path: {source}")]
    Path {
        /// The name, escaped for display.
        file: String,
        /// What is wrong with it.
        source: PathError,
    },
    /// Listing, counts and patch do not agree about a file.
    #[error("{file}: {problem}")]
    Census {
        /// The file, escaped for display.
        file: String,
        /// What does not agree.
        problem: String,
    },
    /// The patch text is malformed.
    #[error("patch line {line}{}: {problem}", in_file(.file.as_deref()))]
    Patch {
        /// The file whose section it is in, escaped for display; `None` between sections.
        file: Option<String>,
        /// 1-based line of the patch.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// The diff of a merge against several parents: it has no single old side.
    #[error(
        "{file}: a combined diff (of a merge) cannot be reviewed; compare with one commit instead"
    )]
    Combined {
        /// The file, escaped for display.
        file: String,
    },
    /// The same path is changed twice, so the line numbers belong to different versions.
    #[error(
        "{file}: changed twice in this patch (several commits?); give one diff over all of them"
    )]
    Repeated {
        /// The file, escaped for display.
        file: String,
    },
    /// There is text, but no patch in it.
    #[error("no patch found in the input")]
    NoPatch,
}

fn in_file(file: Option<&str>) -> String {
    file.map_or_else(String::new, |file| format!(" ({file})"))
}

/// A name for an error message: text with control characters and unusual bytes escaped, bounded in length.
pub(super) fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 300;
    let text = String::from_utf8_lossy(name);
    let mut out = String::new();
    for c in text.chars() {
        if out.len() >= LONGEST {
            out.push('…');
            break;
        }
        if c.is_control() || ('\u{200b}'..='\u{206f}').contains(&c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// A problem at a byte of the patch, before it is known which file it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

impl Problem {
    /// Names the file and turns the offset into a line number.
    pub(super) fn in_file(self, patch: &[u8], file: Option<&[u8]>) -> DiffError {
        let before = &patch[..self.at.min(patch.len())];
        DiffError::Patch {
            file: file.map(shown),
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            problem: self.what,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_to_print_and_bounded() {
        assert_eq!(
            shown("é\u{1b}[2J\n\u{202e}".as_bytes()),
            "é\\u{1b}[2J\\n\\u{202e}"
        );
        assert!(shown(&[b'x'; 5000]).len() < 310);
    }

    #[test]
    fn problems_name_line_and_file() {
        let error = Problem { at: 3, what: "bad" }.in_file(b"a\nb\n", Some(b"f"));
        assert_eq!(error.to_string(), "patch line 2 (f): bad");
        let error = Problem {
            at: 99,
            what: "bad",
        }
        .in_file(b"", None);
        assert_eq!(error.to_string(), "patch line 1: bad");
    }
}

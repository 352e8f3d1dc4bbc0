//! The glob dialect of the review setup.

use regex::bytes::Regex;

/// A pattern: `**` is anything, `*` anything but `/`, every other character itself; anchored at both ends.
pub(super) struct Glob(Regex);

impl Glob {
    /// `None` when the pattern is too large to be one.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let mut source = String::from(r"(?s-u)\A");
        let mut rest = pattern;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("**") {
                source.push_str(".*");
                rest = after;
            } else if let Some(after) = rest.strip_prefix('*') {
                source.push_str("[^/]*");
                rest = after;
            } else {
                let end = rest.find('*').unwrap_or(rest.len());
                source.push_str(&regex::escape(&rest[..end]));
                rest = &rest[end..];
            }
        }
        source.push_str(r"\z");
        Regex::new(&source).ok().map(Self)
    }

    pub(super) fn matches(&self, path: &[u8]) -> bool {
        self.0.is_match(path)
    }
}

//! The tag that marks a comment as one of ours.

use std::fmt;

/// The text between `<!-- ` and ` -->` in the first line of a comment; the configuration's `commentTag`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(String);

/// Why a text cannot be a tag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("comment tag {0:?}: expected 1 to 100 characters without `<`, `>` and control characters")]
pub struct TagError(String);

impl Tag {
    /// Takes what the configuration's schema takes.
    pub fn new(text: &str) -> Result<Self, TagError> {
        let fits = (1..=100).contains(&text.chars().count());
        let plain = !text
            .chars()
            .any(|c| matches!(c, '<' | '>') || c.is_control());
        if fits && plain && text.trim() == text {
            Ok(Self(text.to_owned()))
        } else {
            Err(TagError(text.to_owned()))
        }
    }

    /// The first line of a comment of ours.
    pub fn marker(&self) -> String {
        format!("<!-- {} -->", self.0)
    }

    /// True when a line of `body` starts with the marker. The whole tag has to match: `t` is not found in a comment of `t:www`.
    /// Anyone can write a marker, so the caller also checks the author.
    pub fn marks(&self, body: &str) -> bool {
        let marker = self.marker();
        body.lines().any(|line| {
            line.trim_start_matches(['\u{feff}', ' '])
                .starts_with(&marker)
        })
    }

    /// What a line of ours starts with that carries the value `name`.
    pub(super) fn key(&self, name: &str) -> String {
        format!("<!-- {}:{name}=", self.0)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_tag_counts() {
        let tag = Tag::new("t").unwrap();
        for (body, ours) in [
            ("<!-- t -->x", true),
            ("\u{feff}<!-- t -->\r\n", true),
            ("words of a person\r\n\r\n<!-- t -->\r\n", true),
            ("<!-- t:www -->", false),
            ("<!-- tt -->", false),
            ("> <!-- t -->", false),
            ("no marker", false),
        ] {
            assert_eq!(tag.marks(body), ours, "{body:?}");
        }
        let odd = Tag::new("expo.ai+review(x)").unwrap();
        assert!(odd.marks(&odd.marker()));
        for bad in ["", "a>b", "<!--", "a\nb", " a"] {
            assert!(Tag::new(bad).is_err(), "{bad:?}");
        }
    }
}

//! The whole content of a changed file, read only when a rule asks for it.

use std::cell::OnceCell;
use std::fmt;

/// Bytes that somebody owns or has borrowed.
type Bytes<'a> = Box<dyn AsRef<[u8]> + 'a>;

/// The whole new content of a file. Most changes hold nothing that a rule would look around for, so that most files need not
/// be read: reading them would be what takes the time.
pub struct Content<'a> {
    read: Box<dyn Fn() -> Option<Bytes<'a>> + 'a>,
    kept: OnceCell<Option<Bytes<'a>>>,
}

impl<'a> Content<'a> {
    /// There is none: only the patch is known.
    pub fn unknown() -> Self {
        Self::lazy(|| None)
    }

    /// Content that is at hand.
    pub fn known(content: &'a [u8]) -> Self {
        Self::lazy(move || Some(Box::new(content) as Bytes<'a>))
    }

    /// Content that `read` gives, when it is asked for; at most once.
    pub fn lazy(read: impl Fn() -> Option<Bytes<'a>> + 'a) -> Self {
        Self {
            read: Box::new(read),
            kept: OnceCell::new(),
        }
    }

    /// The content; `None` where it is not known or cannot be read.
    pub fn get(&self) -> Option<&[u8]> {
        let kept = self.kept.get_or_init(|| (self.read)());
        kept.as_ref().map(|bytes| (**bytes).as_ref())
    }
}

impl fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = self.kept.get().is_some();
        f.debug_struct("Content").field("read", &read).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn content_is_read_once_and_only_when_asked_for() {
        let reads = Cell::new(0);
        let content = Content::lazy(|| {
            reads.set(reads.get() + 1);
            Some(Box::new(b"text".to_vec()) as Bytes<'_>)
        });
        assert_eq!(reads.get(), 0);
        assert_eq!(content.get(), Some(&b"text"[..]));
        assert_eq!(content.get(), Some(&b"text"[..]));
        assert_eq!(reads.get(), 1);
        assert_eq!(Content::unknown().get(), None);
        assert_eq!(Content::known(b"x").get(), Some(&b"x"[..]));
    }
}

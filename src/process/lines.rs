//! What is kept of a child's output while it is drained.

/// Which of the two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One line as it came, without its line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Where it was written.
    pub stream: Stream,
    /// Its bytes; the first ones when it was `cut`.
    pub bytes: &'a [u8],
    /// True when it was longer than a line may be, or when a cap or the end of the output came first.
    pub cut: bool,
}

/// Keeps the first `limit` bytes of a stream and cuts them into lines of at most `line_limit` bytes.
pub(super) struct Drain {
    stream: Stream,
    limit: usize,
    line_limit: usize,
    kept: Vec<u8>,
    /// Where the line that has not ended yet begins in `kept`.
    line_start: usize,
    /// The line was given as cut already; what follows up to the line feed is not.
    skipping: bool,
    truncated: bool,
}

impl Drain {
    pub(super) fn new(stream: Stream, limit: usize, line_limit: usize) -> Self {
        Self {
            stream,
            limit,
            line_limit: line_limit.max(1),
            kept: Vec::new(),
            line_start: 0,
            skipping: false,
            truncated: false,
        }
    }

    /// Takes what was read and tells `on_line` the lines that it completes.
    pub(super) fn feed(&mut self, bytes: &[u8], on_line: &mut (dyn FnMut(Line<'_>) + Send)) {
        let room = self.limit - self.kept.len();
        let (taken, rest) = bytes.split_at(bytes.len().min(room));
        let mut from = self.kept.len();
        self.kept.extend_from_slice(taken);
        while let Some(at) = memchr::memchr(b'\n', &self.kept[from..]) {
            let end = from + at;
            self.line(end, false, on_line);
            self.skipping = false;
            from = end + 1;
            self.line_start = from;
        }
        if self.kept.len() - self.line_start > self.line_limit {
            self.line(self.kept.len(), true, on_line);
            self.skipping = true;
        }
        if !rest.is_empty() && !self.truncated {
            self.truncated = true;
            self.rest(on_line);
        }
    }

    /// The stream has ended: tells the last line, which has no line feed, and gives what was kept.
    pub(super) fn finish(mut self, on_line: &mut (dyn FnMut(Line<'_>) + Send)) -> (Vec<u8>, bool) {
        if !self.truncated {
            self.rest(on_line);
        }
        (self.kept, self.truncated)
    }

    fn rest(&mut self, on_line: &mut (dyn FnMut(Line<'_>) + Send)) {
        if self.line_start < self.kept.len() {
            self.line(self.kept.len(), true, on_line);
        }
    }

    /// Tells the line from `line_start` to `end`, unless it was told already.
    fn line(&self, end: usize, cut: bool, on_line: &mut (dyn FnMut(Line<'_>) + Send)) {
        if self.skipping {
            return;
        }
        let whole = &self.kept[self.line_start..end];
        let bytes = &whole[..whole.len().min(self.line_limit)];
        on_line(Line {
            stream: self.stream,
            bytes,
            cut: cut || bytes.len() < whole.len(),
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Told = Vec<(Vec<u8>, bool)>;

    fn drained(pieces: &[&[u8]], limit: usize, line_limit: usize) -> (Told, Vec<u8>, bool) {
        let mut told = Vec::new();
        let mut on_line = |line: Line<'_>| told.push((line.bytes.to_vec(), line.cut));
        let mut drain = Drain::new(Stream::Stdout, limit, line_limit);
        for piece in pieces {
            drain.feed(piece, &mut on_line);
        }
        let (kept, truncated) = drain.finish(&mut on_line);
        (told, kept, truncated)
    }

    fn whole(text: &str) -> (Vec<u8>, bool) {
        (text.as_bytes().to_vec(), false)
    }

    fn cut(text: &str) -> (Vec<u8>, bool) {
        (text.as_bytes().to_vec(), true)
    }

    #[test]
    fn lines_come_whole_whatever_the_pieces() {
        let (told, kept, truncated) = drained(&[b"on", b"e\n\ntw", b"o\n"], 100, 100);
        assert_eq!(told, [whole("one"), whole(""), whole("two")]);
        assert_eq!((kept.as_slice(), truncated), (&b"one\n\ntwo\n"[..], false));
    }

    #[test]
    fn a_line_without_an_end_is_told_as_cut() {
        assert_eq!(drained(&[b"a\nb"], 100, 100).0, [whole("a"), cut("b")]);
    }

    #[test]
    fn a_long_line_is_told_once() {
        let (told, ..) = drained(&[b"abc", b"defg", b"hi\nj\n"], 100, 4);
        assert_eq!(told, [cut("abcd"), whole("j")]);
        assert_eq!(drained(&[b"abcd\n"], 100, 4).0, [whole("abcd")]);
        assert_eq!(drained(&[b"abcde\n"], 100, 4).0, [cut("abcd")]);
    }

    #[test]
    fn the_total_is_a_cap_too() {
        let (told, kept, truncated) = drained(&[b"ab\ncd", b"ef\ngh\n"], 6, 100);
        assert_eq!(told, [whole("ab"), cut("cde")]);
        assert_eq!((kept.as_slice(), truncated), (&b"ab\ncde"[..], true));
        assert!(!drained(&[b"abc"], 3, 100).2);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(text in "[ab\n]{0,60}", at in 0_usize..60, limit in 0_usize..60, line in 1_usize..9) {
            let bytes = text.as_bytes();
            let (one, two) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(drained(&[bytes], limit, line), drained(&[one, two], limit, line));
        }
    }
}

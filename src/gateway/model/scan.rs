//! A streaming JSON scanner: reports the scalars of a document by their path, in bounded memory.
//!
//! It is lenient about grammar, since it reads what somebody else validates, and strict about
//! memory: texts are kept up to [`TEXT`] bytes (their full length is counted), keys up to [`KEY`],
//! nesting up to [`DEPTH`]; whatever lies deeper is skipped.

use memchr::memchr2;

/// Bytes of a text that are kept.
const TEXT: usize = 4096;
/// Bytes of a key that are kept.
const KEY: usize = 64;
/// Levels that are looked into.
const DEPTH: usize = 12;

/// A scalar value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar<'a> {
    /// A text: its beginning, and its whole length in bytes as it stands in the document.
    Text(&'a str, u64),
    /// A number, `true`, `false` or `null`, as it stands in the document.
    Bare(&'a str),
}

/// Takes scalars. Paths look like `choices[].delta.content`.
pub(super) trait Sink {
    /// Takes one.
    fn scalar(&mut self, path: &str, value: Scalar<'_>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between tokens.
    Between,
    /// In a text; `true` after a backslash.
    Text(bool),
    /// In a number or a word.
    Bare,
    /// After the document's last byte.
    Done,
    /// This is no JSON document.
    Broken,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    /// An object, where texts before a colon are keys.
    object: bool,
    /// Length of the path outside of this value.
    outside: usize,
    /// Length of the path that its members extend.
    base: usize,
}

/// The scanner of one document at a time.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    path: String,
    frames: Vec<Frame>,
    /// Levels below the deepest frame.
    deep: u64,
    /// The next text is a key.
    key_next: bool,
    /// What is kept of the text or word at hand.
    kept: Vec<u8>,
    length: u64,
    escaped: bool,
}

impl Scanner {
    /// Ready for a document.
    pub(super) fn new() -> Self {
        Self {
            state: State::Between,
            path: String::new(),
            frames: Vec::new(),
            deep: 0,
            key_next: false,
            kept: Vec::new(),
            length: 0,
            escaped: false,
        }
    }

    /// Ready for the next document.
    pub(super) fn reset(&mut self) {
        self.state = State::Between;
        self.path.clear();
        self.frames.clear();
        self.deep = 0;
        self.key_next = false;
    }

    /// Whether a whole document was read.
    pub(super) fn done(&self) -> bool {
        self.state == State::Done
    }

    /// Whether this is no JSON object or array.
    pub(super) fn broken(&self) -> bool {
        self.state == State::Broken
    }

    /// Reads the next piece of the document.
    pub(super) fn feed(&mut self, mut bytes: &[u8], sink: &mut impl Sink) {
        while !bytes.is_empty() {
            let read = match self.state {
                State::Between => self.between(bytes),
                State::Text(after_backslash) => self.text(bytes, after_backslash, sink),
                State::Bare => self.bare(bytes, sink),
                State::Done => {
                    if !bytes.iter().all(u8::is_ascii_whitespace) {
                        self.state = State::Broken;
                    }
                    return;
                }
                State::Broken => return,
            };
            bytes = &bytes[read..];
        }
    }

    fn between(&mut self, bytes: &[u8]) -> usize {
        let byte = bytes[0];
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => self.open(byte == b'{'),
            b'}' | b']' => self.close(),
            _ if self.frames.is_empty() => self.state = State::Broken,
            b'"' => {
                self.kept.clear();
                self.length = 0;
                self.escaped = false;
                self.state = State::Text(false);
            }
            b':' => self.key_next = false,
            b',' => self.key_next = self.frames.last().is_some_and(|f| f.object),
            _ => {
                self.kept.clear();
                self.state = State::Bare;
                return 0;
            }
        }
        1
    }

    fn open(&mut self, object: bool) {
        if self.frames.len() >= DEPTH {
            self.deep += 1;
            return;
        }
        let outside = self.path.len();
        if !object {
            self.path.push_str("[]");
        }
        self.frames.push(Frame {
            object,
            outside,
            base: self.path.len(),
        });
        self.key_next = object;
    }

    fn close(&mut self) {
        if self.deep > 0 {
            self.deep -= 1;
            return;
        }
        match self.frames.pop() {
            Some(frame) => {
                self.path.truncate(frame.outside);
                self.key_next = false;
                if self.frames.is_empty() {
                    self.state = State::Done;
                }
            }
            None => self.state = State::Broken,
        }
    }

    fn text(&mut self, bytes: &[u8], after_backslash: bool, sink: &mut impl Sink) -> usize {
        if after_backslash {
            self.keep(&bytes[..1]);
            self.state = State::Text(false);
            return 1;
        }
        let Some(end) = memchr2(b'"', b'\\', bytes) else {
            self.keep(bytes);
            return bytes.len();
        };
        if bytes[end] == b'\\' {
            self.keep(&bytes[..=end]);
            self.escaped = true;
            self.state = State::Text(true);
        } else {
            self.keep(&bytes[..end]);
            self.state = State::Between;
            self.end_text(sink);
        }
        end + 1
    }

    fn keep(&mut self, piece: &[u8]) {
        self.length += piece.len() as u64;
        if self.deep == 0 {
            let room = TEXT.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
        }
    }

    fn end_text(&mut self, sink: &mut impl Sink) {
        if self.deep > 0 {
            return;
        }
        let unescaped = if self.escaped {
            let mut quoted = Vec::with_capacity(self.kept.len() + 2);
            quoted.push(b'"');
            quoted.extend_from_slice(&self.kept);
            quoted.push(b'"');
            // A text that was cut inside an escape is reported as it stands.
            serde_json::from_slice::<String>(&quoted).ok()
        } else {
            None
        };
        let text = match &unescaped {
            Some(text) => std::borrow::Cow::Borrowed(text.as_str()),
            None => String::from_utf8_lossy(&self.kept),
        };
        if self.key_next {
            let base = self.frames.last().map_or(0, |f| f.base);
            self.path.truncate(base);
            if base > 0 {
                self.path.push('.');
            }
            let mut end = text.len().min(KEY);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            self.path.push_str(&text[..end]);
        } else {
            sink.scalar(&self.path, Scalar::Text(&text, self.length));
        }
    }

    fn bare(&mut self, bytes: &[u8], sink: &mut impl Sink) -> usize {
        let end = bytes
            .iter()
            .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if self.kept.len() + piece.len() > KEY {
            // No number and no word of JSON is that long.
            self.state = State::Broken;
            return bytes.len();
        }
        self.kept.extend_from_slice(piece);
        if end.is_some() {
            self.state = State::Between;
            if self.deep == 0
                && let Ok(word) = std::str::from_utf8(&self.kept)
            {
                sink.scalar(&self.path, Scalar::Bare(word));
            }
        }
        piece.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(String, String)>);

    impl Sink for Seen {
        fn scalar(&mut self, path: &str, value: Scalar<'_>) {
            let text = match value {
                Scalar::Text(text, _) => format!("{text:?}"),
                Scalar::Bare(word) => word.to_owned(),
            };
            self.0.push((path.to_owned(), text));
        }
    }

    fn scan(pieces: &[&[u8]]) -> (Seen, Scanner) {
        let mut scanner = Scanner::new();
        let mut seen = Seen::default();
        for piece in pieces {
            scanner.feed(piece, &mut seen);
        }
        (seen, scanner)
    }

    #[test]
    fn paths_and_scalars() {
        let text =
            br#" {"a":1,"b":{"c":"x\"\u00e9","d":[{"e":null},{"e":true}, 2.5e3]},"f":[],"g":{} } "#;
        let (seen, scanner) = scan(&[text]);
        let expected = [
            ("a", "1"),
            ("b.c", "\"x\\\"é\""),
            ("b.d[].e", "null"),
            ("b.d[].e", "true"),
            ("b.d[]", "2.5e3"),
        ];
        let seen: Vec<_> = seen
            .0
            .iter()
            .map(|(p, v)| (p.as_str(), v.as_str()))
            .collect();
        assert_eq!(seen, expected);
        assert!(scanner.done() && !scanner.broken());
    }

    #[test]
    fn memory_is_bounded() {
        let mut scanner = Scanner::new();
        let mut seen = Seen::default();
        scanner.feed(b"{\"k\":\"", &mut seen);
        for _ in 0..1000 {
            scanner.feed(&[b'x'; 10_000], &mut seen);
        }
        scanner.feed(b"\"}", &mut seen);
        assert!(scanner.done());
        assert_eq!(seen.0[0].1.len(), TEXT + 2);
        assert!(scanner.kept.capacity() <= 2 * TEXT);

        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let (_, scanner) = scan(&[deep.as_bytes()]);
        assert!(scanner.done() && scanner.path.len() < 100);
        let keys = format!("{{\"{}\":1}}", "k".repeat(100_000));
        assert_eq!(scan(&[keys.as_bytes()]).0.0[0].0.len(), KEY);
    }

    #[test]
    fn garbage_is_told_from_json() {
        for garbage in [
            "<html>",
            "plain",
            "}",
            "{} x",
            &format!("[{}", "1".repeat(100)),
        ] {
            assert!(scan(&[garbage.as_bytes()]).1.broken(), "{garbage}");
        }
        let (_, cut) = scan(&[b"{\"a\":"]);
        assert!(!cut.done() && !cut.broken());
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            ".{0,20}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                proptest::collection::vec(("[a-z\"\\\\é]{0,6}", inner), 0..5)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    fn flatten(value: &serde_json::Value, path: &str, out: &mut Vec<(String, String)>) {
        match value {
            serde_json::Value::Array(items) => {
                for item in items {
                    flatten(item, &format!("{path}[]"), out);
                }
            }
            serde_json::Value::Object(members) => {
                for (key, item) in members {
                    let inner = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    flatten(item, &inner, out);
                }
            }
            serde_json::Value::String(text) => out.push((path.to_owned(), format!("{text:?}"))),
            scalar => out.push((path.to_owned(), scalar.to_string())),
        }
    }

    proptest! {
        /// It sees what serde sees, however the document is cut into pieces.
        #[test]
        fn agrees_with_serde(value in json(), pretty: bool, piece in 1usize..9) {
            let value = serde_json::json!({ "root": value });
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let pieces: Vec<_> = text.as_bytes().chunks(piece).collect();
            let (seen, scanner) = scan(&pieces);
            let mut expected = Vec::new();
            flatten(&value, "", &mut expected);
            prop_assert_eq!(seen.0, expected);
            prop_assert!(scanner.done());
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), piece in 1usize..9) {
            scan(&bytes.chunks(piece).collect::<Vec<_>>());
        }
    }
}

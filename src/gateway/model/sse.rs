//! Server-sent events, cut out of a byte stream without keeping any of it.

use memchr::memchr2;

/// Takes the data of events.
pub(super) trait EventSink {
    /// A piece of the current event's data; lines are joined by `\n`.
    fn data(&mut self, piece: &[u8]);

    /// The current event, which had data, is over.
    fn end(&mut self);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a field's name, so far this many bytes of `data`; `None` when it is another field.
    Name(Option<usize>),
    /// After `data:`, where one space is dropped.
    Space,
    /// In the value of `data`.
    Data,
    /// In a line that does not matter.
    Skip,
}

/// The splitter of one stream.
#[derive(Debug)]
pub(super) struct Splitter {
    state: State,
    /// Nothing of the current line was read yet.
    line_start: bool,
    after_cr: bool,
    has_data: bool,
}

const NAME: &[u8] = b"data";

impl Splitter {
    /// At the start of a stream.
    pub(super) fn new() -> Self {
        Self {
            state: State::Name(Some(0)),
            line_start: true,
            after_cr: false,
            has_data: false,
        }
    }

    /// Reads the next piece of the stream.
    pub(super) fn feed(&mut self, mut bytes: &[u8], sink: &mut impl EventSink) {
        while let Some(&byte) = bytes.first() {
            if self.after_cr {
                self.after_cr = false;
                if byte == b'\n' {
                    bytes = &bytes[1..];
                    continue;
                }
            }
            if matches!(byte, b'\r' | b'\n') {
                self.after_cr = byte == b'\r';
                self.end_line(sink);
                bytes = &bytes[1..];
                continue;
            }
            self.line_start = false;
            match self.state {
                State::Name(matched) => {
                    self.state = match (byte, matched) {
                        (b':', Some(4)) => State::Space,
                        (_, Some(n)) if NAME.get(n) == Some(&byte) => State::Name(Some(n + 1)),
                        // A byte order mark may come first.
                        (0xEF | 0xBB | 0xBF, Some(0)) => State::Name(Some(0)),
                        _ => State::Skip,
                    };
                    bytes = &bytes[1..];
                }
                State::Space => {
                    self.begin_data(sink);
                    if byte == b' ' {
                        bytes = &bytes[1..];
                    }
                }
                State::Data | State::Skip => {
                    let end = memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
                    if self.state == State::Data {
                        sink.data(&bytes[..end]);
                    }
                    bytes = &bytes[end..];
                }
            }
        }
    }

    fn begin_data(&mut self, sink: &mut impl EventSink) {
        if self.has_data {
            sink.data(b"\n");
        }
        self.has_data = true;
        self.state = State::Data;
    }

    fn end_line(&mut self, sink: &mut impl EventSink) {
        match self.state {
            // `data:` or `data` alone is an empty line of data.
            State::Space | State::Name(Some(4)) => self.begin_data(sink),
            _ if self.line_start && self.has_data => {
                self.has_data = false;
                sink.end();
            }
            _ => {}
        }
        self.state = State::Name(Some(0));
        self.line_start = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Events {
        done: Vec<String>,
        open: Vec<u8>,
    }

    impl EventSink for Events {
        fn data(&mut self, piece: &[u8]) {
            self.open.extend_from_slice(piece);
        }

        fn end(&mut self) {
            self.done
                .push(String::from_utf8_lossy(&self.open).into_owned());
            self.open.clear();
        }
    }

    fn split(text: &[u8], piece: usize) -> Vec<String> {
        let mut splitter = Splitter::new();
        let mut events = Events::default();
        for piece in text.chunks(piece) {
            splitter.feed(piece, &mut events);
        }
        events.done
    }

    #[test]
    fn events_come_out_whatever_the_line_ends() {
        let text = "\u{feff}event: a\ndata: {\"x\":1}\n\n: comment\n\nid: 7\ndata:one\ndata: two\ndatum: no\n\ndata\n\ndata: cut";
        for line_end in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', line_end);
            for piece in [1, 2, 3, 1000] {
                assert_eq!(
                    split(text.as_bytes(), piece),
                    ["{\"x\":1}", "one\ntwo", ""],
                    "{line_end:?} {piece}"
                );
            }
        }
    }

    proptest! {
        /// Data come out as they went in, however the stream is cut.
        #[test]
        fn round_trip(data in proptest::collection::vec("[^\r\n]{1,30}", 0..8), piece in 1usize..12) {
            let text: String = data.iter().flat_map(|d| ["event: x\ndata: ", d, "\n\n"]).collect();
            prop_assert_eq!(split(text.as_bytes(), piece), data);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), piece in 1usize..9) {
            split(&bytes, piece);
        }
    }
}

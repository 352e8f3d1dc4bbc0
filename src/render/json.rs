//! JSON text without one raw hidden character, and the two plain documents made of it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter};

use super::safe::is_plain;
use crate::model::is_hidden;

/// Serialises as JSON in which hidden characters of strings are `\uXXXX`: the same value to a
/// parser, harmless to a terminal or an editor. Ends with a newline.
pub fn pretty(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    let formatter = Escaping {
        inner: PrettyFormatter::new(),
        also: "",
    };
    write(&mut out, value, formatter);
    out.push(b'\n');
    String::from_utf8_lossy(&out).into_owned()
}

/// The same on one line, with every character of `also` escaped too.
pub(super) fn compact(value: &impl Serialize, also: &'static str) -> String {
    let mut out = Vec::new();
    let inner = serde_json::ser::CompactFormatter;
    write(&mut out, value, Escaping { inner, also });
    String::from_utf8_lossy(&out).into_owned()
}

fn write(out: &mut Vec<u8>, value: &impl Serialize, formatter: impl Formatter) {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
    if value.serialize(&mut serializer).is_err() {
        // Our documents have string keys and write to memory: there is nothing that can fail. Were
        // there, half a document must not pass for a whole one.
        out.clear();
        out.extend_from_slice(b"null");
    }
}

struct Escaping<F> {
    inner: F,
    also: &'static str,
}

impl<F: Formatter> Formatter for Escaping<F> {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // `##[name]` anywhere in a line is a workflow command to a GitHub runner.
        let command = fragment.contains("##[");
        if self.also.is_empty() && is_plain(fragment) && !command {
            return writer.write_all(fragment.as_bytes());
        }
        let mut clean = 0;
        for (at, c) in fragment.char_indices() {
            let opens_command = command && c == '[' && fragment[..at].ends_with("##");
            if is_hidden(c) || self.also.contains(c) || opens_command {
                writer.write_all(&fragment.as_bytes()[clean..at])?;
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
                clean = at + c.len_utf8();
            }
        }
        writer.write_all(&fragment.as_bytes()[clean..])
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.inner.write_char_escape(writer, escape)
    }
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_array(writer)
    }
    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array(writer)
    }
    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.inner.begin_array_value(writer, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array_value(writer)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object(writer)
    }
    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object(writer)
    }
    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.inner.begin_object_key(writer, first)
    }
    fn end_object_key<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object_key(writer)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object_value(writer)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_come_back() {
        let value = serde_json::json!({"a\u{202e}": ["\u{1b}\u{7f}\u{e0041}`é\n"]});
        for text in [pretty(&value), compact(&value, "`")] {
            assert!(
                !text.trim_end().replace('\n', "").chars().any(is_hidden),
                "{text}"
            );
            let back: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(back, value);
        }
        assert!(!compact(&value, "`").contains('`'));
    }
}

//! The YAML front matter of Markdown prompts: flat `key: value` pairs between two `---` lines, which may
//! stand after HTML comments.

use std::ops::Range;

use serde_json::{Map, Value};

use super::diagnostic::{Diagnostic, Source};

/// Front matter longer than this many bytes is refused.
const MAX_BYTES: usize = 64 * 1024;

/// What stands in a prompt file.
#[derive(Debug)]
pub(super) struct FrontMatter<'a> {
    source: &'a Source,
    yaml: Range<usize>,
    /// Key and value as text, in order; values left empty are not listed.
    pub(super) values: Vec<(String, String)>,
    /// What was found odd, as warnings.
    pub(super) warnings: Vec<Diagnostic>,
    /// The text after the front matter; the whole text when there is none.
    pub(super) body: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Splits and reads `source`.
    pub(super) fn read(source: &'a Source) -> Result<Self, Diagnostic> {
        let text = source.text();
        let mut front = Self {
            source,
            yaml: 0..0,
            values: Vec::new(),
            warnings: Vec::new(),
            body: text,
        };
        let Some((yaml, body)) = split(source)? else {
            return Ok(front);
        };
        front.body = &text[body..];
        front.yaml = yaml.clone();
        let block = &text[yaml.clone()];
        match parse(block) {
            Ok(map) => {
                for (key, value) in map {
                    let value = match value {
                        Value::String(text) => text,
                        Value::Bool(_) | Value::Number(_) => value.to_string(),
                        Value::Null => continue,
                        Value::Array(_) | Value::Object(_) => {
                            return Err(front
                                .error(&key, format!("`{key}` cannot be a list or an object"))
                                .with_expected("expected one value"));
                        }
                    };
                    front.values.push((key, value));
                }
            }
            Err(error) => {
                let place = offset(block, &error).map_or(yaml.start, |at| yaml.start + at);
                let problem = source.error(place..place + 1, message(&error));
                // Earlier tools read line by line, so setups exist whose values YAML refuses (`a: b: c`).
                let Some(values) = plain_lines(block) else {
                    return Err(problem.with_help(
                        "front matter is `key: value` lines between two `---` lines; put values with `: ` in quotes",
                    ));
                };
                front.values = values;
                front.warnings.push(problem.as_warning().with_help(
                    "the front matter was read line by line; put such values in quotes",
                ));
            }
        }
        Ok(front)
    }

    /// An error at the line of `key`.
    pub(super) fn error(&self, key: &str, message: impl AsRef<str>) -> Diagnostic {
        let block = &self.source.text()[self.yaml.clone()];
        let mut at = self.yaml.start;
        for line in block.split_inclusive('\n') {
            let name = line.trim_start_matches(['"', '\'']);
            if name.strip_prefix(key).is_some_and(|rest| {
                rest.trim_start_matches(['"', '\'', ' ', '\t'])
                    .starts_with(':')
            }) {
                return self
                    .source
                    .error(at..at + line.trim_end().len(), message)
                    .with_key(key);
            }
            at += line.len();
        }
        self.source.error(self.yaml.clone(), message).with_key(key)
    }
}

/// The range of the YAML and where the body starts.
fn split(source: &Source) -> Result<Option<(Range<usize>, usize)>, Diagnostic> {
    let text = source.text();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start().len();
        if !text[at..].starts_with("<!--") {
            break;
        }
        match text[at..].find("-->") {
            Some(end) => at += end + 3,
            None => return Ok(None),
        }
    }
    let mut lines = text[at..].split_inclusive('\n');
    let open = at;
    match lines.next() {
        Some(line) if line.trim_end() == "---" => at += line.len(),
        _ => return Ok(None),
    }
    let start = at;
    for line in lines {
        if line.trim_end() == "---" {
            if at - start > MAX_BYTES {
                return Err(source.error(
                    open..open + 3,
                    format!("the front matter is longer than {MAX_BYTES} bytes"),
                ));
            }
            return Ok(Some((start..at, at + line.len())));
        }
        at += line.len();
    }
    Err(source
        .error(
            open..open + 3,
            "the front matter is opened here and never closed",
        )
        .with_help("close it with a line `---`"))
}

fn parse(block: &str) -> Result<Map<String, Value>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        // `description: no` is a word, not false.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_events: 10_000,
            max_aliases: 0,
            max_anchors: 16,
        },
    };
    serde_saphyr::from_str_with_options::<Option<Map<String, Value>>>(block, options)
        .map(Option::unwrap_or_default)
}

/// The byte offset in `block` of an error.
fn offset(block: &str, error: &serde_saphyr::Error) -> Option<usize> {
    let location = error.location()?;
    let line = usize::try_from(location.line()).ok()?.checked_sub(1)?;
    let column = usize::try_from(location.column()).ok()?.checked_sub(1)?;
    let mut lines = block.split_inclusive('\n');
    let start: usize = lines.by_ref().take(line).map(str::len).sum();
    let within = lines
        .next()
        .and_then(|text| text.char_indices().nth(column))
        .map_or(0, |(at, _)| at);
    Some(start + within)
}

/// The error's first line; its own place and excerpt are left out, since ours counts in the whole file.
fn message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    match line.find(" at line ") {
        Some(at) => line[..at].to_owned(),
        None => line.to_owned(),
    }
}

/// `key: value` lines as earlier tools read them, if the block has nothing else and no key twice.
fn plain_lines(block: &str) -> Option<Vec<(String, String)>> {
    let mut values: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once(':')?;
        let key_fits = !key.is_empty()
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        let value = value.trim();
        // A quote that is opened and not closed is a slip, not a plain value.
        if !key_fits
            || value.starts_with(['"', '\'', '|', '>'])
            || values.iter().any(|(k, _)| k == key)
        {
            return None;
        }
        if !value.is_empty() {
            values.push((key.to_owned(), value.to_owned()));
        }
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Read = (Vec<(String, String)>, String, usize);

    fn read(text: &str) -> Result<Read, String> {
        let source = Source::new("a.md", text);
        FrontMatter::read(&source)
            .map(|front| (front.values, front.body.to_owned(), front.warnings.len()))
            .map_err(|error| format!("{}: {}", error.place(), error.message))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn scalars_and_body() {
        let values = pairs(&[("model", "x"), ("alwaysRun", "true")]);
        for head in ["", "\u{feff}", "<!-- a\n--- -->\n<!-- b -->\n\n", "\r\n"] {
            let text = format!("{head}---\nmodel: x\nalwaysRun: true\n---\n# Body\ntext");
            assert_eq!(
                read(&text),
                Ok((values.clone(), "# Body\ntext".into(), 0)),
                "{head:?}"
            );
        }
        let crlf = "---\r\nmodel: x\r\nalwaysRun: true\r\n---\r\n# Body\r\n";
        assert_eq!(read(crlf), Ok((values, "# Body\r\n".into(), 0)));
    }

    #[test]
    fn values_keep_their_words() {
        let text = "---\nmodel: \"a/b\"\nalwaysRun: Yes\ntemperature: 0.30\nengine: ~\n---\n";
        let values = pairs(&[
            ("model", "a/b"),
            ("alwaysRun", "Yes"),
            ("temperature", "0.3"),
        ]);
        assert_eq!(read(text), Ok((values, String::new(), 0)));
    }

    #[test]
    fn no_front_matter() {
        for text in [
            "# Title\n---\nmodel: x\n---\n",
            "",
            "<!-- never closed\n---\na: b\n---\n",
            "----\n",
        ] {
            assert_eq!(read(text), Ok((vec![], text.to_owned(), 0)), "{text}");
        }
        assert_eq!(read("---\n---\nbody"), Ok((vec![], "body".into(), 0)));
        assert_eq!(
            read("---\n# only a comment\n---\nbody"),
            Ok((vec![], "body".into(), 0))
        );
    }

    #[test]
    fn values_that_yaml_refuses_are_read_line_by_line() {
        let text = "---\ndescription: Security: auth, `secrets`\nmodel: `x`\n---\n";
        let values = pairs(&[
            ("description", "Security: auth, `secrets`"),
            ("model", "`x`"),
        ]);
        assert_eq!(read(text), Ok((values, String::new(), 1)));
    }

    #[test]
    fn refused_with_a_place() {
        for (text, place) in [
            ("---\nmodel: a\nmodel: b\n---\n", "a.md:3:1"),
            ("---\nmodel: \"a\n---\n", "a.md:"),
            ("---\nmodel: [a, b]\n---\n", "a.md:2:1"),
            ("---\n- a\n---\n", "a.md:2:"),
            ("\n---\nmodel: a\n", "a.md:2:1"),
            ("---\nx: &a 1\ny: *a\nz:\n  - 1\n---\n", "a.md:"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(place), "{text:?} {error}");
        }
        let long = format!("---\na: {}\n---\n", "x".repeat(MAX_BYTES));
        assert!(read(&long).unwrap_err().contains("longer than"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(---\n)?[-:a-z\"'&*\\[\\]{}é\r\n #|>]{0,60}(\n---\n)?.{0,9}") {
            let _ = read(&text);
        }
    }
}

//! Finding the JSON object that a model meant as its answer.

use serde_json::{Map, Value};

use super::lenient::{Quotes, Reader, Stop};

/// How often JSON inside of a JSON string is unpacked.
const MAX_UNPACKING: u32 = 3;

/// Why a reply is no answer. None of these ever counts as "nothing found".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// There is no text at all.
    #[error("the reply is empty")]
    Empty,
    /// There is text, but no JSON object in it.
    #[error("the reply has no JSON object in it")]
    NoJson,
    /// There is an object, but not the list that makes it an answer.
    #[error("the reply has no list `{0}`")]
    NoList(&'static str),
    /// There is a list with entries, and none of them can be read.
    #[error("none of the {0} findings of the reply can be read: {1}")]
    NoneReadable(usize, String),
}

/// A JSON object found in a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Extracted {
    /// The object.
    pub object: Map<String, Value>,
    /// False when the text ended inside of it, or when another part of the reply could not be read.
    pub whole: bool,
}

/// Everything in a text that reads as a JSON object, in order.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) found: Vec<Extracted>,
    /// Something that began like an object with the wanted key could not be read.
    pub(super) damaged: bool,
}

/// The object that a reply means: the last one that has `key`, else the last one at all. An object
/// wrapped in a fence, in prose, behind a think block, in a JSON string or in one outer object is found.
pub fn object(text: &str, key: &str) -> Result<Extracted, ReplyError> {
    let answer = without_thoughts(text).trim();
    if answer.is_empty() {
        return Err(ReplyError::Empty);
    }
    let mut objects = objects(answer, key, 0);
    let at = objects
        .found
        .iter()
        .rposition(|e| e.object.contains_key(key))
        .or_else(|| objects.found.len().checked_sub(1))
        .ok_or(ReplyError::NoJson)?;
    let mut chosen = objects.found.swap_remove(at);
    chosen.whole &= !objects.damaged;
    Ok(chosen)
}

/// The text behind the thoughts that some models write before their answer.
pub(super) fn without_thoughts(text: &str) -> &str {
    const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
    let mut text = text.trim_start_matches('\u{feff}').trim_start();
    loop {
        let opened = TAGS.iter().find(|(open, _)| text.starts_with(open));
        if let Some((_, close)) = opened {
            // Thoughts without an end are no answer.
            text = text.find(close).map_or("", |at| &text[at + close.len()..]);
        } else if let Some(rest) = unopened(text) {
            // Some templates swallow the opening tag.
            text = rest;
        } else {
            return text;
        }
        text = text.trim_start();
    }
}

/// What follows a closing tag that stands on a line of its own before any object.
fn unopened(text: &str) -> Option<&str> {
    const CLOSE: &str = "</think>";
    let at = text.find(CLOSE)?;
    let before = &text[..at];
    let alone = before.rfind('\n').map_or(before, |line| &before[line..]);
    (alone.trim().is_empty() && !before.contains("<think>")).then(|| &text[at + CLOSE.len()..])
}

/// Reads every object of `text`. Linear: all attempts share one measure of fuel.
pub(super) fn objects(text: &str, key: &str, unpacked: u32) -> Objects {
    let mut out = Objects::default();
    let mut fuel = text.len().saturating_mul(12).saturating_add(4096);
    if unpacked < MAX_UNPACKING
        && let Some(inner) = packed(text, &mut fuel)
    {
        return objects(&inner, key, unpacked + 1);
    }
    let mut at = 0;
    while let Some(start) = text
        .get(at..)
        .and_then(|t| memchr::memchr(b'{', t.as_bytes()))
    {
        let start = at + start;
        match attempt(text, start, &mut fuel) {
            Ok((object, cut, end)) => {
                out.found.push(Extracted {
                    object,
                    whole: !cut,
                });
                at = end.max(start + 1);
            }
            Err(Stop::Broken) => {
                out.damaged |= begins_with(text, start, key);
                at = start + 1;
            }
            Err(Stop::Fuel) => {
                out.damaged = true;
                break;
            }
        }
    }
    if unpacked < MAX_UNPACKING {
        for extracted in &mut out.found {
            unwrap_outer(extracted, key, unpacked);
        }
    }
    out
}

type Attempt = (Map<String, Value>, bool, usize);

fn attempt(text: &str, start: usize, fuel: &mut usize) -> Result<Attempt, Stop> {
    let mut cut = None;
    for quotes in [Quotes::Plain, Quotes::Guess] {
        let mut reader = Reader::new(text, start, quotes, fuel);
        match reader.value(0) {
            Ok(Value::Object(map)) if reader.cut => {
                // The end of the text inside of a string may be a quote too many further up.
                cut.get_or_insert((map, true, reader.at));
            }
            Ok(Value::Object(map)) => return Ok((map, false, reader.at)),
            Err(Stop::Fuel) => return Err(Stop::Fuel),
            Ok(_) | Err(Stop::Broken) => {}
        }
    }
    cut.ok_or(Stop::Broken)
}

fn begins_with(text: &str, start: usize, key: &str) -> bool {
    text.get(start + 1..)
        .map(str::trim_start)
        .and_then(|rest| rest.strip_prefix('"'))
        .is_some_and(|rest| rest.starts_with(key))
}

/// The text inside of a JSON string, when the whole text is one (fenced or not).
fn packed(text: &str, fuel: &mut usize) -> Option<String> {
    let mut inner = text.trim();
    if let Some(fenced) = inner.strip_prefix("```") {
        inner = fenced.split_once('\n')?.1.trim_end_matches('`').trim();
    }
    if !inner.starts_with('"') {
        return None;
    }
    let mut reader = Reader::new(inner, 0, Quotes::Plain, fuel);
    let text = reader.string().ok()?;
    (reader.at >= inner.len() && text.contains('{')).then_some(text)
}

/// `{"result": {"findings": …}}` and `{"result": "{\"findings\": …}"}` mean what is inside.
fn unwrap_outer(extracted: &mut Extracted, key: &str, unpacked: u32) {
    if extracted.object.contains_key(key) {
        return;
    }
    for (_, value) in &extracted.object {
        let inner = match value {
            Value::Object(map) if map.contains_key(key) => Some(Extracted {
                object: map.clone(),
                whole: extracted.whole,
            }),
            Value::String(text) if text.contains('{') => {
                let inside = objects(text, key, unpacked + 1);
                let wanted = |e: &Extracted| e.object.contains_key(key);
                let whole = extracted.whole && !inside.damaged;
                inside.found.into_iter().rfind(wanted).map(|e| Extracted {
                    whole: e.whole && whole,
                    ..e
                })
            }
            _ => None,
        };
        if let Some(inner) = inner {
            *extracted = inner;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn got(text: &str) -> Result<Value, ReplyError> {
        object(text, "findings").map(|e| Value::Object(e.object))
    }

    #[test]
    fn the_last_object_is_the_answer_unless_an_earlier_one_has_the_key() {
        for (text, expected) in [
            ("prose\n```json\n{\"a\":1}\n```\nmore", json!({"a": 1})),
            ("here it is: {\"a\":2} done", json!({"a": 2})),
            (
                "```json\n{\"a\":1}\n```\n```json\n{\"a\":2}\n```",
                json!({"a": 2}),
            ),
            ("```json\n{\"a\":1}\n```", json!({"a": 1})),
            (
                "{\"findings\": []} as in {\"a\":1}",
                json!({"findings": []}),
            ),
        ] {
            assert_eq!(got(text), Ok(expected), "{text}");
        }
        assert_eq!(got("no json at all"), Err(ReplyError::NoJson));
        assert_eq!(got(" \n"), Err(ReplyError::Empty));
    }

    #[test]
    fn what_models_get_wrong_is_mended() {
        for (text, expected) in [
            ("{\"a\": \"x\ny\",}", json!({"a": "x\ny"})),
            (
                r#"{"a": "say "hi" now", "b": [1, 2,],}"#,
                json!({"a": r#"say "hi" now"#, "b": [1, 2]}),
            ),
            (
                r#"{"a": "```json\n{\"b\":1}\n```"}"#,
                json!({"a": "```json\n{\"b\":1}\n```"}),
            ),
            (
                r#"{"a": "\d \u00e9 \ud83d\ude00", "b": None}"#,
                json!({"a": "\\d é 😀", "b": null}),
            ),
            ("{\"a\": \"\\é\"}", json!({"a": "\\é"})),
            ("\"{\\\"a\\\": 1}\"", json!({"a": 1})),
            (
                "{\"reply\": \"{\\\"findings\\\": [1]}\"}",
                json!({"findings": [1]}),
            ),
            ("{\"reply\": {\"findings\": [1]}}", json!({"findings": [1]})),
            (
                "so {like this} or {\"a\": oops} and {\"a\": 3}",
                json!({"a": 3}),
            ),
        ] {
            assert_eq!(got(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn thoughts_are_no_answer() {
        assert_eq!(got("<think>{\"findings\": []}"), Err(ReplyError::Empty));
        assert_eq!(
            got("<think>{\"findings\": []}</think> hm"),
            Err(ReplyError::NoJson)
        );
        assert_eq!(
            got("maybe {\"findings\": []}?\n</think>\n{\"findings\": [2]}"),
            Ok(json!({"findings": [2]}))
        );
        let quoted = r#"{"findings": [{"evidence": "<think>x</think>"}]}"#;
        assert_eq!(got(quoted), Ok(serde_json::from_str(quoted).unwrap()));
    }

    #[test]
    fn a_cut_or_damaged_reply_is_not_whole() {
        let cut = object("{\"findings\": [{\"title\": \"a", "findings").unwrap();
        assert!(!cut.whole);
        assert_eq!(cut.object["findings"][0]["title"], "a");
        let damaged = object("{\"findings\": [!!] } then {\"findings\": []}", "findings").unwrap();
        assert!(!damaged.whole);
        assert!(object("{\"findings\": []}", "findings").unwrap().whole);
    }

    #[test]
    fn hostile_megabytes_are_read_in_linear_time() {
        const BIG: usize = 1_000_000;
        for pattern in [
            "{",
            "{\"a\":",
            "[",
            "{\"",
            "\\\"{",
            "```",
            "<think>",
            "{\"a\":\"b\" x",
            "{\"findings\": [",
        ] {
            let text = pattern.repeat(BIG / pattern.len());
            let mut fuel = 0;
            assert_eq!(
                Reader::new(&text, 0, Quotes::Plain, &mut fuel).value(0),
                Err(Stop::Fuel)
            );
            let _ = object(&text, "findings");
        }
    }
}

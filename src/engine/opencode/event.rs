//! The lines that `opencode run --format json` prints.

use serde::Deserialize;
use serde_json::Value;

use super::fault::{classify, is_of_door, shown};
use crate::port::EngineError;

/// One line for a person who follows the run.
pub type Activity = String;

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    part: Value,
    #[serde(default)]
    error: Value,
}

/// Reads the lines of one pass and remembers what they add up to. The usage in them is not taken: the
/// model door has counted it.
#[derive(Debug, Default)]
pub struct Reader {
    /// The texts of the step at hand, or of the last one.
    text: String,
    /// Why the last step ended.
    reason: Option<String>,
    error: Option<EngineError>,
    /// Lines that are no event.
    garbage: u32,
}

/// How the turn ended by its own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The model said its last word: this text.
    Text(String),
    /// Its last answer was cut by the output limit; the text before the cut.
    Cut(String),
    /// Nothing that ends a turn was read.
    Nothing,
}

impl Reader {
    /// Takes a line of stdout; gives what there is to tell. `now` is in seconds since the Unix epoch.
    pub fn line(&mut self, line: &[u8], now: u64) -> Option<Activity> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let Ok(event) = serde_json::from_slice::<Event>(line) else {
            self.garbage += 1;
            return None;
        };
        match event.kind.as_str() {
            "step_start" => {
                self.text.clear();
                self.reason = None;
                None
            }
            "text" => {
                self.text
                    .push_str(event.part["text"].as_str().unwrap_or_default());
                None
            }
            "step_finish" => {
                self.reason = event.part["reason"].as_str().map(str::to_owned);
                None
            }
            "tool_use" => Some(tool(&event.part)),
            "error" => {
                let error = classify(&event.error, now);
                let told = error.to_string();
                let of_door = is_of_door(&event.error);
                // The first one is the cause.
                self.error.get_or_insert(error);
                // What the door has to say it says itself.
                (!of_door).then_some(told)
            }
            _ => None,
        }
    }

    /// The error that was reported, if any.
    pub fn error(&self) -> Option<&EngineError> {
        self.error.as_ref()
    }

    /// What the model said in the end.
    pub fn said(&self) -> Said {
        match self.reason.as_deref() {
            Some("stop") => Said::Text(self.text.clone()),
            Some("length") => Said::Cut(self.text.clone()),
            _ => Said::Nothing,
        }
    }

    /// Lines that were no event at all.
    pub fn garbage(&self) -> u32 {
        self.garbage
    }
}

/// `read src/a.rs`, `grep: why it failed`.
fn tool(part: &Value) -> Activity {
    let name = shown(part["tool"].as_str().unwrap_or("?"));
    let name = name.strip_prefix("tree_").unwrap_or(&name).to_owned();
    let state = &part["state"];
    if state["status"] == "error" {
        let why = state["error"].as_str().unwrap_or_default();
        return format!("{name} failed: {}", shown(why));
    }
    let subject = ["path", "pattern", "file", "title"]
        .iter()
        .find_map(|key| state["input"][key].as_str());
    match subject {
        Some(subject) => format!("{name} {}", shown(subject)),
        None => name,
    }
}

/// What `OpenCode` wrote to stderr, as one line without colours; for a failure that no event explains.
pub fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' {
            // A colour: everything up to its letter.
            rest.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(c);
        }
    }
    shown(&plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;
    /// What a real `OpenCode` 1.18.33 printed for a pass with one tool call.
    const CLEAN: &str = include_str!("../../../tests/fixtures/opencode/clean.jsonl");

    fn read(lines: &str) -> (Reader, Vec<Activity>) {
        let mut reader = Reader::default();
        let told = lines
            .lines()
            .filter_map(|line| reader.line(line.as_bytes(), NOW))
            .collect();
        (reader, told)
    }

    fn finish(reason: &str) -> String {
        json!({"type": "step_finish", "part": {"reason": reason}}).to_string()
    }

    #[test]
    fn a_captured_pass() {
        let (reader, told) = read(CLEAN);
        assert_eq!(told, ["read src/a.rs"]);
        assert_eq!(reader.said(), Said::Text("all done".to_owned()));
        assert_eq!((reader.error(), reader.garbage()), (None, 0));
    }

    #[test]
    fn only_a_stop_is_a_last_word() {
        let text = json!({"type": "text", "part": {"text": "par"}});
        let more = json!({"type": "text", "part": {"text": "tial"}});
        for (reason, expected) in [
            ("stop", Said::Text("partial".to_owned())),
            ("length", Said::Cut("partial".to_owned())),
            ("tool-calls", Said::Nothing),
            ("unknown", Said::Nothing),
            ("content-filter", Said::Nothing),
            ("brand-new", Said::Nothing),
        ] {
            let (reader, _) = read(&format!("{text}\n{more}\n{}", finish(reason)));
            assert_eq!(reader.said(), expected, "{reason}");
        }
        let (reader, _) = read(&format!("{text}\n{more}"));
        assert_eq!(reader.said(), Said::Nothing, "it never ended");
    }

    #[test]
    fn the_text_of_an_earlier_step_is_not_the_answer() {
        let start = json!({"type": "step_start", "part": {}});
        let early = json!({"type": "text", "part": {"text": "looks good"}});
        let (reader, _) = read(&format!(
            "{start}\n{early}\n{}\n{start}\n{}",
            finish("tool-calls"),
            finish("stop")
        ));
        assert_eq!(reader.said(), Said::Text(String::new()));
    }

    #[test]
    fn the_first_error_is_the_cause() {
        let error = |name: &str| json!({"type": "error", "error": {"name": name, "data": {"message": "m"}}});
        let (reader, told) = read(&format!(
            "{}\n{}",
            error("ContextOverflowError"),
            error("MessageAbortedError")
        ));
        assert_eq!(reader.error(), Some(&EngineError::ContextOverflow));
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn the_end_that_the_door_makes_is_not_told() {
        let body = json!({"error": {"code": "ecr_final", "message": "ecr: cancelled"}}).to_string();
        let event = json!({"type": "error", "error": {"name": "APIError",
            "data": {"statusCode": 400, "responseBody": body}}});
        let (reader, told) = read(&event.to_string());
        assert!(told.is_empty(), "{told:?}");
        assert!(matches!(reader.error(), Some(EngineError::Protocol(_))));
    }

    #[test]
    fn failed_tools_are_told_without_controls() {
        let event = json!({"type": "tool_use", "part": {"tool": "ba\u{1b}sh",
            "state": {"status": "error", "error": "un\navailable"}}});
        let (_, told) = read(&event.to_string());
        assert_eq!(told, ["ba\\u{1b}sh failed: un available"]);
    }

    #[test]
    fn complaints_lose_their_colours() {
        let raw =
            "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mUnexpected error\n\nj.split is not a function";
        assert_eq!(
            complaint(raw.as_bytes()),
            "Error: Unexpected error  j.split is not a function"
        );
    }

    proptest! {
        #[test]
        fn no_line_does_harm(line in proptest::collection::vec(any::<u8>(), 0..200), kind in "[a-z_]{0,12}", text in ".*") {
            let mut reader = Reader::default();
            reader.line(&line, NOW);
            let odd = json!({"type": kind, "part": {"text": text, "tool": [text], "state": text, "reason": 3}, "error": text});
            if let Some(told) = reader.line(odd.to_string().as_bytes(), NOW) {
                prop_assert!(!told.contains('\n'));
            }
            reader.said();
        }
    }
}

//! The lines that `opencode run --format json` prints.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use super::fault::{classify, is_of_door};
use crate::engine::cli::{Activity, EventReader, Exit, Said, shown};
use crate::port::EngineError;

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
pub(super) struct Reader {
    /// The texts of the step at hand, or of the last one.
    text: String,
    /// Why the last step ended.
    reason: Option<String>,
    error: Option<EngineError>,
    /// Lines that are no event.
    garbage: u32,
    /// A text was longer than a line may be.
    lost: bool,
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

impl EventReader for Reader {
    fn line(&mut self, line: &[u8], cut: bool) -> Option<Activity> {
        if cut {
            self.lost |= memchr::memmem::find(line, b"\"type\":\"text\"").is_some();
            return None;
        }
        self.event(line, now())
    }

    fn said(&mut self, exit: Exit<'_>) -> Said {
        if let Some(error) = self.error.take() {
            return Said::Failed(error);
        }
        let text = std::mem::take(&mut self.text);
        match self.reason.as_deref() {
            Some("stop") if self.lost => Said::Cut(text, "its length"),
            Some("stop") => Said::Text(text),
            Some("length") => Said::Cut(text, "the output limit"),
            // It ends well although no step did when its own database or configuration fails.
            _ if self.garbage > 0 && exit.code == Some(0) => Said::Failed(EngineError::Protocol(
                format!("{} lines of OpenCode's output are no events", self.garbage),
            )),
            _ => Said::Nothing,
        }
    }
}

impl Reader {
    /// Takes a line of stdout; gives what there is to tell. `now` is in seconds since the Unix epoch.
    fn event(&mut self, line: &[u8], now: u64) -> Option<Activity> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_800_000_000;
    const DONE: Exit<'static> = Exit {
        code: Some(0),
        stderr: "",
    };
    /// What a real `OpenCode` 1.18.33 printed for a pass with one tool call.
    const CLEAN: &str = include_str!("../../../tests/fixtures/opencode/clean.jsonl");

    fn read(lines: &str) -> (Reader, Vec<Activity>) {
        let mut reader = Reader::default();
        let told = lines
            .lines()
            .filter_map(|line| reader.event(line.as_bytes(), NOW))
            .collect();
        (reader, told)
    }

    fn finish(reason: &str) -> String {
        json!({"type": "step_finish", "part": {"reason": reason}}).to_string()
    }

    #[test]
    fn a_captured_pass() {
        let (mut reader, told) = read(CLEAN);
        assert_eq!(told, ["read src/a.rs"]);
        assert_eq!(reader.said(DONE), Said::Text("all done".to_owned()));
        assert_eq!((&reader.error, reader.garbage), (&None, 0));
    }

    #[test]
    fn only_a_stop_is_a_last_word() {
        let text = json!({"type": "text", "part": {"text": "par"}});
        let more = json!({"type": "text", "part": {"text": "tial"}});
        for (reason, expected) in [
            ("stop", Said::Text("partial".to_owned())),
            (
                "length",
                Said::Cut("partial".to_owned(), "the output limit"),
            ),
            ("tool-calls", Said::Nothing),
            ("unknown", Said::Nothing),
            ("content-filter", Said::Nothing),
            ("brand-new", Said::Nothing),
        ] {
            let (mut reader, _) = read(&format!("{text}\n{more}\n{}", finish(reason)));
            assert_eq!(reader.said(DONE), expected, "{reason}");
        }
        let (mut reader, _) = read(&format!("{text}\n{more}"));
        assert_eq!(reader.said(DONE), Said::Nothing, "it never ended");
    }

    #[test]
    fn the_text_of_an_earlier_step_is_not_the_answer() {
        let start = json!({"type": "step_start", "part": {}});
        let early = json!({"type": "text", "part": {"text": "looks good"}});
        let (mut reader, _) = read(&format!(
            "{start}\n{early}\n{}\n{start}\n{}",
            finish("tool-calls"),
            finish("stop")
        ));
        assert_eq!(reader.said(DONE), Said::Text(String::new()));
    }

    #[test]
    fn the_first_error_is_the_cause() {
        let error = |name: &str| json!({"type": "error", "error": {"name": name, "data": {"message": "m"}}});
        let (mut reader, told) = read(&format!(
            "{}\n{}",
            error("ContextOverflowError"),
            error("MessageAbortedError")
        ));
        assert_eq!(
            reader.said(DONE),
            Said::Failed(EngineError::ContextOverflow)
        );
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn the_end_that_the_door_makes_is_not_told() {
        let body = json!({"error": {"code": "ecr_final", "message": "ecr: cancelled"}}).to_string();
        let event = json!({"type": "error", "error": {"name": "APIError",
            "data": {"statusCode": 400, "responseBody": body}}});
        let (mut reader, told) = read(&event.to_string());
        assert!(told.is_empty(), "{told:?}");
        assert!(matches!(
            reader.said(DONE),
            Said::Failed(EngineError::Protocol(_))
        ));
    }

    #[test]
    fn failed_tools_are_told_without_controls() {
        let event = json!({"type": "tool_use", "part": {"tool": "ba\u{1b}sh",
            "state": {"status": "error", "error": "un\navailable"}}});
        let (_, told) = read(&event.to_string());
        assert_eq!(told, ["ba\\u{1b}sh failed: un available"]);
    }

    #[test]
    fn what_is_no_event_is_no_answer() {
        let (mut reader, told) = read("Segmentation fault\n{\"type\": 3}\n");
        assert!(told.is_empty());
        assert!(matches!(
            reader.said(DONE),
            Said::Failed(EngineError::Protocol(_))
        ));
        let failed = Exit {
            code: Some(1),
            stderr: "",
        };
        assert_eq!(reader.said(failed), Said::Nothing, "the exit says it");
    }

    #[test]
    fn a_text_that_was_too_long_for_a_line_is_cut() {
        let (mut reader, _) = read(&finish("stop"));
        reader.line(b"{\"type\":\"text\",\"part\":{\"text\":\"abc", true);
        assert_eq!(reader.said(DONE), Said::Cut(String::new(), "its length"));
        let (mut reader, _) = read(&finish("stop"));
        reader.line(b"{\"type\":\"tool_use\",\"part\":{", true);
        assert_eq!(reader.said(DONE), Said::Text(String::new()));
    }

    proptest! {
        #[test]
        fn no_line_does_harm(line in proptest::collection::vec(any::<u8>(), 0..200), kind in "[a-z_]{0,12}", text in ".*") {
            let mut reader = Reader::default();
            reader.event(&line, NOW);
            let odd = json!({"type": kind, "part": {"text": text, "tool": [text], "state": text, "reason": 3}, "error": text});
            if let Some(told) = reader.event(odd.to_string().as_bytes(), NOW) {
                prop_assert!(!told.contains('\n'));
            }
            reader.said(DONE);
        }
    }
}

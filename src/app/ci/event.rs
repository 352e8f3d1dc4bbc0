//! What an Actions job was started for. Everything in the event is other people's text: numbers and words are taken
//! out of it, nothing is passed on.

use std::path::Path;

use serde_json::Value;

use crate::app::{AppError, Environment};

/// A payload larger than this is not read; GitHub's own limit is 25 MB.
const LARGEST: u64 = 32 << 20;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A pull request was opened, pushed to, labelled, …
    Pull {
        /// Its number.
        number: u64,
    },
    /// Somebody commented on a pull request.
    Comment(CommentEvent),
    /// Nothing that a comment could be left on; the text says what it is.
    Neutral(String),
}

/// A new comment on a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommentEvent {
    /// The pull request.
    pub(super) number: u64,
    /// The comment.
    pub(super) id: u64,
    /// Who wrote it.
    pub(super) author: String,
    /// Its text.
    pub(super) body: String,
}

impl Event {
    /// Reads the event that the environment names.
    pub(super) fn read(environment: &Environment) -> Result<Self, AppError> {
        let name = environment.text("GITHUB_EVENT_NAME").unwrap_or_default();
        let payload = match environment.get("GITHUB_EVENT_PATH") {
            Some(path) => payload(Path::new(path))?,
            None => Value::Null,
        };
        let reference = environment.text("GITHUB_REF").unwrap_or_default();
        of(name, &payload, reference).ok_or_else(|| {
            AppError::new(
                format!(
                    "there is no pull request in this job (event {:?}, ref {:?})",
                    crate::model::printable(name),
                    crate::model::printable(reference)
                ),
                "run it on pull_request, or give workflow_dispatch an input named `pr`",
            )
        })
    }
}

fn payload(path: &Path) -> Result<Value, AppError> {
    let failed = |problem: String| {
        AppError::new(
            format!("GITHUB_EVENT_PATH: {problem}"),
            "the runner writes this file; run it in a job",
        )
    };
    let size = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if size > LARGEST {
        return Err(failed(format!("the file is larger than {LARGEST} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| failed(format!("no JSON at line {}", error.line())))
}

/// The event by its name, its payload and `GITHUB_REF`; none without a pull request.
fn of(name: &str, payload: &Value, reference: &str) -> Option<Event> {
    let at = |pointer: &str| payload.pointer(pointer);
    let number = |pointer: &str| at(pointer).and_then(Value::as_u64);
    let text = |pointer: &str| at(pointer).and_then(Value::as_str).unwrap_or_default();
    let neutral = |text: &str| Some(Event::Neutral(text.to_owned()));
    match name {
        "merge_group" => {
            return neutral(
                "a merge queue: its pull requests were reviewed before they were queued",
            );
        }
        "issue_comment" => {
            if at("/issue/pull_request").is_none_or(Value::is_null) {
                return neutral("a comment on an issue, not on a pull request");
            }
            if text("/action") != "created" {
                return neutral("a comment was changed or removed: only new ones are commands");
            }
            // Our own comments, and other machines', are no commands: they could answer each other for ever.
            if text("/sender/type") == "Bot" || text("/comment/user/type") == "Bot" {
                return neutral("a comment by a bot");
            }
            return Some(Event::Comment(CommentEvent {
                number: number("/issue/number")?,
                id: number("/comment/id")?,
                author: at("/comment/user/login")?.as_str()?.to_owned(),
                body: text("/comment/body").to_owned(),
            }));
        }
        "pull_request" | "pull_request_target" if text("/action") == "closed" => {
            return neutral("the pull request was closed");
        }
        _ => {}
    }
    let from_input = || {
        ["pr", "pull_request", "number"].iter().find_map(|key| {
            match at(&format!("/inputs/{key}"))? {
                Value::String(text) => text.trim().trim_start_matches('#').parse().ok(),
                value => value.as_u64(),
            }
        })
    };
    let from_reference = || {
        let rest = reference.strip_prefix("refs/pull/")?;
        rest.split('/').next()?.parse().ok()
    };
    number("/pull_request/number")
        .or_else(from_input)
        .or_else(from_reference)
        .filter(|number| *number > 0)
        .map(|number| Event::Pull { number })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pull_requests_are_found_where_each_event_has_them() {
        let pull = |number| Some(Event::Pull { number });
        for (name, payload, reference, expected) in [
            (
                "pull_request",
                json!({"action": "opened", "pull_request": {"number": 7}}),
                "refs/pull/7/merge",
                pull(7),
            ),
            (
                "pull_request_target",
                json!({"action": "labeled", "pull_request": {"number": 8}}),
                "refs/heads/main",
                pull(8),
            ),
            (
                "workflow_dispatch",
                json!({"inputs": {"pr": "#12"}}),
                "refs/heads/main",
                pull(12),
            ),
            ("pull_request", json!(null), "refs/pull/9/merge", pull(9)),
            ("push", json!({}), "refs/heads/main", None),
            (
                "workflow_dispatch",
                json!({"inputs": {"pr": "x"}}),
                "",
                None,
            ),
            (
                "workflow_dispatch",
                json!({"inputs": {"pr": "0"}}),
                "",
                None,
            ),
        ] {
            assert_eq!(of(name, &payload, reference), expected, "{name} {payload}");
        }
    }

    #[test]
    fn what_is_not_for_us_is_neutral() {
        let comment = |action: &str, sender: &str, pull: Value| {
            json!({"action": action, "issue": {"number": 3, "pull_request": pull}, "sender": {"type": sender},
                "comment": {"id": 5_000_000_000u64, "body": "/review", "user": {"login": "m", "type": sender}}})
        };
        let pull = json!({"url": "x"});
        let neutral =
            |name: &str, payload: &Value| matches!(of(name, payload, ""), Some(Event::Neutral(_)));
        assert!(neutral("merge_group", &json!({})));
        assert!(neutral(
            "issue_comment",
            &comment("edited", "User", pull.clone())
        ));
        assert!(neutral(
            "issue_comment",
            &comment("created", "Bot", pull.clone())
        ));
        assert!(neutral(
            "issue_comment",
            &comment("created", "User", Value::Null)
        ));
        assert!(neutral(
            "pull_request",
            &json!({"action": "closed", "pull_request": {"number": 1}})
        ));
        let Some(Event::Comment(event)) =
            of("issue_comment", &comment("created", "User", pull), "")
        else {
            panic!("a command");
        };
        assert_eq!((event.number, event.id), (3, 5_000_000_000));
    }
}

//! The findings of a reply: each is taken, mended or turned away alone.

use serde_json::{Map, Value, json};

use super::extract::{ReplyError, object};
use crate::model::{Category, FindingReport, Location, RepoPath, Severity, Side};

/// The key that makes a reply an answer.
const FINDINGS: &str = "findings";
/// Findings taken from one reply.
const MAX_FINDINGS: usize = 2_000;
/// Characters of a title that is made from another text.
const MADE_TITLE: usize = 120;

/// A finding that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedFinding {
    /// Its place in the list, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// The findings of a reply. Clean is `whole` with both lists empty: the reply said so itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingsReply {
    /// Those that can be read, in order.
    pub findings: Vec<FindingReport>,
    /// Those that cannot.
    pub rejected: Vec<RejectedFinding>,
    /// False when the reply was cut or part of it could not be read: there may be more.
    pub whole: bool,
}

/// Reads the findings of a reply. Without an explicit list of findings there is no answer.
pub fn findings(text: &str) -> Result<FindingsReply, ReplyError> {
    let found = object(text, FINDINGS)?;
    let Some(Value::Array(items)) = found.object.get(FINDINGS) else {
        return Err(ReplyError::NoList(FINDINGS));
    };
    let mut reply = FindingsReply {
        findings: Vec::new(),
        rejected: Vec::new(),
        whole: found.whole && items.len() <= MAX_FINDINGS,
    };
    for (index, item) in items.iter().take(MAX_FINDINGS).enumerate() {
        match finding(item) {
            Ok(finding) => reply.findings.push(finding),
            Err(reason) => reply.rejected.push(RejectedFinding { index, reason }),
        }
    }
    match reply.rejected.first() {
        Some(first) if reply.findings.is_empty() => {
            Err(ReplyError::NoneReadable(items.len(), first.reason.clone()))
        }
        _ => Ok(reply),
    }
}

/// The JSON schema of a findings reply, in the form that every provider's strict mode takes.
pub fn findings_schema() -> Value {
    let words = |all: Vec<&str>| json!({"type": "string", "enum": all});
    let text = json!({"type": "string"});
    let properties = json!({
        "severity": words(Severity::ALL.iter().map(|s| s.as_str()).collect()),
        "category": words(Category::ALL.iter().map(|c| c.as_str()).collect()),
        "file": text,
        "line": {"type": ["integer", "null"]},
        "side": words(Side::ALL.iter().map(|s| s.as_str()).collect()),
        "title": text,
        "consequence": text,
        "evidence": text,
    });
    let names: Vec<_> = properties
        .as_object()
        .map(|map| map.keys().cloned().collect())
        .unwrap_or_default();
    json!({
        "type": "object",
        "properties": {
            FINDINGS: {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": properties,
                    "required": names,
                    "additionalProperties": false,
                },
            },
        },
        "required": [FINDINGS],
        "additionalProperties": false,
    })
}

/// The first of `keys` with a text that is not blank.
fn text<'a>(map: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter()
        .filter_map(|key| map.get(*key)?.as_str())
        .find(|text| !text.trim().is_empty())
}

fn finding(value: &Value) -> Result<FindingReport, String> {
    let Value::Object(map) = value else {
        return Err("it is not an object".to_owned());
    };
    let place = text(map, &["file", "path", "filename"]).ok_or("it names no file")?;
    let (file, suffix) = file(place)?;
    let (line, end) = line(map.get("line").or_else(|| map.get("startLine"))).unzip();
    let line = line.or(suffix);
    let end = map.get("endLine").and_then(number).or(end.flatten());
    let rationale = text(map, &["consequence", "rationale", "description", "message"]);
    let title = text(map, &["title", "summary"])
        .map(str::to_owned)
        .or_else(|| {
            let first = rationale?.trim().lines().next()?;
            Some(first.chars().take(MADE_TITLE).collect())
        })
        .ok_or("it has neither a title nor a consequence")?;
    let evidence = match map.get("evidence") {
        Some(Value::Array(lines)) => lines.iter().find_map(Value::as_str),
        Some(Value::String(line)) => Some(line.as_str()),
        _ => None,
    };
    Ok(FindingReport {
        severity: severity(text(map, &["severity", "level"]).unwrap_or_default()),
        category: category(text(map, &["category", "type"]).unwrap_or_default()),
        location: Location {
            file,
            line,
            end_line: end.filter(|end| line.is_some_and(|line| *end > line)),
            side: side(text(map, &["side"]).unwrap_or_default()),
            columns: None,
        },
        title: title.trim().to_owned(),
        rationale: rationale.unwrap_or_default().trim().to_owned(),
        suggestion: text(map, &["suggestion"]).map(str::to_owned),
        evidence: evidence
            .filter(|line| !line.trim().is_empty())
            .map(str::to_owned),
        rule: None,
    })
}

/// The path, and the line that some models append to it.
fn file(text: &str) -> Result<(RepoPath, Option<u32>), String> {
    let text = text.trim().trim_matches('`');
    let text = text.strip_prefix("./").unwrap_or(text);
    let (path, line) = match text.rsplit_once(':') {
        Some((path, digits)) if !path.is_empty() => match digits.parse() {
            Ok(line) => (path, Some(line)),
            Err(_) => (text, None),
        },
        _ => (text, None),
    };
    let path = RepoPath::new(path).map_err(|error| format!("its file is no path: {error}"))?;
    Ok((path, line.filter(|line| *line > 0)))
}

fn number(value: &Value) -> Option<u32> {
    let number = match value {
        Value::Number(number) => match number.as_u64() {
            Some(number) => number,
            // Some models write `12.0`.
            None => number.to_string().strip_suffix(".0")?.parse().ok()?,
        },
        Value::String(text) => text.trim().trim_start_matches(['L', 'l']).parse().ok()?,
        _ => return None,
    };
    u32::try_from(number).ok().filter(|n| *n > 0)
}

/// `12`, `"12"`, `"L12"`, `"12-14"`: first and last line.
fn line(value: Option<&Value>) -> Option<(u32, Option<u32>)> {
    let value = value?;
    if let Some(line) = number(value) {
        return Some((line, None));
    }
    let (from, to) = value.as_str()?.split_once(['-', '–'])?;
    let from = number(&Value::String(from.to_owned()))?;
    Some((from, number(&Value::String(to.to_owned()))))
}

/// The severity that a word means; one that nobody knows is a warning.
fn severity(word: &str) -> Severity {
    match word.trim().to_ascii_lowercase().as_str() {
        "critical" | "blocker" | "fatal" | "high" | "severe" | "error" => Severity::Critical,
        "suggestion" | "info" | "note" | "low" | "minor" | "nit" | "trivial" => {
            Severity::Suggestion
        }
        _ => Severity::Warning,
    }
}

fn category(word: &str) -> Category {
    match word.trim().to_ascii_lowercase().as_str() {
        "security" | "vulnerability" => Category::Security,
        "secrets" | "secret" | "credential" | "credentials" => Category::Secrets,
        "quality" | "style" | "maintainability" | "consistency" | "readability" => {
            Category::Quality
        }
        _ => Category::Correctness,
    }
}

fn side(word: &str) -> Side {
    match word.trim().to_ascii_lowercase().as_str() {
        "old" | "left" | "removed" | "before" => Side::Old,
        _ => Side::New,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_an_explicit_empty_list_is_clean() {
        let clean = findings("Nothing to report.\n{\"findings\": []}").unwrap();
        assert!(clean.whole && clean.findings.is_empty() && clean.rejected.is_empty());
        for (text, error) in [
            ("", ReplyError::Empty),
            ("null", ReplyError::NoJson),
            ("[]", ReplyError::NoJson),
            ("I could not read the files.", ReplyError::NoJson),
            ("Looks good to me!", ReplyError::NoJson),
            ("{}", ReplyError::NoList("findings")),
            ("{\"findings\": null}", ReplyError::NoList("findings")),
            ("{\"findings\": {}}", ReplyError::NoList("findings")),
            ("{\"findings\": \"none\"}", ReplyError::NoList("findings")),
            (
                "{\"decision\": \"approve\"}",
                ReplyError::NoList("findings"),
            ),
        ] {
            assert_eq!(findings(text), Err(error), "{text}");
        }
        assert!(!findings("{\"findings\": [").unwrap().whole, "cut");
        let nested = "{\"findings\": [!], \"evidence\": {\"findings\": []}}";
        assert!(!findings(nested).is_ok_and(|reply| reply.whole));
    }

    #[test]
    fn one_bad_finding_does_not_cost_the_others() {
        let text = r#"{"findings": [
            {"severity": "HIGH", "category": "bug", "file": "./src/a.rs:7", "title": "A", "consequence": "B", "evidence": ["let x"]},
            17,
            {"file": "../etc/passwd", "title": "x"},
            {"file": "b.rs"},
            {"path": "b.rs", "line": "12-14", "side": "LEFT", "description": "It breaks.\nAlways.", "severity": "nit", "category": "secret"}
        ]}"#;
        let reply = findings(text).unwrap();
        assert!(reply.whole);
        let [first, second] = &reply.findings[..] else {
            panic!("{reply:?}");
        };
        assert_eq!(first.severity, Severity::Critical);
        assert_eq!(first.location.line, Some(7));
        assert_eq!(first.evidence.as_deref(), Some("let x"));
        assert_eq!(second.title, "It breaks.");
        assert_eq!(
            (second.location.line, second.location.end_line),
            (Some(12), Some(14))
        );
        assert_eq!(second.location.side, Side::Old);
        assert_eq!(second.severity, Severity::Suggestion);
        assert_eq!(second.category, Category::Secrets);
        let rejected: Vec<_> = reply.rejected.iter().map(|r| r.index).collect();
        assert_eq!(rejected, [1, 2, 3]);
        assert!(reply.rejected.iter().all(|r| !r.reason.is_empty()));
        let none = findings("{\"findings\": [1, 2]}");
        assert!(
            matches!(none, Err(ReplyError::NoneReadable(2, _))),
            "{none:?}"
        );
    }

    #[test]
    fn keys_that_nobody_asked_for_are_of_no_account() {
        let text = r#"{"decision": "approve", "findings": [], "summary": "s", "reviewTrace": {"version": 999},
            "researchDecisions": [{"outcome": "read-background", "summary": "No", "sources": []}]}"#;
        assert!(findings(text).unwrap().whole);
    }

    #[test]
    fn a_cut_reply_keeps_what_came_before() {
        let text =
            r#"{"findings": [{"file": "a.rs", "line": 3, "title": "A"}, {"file": "b.rs", "ti"#;
        let reply = findings(text).unwrap();
        assert!(!reply.whole);
        assert_eq!(reply.findings.len(), 1);
        assert_eq!(reply.rejected.len(), 1);
    }

    #[test]
    fn the_schema_is_strict() {
        let schema = findings_schema();
        let item = &schema["properties"]["findings"]["items"];
        let names = item["properties"].as_object().unwrap().len();
        assert_eq!(item["required"].as_array().unwrap().len(), names);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,300}") {
            let _ = findings(&text);
        }

        #[test]
        fn json_like_text_is_read_without_a_panic(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", "\"", ":", ",", "\\", "\\u", "d83d", "findings", "\"findings\"", "file",
                    "null", "1", "-", "e", "```", "\n", "<think>", "</think>", "é", " ",
                ]),
                0..60,
            )
        ) {
            let _ = findings(&parts.concat());
        }

        #[test]
        fn what_is_written_is_read(titles in prop::collection::vec("\\S.{0,40}", 0..5), prose in "[^{<]{0,40}") {
            let list: Vec<_> = titles.iter().map(|t| json!({"file": "a.rs", "line": 1, "title": t})).collect();
            let text = format!("{prose}\n```json\n{}\n```\n{prose}", json!({"findings": list}));
            let reply = findings(&text).unwrap();
            prop_assert!(reply.whole);
            let got: Vec<_> = reply.findings.into_iter().map(|f| f.title).collect();
            let wanted: Vec<_> = titles.iter().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty()).collect();
            prop_assert_eq!(got, wanted);
        }
    }
}

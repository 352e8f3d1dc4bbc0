//! What the judges answer: the coordinator's changes to a list of findings, the verifier's verdict on one.

use serde_json::{Map, Value, json};

use crate::model::{AgentId, Fingerprint, Severity};

/// Entries taken of each list.
const MAX_ENTRIES: usize = 500;
/// Characters of a title, and of a longer text, that are taken.
const MAX_TITLE: usize = 120;
const MAX_TEXT: usize = 600;

/// What the verifier thinks of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The source shows it.
    Confirmed,
    /// The source rules it out.
    Refuted,
    /// It cannot be told from what was shown.
    Uncertain,
}

/// A change of one finding's words or rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Which finding.
    pub id: Fingerprint,
    /// The new severity.
    pub severity: Option<Severity>,
    /// The new title.
    pub title: Option<String>,
    /// The new consequence.
    pub consequence: Option<String>,
}

/// What the coordinator wants changed. Nothing of it is checked against the findings yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coordination {
    /// Findings (second) that are the same as another one (first).
    pub merge: Vec<(Fingerprint, Vec<Fingerprint>)>,
    /// Findings that name no defect, and why.
    pub drop: Vec<(Fingerprint, String)>,
    /// Findings to word or rank anew.
    pub edit: Vec<Edit>,
    /// What would go wrong; may be empty.
    pub summary: String,
}

/// The schema of a verdict. The verdict stands before its reason, so that it is not argued into.
pub fn verdict_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["confirmed", "refuted", "uncertain"]},
            "reason": {"type": "string"},
        },
        "required": ["verdict", "reason"],
        "additionalProperties": false,
    })
}

/// The schema of a coordination.
pub fn coordination_schema() -> Value {
    let closed = |properties: Value| {
        let names: Vec<_> = properties
            .as_object()
            .map(|map| map.keys().cloned().collect())
            .unwrap_or_default();
        json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
    };
    let list = |item: Value| json!({"type": "array", "items": item});
    let text = || json!({"type": "string"});
    let or_null = || json!({"type": ["string", "null"]});
    closed(json!({
        "merge": list(closed(json!({"into": text(), "from": list(text())}))),
        "drop": list(closed(json!({"id": text(), "reason": text()}))),
        "edit": list(closed(json!({
            "id": text(),
            "severity": or_null(),
            "title": or_null(),
            "consequence": or_null(),
        }))),
        "summary": text(),
    }))
}

/// The schema of a routing.
pub fn route_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"agents": {"type": "array", "items": {"type": "string"}}},
        "required": ["agents"],
        "additionalProperties": false,
    })
}

/// Reads a routing: the reviewers that it names.
pub fn route(reply: &Value) -> Vec<AgentId> {
    let names = reply.get("agents").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .take(MAX_ENTRIES)
        .filter_map(|name| AgentId::new(name.as_str()?.trim()).ok())
        .collect()
}

/// Reads a verdict; what is none is an error in words.
pub fn verdict(reply: &Value) -> Result<(Verdict, String), String> {
    let word = reply.get("verdict").and_then(Value::as_str).unwrap_or("");
    let verdict = match word.trim().to_ascii_lowercase().as_str() {
        "confirmed" => Verdict::Confirmed,
        "refuted" => Verdict::Refuted,
        "uncertain" => Verdict::Uncertain,
        _ => return Err("the reply has no verdict".to_owned()),
    };
    Ok((verdict, cut(text(reply.get("reason")), MAX_TEXT)))
}

/// Reads a coordination. An entry that cannot be read is passed over: the finding stays as it is.
pub fn coordination(reply: &Value) -> Coordination {
    let entries = |key: &str| {
        let list = reply.get(key).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .take(MAX_ENTRIES)
            .collect::<Vec<&Map<String, Value>>>()
    };
    let id = |value: Option<&Value>| Fingerprint::new(value?.as_str()?.trim()).ok();
    let merge = entries("merge").into_iter().filter_map(|entry| {
        let from = entry.get("from")?.as_array()?.iter();
        Some((
            id(entry.get("into"))?,
            from.filter_map(|value| id(Some(value)))
                .take(MAX_ENTRIES)
                .collect(),
        ))
    });
    let drop = entries("drop").into_iter().filter_map(|entry| {
        Some((
            id(entry.get("id"))?,
            cut(text(entry.get("reason")), MAX_TEXT),
        ))
    });
    let worded = |value: Option<&Value>, max| {
        let text = text(value).trim();
        (!text.is_empty()).then(|| cut(text, max))
    };
    let edit = entries("edit").into_iter().filter_map(|entry| {
        Some(Edit {
            id: id(entry.get("id"))?,
            severity: text(entry.get("severity"))
                .trim()
                .to_ascii_lowercase()
                .parse()
                .ok(),
            title: worded(entry.get("title"), MAX_TITLE),
            consequence: worded(entry.get("consequence"), MAX_TEXT),
        })
    });
    Coordination {
        merge: merge.collect(),
        drop: drop.collect(),
        edit: edit.collect(),
        summary: cut(text(reply.get("summary")).trim(), MAX_TEXT),
    }
}

fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or("")
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_one_of_three_words() {
        let read = |value: Value| verdict(&value).map(|(verdict, _)| verdict);
        assert_eq!(
            read(json!({"verdict": " Refuted "})),
            Ok(Verdict::Refuted),
            "case and space aside"
        );
        for none in [
            json!({}),
            json!({"verdict": "no"}),
            json!({"verdict": true}),
            json!([]),
        ] {
            assert!(read(none.clone()).is_err(), "{none}");
        }
        let long = json!({"verdict": "uncertain", "reason": "é".repeat(5_000)});
        assert!(verdict(&long).unwrap().1.chars().count() <= MAX_TEXT + 1);
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_alone() {
        let reply = json!({
            "merge": [{"into": "75bf4d452d31", "from": ["0123456789ab", 7, "x"]}, {"into": 3}, "?"],
            "drop": [{"id": "75bf4d452d31"}, {"id": "short", "reason": "r"}],
            "edit": [{"id": "75bf4d452d31", "severity": "huge", "title": " ", "consequence": "c"}, null],
            "summary": 4,
        });
        let id = Fingerprint::new("75bf4d452d31").unwrap();
        let other = Fingerprint::new("0123456789ab").unwrap();
        let expected = Coordination {
            merge: vec![(id.clone(), vec![other])],
            drop: vec![(id.clone(), String::new())],
            edit: vec![Edit {
                id,
                severity: None,
                title: None,
                consequence: Some("c".to_owned()),
            }],
            summary: String::new(),
        };
        assert_eq!(coordination(&reply), expected);
        assert_eq!(coordination(&json!("prose")), Coordination::default());
    }

    #[test]
    fn the_verdict_stands_first_in_its_schema() {
        let schema = verdict_schema();
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["verdict", "reason"]);
    }
}

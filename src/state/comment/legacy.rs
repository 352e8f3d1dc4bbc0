//! The state of a comment by the earlier tool of the same name: base64 of JSON, five shapes without a version number.
//!
//! Its dismissals are kept, and the ids of its findings, so that the next review can say what is new.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Dismissal, Dismissals, MAX_REASON, Tag};
use crate::model::Fingerprint;

/// What was found.
pub(super) struct Earlier {
    pub(super) dismissals: Dismissals,
    pub(super) ids: Vec<Fingerprint>,
    pub(super) damaged: bool,
}

/// Reads `<!-- TAG:state=… -->` and `<!-- TAG:fingerprints=[…] -->`; `None` when neither is there.
pub(super) fn decode(tag: &Tag, body: &str) -> Option<Earlier> {
    // Both stand at the end, below everything that others wrote, so the last of each is the real one.
    let last = |name: &str| {
        let key = tag.key(name);
        body.lines()
            .filter_map(|line| line.trim().strip_prefix(key.as_str()))
            .next_back()
            .map(|value| value.trim_end_matches("-->").trim())
    };
    let (state, ids) = (last("state"), last("fingerprints"));
    if state.is_none() && ids.is_none() {
        return None;
    }
    let document: Option<Value> = state
        .and_then(|text| STANDARD.decode(text).ok())
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let records = document
        .as_ref()
        .and_then(|d| d.get("dismissed"))
        .and_then(Value::as_array);
    let mut damaged = records.is_none();
    let mut dismissals = Dismissals::default();
    for record in records.into_iter().flatten() {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        let Some(id) = text("fp").and_then(|id| Fingerprint::new(id).ok()) else {
            damaged = true;
            continue;
        };
        dismissals.put(Dismissal {
            id,
            active: true,
            comment: 0,
            at: 0,
            by: text("by").map(|by| by.chars().take(60).collect()),
            reason: text("reason").map(|why| why.chars().take(MAX_REASON).collect()),
            // It asked nobody for a reason; what was dismissed under its rules stays so.
            reasoned: true,
        });
    }
    let ids = ids
        .and_then(|text| serde_json::from_str::<Vec<String>>(text).ok())
        .unwrap_or_default()
        .iter()
        .filter_map(|id| Fingerprint::new(id).ok())
        .collect();
    Some(Earlier {
        dismissals,
        ids,
        damaged,
    })
}

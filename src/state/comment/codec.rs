//! State to one line of a comment and back.
//!
//! The line is `<!-- TAG:ecr=1.DISMISSALS.REVIEW -->`: two zlib streams in base64, the first holding one JSON document a line, so that a
//! line that was cut or damaged still gives up the dismissals in front of the damage.
//!
//! @ref LLP 0015#the-comment-is-the-store — the form and its limits

use std::io::{Read, Write};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::{Deserialize, Serialize};

use super::legacy;
use super::{BreakGlass, CommentState, Dismissal, Dismissals, StoredReview, Tag};
use crate::model::Fingerprint;

/// The version of the line.
pub const STATE_VERSION: u32 = 1;
/// What a stream may unfold to, bytes: a comment of 64 kB cannot hold more in good faith.
const MAX_UNFOLDED: u64 = 4 << 20;
/// A longer body is no comment.
const MAX_BODY: usize = 1 << 20;
/// A state line of a newer ecr is kept up to this size, so that there is room for a comment beside it.
const MAX_NEWER: usize = 40_000;

/// Base64 without padding; forgiving about the last bits, since a line may have been cut anywhere.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What is wrong with the state that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Damage {
    /// Dismissals may be missing. The next replay reads every command again.
    pub dismissals: bool,
    /// The stored review is lost.
    pub review: bool,
    /// The state of a newer ecr is too long to be kept.
    pub newer: bool,
}

impl Damage {
    /// True when there is any.
    pub fn any(self) -> bool {
        self.dismissals || self.review || self.newer
    }
}

/// What a comment was found to carry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decoded {
    /// The state; what could not be read is empty.
    pub state: CommentState,
    /// What could not be read.
    pub damage: Damage,
    /// Ids of the findings of a comment by an earlier version, for which there is no stored review.
    pub earlier_ids: Vec<Fingerprint>,
    /// True when there was any state.
    pub found: bool,
}

#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(default)]
    applied: u64,
    #[serde(default)]
    seen: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    glass: Option<GlassLine>,
}

#[derive(Serialize, Deserialize)]
struct GlassLine {
    comment: u64,
    at: i64,
    active: bool,
    by: String,
}

/// A dismissal as a line; what is missing is 0, absent or true for `on`.
#[derive(Serialize, Deserialize)]
struct Record {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    c: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// There was a reason that is not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    r: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on: Option<bool>,
}

impl From<&Dismissal> for Record {
    fn from(d: &Dismissal) -> Self {
        Self {
            id: d.id.to_string(),
            c: (d.comment != 0).then_some(d.comment),
            at: (d.at != 0).then_some(d.at),
            by: d.by.clone(),
            why: d.reason.clone(),
            r: (d.reasoned && d.reason.is_none()).then_some(true),
            on: (!d.active).then_some(false),
        }
    }
}

impl Record {
    fn read(self) -> Option<Dismissal> {
        Some(Dismissal {
            id: Fingerprint::new(&self.id).ok()?,
            active: self.on.unwrap_or(true),
            comment: self.c.unwrap_or(0),
            at: self.at.unwrap_or(0),
            by: self.by,
            reasoned: self.why.is_some() || self.r.unwrap_or(false),
            reason: self.why,
        })
    }
}

/// The marker line and the state lines, each with its line end. Shorten `state` before, where it may be long.
pub fn encode(tag: &Tag, state: &CommentState) -> String {
    let mut lines = String::new();
    let glass = state.break_glass.as_ref().map(|glass| GlassLine {
        comment: glass.comment,
        at: glass.at,
        active: glass.active,
        by: glass.by.clone(),
    });
    push_json(
        &mut lines,
        &Head {
            applied: state.applied,
            seen: state.seen_at,
            glass,
        },
    );
    for dismissal in state.dismissals.iter() {
        push_json(&mut lines, &Record::from(dismissal));
    }
    let mut review = String::new();
    if let Some(stored) = &state.review {
        push_json(&mut review, stored);
    }
    let mut out = tag.marker();
    out.push('\n');
    if let Some(newer) = &state.newer {
        out.push_str(newer);
        out.push('\n');
    }
    out.push_str(&tag.key("ecr"));
    out.push_str(&STATE_VERSION.to_string());
    for text in [lines, review] {
        out.push('.');
        out.push_str(&BASE64.encode(fold(text.as_bytes())));
    }
    out.push_str(" -->\n");
    out
}

/// Plain structs of texts and numbers: this cannot fail, and a line that did would be left out.
fn push_json(out: &mut String, value: &impl Serialize) {
    if let Ok(json) = serde_json::to_string(value) {
        out.push_str(&json);
        out.push('\n');
    }
}

fn fold(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to a Vec cannot fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// The text in front of the damage, and whether there is none.
fn unfold(text: &str) -> (String, bool) {
    let good = text
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
        .count();
    // One character alone in the last group of four holds no byte.
    let usable = if good % 4 == 1 { good - 1 } else { good };
    let bytes = BASE64.decode(&text[..usable]).unwrap_or_default();
    let mut out = Vec::new();
    let mut decoder = ZlibDecoder::new(bytes.as_slice()).take(MAX_UNFOLDED + 1);
    let mut buffer = [0; 8192];
    let whole = loop {
        match decoder.read(&mut buffer) {
            Ok(0) => break out.len() as u64 <= MAX_UNFOLDED,
            Ok(n) => out.extend_from_slice(&buffer[..n]),
            Err(_) => break false,
        }
    };
    let intact = whole && usable == text.len() && !bytes.is_empty();
    match String::from_utf8(out) {
        Ok(text) => (text, intact),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            (String::from_utf8_lossy(&bytes[..good]).into_owned(), false)
        }
    }
}

/// Reads the body of a comment of ours, in whatever shape it is. The caller has checked who wrote it.
pub fn decode(tag: &Tag, body: &str) -> Decoded {
    let mut decoded = Decoded::default();
    if body.len() > MAX_BODY {
        return decoded;
    }
    let marker = tag.marker();
    let key = tag.key("ecr");
    let mut lines = body
        .lines()
        .map(|line| line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}'))
        .skip_while(|line| !line.starts_with(&marker))
        .skip(1);
    // State counts at the head only: below it stand texts of others.
    for line in lines
        .by_ref()
        .take_while(|l| l.is_empty() || l.starts_with("<!--"))
    {
        let Some(value) = line.strip_prefix(&key) else {
            continue;
        };
        let (value, whole) = match value.strip_suffix("-->") {
            Some(value) => (value.trim_end(), true),
            None => (value, false),
        };
        let (version, payload) = value.split_once('.').unwrap_or((value, ""));
        match version.parse::<u32>() {
            Ok(version) if version > STATE_VERSION => {
                if line.len() > MAX_NEWER || !whole {
                    decoded.damage.newer = true;
                } else {
                    decoded.state.newer = Some(line.to_owned());
                }
                decoded.found = true;
            }
            Ok(STATE_VERSION) => {
                let (state, damage) = read(payload, whole);
                let newer = decoded.state.newer.take();
                decoded.state = if decoded.found && decoded.state != CommentState::default() {
                    decoded.state.merge(state)
                } else {
                    state
                };
                decoded.state.newer = newer;
                decoded.damage.dismissals |= damage.dismissals;
                decoded.damage.review |= damage.review;
                decoded.found = true;
            }
            _ => {
                decoded.damage.dismissals = true;
                decoded.damage.review = true;
                decoded.found = true;
            }
        }
    }
    if !decoded.found
        && let Some(earlier) = legacy::decode(tag, body)
    {
        decoded.found = true;
        decoded.damage.dismissals = earlier.damaged;
        decoded.state.dismissals = earlier.dismissals;
        decoded.earlier_ids = earlier.ids;
    }
    if decoded.damage.dismissals {
        // Not everything up to the mark is in here any more: read all commands again.
        decoded.state.applied = 0;
        decoded.state.seen_at = 0;
    }
    decoded
}

fn read(payload: &str, whole: bool) -> (CommentState, Damage) {
    let (dismissals, review) = match payload.split_once('.') {
        Some((dismissals, review)) => (dismissals, Some(review)),
        None => (payload, None),
    };
    let mut state = CommentState::default();
    let (lines, intact) = unfold(dismissals);
    let mut damage = Damage {
        dismissals: !intact,
        ..Damage::default()
    };
    // The last line is whole only if it has its end.
    let end = lines.rfind('\n').map_or(0, |at| at + 1);
    let mut lines = lines[..end].lines();
    match lines.next().map(serde_json::from_str::<Head>) {
        Some(Ok(head)) => {
            state.applied = head.applied;
            state.seen_at = head.seen;
            state.break_glass = head.glass.map(|glass| BreakGlass {
                comment: glass.comment,
                at: glass.at,
                active: glass.active,
                by: glass.by,
            });
        }
        _ => damage.dismissals = true,
    }
    let mut known = Dismissals::default();
    for line in lines {
        match serde_json::from_str::<Record>(line)
            .ok()
            .and_then(Record::read)
        {
            Some(dismissal) => known.put(dismissal),
            None => damage.dismissals = true,
        }
    }
    state.dismissals = known;
    if let Some(review) = review.filter(|text| !text.is_empty()) {
        let (json, intact) = unfold(review);
        if !(intact && json.is_empty()) {
            match serde_json::from_str::<StoredReview>(&json) {
                Ok(stored) if intact && whole && stored.findings.iter().all(has_id) => {
                    state.review = Some(stored);
                }
                _ => damage.review = true,
            }
        }
    } else {
        damage.review = !whole || review.is_none();
    }
    (state, damage)
}

fn has_id(finding: &super::StoredFinding) -> bool {
    Fingerprint::new(&finding.id).is_ok()
}

//! Saved reviews: what `ecr explain` and `ecr stats` read back. Encode and decode only; where the
//! file lies is the caller's business.

use serde::{Deserialize, Serialize};

use super::output::{OutputV1, SCHEMA_VERSION};

/// The version of the envelope around the output document.
pub const SAVED_VERSION: u32 = 1;

/// A finished run as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedRun {
    /// The version of this envelope.
    pub saved_version: u32,
    /// When it was saved, RFC 3339 in UTC.
    pub saved_at: String,
    /// The version of ecr that saved it.
    pub ecr_version: String,
    /// The run.
    pub output: OutputV1,
}

impl SavedRun {
    /// Wraps a run for saving; the version of ecr is the document's own.
    pub fn new(saved_at: jiff::Timestamp, output: OutputV1) -> Self {
        Self {
            saved_version: SAVED_VERSION,
            saved_at: saved_at.to_string(),
            ecr_version: output.tool.version.clone(),
            output,
        }
    }
}

/// Why a saved run cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// A newer ecr wrote it.
    #[error(
        "this run was saved by a newer ecr ({writer}, {what} version {found}; this one reads up to {known}): update ecr to read it"
    )]
    Newer {
        /// The version of ecr that wrote it, as far as it says.
        writer: String,
        /// Which part is newer: `envelope` or `output`.
        what: &'static str,
        /// The version found.
        found: u64,
        /// The newest version this ecr knows.
        known: u32,
    },
    /// It is no saved run.
    #[error("not a saved ecr run: {0}")]
    Invalid(String),
}

/// The text of a saved run: one JSON document with a final newline.
pub fn encode(run: &SavedRun) -> Result<String, SavedError> {
    let mut text =
        serde_json::to_string(run).map_err(|error| SavedError::Invalid(error.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// Reads a saved run, or a bare `--format json` document, for which `saved_at` is empty.
pub fn decode(text: &str) -> Result<SavedRun, SavedError> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| SavedError::Invalid(error.to_string()))?;
    let bare = value.get("savedVersion").is_none();
    let document = if bare {
        &value
    } else {
        value.get("output").unwrap_or(&serde_json::Value::Null)
    };
    let writer = document
        .pointer("/tool/version")
        .and_then(serde_json::Value::as_str)
        .unwrap_or("unknown version");
    // The versions come first: of a newer document nothing else is known to be readable.
    if !bare {
        check("envelope", writer, value.get("savedVersion"), SAVED_VERSION)?;
    }
    check(
        "output",
        writer,
        document.get("schemaVersion"),
        SCHEMA_VERSION,
    )?;
    let invalid = |error: serde_json::Error| SavedError::Invalid(error.to_string());
    if bare {
        let output: OutputV1 = serde_json::from_value(value).map_err(invalid)?;
        return Ok(SavedRun {
            saved_version: SAVED_VERSION,
            saved_at: String::new(),
            ecr_version: output.tool.version.clone(),
            output,
        });
    }
    serde_json::from_value(value).map_err(invalid)
}

fn check(
    what: &'static str,
    writer: &str,
    version: Option<&serde_json::Value>,
    known: u32,
) -> Result<(), SavedError> {
    let found = version
        .and_then(serde_json::Value::as_u64)
        .ok_or_else(|| SavedError::Invalid(format!("the {what} has no version number")))?;
    if found == 0 {
        return Err(SavedError::Invalid(format!("the {what} has version 0")));
    }
    if found > u64::from(known) {
        return Err(SavedError::Newer {
            writer: writer
                .chars()
                .filter(char::is_ascii_graphic)
                .take(40)
                .collect(),
            what,
            found,
            known,
        });
    }
    Ok(())
}

//! Reading an answer: events of a stream, or one document from a server that does not stream.

use futures_util::StreamExt as _;
use serde_json::Value;

use super::wire::{Turn, TurnReader, broke_off};
use crate::gateway::{DoorError, EventSink, ModelAnswer, Splitter};
use crate::port::EngineError;

/// Bytes of one answer.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Why an answer gave no turn.
#[derive(Debug)]
pub(super) enum NoTurn {
    /// The door ended it.
    Door(DoorError),
    /// It cannot be used.
    Answer(EngineError),
}

impl From<EngineError> for NoTurn {
    fn from(error: EngineError) -> Self {
        Self::Answer(error)
    }
}

/// Feeds the data of whole events to a reader.
struct Events {
    reader: Box<dyn TurnReader>,
    data: Vec<u8>,
    failed: Option<EngineError>,
}

impl EventSink for Events {
    fn data(&mut self, piece: &[u8]) {
        self.data.extend_from_slice(piece);
    }

    fn end(&mut self) {
        let data = std::mem::take(&mut self.data);
        let text = data.trim_ascii();
        if self.failed.is_some() || text.is_empty() || text == b"[DONE]" {
            return;
        }
        let taken = match serde_json::from_slice::<Value>(text) {
            Ok(event) => self.reader.event(&event),
            Err(error) => Err(EngineError::Protocol(format!(
                "an event of the answer is no JSON: {error}"
            ))),
        };
        self.failed = taken.err();
    }
}

/// Reads the whole answer.
pub(super) async fn turn(
    mut answer: ModelAnswer,
    mut reader: Box<dyn TurnReader>,
) -> Result<Turn, NoTurn> {
    let is_document = answer
        .headers
        .get(http::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.starts_with("application/json"));
    let mut size = 0;
    let mut check = |piece: usize| {
        size += piece;
        if size > MAX_ANSWER {
            return Err(EngineError::Protocol("the answer is too long".to_owned()));
        }
        Ok(())
    };
    if is_document {
        let mut body = Vec::new();
        while let Some(piece) = answer.body.next().await {
            let piece = piece.map_err(NoTurn::Door)?;
            check(piece.len())?;
            body.extend_from_slice(&piece);
        }
        let document: Value = serde_json::from_slice(&body).map_err(|_| broke_off())?;
        reader.document(&document)?;
        return Ok(reader.finish()?);
    }
    let mut events = Events {
        reader,
        data: Vec::new(),
        failed: None,
    };
    let mut splitter = Splitter::new();
    while let Some(piece) = answer.body.next().await {
        let piece = piece.map_err(NoTurn::Door)?;
        check(piece.len())?;
        splitter.feed(&piece, &mut events);
        if events.failed.is_some() {
            break;
        }
    }
    match events.failed {
        Some(error) => Err(error.into()),
        None => Ok(events.reader.finish()?),
    }
}

//! Objects by id: libgit2's object database where it can, `git cat-file --batch` where it cannot.
//!
//! libgit2 refuses whole repositories for features that have nothing to do with objects (reftable, sparse index), so only its object
//! database is opened. It knows no SHA-256 and fetches nothing; for those objects the command is asked.
//!
//! @ref LLP 0001#repositories-that-libgit2-refuses — the fallback behind the same reads

use std::io::{BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::repository::HashFormat;
use super::scratch::Scratch;
use crate::model::ObjectId;
use crate::process::{Dialogue, Spec};

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Blob,
    Tree,
    Commit,
    Other,
}

/// What came of reading an object.
#[derive(Debug)]
pub(super) enum ObjectRead {
    Found(ObjectKind, Vec<u8>),
    TooLarge(u64),
    Missing,
}

/// Reads the objects of one repository and its scratch folder.
pub(super) struct ObjectStore {
    database: Option<git2::Odb<'static>>,
    spec: Spec,
    dialogue: Mutex<Option<Dialogue>>,
    format: HashFormat,
    /// Keeps the folder with the snapshots alive.
    _scratch: Arc<Scratch>,
}

impl ObjectStore {
    /// `spec` starts `cat-file --batch` in the scratch folder; it is started when it is needed first.
    pub(super) fn new(scratch: Arc<Scratch>, format: HashFormat, spec: Spec) -> Self {
        Self {
            database: (format == HashFormat::Sha1)
                .then(|| open(&scratch))
                .flatten(),
            spec,
            dialogue: Mutex::new(None),
            format,
            _scratch: scratch,
        }
    }

    /// Bytes in a binary object id.
    pub(super) fn id_len(&self) -> usize {
        match self.format {
            HashFormat::Sha1 => 20,
            HashFormat::Sha256 => 32,
        }
    }

    /// Reads an object of at most `limit` bytes. An error is a broken repository or command.
    pub(super) fn read(&self, id: &ObjectId, limit: u64) -> Result<ObjectRead, String> {
        if let Some(database) = &self.database
            && let Some(found) = read_database(database, id, limit)?
        {
            return Ok(found);
        }
        let mut dialogue = self.dialogue.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = match dialogue.take() {
            Some(running) => running,
            None => Dialogue::start(&self.spec).map_err(|error| error.to_string())?,
        };
        match ask(&mut running, id, limit) {
            Ok(Some(answer)) => {
                *dialogue = Some(running);
                Ok(answer)
            }
            // The command ended instead of answering: fetching a missing object failed.
            Ok(None) => Ok(ObjectRead::Missing),
            Err(error) => Err(format!("git cat-file: {error}")),
        }
    }
}

fn open(scratch: &Scratch) -> Option<git2::Odb<'static>> {
    let database = git2::Odb::new().ok()?;
    for folder in [scratch.borrowed(), &scratch.objects()] {
        database.add_disk_alternate(folder.to_str()?).ok()?;
    }
    Some(database)
}

/// `None` when libgit2 does not have the object.
fn read_database(
    database: &git2::Odb<'static>,
    id: &ObjectId,
    limit: u64,
) -> Result<Option<ObjectRead>, String> {
    let Ok(oid) = git2::Oid::from_str(id.as_str()) else {
        return Ok(None);
    };
    let found = database.read_header(oid).and_then(|(size, _)| {
        if size as u64 > limit {
            return Ok(ObjectRead::TooLarge(size as u64));
        }
        let object = database.read(oid)?;
        let kind = match object.kind() {
            git2::ObjectType::Blob => ObjectKind::Blob,
            git2::ObjectType::Tree => ObjectKind::Tree,
            git2::ObjectType::Commit => ObjectKind::Commit,
            _ => ObjectKind::Other,
        };
        Ok(ObjectRead::Found(kind, object.data().to_vec()))
    });
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error.message().to_owned()),
    }
}

/// One question and its answer; `None` when the command ended.
fn ask(dialogue: &mut Dialogue, id: &ObjectId, limit: u64) -> std::io::Result<Option<ObjectRead>> {
    let odd = || std::io::Error::other("an answer that cannot be understood");
    if let Err(error) = dialogue.send(format!("{id}\n").as_bytes()) {
        return if error.kind() == std::io::ErrorKind::BrokenPipe {
            Ok(None)
        } else {
            Err(error)
        };
    }
    let answers = dialogue.answers();
    let mut header = Vec::new();
    // A header is an id, a word and a number.
    (&mut *answers).take(256).read_until(b'\n', &mut header)?;
    if header.is_empty() {
        return Ok(None);
    }
    let header = std::str::from_utf8(&header).map_err(|_| odd())?;
    let mut fields = header.split_ascii_whitespace();
    let (Some(name), Some(kind)) = (fields.next(), fields.next()) else {
        return Err(odd());
    };
    if name != id.as_str() {
        return Err(odd());
    }
    if kind == "missing" {
        return Ok(Some(ObjectRead::Missing));
    }
    let size: u64 = fields.next().and_then(|n| n.parse().ok()).ok_or_else(odd)?;
    let kind = match kind {
        "blob" => ObjectKind::Blob,
        "tree" => ObjectKind::Tree,
        "commit" => ObjectKind::Commit,
        _ => ObjectKind::Other,
    };
    // The content is followed by a line feed.
    if size > limit {
        let skipped = std::io::copy(&mut answers.take(size + 1), &mut std::io::sink())?;
        return if skipped == size + 1 {
            Ok(Some(ObjectRead::TooLarge(size)))
        } else {
            Err(odd())
        };
    }
    let mut content = Vec::new();
    answers.take(size + 1).read_to_end(&mut content)?;
    if content.len() as u64 != size + 1 || content.pop() != Some(b'\n') {
        return Err(odd());
    }
    Ok(Some(ObjectRead::Found(kind, content)))
}

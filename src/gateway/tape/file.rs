//! A tape on disk: a folder with a header and one file an exchange.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// The version of this format.
pub const TAPE_VERSION: u32 = 1;
/// The header's file.
pub const HEADER_FILE: &str = "tape.json";
/// The ending of an exchange's file.
const EXCHANGE: &str = ".exchange.json";
/// A file larger than this is not read.
const MAX_FILE: u64 = 256 << 20;
/// A tape of more exchanges than this is not read.
const MAX_EXCHANGES: usize = 100_000;

/// What a tape says about its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The version of the tape.
    pub tape_version: u32,
    /// The version of ecr that recorded it.
    pub ecr_version: String,
    /// The seed of the run: the mark that its prompts are bounded with.
    pub seed: String,
    /// The commit that the change is against, if any.
    pub base: Option<String>,
    /// The commit under review; none for a working tree or a patch.
    pub head: Option<String>,
}

/// One exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exchange {
    /// The canonical request.
    pub(super) request: String,
    /// How many equal requests were sent before this one.
    pub(super) occurrence: u32,
    /// What came back.
    pub(super) answer: Answer,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(super) enum Answer {
    /// An answer, perhaps cut.
    #[serde(rename_all = "camelCase")]
    Answered {
        /// Its status.
        status: u16,
        /// The headers that mean something to the door.
        headers: Vec<(String, String)>,
        /// Its body, credentials masked.
        body: Body,
        /// Why it ended before its end, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut: Option<String>,
    },
    /// No connection.
    NotConnected {
        /// The words.
        error: String,
    },
    /// A connection that broke before an answer.
    Lost {
        /// The words.
        error: String,
    },
    /// The client gave up before an answer came.
    GivenUp,
}

/// A body: text where it is text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Body {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Base64(String),
}

impl Body {
    pub(super) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(super::scrub::scrub(text)),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Base64(text) => STANDARD.decode(text).ok(),
        }
    }

    /// The body in the pieces in which it is served: an event each, where it is a stream of events.
    pub(super) fn pieces(&self) -> Option<Vec<Vec<u8>>> {
        let bytes = self.bytes()?;
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        loop {
            let at = [&b"\n\n"[..], b"\r\n\r\n"]
                .iter()
                .filter_map(|gap| Some(memchr::memmem::find(rest, gap)? + gap.len()))
                .min();
            match at {
                Some(at) if at < rest.len() => {
                    pieces.push(rest[..at].to_vec());
                    rest = &rest[at..];
                }
                _ => {
                    if !rest.is_empty() {
                        pieces.push(rest.to_vec());
                    }
                    return Some(pieces);
                }
            }
        }
    }
}

/// Why a tape cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// There is something in the folder.
    #[error("{} is not empty: a recording gets a folder of its own", .0.display())]
    NotEmpty(PathBuf),
    /// There is no tape.
    #[error("{} holds no tape: there is no {HEADER_FILE} in it", .0.display())]
    None(PathBuf),
    /// A newer ecr recorded it.
    #[error("{}: recorded by a newer ecr (tape version {found}; this one reads {TAPE_VERSION}): update ecr to replay it", path.display())]
    Newer {
        /// The header.
        path: PathBuf,
        /// Its version.
        found: u64,
    },
    /// A file that is no part of a tape.
    #[error("{}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Reading or writing failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> TapeError {
    let path = path.to_owned();
    move |source| TapeError::Io { path, source }
}

/// Makes the folder of a new tape (0700): one that is not there yet, or an empty one.
pub(super) fn create(folder: &Path, header: &Header) -> Result<(), TapeError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(folder).map_err(io_error(folder))?;
    if fs::read_dir(folder)
        .map_err(io_error(folder))?
        .next()
        .is_some()
    {
        return Err(TapeError::NotEmpty(folder.to_owned()));
    }
    write(folder, HEADER_FILE, header)
}

/// Writes one exchange; `number` makes its name unique and keeps the order of the recording.
pub(super) fn write_exchange(
    folder: &Path,
    number: usize,
    exchange: &Exchange,
) -> Result<(), TapeError> {
    write(folder, &format!("{number:06}{EXCHANGE}"), exchange)
}

/// Writes a file (0600) such that a reader sees all of it or nothing.
fn write(folder: &Path, name: &str, value: &impl Serialize) -> Result<(), TapeError> {
    let path = folder.join(name);
    let save = || -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    };
    save().map_err(io_error(&path))
}

/// Reads a tape.
pub(super) fn read(folder: &Path) -> Result<(Header, Vec<Exchange>), TapeError> {
    let path = folder.join(HEADER_FILE);
    let text = match text_of(&path) {
        Err(TapeError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(TapeError::None(folder.to_owned()));
        }
        text => text?,
    };
    let value: serde_json::Value = parse(&path, &text)?;
    match value.get("tapeVersion").and_then(serde_json::Value::as_u64) {
        Some(found) if found > u64::from(TAPE_VERSION) => {
            return Err(TapeError::Newer { path, found });
        }
        Some(1..) => {}
        _ => {
            return Err(TapeError::Damaged {
                path,
                problem: "it has no tapeVersion".to_owned(),
            });
        }
    }
    let header = parse(&path, &text)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error(folder))? {
        let path = entry.map_err(io_error(folder))?.path();
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().ends_with(EXCHANGE))
        {
            names.push(path);
        }
    }
    if names.len() > MAX_EXCHANGES {
        return Err(TapeError::Damaged {
            path: folder.to_owned(),
            problem: format!("it holds more than {MAX_EXCHANGES} exchanges"),
        });
    }
    names.sort();
    let mut exchanges = Vec::with_capacity(names.len());
    for path in names {
        let exchange: Exchange = parse(&path, &text_of(&path)?)?;
        if let Answer::Answered { body, status, .. } = &exchange.answer
            && (body.bytes().is_none() || http::StatusCode::from_u16(*status).is_err())
        {
            return Err(TapeError::Damaged {
                path,
                problem: "its answer cannot be read".to_owned(),
            });
        }
        exchanges.push(exchange);
    }
    Ok((header, exchanges))
}

fn text_of(path: &Path) -> Result<String, TapeError> {
    let meta = fs::metadata(path).map_err(io_error(path))?;
    if !meta.is_file() || meta.len() > MAX_FILE {
        return Err(TapeError::Damaged {
            path: path.to_owned(),
            problem: format!("it is no file of at most {MAX_FILE} bytes"),
        });
    }
    let bytes = fs::read(path).map_err(io_error(path))?;
    String::from_utf8(bytes).map_err(|_| TapeError::Damaged {
        path: path.to_owned(),
        problem: "it is not UTF-8".to_owned(),
    })
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, TapeError> {
    serde_json::from_str(text).map_err(|error| TapeError::Damaged {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_served_one_by_one_and_no_byte_is_lost() {
        for text in [
            "a: 1\n\nb: 2\r\n\r\nc",
            "",
            "\n\n\n\n",
            "{\"one\": 1}",
            "a\n\n",
        ] {
            let pieces = Body::of(text.as_bytes()).pieces().unwrap();
            assert_eq!(pieces.concat(), text.as_bytes());
        }
        assert_eq!(Body::of(b"a\n\nb\n\n").pieces().unwrap().len(), 2);
        assert_eq!(Body::of(&[0xff, 0]).pieces().unwrap(), [vec![0xff, 0]]);
    }
}

//! Replaying: a transport that answers from a tape, and from nothing else.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::canonical::{canonical, difference};
use super::file::{self, Answer, Exchange, Header, TapeError};
use crate::http::{Outgoing, Transport, TransportAnswer, TransportError};

/// Mismatches that are kept.
const KEPT: usize = 20;

/// Answers from a tape.
pub struct Replay {
    header: Header,
    exchanges: Vec<Exchange>,
    /// The exchanges of a request, in the order in which they were sent.
    by_request: HashMap<String, Vec<usize>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    used: HashSet<usize>,
    sent: HashMap<String, usize>,
    mismatches: Vec<String>,
}

impl Replay {
    /// Reads a tape.
    pub fn open(folder: &Path) -> Result<Self, TapeError> {
        let (header, exchanges) = file::read(folder)?;
        let mut by_request: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, exchange) in exchanges.iter().enumerate() {
            by_request
                .entry(exchange.request.clone())
                .or_default()
                .push(at);
        }
        for found in by_request.values_mut() {
            found.sort_by_key(|at| exchanges[*at].occurrence);
        }
        Ok(Self {
            header,
            exchanges,
            by_request,
            state: Mutex::default(),
        })
    }

    /// What the tape says about its run.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Requests that are not on the tape, each with what distinguishes it from the nearest one that is.
    pub fn mismatches(&self) -> Vec<String> {
        self.lock().mismatches.clone()
    }

    /// Exchanges that nobody asked for.
    pub fn unused(&self) -> usize {
        self.exchanges.len() - self.lock().used.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, request: &str) -> Result<&Answer, String> {
        let mut state = self.lock();
        let before = {
            let sent = state.sent.entry(request.to_owned()).or_default();
            let before = *sent;
            *sent += 1;
            before
        };
        let found = self.by_request.get(request);
        if let Some(at) = found.and_then(|found| found.get(before)) {
            state.used.insert(*at);
            return Ok(&self.exchanges[*at].answer);
        }
        let words = if let Some(found) = found {
            format!(
                "the same request was recorded {} times and is sent once more",
                found.len()
            )
        } else {
            // The one that shares the longest beginning is most likely the one that was meant.
            let nearest = self
                .exchanges
                .iter()
                .enumerate()
                .filter(|(at, _)| !state.used.contains(at))
                .max_by_key(|(_, exchange)| shared(&exchange.request, request));
            match nearest {
                Some((_, exchange)) => difference(&exchange.request, request),
                None => "nothing that was recorded is left".to_owned(),
            }
        };
        if state.mismatches.len() < KEPT {
            state.mismatches.push(words.clone());
        }
        Err(words)
    }
}

/// Bytes that two texts have in common at their beginning.
fn shared(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count()
}

impl Transport for Replay {
    fn send(
        &self,
        request: Outgoing,
    ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>> {
        Box::pin(async move {
            let answer = self.find(&canonical(&request)).map_err(|_| {
                TransportError::Unusable("the request is not on the tape".to_owned())
            })?;
            match answer {
                Answer::NotConnected { error } => Err(TransportError::Connect(error.clone())),
                Answer::Lost { error } => Err(TransportError::Lost(error.clone())),
                Answer::GivenUp => Err(TransportError::Lost(
                    "the recorded run gave up before an answer came".to_owned(),
                )),
                Answer::Answered {
                    status,
                    headers,
                    body,
                    cut,
                } => {
                    let pieces = body.pieces().unwrap_or_default();
                    let cut = cut.clone().map(|words| Err(TransportError::Lost(words)));
                    let body = pieces
                        .into_iter()
                        .map(|piece| Ok(Bytes::from(piece)))
                        .chain(cut);
                    Ok(TransportAnswer {
                        status: StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY),
                        headers: served(headers),
                        body: Box::pin(stream::iter(body.collect::<Vec<_>>())),
                    })
                }
            }
        })
    }
}

/// The recorded headers. There is nothing to wait for on a tape.
fn served(headers: &[(String, String)]) -> HeaderMap {
    headers
        .iter()
        .filter_map(|(name, value)| {
            let name: HeaderName = name.parse().ok()?;
            let value = if name.as_str().starts_with("retry-after") {
                "0"
            } else {
                value
            };
            Some((name, HeaderValue::from_str(value).ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::StreamExt as _;

    use super::super::record::Recorder;
    use super::super::{HEADER_FILE, TAPE_VERSION};
    use super::*;

    /// Answers with what the request's body says, cut after it when the path says so.
    struct Echo;

    impl Transport for Echo {
        fn send(
            &self,
            request: Outgoing,
        ) -> Pin<Box<dyn Future<Output = Result<TransportAnswer, TransportError>> + Send + '_>>
        {
            Box::pin(async move {
                if request.url.path() == "/down" {
                    return Err(TransportError::Connect("refused".to_owned()));
                }
                let mut headers = HeaderMap::new();
                headers.insert("retry-after", HeaderValue::from_static("90"));
                headers.insert("set-cookie", HeaderValue::from_static("session"));
                let mut pieces = vec![Ok(Bytes::from_static(b"one\n\n")), Ok(request.body)];
                if request.url.path() == "/cut" {
                    pieces.push(Err(TransportError::Lost("reset".to_owned())));
                }
                Ok(TransportAnswer {
                    status: StatusCode::OK,
                    headers,
                    body: Box::pin(stream::iter(pieces)),
                })
            })
        }
    }

    fn header() -> Header {
        Header {
            tape_version: TAPE_VERSION,
            ecr_version: "0".to_owned(),
            seed: "00ff".to_owned(),
            base: None,
            head: None,
        }
    }

    fn request(path: &str, body: &str) -> Outgoing {
        let mut headers = HeaderMap::new();
        headers.insert("x-api-key", HeaderValue::from_static("canary-key"));
        Outgoing {
            method: http::Method::POST,
            url: format!("http://127.0.0.1:9{path}").parse().unwrap(),
            headers,
            body: Bytes::from(body.to_owned()),
        }
    }

    async fn ask(transport: &dyn Transport, path: &str, body: &str) -> String {
        match transport.send(request(path, body)).await {
            Err(error) => error.to_string(),
            Ok(answer) => {
                let parts: Vec<_> = answer.body.collect().await;
                let parts: Vec<String> = parts
                    .into_iter()
                    .map(|part| match part {
                        Ok(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                        Err(error) => format!("!{error}"),
                    })
                    .collect();
                format!("{} {}", answer.status, parts.concat())
            }
        }
    }

    #[tokio::test]
    async fn what_was_recorded_is_served_back_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tape");
        let recorder = Recorder::begin(&folder, &header(), Arc::new(Echo)).unwrap();
        let asked = [
            ("/a", "x"),
            ("/a", "x"),
            ("/cut", "y"),
            ("/down", "z"),
            ("/a", "{\"q\": 1}"),
        ];
        let mut recorded = Vec::new();
        for (path, body) in asked {
            recorded.push(ask(&recorder, path, body).await);
        }
        // A reader that goes away after the first piece, and one that does not even wait for the head.
        let answer = recorder.send(request("/a", "w")).await.unwrap();
        drop(answer.body.into_future().await);
        drop(recorder.send(request("/a", "v")));
        assert!(recorder.problem().is_none());

        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                !text.contains("canary-key") && !text.contains("session"),
                "{text}"
            );
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
        }
        let replay = Replay::open(&folder).unwrap();
        assert_eq!(replay.header(), &header());
        // In another order.
        for at in [4, 3, 2, 1, 0] {
            assert_eq!(ask(&replay, asked[at].0, asked[at].1).await, recorded[at]);
        }
        assert_eq!(
            ask(&replay, "/a", "w").await,
            "200 OK one\n\n!connection lost: the reader went away"
        );
        assert_eq!(replay.mismatches(), [""; 0]);
        assert_eq!(replay.unused(), 0);
        assert!(ask(&replay, "/a", "x").await.contains("not on the tape"));
        assert!(
            ask(&replay, "/a", "{\"q\": 2}")
                .await
                .contains("not on the tape")
        );
        let mismatches = replay.mismatches();
        assert!(mismatches[0].contains("recorded 2 times"), "{mismatches:?}");
        assert_eq!(mismatches[1], "nothing that was recorded is left");
        let fresh = Replay::open(&folder).unwrap();
        ask(&fresh, "/a", "{\"q\": 2}").await;
        let [words] = &fresh.mismatches()[..] else {
            panic!()
        };
        assert!(
            words.contains("\"q\": 1") && words.contains("\"q\": 2"),
            "{words}"
        );
    }

    #[tokio::test]
    async fn nobody_waits_for_a_tape() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tape");
        let recorder = Recorder::begin(&folder, &header(), Arc::new(Echo)).unwrap();
        ask(&recorder, "/a", "x").await;
        let replay = Replay::open(&folder).unwrap();
        let answer = replay.send(request("/a", "x")).await.unwrap();
        assert_eq!(answer.headers["retry-after"], "0");
    }

    #[test]
    fn folders_and_files_that_are_no_tape_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        let words = |folder: &Path| Replay::open(folder).err().unwrap().to_string();
        assert!(words(folder).contains("holds no tape"));
        std::fs::write(folder.join("x"), "").unwrap();
        let error = Recorder::begin(folder, &header(), Arc::new(Echo))
            .err()
            .unwrap();
        assert!(error.to_string().contains("is not empty"));
        for (text, expected) in [
            ("{", "EOF"),
            ("{}", "no tapeVersion"),
            ("{\"tapeVersion\": 99}", "newer ecr"),
            ("{\"tapeVersion\": 1}", "missing field"),
        ] {
            std::fs::write(folder.join(HEADER_FILE), text).unwrap();
            let words = words(folder);
            assert!(
                words.contains(expected) && words.contains(HEADER_FILE),
                "{text}: {words}"
            );
        }
        std::fs::write(
            folder.join(HEADER_FILE),
            serde_json::to_string(&header()).unwrap(),
        )
        .unwrap();
        for text in [
            "null",
            "{\"request\": \"\", \"occurrence\": 0, \"answer\": {\"kind\": \"answered\", \"status\": 7, \"headers\": [], \"body\": {\"text\": \"\"}}}",
            "{\"request\": \"\", \"occurrence\": 0, \"answer\": {\"kind\": \"answered\", \"status\": 200, \"headers\": [], \"body\": {\"base64\": \"?\"}}}",
        ] {
            std::fs::write(folder.join("000001.exchange.json"), text).unwrap();
            assert!(words(folder).contains("000001.exchange.json"), "{text}");
        }
    }
}

//! Through real sockets on both sides: what goes up, what comes down, and when.

use std::time::Duration;

use bytes::Bytes;
use ecr::gateway::{
    Credential, FinalStyle, Gateway, GatewaySettings, ModelDoor as _, PassGrant, PassPort, Protocol,
};
use ecr::http::{
    HttpClient, HttpSettings, Outgoing, ProxySettings, Transport as _, TransportError,
};
use ecr::ledger::{PriceTable, RunCaps};
use ecr::model::{PassId, Secret};
use ecr::port::EngineError;
use futures_util::StreamExt as _;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::rig::{NOW, PROTOCOLS, Rig, ask, body, call, class, counts, key, path};
use crate::support::alone::alone;
use crate::support::model_server::{Gate, ModelServer, Piece, Reply, Script, Step};

/// A client of the listener.
struct Client {
    http: HttpClient,
    base: String,
    token: String,
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Client {
    fn new(port: &PassPort) -> Self {
        Self {
            http: HttpClient::new(&HttpSettings::default()).unwrap(),
            base: format!("http://{}", port.address()),
            token: port.placeholder().expose().clone(),
        }
    }

    fn request(&self, protocol: Protocol, path: &str, body: &Value) -> Outgoing {
        let mut headers = HeaderMap::new();
        let (name, value) = match protocol {
            Protocol::AnthropicMessages => ("x-api-key", self.token.clone()),
            Protocol::OpenAiResponses | Protocol::OpenAiChat => {
                ("authorization", format!("Bearer {}", self.token))
            }
        };
        headers.insert(name, value.parse().unwrap());
        headers.insert("content-type", "application/json".parse().unwrap());
        headers.insert("user-agent", "cli/1".parse().unwrap());
        headers.insert("anthropic-beta", "some-beta".parse().unwrap());
        Outgoing {
            method: Method::POST,
            url: format!("{}{path}", self.base).parse().unwrap(),
            headers,
            body: Bytes::from(body.to_string()),
        }
    }

    async fn post(&self, protocol: Protocol, body: &Value) -> Answer {
        let request = self.request(protocol, path(protocol), body);
        let mut answer = self.http.send(request).await.unwrap();
        let mut text = Vec::new();
        while let Some(Ok(piece)) = answer.body.next().await {
            text.extend_from_slice(&piece);
        }
        Answer {
            status: answer.status.as_u16(),
            headers: answer.headers,
            body: text,
        }
    }
}

impl Answer {
    fn everything(&self) -> Vec<u8> {
        let mut all = format!("{:?}\n", self.headers).into_bytes();
        all.extend_from_slice(&self.body);
        all
    }
}

fn contains(haystack: &[u8], needle: &str) -> bool {
    memchr::memmem::find(haystack, needle.as_bytes()).is_some()
}

#[tokio::test]
async fn bytes_pass_unchanged_and_secrets_do_not_pass_at_all() {
    for protocol in PROTOCOLS {
        for stream in [true, false] {
            let rig = Rig::on_sockets(Script::new([])).await;
            // A provider that gives back whatever it was shown.
            let echo = format!("Bearer {}", key());
            let reply = Reply::text("hello");
            let expected = reply.render(path(protocol), &body(stream)).concat();
            let kind = if stream {
                "text/event-stream"
            } else {
                "application/json"
            };
            rig.script.push(
                Step::status(200, &expected)
                    .header("content-type", kind)
                    .header("x-echo", &echo)
                    .header("set-cookie", &echo),
            );
            rig.script.push(
                Step::status(
                    401,
                    &json!({"error": {"message": format!("bad key {}", key())}}).to_string(),
                )
                .header("www-authenticate", &echo),
            );
            let port = rig.open(protocol);
            let client = Client::new(&port);
            // An unusual layout of the body has to survive.
            let sent = body(stream);
            let answer = client.post(protocol, &sent).await;
            assert_eq!(answer.status, 200);
            assert_eq!(String::from_utf8(answer.body.clone()).unwrap(), expected);
            let refused = client.post(protocol, &sent).await;
            assert!(refused.status >= 400);
            for answer in [&answer, &refused] {
                assert!(
                    !contains(&answer.everything(), &key()),
                    "the credential came down"
                );
            }
            let requests = rig.script.requests();
            assert_eq!(requests.len(), 2);
            for request in &requests {
                assert_eq!(request.body, sent.to_string());
                assert!(
                    !contains(&request.everything(), &client.token),
                    "the placeholder went up"
                );
                let shown = match protocol {
                    Protocol::AnthropicMessages => request.header("x-api-key"),
                    _ => request
                        .header("authorization")
                        .trim_start_matches("Bearer "),
                };
                assert_eq!(shown, key());
                assert_eq!(request.header("accept-encoding"), "identity");
                assert_eq!(
                    (
                        request.header("user-agent"),
                        request.header("anthropic-beta")
                    ),
                    ("cli/1", "some-beta")
                );
                assert_eq!(request.path, path(protocol));
            }
            let ledger = port.close().await;
            assert_eq!(counts(&ledger), (100, 20, true));
            assert!(matches!(ledger.error, Some(EngineError::Auth(_))));
            assert!(!format!("{ledger:?}").contains(&key()));
        }
    }
}

#[tokio::test]
async fn plan_tokens_go_up_in_their_own_headers() {
    let rig = Rig::on_sockets(Script::new([
        Reply::text("x").into(),
        Reply::text("x").into(),
    ]))
    .await;
    let with = |protocol, credential| {
        let mut grant = rig.grant(protocol);
        let mut upstream = (*grant.upstream).clone();
        upstream.credential = credential;
        grant.upstream = upstream.into();
        rig.gateway.open_pass(grant).unwrap()
    };
    let token = || Secret::new(key());
    let oauth = with(Protocol::AnthropicMessages, Credential::Oauth(token()));
    Client::new(&oauth)
        .post(Protocol::AnthropicMessages, &body(true))
        .await;
    drop(oauth);
    let account = "acc-1".to_owned();
    let chatgpt = with(
        Protocol::OpenAiResponses,
        Credential::ChatGpt {
            token: token(),
            account,
        },
    );
    Client::new(&chatgpt)
        .post(Protocol::OpenAiResponses, &body(true))
        .await;
    let requests = rig.script.requests();
    assert_eq!(
        requests[0].header("authorization"),
        format!("Bearer {}", key())
    );
    assert_eq!(requests[0].header("x-api-key"), "");
    let betas: Vec<_> = requests[0]
        .headers
        .get_all("anthropic-beta")
        .iter()
        .collect();
    assert_eq!(betas, ["some-beta", "oauth-2025-04-20"]);
    assert_eq!(requests[1].header("chatgpt-account-id"), "acc-1");
    assert_eq!(requests[1].path, "/responses", "no /v1 before it");
}

#[tokio::test]
async fn events_come_down_as_they_arrive() {
    let protocol = Protocol::AnthropicMessages;
    let events = Reply::text("x").render(path(protocol), &body(true));
    let gates: Vec<_> = events.iter().map(|_| Gate::default()).collect();
    let mut pieces = Vec::new();
    for (event, gate) in events.iter().zip(&gates) {
        pieces.push(Piece::Data(Bytes::from(event.clone())));
        pieces.push(Piece::Wait(gate.clone()));
    }
    let rig = Rig::on_sockets(Script::new([Step::events(pieces)])).await;
    let port = rig.open(protocol);
    let client = Client::new(&port);
    let request = client.request(protocol, path(protocol), &body(true));
    let mut answer = client.http.send(request).await.unwrap();
    for (event, gate) in events.iter().zip(&gates) {
        // The next event is not even sent before this one has been seen.
        assert_eq!(answer.body.next().await.unwrap().unwrap(), event.as_bytes());
        if event.contains("message_stop") {
            assert_eq!(
                port.ledger().turns,
                1,
                "the books are closed before the last event"
            );
        }
        gate.open();
    }
    assert!(answer.body.next().await.is_none());
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_upstream_call() {
    let rig = Rig::on_sockets(Script::new([
        Step::Hang,
        Step::Broken(Reply::text("x"), 1, Piece::Hang),
    ]))
    .await;
    let port = rig.open(Protocol::OpenAiChat);
    let client = Client::new(&port);
    let request = || {
        client.request(
            Protocol::OpenAiChat,
            path(Protocol::OpenAiChat),
            &body(true),
        )
    };
    let waiting = tokio::spawn({
        let (http, request) = (client.http.clone(), request());
        async move { http.send(request).await.map(|a| a.status) }
    });
    while rig.script.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    rig.script.given_up(1).await;
    let mut answer = client.http.send(request()).await.unwrap();
    answer.body.next().await.unwrap().unwrap();
    drop(answer);
    rig.script.given_up(1).await;
    let ledger = port.close().await;
    assert_eq!((ledger.requests, ledger.turns, ledger.error), (2, 1, None));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = ModelServer::start(Script::new([])).await;
    let step = || Step::status(307, "").header("location", &elsewhere.url());
    let rig = Rig::on_sockets(Script::new([step()])).await;
    let port = rig.open(Protocol::OpenAiChat);
    let EngineError::Protocol(text) = class(ask(&port, call(Protocol::OpenAiChat, true)).await)
    else {
        panic!();
    };
    assert!(text.contains("307"));
    assert!(elsewhere.script().requests().is_empty());
}

#[tokio::test]
async fn final_errors_have_the_form_the_client_takes_as_final() {
    for (style, protocol, status) in [
        (FinalStyle::Claude, Protocol::AnthropicMessages, 403),
        (FinalStyle::Codex, Protocol::OpenAiResponses, 400),
        (FinalStyle::OpenCode, Protocol::OpenAiChat, 400),
    ] {
        let rig = Rig::on_sockets(Script::new([Step::status(404, "{}")])).await;
        let mut grant: PassGrant = rig.grant(protocol);
        grant.style = style;
        grant.limits.turns = 0;
        let port = rig.gateway.open_pass(grant.clone()).unwrap();
        let capped = Client::new(&port).post(protocol, &body(true)).await;
        grant.limits.turns = 5;
        grant.pass = PassId::new("second");
        let port = rig.gateway.open_pass(grant).unwrap();
        let failed = Client::new(&port).post(protocol, &body(true)).await;
        for answer in [capped, failed] {
            assert_eq!(answer.status, status);
            assert_eq!(answer.headers["x-should-retry"], "false");
            let body: Value = serde_json::from_slice(&answer.body).unwrap();
            assert!(
                body["error"]["message"]
                    .as_str()
                    .unwrap()
                    .starts_with("ecr: ")
            );
        }
        assert!(matches!(
            port.ledger().error,
            Some(EngineError::Unavailable(_))
        ));
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_breaks_off_below_too() {
    let protocol = Protocol::OpenAiResponses;
    let gate = Gate::default();
    let first = Reply::text("x")
        .render(path(protocol), &body(true))
        .remove(0);
    let rig = Rig::on_sockets(Script::new([Step::events(vec![
        Piece::Data(Bytes::from(first)),
        Piece::Wait(gate.clone()),
        Piece::Cut,
    ])]))
    .await;
    let port = rig.open(protocol);
    let client = Client::new(&port);
    let request = client.request(protocol, path(protocol), &body(true));
    let mut answer = client.http.send(request).await.unwrap();
    assert!(answer.body.next().await.unwrap().is_ok());
    gate.open();
    let end = answer.body.next().await;
    assert!(
        matches!(end, Some(Err(_))),
        "a cut answer must not look like a whole one: {end:?}"
    );
    assert!(matches!(
        port.ledger().error,
        Some(EngineError::Transient(_))
    ));
}

#[tokio::test]
async fn nobody_listening_is_a_connection_error() {
    let client = HttpClient::new(&HttpSettings {
        connect_timeout: Duration::from_secs(5),
        ..HttpSettings::default()
    })
    .unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let request = |url: String| Outgoing {
        method: Method::POST,
        url: url.parse().unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
    };
    let refused = client
        .send(request(format!("http://{free}/?k=secret")))
        .await;
    let Err(TransportError::Connect(text)) = refused.map(|_| ()) else {
        panic!();
    };
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_proxy_is_used_but_never_for_loopback() {
    let proxy = ModelServer::start(Script::new([Reply::text("x").into()])).await;
    let client = HttpClient::new(&HttpSettings {
        proxy: ProxySettings {
            http: Some(Secret::new(proxy.url())),
            https: None,
            bypass: Some("inside.test".to_owned()),
        },
        ..HttpSettings::default()
    })
    .unwrap();
    let target = ModelServer::start(Script::new([Reply::text("x").into()])).await;
    let request = |url: String| Outgoing {
        method: Method::POST,
        url: url.parse().unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::from_static(b"{}"),
    };
    client
        .send(request(format!("{}/v1/responses", target.url())))
        .await
        .unwrap();
    assert_eq!(target.script().requests().len(), 1);
    client
        .send(request("http://outside.test/v1/responses".to_owned()))
        .await
        .unwrap();
    assert_eq!(proxy.script().requests().len(), 1);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn without_ca_certificates_loopback_works_and_https_says_why_not() {
    let name = "model_door::wire::without_ca_certificates_loopback_works_and_https_says_why_not";
    let nowhere = [
        ("SSL_CERT_FILE", "/nonexistent/ca.pem"),
        ("SSL_CERT_DIR", "/nonexistent"),
    ];
    if !alone(name, &nowhere) {
        return;
    }
    let client = HttpClient::new(&HttpSettings::default()).unwrap();
    assert!(client.tls_problem().unwrap().contains("no CA certificates"));
    let rig = Rig::on_sockets(Script::new([Reply::text("x").into()])).await;
    let port = rig.open(Protocol::OpenAiChat);
    assert!(ask(&port, call(Protocol::OpenAiChat, true)).await.is_ok());
    let mut grant = rig.grant(Protocol::OpenAiChat);
    let mut upstream = (*grant.upstream).clone();
    upstream.base_url = "https://127.0.0.1:1".parse().unwrap();
    grant.upstream = upstream.into();
    grant.pass = PassId::new("second");
    let port = rig.gateway.open_pass(grant).unwrap();
    let EngineError::Unavailable(text) = class(ask(&port, call(Protocol::OpenAiChat, true)).await)
    else {
        panic!();
    };
    assert!(text.contains("ca-certificates"), "{text}");
}

#[tokio::test]
async fn a_listener_made_elsewhere_is_served_until_its_guard_goes() {
    let rig = Rig::on_sockets(Script::new([Reply::text("x").into()])).await;
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let guard = rig.gateway.serve(other).unwrap();
    let port = rig.open(Protocol::OpenAiChat);
    let mut client = Client::new(&port);
    client.base = format!("http://{}", guard.address());
    assert_eq!(
        client.post(Protocol::OpenAiChat, &body(true)).await.status,
        200
    );
    drop(guard);
    let request = client.request(
        Protocol::OpenAiChat,
        path(Protocol::OpenAiChat),
        &body(true),
    );
    while client.http.send(request.clone()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(
        port.call(call(Protocol::OpenAiChat, true)).await.is_err(),
        "the script is over"
    );
}

#[tokio::test]
async fn a_gateway_that_is_dropped_serves_nobody() {
    let server = ModelServer::start(Script::new([])).await;
    let gateway = Gateway::start(GatewaySettings {
        transport: std::sync::Arc::new(HttpClient::new(&HttpSettings::default()).unwrap()),
        tools: None,
        caps: RunCaps::default(),
        prices: PriceTable::default(),
        concurrent_calls: 1,
        clock: || NOW,
    })
    .await
    .unwrap();
    let address = gateway.address();
    assert!(address.ip().is_loopback());
    drop(gateway);
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(server.script().requests().is_empty());
}

//! The self-test of a run's gateway: one model call and one tool call, through loopback connections.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};

use crate::engine::{Client, STAGE_FILE, STAGE_TEXT, Stage};
use crate::gateway::{FinalStyle, Protocol, ScriptTurn, ScriptedModel};
use crate::http::{HttpClient, HttpSettings, Outgoing, Transport as _};
use crate::state::doctor::Doors;

/// How long it may take.
const TIME: Duration = Duration::from_secs(5);
/// What the scripted model says.
const WORD: &str = "The model door is open.";

/// Tries both doors out. What does not work is in the row.
pub(super) async fn test() -> Doors {
    let mut row = Doors {
        model: false,
        tools: false,
        strangers: false,
        problem: None,
    };
    let tried = tokio::time::timeout(TIME, tried(&mut row)).await;
    row.problem = match tried {
        Ok(Ok(())) => None,
        Ok(Err(words)) => Some(words),
        Err(_) => Some(format!("no answer within {} s", TIME.as_secs())),
    };
    row
}

async fn tried(row: &mut Doors) -> Result<(), String> {
    let script = ScriptedModel::new([ScriptTurn::Text(WORD.to_owned())]);
    let stage = Stage::new(Protocol::AnthropicMessages, "model", script).await;
    let stage = stage.map_err(|error| format!("cannot listen on 127.0.0.1: {error}"))?;
    let client = Client {
        style: FinalStyle::Claude,
        spelling: str::to_owned,
        allowed: &[],
    };
    let request = stage.request().map_err(|error| error.to_string())?;
    let context = stage.context(TIME).map_err(|error| error.to_string())?;
    let open = stage.doors.open(&request, &context, &client);
    let open = open.map_err(|error| error.to_string())?;
    let caller = Caller {
        client: HttpClient::new(&HttpSettings::default()).map_err(|error| error.to_string())?,
        address: format!("http://{}", open.port.address()),
    };
    let placeholder = open.port.placeholder().expose();

    let names = open.tools.iter().flat_map(|tools| tools.tools());
    let tools: Vec<Value> = names
        .map(|tool| json!({"name": tool.name, "input_schema": tool.input_schema}))
        .collect();
    let call = json!({"model": "model", "max_tokens": 100, "tools": tools,
        "messages": [{"role": "user", "content": "Hello."}]});
    let (status, said) = caller.post("/v1/messages", placeholder, &call).await?;
    row.model = status == StatusCode::OK && said.contains(WORD);
    if !row.model {
        return Err(format!("the model door answers {status}"));
    }
    if stage.metered.load(Ordering::Relaxed) == 0 {
        row.model = false;
        return Err("the model door does not count what a call used".to_owned());
    }

    let read = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "read", "arguments": {"path": STAGE_FILE}}});
    let (status, said) = caller.post("/mcp", placeholder, &read).await?;
    row.tools = status == StatusCode::OK && said.contains(STAGE_TEXT.trim_end());
    if !row.tools {
        return Err(format!("the tool door answers {status}"));
    }

    let (model, _) = caller.post("/v1/messages", "stranger", &call).await?;
    let (tools, _) = caller.post("/mcp", "stranger", &read).await?;
    row.strangers = [model, tools] == [StatusCode::UNAUTHORIZED; 2];
    if !row.strangers {
        return Err(format!("a stranger is answered with {model} and {tools}"));
    }
    Ok(())
}

/// Calls over a connection, as a command-line tool would.
struct Caller {
    client: HttpClient,
    address: String,
}

impl Caller {
    async fn post(
        &self,
        path: &str,
        token: &str,
        body: &Value,
    ) -> Result<(StatusCode, String), String> {
        let mut headers = HeaderMap::new();
        let bearer = HeaderValue::from_str(&format!("Bearer {token}"));
        headers.insert(header::AUTHORIZATION, bearer.map_err(|e| e.to_string())?);
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accept);
        let url = format!("{}{path}", self.address);
        let answer = self.client.send(Outgoing {
            method: Method::POST,
            url: url.parse().map_err(|error| format!("{url}: {error}"))?,
            headers,
            body: body.to_string().into(),
        });
        let answer = answer.await.map_err(|error| error.to_string())?;
        let status = answer.status;
        let body: Vec<_> = answer
            .body
            .try_collect()
            .await
            .map_err(|error| error.to_string())?;
        Ok((status, String::from_utf8_lossy(&body.concat()).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_doors_open_and_strangers_stay_out() {
        let row = test().await;
        assert_eq!(row.problem, None);
        assert!(row.model && row.tools && row.strangers);
    }
}

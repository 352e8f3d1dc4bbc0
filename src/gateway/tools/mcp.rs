//! MCP over streamable HTTP for one session, with the official SDK: stateless, one JSON answer a request.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

use crate::gateway::{DoorBody, ToolService, ToolSession, ToolSpec};
use crate::port::BoxFuture;
use crate::prompt::INSTRUCTIONS;

/// Bytes of a request at most. `finish` with thousands of paths fits.
const MAX_BODY: usize = 1 << 20;

/// The MCP server of one pass.
#[derive(Clone)]
struct Door {
    session: Arc<dyn ToolSession>,
    tools: Arc<[Tool]>,
}

/// A tool as MCP describes it.
fn described(spec: ToolSpec) -> Tool {
    let schema = match spec.input_schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    // Codex runs nothing without hints; one that only reads may run beside others.
    let hints = if spec.read_only {
        ToolAnnotations::new().read_only(true)
    } else {
        ToolAnnotations::new().read_only(false).destructive(false)
    };
    Tool::new(spec.name, spec.description, schema).with_annotations(hints.open_world(false))
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("tree", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.map_or(Value::Null, Value::Object);
        let answer = self.session.call(&request.name, arguments).await;
        let content = vec![ContentBlock::text(answer.text)];
        Ok(CallToolResponse::Complete(if answer.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        }))
    }
}

/// Answers the requests to `/mcp` of one pass. The listener has checked who asks.
pub struct McpService {
    inner: StreamableHttpService<Door, NeverSessionManager>,
}

impl McpService {
    /// Serves `session`.
    pub fn new(session: Arc<dyn ToolSession>) -> Self {
        let door = Door {
            tools: session.tools().into_iter().map(described).collect(),
            session,
        };
        let mut config = StreamableHttpServerConfig::default().enforce_origin_validation();
        config.legacy_session_mode = false;
        config.json_response = true;
        config.max_request_body_bytes = MAX_BODY;
        Self {
            inner: StreamableHttpService::new(move || Ok(door.clone()), Arc::default(), config),
        }
    }
}

impl ToolService for McpService {
    fn handle(&self, request: Request<Bytes>) -> BoxFuture<'_, Response<DoorBody>> {
        let request: Request<Full<Bytes>> = request.map(Full::new);
        Box::pin(self.inner.handle(request))
    }
}

/// The MCP service of a session: a [`ToolServiceFactory`](crate::gateway::ToolServiceFactory).
pub fn mcp_service(session: Arc<dyn ToolSession>) -> Arc<dyn ToolService> {
    Arc::new(McpService::new(session))
}

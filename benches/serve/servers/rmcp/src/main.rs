//! The echo tool on rmcp and axum. Usage: `rmcp-echo PORT json|sse default|nodelay|stateful`.
//!
//! `default` serves as the SDK's examples do; `nodelay` sets TCP_NODELAY on every accepted connection, the one line that
//! takes the stall of Nagle's algorithm and delayed ACK out of the SSE mode. `stateful` serves with sessions.

use std::sync::Arc;

use axum::Router;
use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{tool, tool_handler, tool_router};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [port, mode, socket] = given.as_slice() else {
        return Err(std::io::Error::other("usage: rmcp-echo PORT json|sse default|nodelay|stateful"));
    };
    let echo = Echo { tool_router: Echo::tool_router() };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(socket == "stateful")
        .with_json_response(mode == "json");
    let service =
        StreamableHttpService::new(move || Ok(echo.clone()), Arc::new(LocalSessionManager::default()), config);
    let app = Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    if socket == "nodelay" {
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        return axum::serve(listener, app).await;
    }
    axum::serve(listener, app).await
}

#[derive(Clone)]
struct Echo {
    tool_router: ToolRouter<Self>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    text: String,
}

#[tool_router]
impl Echo {
    #[tool(description = "Says the text again")]
    fn echo(&self, Parameters(Arguments { text }): Parameters<Arguments>) -> String {
        text
    }
}

#[tool_handler(router = self.tool_router)]
impl rmcp::ServerHandler for Echo {}

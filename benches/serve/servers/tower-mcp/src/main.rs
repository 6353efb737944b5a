//! The echo tool on tower-mcp. Usage: `tower-mcp-echo PORT json|sse stateless|stateful TOOLS`, or `tower-mcp-echo stdio`.

use schemars::JsonSchema;
use serde::Deserialize;
use tower_mcp::stateless::StatelessConfig;
use tower_mcp::{BoxError, CallToolResult, HttpTransport, McpRouter, StdioTransport, Tool, ToolBuilder};

#[derive(Deserialize, JsonSchema)]
struct Arguments {
    text: String,
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    if given == ["stdio"] {
        return Ok(StdioTransport::new(router(1)).run().await?);
    }
    let [port, mode, sessions, tools] = given.as_slice() else {
        return Err("usage: tower-mcp-echo PORT json|sse stateless|stateful TOOLS, or tower-mcp-echo stdio".into());
    };
    let transport = HttpTransport::new(router(tools.parse()?)).sse_responses(mode == "sse");
    let transport = match sessions.as_str() {
        "stateless" => transport.stateless(StatelessConfig::new()),
        _ => transport.max_sessions(100_000),
    };
    let app = axum::Router::new().merge(transport.into_router_at("/mcp"));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    Ok(axum::serve(listener, app).await?)
}

fn router(tools: usize) -> McpRouter {
    (1..tools)
        .map(|number| format!("echo_{number}"))
        .chain(["echo".to_owned()])
        .fold(McpRouter::new().server_info("echo", "1.0.0"), |router, name| router.tool(echo(&name)))
}

fn echo(name: &str) -> Tool {
    ToolBuilder::new(name)
        .description("Says the text again")
        .handler(|given: Arguments| async move { Ok(CallToolResult::text(given.text)) })
        .build()
}

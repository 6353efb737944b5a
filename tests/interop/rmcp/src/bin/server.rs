//! A server of the official Rust SDK; see ../../../README.md.

use std::sync::Arc;

use axum::Router;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    ErrorData, GetPromptResult, ListResourcesResult, PaginatedRequestParams, ProgressNotificationParam, PromptMessage,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestMetaObject, Resource, ResourceContents,
    Role, ServerCapabilities,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Peer, RoleServer, ServerHandler, ServiceExt};
use rmcp::{prompt, prompt_handler, prompt_router, tool, tool_handler, tool_router};
use tokio::net::TcpListener;

const TEXT: &str = "test://static-text";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Said {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

#[derive(Clone)]
struct Server;

#[tool_router]
impl Server {
    #[tool(description = "Says what you say")]
    fn echo(&self, Parameters(Said { text }): Parameters<Said>) -> String {
        text
    }

    #[tool(description = "Tells its progress")]
    async fn steps(&self, meta: RequestMetaObject, client: Peer<RoleServer>) -> Result<String, ErrorData> {
        let Some(token) = meta.get_progress_token() else { return Ok("done".into()) };
        for step in 0..3 {
            let told = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(2.0);
            client.notify_progress(told).await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        Ok("done".into())
    }
}

#[prompt_router]
impl Server {
    #[prompt(description = "Greets")]
    async fn greeting(&self, Parameters(Named { name }): Parameters<Named>) -> GetPromptResult {
        GetPromptResult::new(vec![PromptMessage::new_text(Role::User, format!("Hello, {name}"))])
    }
}

#[tool_handler]
#[prompt_handler]
impl ServerHandler for Server {
    fn get_info(&self) -> rmcp::model::ServerConfig {
        let mut info = rmcp::model::ServerConfig::default();
        info.capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        info
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(TEXT, "text")]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != TEXT {
            return Err(ErrorData::resource_not_found("no such resource", None));
        }
        Ok(ReadResourceResult::new(vec![ResourceContents::text("a text", TEXT)]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("stdio") {
        Server.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Server), sessions, StreamableHttpServerConfig::default());
    Ok(axum::serve(listener, Router::new().nest_service("/mcp", service)).await?)
}

//! The official Rust SDK against a server; see ../README.md.

use std::error::Error;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, GetPromptRequestParams, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::NotificationContext;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Value, json};

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Clone, Default)]
struct Client {
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Client {
    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(told.progress);
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [era, way, target @ ..] = arguments.as_slice() else { return Err("client ERA http|stdio TARGET…".into()) };
    let lifecycle = match era.as_str() {
        "legacy" => ClientLifecycleMode::Initialize,
        _ => {
            ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None }
        }
    };
    let client = Client::default();
    let service = if way == "http" {
        client
            .clone()
            .serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target[0].as_str()), lifecycle)
            .await?
    } else {
        let mut command = tokio::process::Command::new(&target[0]);
        command.args(&target[1..]);
        client.clone().serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?
    };

    let mut tools: Vec<String> =
        service.list_all_tools().await?.into_iter().map(|tool| tool.name.into_owned()).collect();
    tools.sort();
    let echo = service.call_tool(call("echo", json!({"text": "hello ✓"}))).await?;
    service.call_tool(call("test_tool_with_progress", json!({}))).await?;
    let progress = client.progress.lock().unwrap().clone();
    let resource = service.read_resource(ReadResourceRequestParams::new("test://static-text")).await?;
    let ResourceContents::TextResourceContents { text: resource, .. } = &resource.contents[0] else {
        return Err("the resource is no text".into());
    };
    let arguments = object(json!({"arg1": "one", "arg2": "two"}));
    let prompt =
        service.get_prompt(GetPromptRequestParams::new("test_prompt_with_arguments").with_arguments(arguments)).await?;
    let missing =
        service.call_tool(call("no_such_tool", json!({}))).await.map_or(true, |told| told.is_error == Some(true));
    let server = service.peer_info().ok_or("nothing is known of the server")?;
    let told = json!({
        "protocol": server.protocol_version.to_string(),
        "server": server.server_info.as_ref().map(|info| info.name.clone()),
        "tools": tools,
        "echo": echo.content[0].as_text().map(|text| text.text.clone()),
        "progress": progress,
        "resource": resource,
        "prompt": prompt.messages[0].content.as_text().map(|text| text.text.clone()),
        "missing": missing,
    });
    service.cancel().await?;
    println!("{told}");
    Ok(())
}

fn call(name: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(name).with_arguments(object(arguments))
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

//! Common parts of the targets for transports: a server with a tool of each kind, and virtual time.

use mcpace_serve::{Context, NoArguments, Prompt, Resource, Server, Tool, ToolError};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Text {
    text: String,
}

/// A server with a tool that answers at once, one that logs, one that waits for its cancellation, and one that asks.
pub fn server() -> Server {
    static SERVER: std::sync::OnceLock<Server> = std::sync::OnceLock::new();
    SERVER.get_or_init(build).clone()
}

fn build() -> Server {
    Server::builder("fuzzed", "1")
        .tool(Tool::new("echo").handler(|text: Text| Ok::<_, ToolError>(text.text)))
        .tool(Tool::new("talk").handler_async(|_: NoArguments, context: Context| async move {
            context.progress(1.0, None, None);
            context.log(mcpace_wire::mcp::LoggingLevel::Info, None, &"talking");
            Ok::<_, ToolError>("talked")
        }))
        .tool(Tool::new("wait").handler_async(|_: NoArguments, context: Context| async move {
            context.cancellation().cancelled().await;
            Ok::<_, ToolError>("waited")
        }))
        .tool(Tool::new("ask").handler_async(|_: NoArguments, context: Context| async move {
            context.elicit_form::<Text>("What?").await?;
            Ok::<_, ToolError>("asked")
        }))
        .resource(Resource::new("test://a", "a").text("a"))
        .prompt(Prompt::new("say").handler(|text: Text| Ok::<_, ToolError>(text.text)))
        .build()
        .expect("the server is good")
}

/// Runs to the end in virtual time, in which waiting for a limit takes no real time.
pub fn runtime<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().expect("a runtime can be made");
    runtime.block_on(future)
}

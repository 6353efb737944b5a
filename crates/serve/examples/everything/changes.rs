//! Tools that make the server tell of changes.

use mcpace_serve::{Builder, Context, NoArguments, Server, Tool};

pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .tool(trigger("test_trigger_tool_change", "Tells that the list of tools changed", Server::tools_changed))
        .tool(trigger("test_trigger_prompt_change", "Tells that the list of prompts changed", Server::prompts_changed))
        .tool(trigger("test_trigger_resource_change", "Tells that the watched resource changed", |server| {
            server.resource_updated("test://watched-resource");
        }))
}

fn trigger(name: &str, description: &str, change: fn(&Server)) -> Tool {
    Tool::new(name).description(description).handler_async(move |_: NoArguments, context: Context| async move {
        change(&context.server());
        Ok("Change was told")
    })
}

//! Tools that speak before their result: progress and log messages.

use std::time::Duration;

use mcpace_serve::{Builder, Context, HandlerError, NoArguments, Tool};
use mcpace_wire::mcp::LoggingLevel;

/// Between two messages, so that a client sees them come one by one.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("test_tool_with_logging")
                .description("Tests tool that emits log messages during execution")
                .handler_async(|_: NoArguments, context: Context| async move {
                    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                        context.log(LoggingLevel::Info, None, &message);
                        tokio::time::sleep(PAUSE).await;
                    }
                    Ok("Tool with logging executed successfully")
                }),
        )
        .tool(
            Tool::new("test_tool_with_progress")
                .description("Tests tool that reports progress notifications")
                .handler_async(|_: NoArguments, context: Context| async move {
                    for step in [0, 50, 100] {
                        let message = format!("Completed step {step} of 100");
                        context.progress(f64::from(step), Some(100.0), Some(&message));
                        tokio::time::sleep(PAUSE).await;
                    }
                    Ok("Progress was told")
                }),
        )
        .tool(
            Tool::new("test_reconnection")
                .description("Tests a stream that the server lets go and the client takes up again (SEP-1699)")
                .handler_async(|_: NoArguments, context: Context| async move {
                    context.release();
                    tokio::time::sleep(PAUSE).await;
                    Ok("Reconnection test completed successfully.")
                }),
        )
        .tool(
            Tool::new("test_streaming_elicitation")
                .description("Tests that nothing but notifications and the reply is on a reply's stream")
                .handler_async(|_: NoArguments, context: Context| async move {
                    context.progress(50.0, Some(100.0), None);
                    tokio::time::sleep(PAUSE).await;
                    Ok::<_, HandlerError>("Streaming complete")
                }),
        )
        .tool(
            Tool::new("test_logging_tool")
                .description("Tests that log messages come only where the request asks for them")
                .handler_async(|_: NoArguments, context: Context| async move {
                    context.log(LoggingLevel::Info, Some("everything"), &"Diagnostic trace logging activated");
                    Ok("Logging evaluated")
                }),
        )
}

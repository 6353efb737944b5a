//! Tools that run as tasks, for clients that declare the extension (SEP-2663). For others they are calls like any other.

use std::time::Duration;

use mcpace_serve::{Builder, Context, Elicited, HandlerError, NoArguments, Tool};
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{ElicitAction, ElicitParams};
use serde::Deserialize;
use serde_json::json;

use crate::ask::form;

#[derive(Deserialize, schemars::JsonSchema)]
struct Compute {
    /// How long it takes.
    seconds: f64,
    /// Name of the job.
    label: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Delete {
    /// Path that would be deleted.
    filename: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Named {
    /// Yours.
    name: String,
}

pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .tool(Tool::new("slow_compute").description("Takes as long as it is told to").task().handler_async(
            |compute: Compute, _: Context| async move {
                let time = Duration::try_from_secs_f64(compute.seconds)
                    .map_err(|_| HandlerError::invalid_params("seconds: not a time"))?;
                tokio::time::sleep(time).await;
                Ok(format!("{} computed for {} s", compute.label.as_deref().unwrap_or("it"), compute.seconds))
            },
        ))
        .tool(
            Tool::new("failing_job")
                .description("Fails, as a tool does; a task or nothing")
                .task_on_demand()
                .handler_async(|_: NoArguments, context: Context| async move {
                    context.begin_task().await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    Err::<(), _>(HandlerError::new("the job failed"))
                }),
        )
        .tool(Tool::new("protocol_error_job").description("Fails, as a protocol does").task().handler_async(
            |_: NoArguments, _: Context| async move {
                Err::<(), _>(HandlerError::protocol(code::INTERNAL_ERROR, "the job broke down", None))
            },
        ))
        .tool(Tool::new("confirm_delete").description("Asks before it would delete").task().handler_async(
            |delete: Delete, context: Context| async move {
                let answer = context.elicit(confirmation(&format!("Delete {}?", delete.filename))?).await?;
                let done = if answer.action == ElicitAction::Accept { "deleted" } else { "kept" };
                Ok(format!("{} {done}", delete.filename))
            },
        ))
        .tool(Tool::new("multi_input").description("Asks two things at once").task().handler_async(
            |_: NoArguments, context: Context| async move {
                let (first, second) = (confirmation("First?")?, confirmation("Second?")?);
                let (first, second) = tokio::try_join!(context.elicit(first), context.elicit(second))?;
                let accepted = [first, second].iter().filter(|answer| answer.action == ElicitAction::Accept).count();
                Ok(format!("{accepted} of 2 accepted"))
            },
        ))
        .tool(
            Tool::new("test_tool_with_task")
                .description("Asks, then goes on as a task")
                .task_on_demand()
                .handler_async(|_: NoArguments, context: Context| async move {
                    let Elicited::Accepted(Named { name }) = context.elicit_form("What is your name?").await? else {
                        return Err(HandlerError::new("nobody said a name"));
                    };
                    context.begin_task().await?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    Ok(format!("Done for {name}"))
                }),
        )
}

fn confirmation(message: &str) -> Result<ElicitParams, HandlerError> {
    Ok(form(message, json!({"confirm": {"type": "boolean"}}), &["confirm"])?)
}

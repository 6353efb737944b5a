//! Requests in several rounds with keys and states that the suite dictates (2026-07-28, basic/patterns/mrtr).
//!
//! [`Context::elicit`] and its like (see `ask.rs`) do the same in every revision, with less to write.

use mcpace_serve::{AskError, Builder, Context, HandlerError, InputRequired, NoArguments, Prompt, Tool};
use mcpace_wire::mcp::{CreateMessageResult, ElicitAction, ElicitParams, ElicitResult, ListRootsResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ask::{first_text, form, question};

pub(crate) fn register(builder: Builder) -> Builder {
    single_rounds(builder)
        .tool(
            Tool::new("test_input_required_result_multiple_inputs")
                .description("MRTR: returns InputRequiredResult with multiple input requests")
                .handler_async(|_: NoArguments, context: Context| async move { multiple_inputs(&context) }),
        )
        .tool(
            Tool::new("test_input_required_result_multi_round")
                .description("MRTR: multi-round InputRequiredResult workflow")
                .handler_async(|_: NoArguments, context: Context| async move { multi_round(&context) }),
        )
        .tool(
            Tool::new("test_input_required_result_capabilities")
                .description("MRTR: respects client capabilities in inputRequests")
                .handler_async(|_: NoArguments, context: Context| async move { capabilities(&context) }),
        )
        .tool(Tool::new("test_missing_capability").description("Test tool requiring sampling").handler_async(
            |_: NoArguments, context: Context| async move {
                let declared = context.client_capabilities().is_some_and(|client| client.sampling.is_some());
                if declared { Ok("Success") } else { Err(undeclared("sampling").into()) }
            },
        ))
        .prompt(
            Prompt::new("test_input_required_result_prompt")
                .description("MRTR: prompt that requires elicitation input")
                .handler_async(|_: NoArguments, context: Context| async move {
                    match answered(&context, "user_context", "context") {
                        Some(text) => Ok(format!("Prompt with context: {text}")),
                        None => {
                            let ask = text_form("What context should the prompt use?", "context")?;
                            Err(InputRequired::new().elicit("user_context", &ask)?.into())
                        }
                    }
                }),
        )
}

fn single_rounds(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("test_input_required_result_elicitation")
                .description("MRTR: returns InputRequiredResult with elicitation request")
                .handler_async(|_: NoArguments, context: Context| async move {
                    match answered(&context, "user_name", "name") {
                        Some(name) => Ok(format!("Hello, {name}!")),
                        None => {
                            let ask = text_form("What is your name?", "name")?;
                            Err(InputRequired::new().elicit("user_name", &ask)?.into())
                        }
                    }
                }),
        )
        .tool(
            Tool::new("test_input_required_result_sampling")
                .description("MRTR: returns InputRequiredResult with sampling request")
                .handler_async(|_: NoArguments, context: Context| async move {
                    match context.input_response::<CreateMessageResult>("sample_request") {
                        Some(answer) => Ok(format!("Sampling result: {}", first_text(answer.content.as_slice()))),
                        None => {
                            let ask = question("What is the capital of France?", 100);
                            Err(InputRequired::new().sample("sample_request", &ask)?.into())
                        }
                    }
                }),
        )
        .tool(
            Tool::new("test_input_required_result_list_roots")
                .description("MRTR: returns InputRequiredResult with roots/list request")
                .handler_async(|_: NoArguments, context: Context| async move {
                    match context.input_response::<ListRootsResult>("roots_request") {
                        Some(answer) => Ok(format!("Found {} root(s)", answer.roots.len())),
                        None => Err(InputRequired::new().list_roots("roots_request").into()),
                    }
                }),
        )
        .tool(
            Tool::new("test_input_required_result_request_state")
                .description("MRTR: returns InputRequiredResult with requestState")
                .handler_async(|_: NoArguments, context: Context| async move {
                    confirmed(&context, "state-ok: requestState validated")
                }),
        )
        .tool(
            Tool::new("test_input_required_result_tampered_state")
                .description("MRTR: signed requestState integrity test")
                // That the state is unchanged was seen to before the handler runs.
                .handler_async(|_: NoArguments, context: Context| async move {
                    confirmed(&context, "integrity-ok: state verified")
                }),
        )
}

fn confirmed(context: &Context, done: &'static str) -> Result<&'static str, HandlerError> {
    if context.request_state::<String>().as_deref() == Some("to be confirmed") {
        let answer = context.input_response::<ElicitResult>("confirm");
        if answer.is_some_and(|answer| answer.action == ElicitAction::Accept) {
            return Ok(done);
        }
    }
    let ask = form("Please confirm", json!({"ok": {"type": "boolean"}}), &["ok"])?;
    Err(InputRequired::new().elicit("confirm", &ask)?.state(&"to be confirmed")?.into())
}

fn multiple_inputs(context: &Context) -> Result<String, HandlerError> {
    let name = answered(context, "user_name", "name");
    let greeting = context.input_response::<CreateMessageResult>("greeting");
    let roots = context.input_response::<ListRootsResult>("client_roots");
    if let (Some(name), Some(greeting), Some(roots)) = (name, greeting, roots) {
        let greeting = first_text(greeting.content.as_slice());
        return Ok(format!("Name: {name}; Greeting: {greeting}; Roots: {}", roots.roots.len()));
    }
    Err(InputRequired::new()
        .elicit("user_name", &text_form("What is your name?", "name")?)?
        .sample("greeting", &question("Generate a greeting", 50))?
        .list_roots("client_roots")
        .state(&"multiple-inputs")?
        .into())
}

/// State that a round hands to the next.
#[derive(Serialize, Deserialize)]
#[serde(tag = "round")]
enum Round {
    Name,
    Color { name: String },
}

fn multi_round(context: &Context) -> Result<String, HandlerError> {
    if let Some(Round::Color { name }) = context.request_state()
        && let Some(color) = answered(context, "step2", "color")
    {
        return Ok(format!("Multi-round complete for {name} who likes {color}"));
    }
    if let Some(name) = answered(context, "step1", "name") {
        let ask = text_form("Step 2: What is your favorite color?", "color")?;
        return Err(InputRequired::new().elicit("step2", &ask)?.state(&Round::Color { name })?.into());
    }
    let ask = text_form("Step 1: What is your name?", "name")?;
    Err(InputRequired::new().elicit("step1", &ask)?.state(&Round::Name)?.into())
}

fn capabilities(context: &Context) -> Result<String, HandlerError> {
    let client = context.client_capabilities().unwrap_or_default();
    let value = answered(context, "elicit_input", "value");
    let sample = context.input_response::<CreateMessageResult>("sample_input");
    if value.is_some() || sample.is_some() {
        return Ok("capabilities-ok".to_owned());
    }
    let mut ask = InputRequired::new();
    if client.elicits_forms() {
        ask = ask.elicit("elicit_input", &text_form("Elicitation input", "value")?)?;
    }
    if client.sampling.is_some() {
        ask = ask.sample("sample_input", &question("Sample request", 50))?;
    }
    if ask == InputRequired::new() {
        return Ok("No supported capabilities declared".to_owned());
    }
    Err(ask.state(&"capabilities")?.into())
}

fn text_form(message: &str, field: &str) -> Result<ElicitParams, AskError> {
    form(message, json!({field: {"type": "string"}}), &[field])
}

/// The text that the user filled into a field of the form under `key`.
pub(crate) fn answered(context: &Context, key: &str, field: &str) -> Option<String> {
    let answer = context.input_response::<ElicitResult>(key)?;
    let content: Value = answer.content?.parse().ok()?;
    Some(content.get(field)?.as_str()?.to_owned())
}

fn undeclared(capability: &str) -> AskError {
    let mut required = mcpace_wire::mcp::Extra::new();
    required.insert(capability.to_owned(), json!({}));
    AskError::Undeclared { required }
}

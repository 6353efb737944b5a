//! Tools that ask the client: its model, its user by forms. One code serves every revision.

use mcpace_serve::{AskError, Builder, Context, NoArguments, Tool};
use mcpace_wire::mcp::{
    ContentBlock, CreateMessageParams, ElicitParams, ElicitResult, Extra, Json, OneOrMany, Role, SamplingMessage,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, schemars::JsonSchema)]
struct Sampling {
    /// The prompt to send to the LLM
    prompt: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Elicitation {
    /// The message to show the user
    message: String,
}

pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .tool(
            Tool::new("test_sampling")
                .description("Tests server-initiated sampling (LLM completion request)")
                .handler_async(|ask: Sampling, context: Context| async move {
                    let answer = context.sample(question(&ask.prompt, 100)).await?;
                    Ok(format!("LLM response: {}", first_text(answer.content.as_slice())))
                }),
        )
        .tool(
            Tool::new("test_elicitation")
                .description("Tests server-initiated elicitation (user input request)")
                .handler_async(|ask: Elicitation, context: Context| async move {
                    let properties = json!({"response": {"type": "string", "description": "User's response"}});
                    let answer = context.elicit(form(&ask.message, properties, &["response"])?).await?;
                    Ok(format!("User response: {}", told(&answer)?))
                }),
        )
        .tool(
            Tool::new("test_elicitation_sep1034_defaults")
                .description("Tests elicitation with default values per SEP-1034")
                .handler_async(|_: NoArguments, context: Context| async move {
                    let form = form("Please review and update the form fields with defaults", defaults(), &[])?;
                    Ok(format!("Elicitation completed: {}", told(&context.elicit(form).await?)?))
                }),
        )
        .tool(
            Tool::new("test_elicitation_sep1330_enums")
                .description("Tests elicitation with enum schema improvements per SEP-1330")
                .handler_async(|_: NoArguments, context: Context| async move {
                    let form = form("Please select options from the enum fields", enums(), &[])?;
                    Ok(format!("Elicitation completed: {}", told(&context.elicit(form).await?)?))
                }),
        )
}

/// A default of each type.
fn defaults() -> Value {
    json!({
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": true},
    })
}

/// Each way to let the user choose.
fn enums() -> Value {
    json!({
        "untitledSingle": {
            "type": "string",
            "description": "Select one option",
            "enum": ["option1", "option2", "option3"],
        },
        "titledSingle": {
            "type": "string",
            "description": "Select one option with titles",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ],
        },
        "legacyEnum": {
            "type": "string",
            "description": "Select one option (legacy)",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "description": "Select multiple options",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "description": "Select multiple options with titles",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                    {"const": "value3", "title": "Third Choice"},
                ],
            },
        },
    })
}

/// A form with these fields. [`Context::elicit_form`] makes one from a type; here the suite dictates the schema.
pub(crate) fn form(message: &str, properties: Value, required: &[&str]) -> Result<ElicitParams, AskError> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Ok(ElicitParams {
        mode: None,
        message: message.to_owned(),
        requested_schema: Some(Json::of(&schema).map_err(|error| AskError::Unwritable(error.to_string()))?),
        url: None,
        elicitation_id: None,
        task: None,
        meta: None,
        extra: Extra::new(),
    })
}

/// A question to the client's model.
pub(crate) fn question(text: &str, max_tokens: u64) -> CreateMessageParams {
    let message = SamplingMessage {
        role: Role::User,
        content: OneOrMany::One(ContentBlock::text(text)),
        meta: None,
        extra: Extra::new(),
    };
    CreateMessageParams { messages: vec![message], max_tokens, ..CreateMessageParams::default() }
}

/// The first text of what a model said.
pub(crate) fn first_text(blocks: &[ContentBlock]) -> &str {
    for block in blocks {
        if let ContentBlock::Text(text) = block {
            return &text.text;
        }
    }
    "no text"
}

fn told(answer: &ElicitResult) -> serde_json::Result<String> {
    let action = serde_json::to_value(answer.action)?;
    let content = answer.content.as_ref().map_or("{}", Json::get);
    Ok(format!("action={}, content={content}", action.as_str().unwrap_or_default()))
}

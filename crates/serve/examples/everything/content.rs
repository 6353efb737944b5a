//! Tools that answer with each kind of content, at once.

use mcpace_serve::{Builder, HandlerError, NoArguments, Tool};
use mcpace_wire::mcp::{CallToolResult, ContentBlock, EmbeddedResource, MediaContent, ResourceContents};
use serde::Deserialize;
use serde_json::json;

/// A picture of one red pixel.
pub(crate) const PIXEL_PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// Two samples of silence.
const SILENCE_WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

#[derive(Deserialize, schemars::JsonSchema)]
struct Echo {
    /// Text that comes back.
    text: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

pub(crate) fn register(builder: Builder) -> Builder {
    builder
        .tool(Tool::new("echo").description("Says what you say").handler(|echo: Echo| Ok(echo.text)))
        .tool(
            Tool::new("greet")
                .description("Greets somebody")
                .handler(|greet: Greet| Ok(format!("Hello, {}!", greet.name))),
        )
        .tool(
            Tool::new("test_simple_text")
                .description("Tests simple text content response")
                .handler(|_: NoArguments| Ok("This is a simple text response for testing.")),
        )
        .tool(
            Tool::new("test_image_content")
                .description("Tests image content response")
                .handler(|_: NoArguments| Ok(pixel())),
        )
        .tool(
            Tool::new("test_audio_content")
                .description("Tests audio content response")
                .handler(|_: NoArguments| Ok(ContentBlock::Audio(media(SILENCE_WAV, "audio/wav")))),
        )
        .tool(Tool::new("test_embedded_resource").description("Tests embedded resource content response").handler(
            |_: NoArguments| {
                Ok(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))
            },
        ))
        .tool(
            Tool::new("test_multiple_content_types")
                .description("Tests response with multiple content types (text, image, resource)")
                .handler(|_: NoArguments| {
                    let json = json!({"test": "data", "value": 123}).to_string();
                    Ok(vec![
                        ContentBlock::text("Multiple content types test:"),
                        pixel(),
                        embedded("test://mixed-content-resource", "application/json", &json),
                    ])
                }),
        )
        .tool(Tool::new("test_error_handling").description("Tests error response handling").handler(
            |_: NoArguments| Err::<(), _>(HandlerError::new("This tool intentionally returns an error for testing")),
        ))
        .tool(schemas())
        .tool(mirrored())
}

/// A tool whose schema uses JSON Schema 2020-12 beyond what types give.
fn schemas() -> Tool {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    Tool::new("json_schema_2020_12_tool")
        .description("Tool with JSON Schema 2020-12 features")
        .input_schema(object(schema))
        .handler(|arguments: serde_json::Map<String, serde_json::Value>| {
            Ok(format!("JSON Schema 2020-12 tool called with: {}", serde_json::Value::Object(arguments)))
        })
}

/// A tool with arguments that clients mirror in headers since 2026-07-28.
fn mirrored() -> Tool {
    #[derive(Deserialize, schemars::JsonSchema)]
    struct Mirrored {
        region: String,
        priority: Option<i64>,
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "description": "Where to run", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "description": "How soon", "x-mcp-header": "Priority"},
        },
        "required": ["region"],
    });
    Tool::new("test_x_mcp_header")
        .description("Tests arguments that are mirrored in headers")
        .input_schema(object(schema))
        .handler(|arguments: Mirrored| {
            let priority = arguments.priority.map_or_else(|| "none".to_owned(), |priority| priority.to_string());
            Ok(CallToolResult::text(format!("region: {}, priority: {priority}", arguments.region)))
        })
}

/// A JSON object as a schema.
pub(crate) fn object(value: serde_json::Value) -> schemars::Schema {
    match value {
        serde_json::Value::Object(members) => members.into(),
        other => unreachable!("schemas here are objects, not {other}"),
    }
}

pub(crate) fn pixel() -> ContentBlock {
    ContentBlock::Image(media(PIXEL_PNG, "image/png"))
}

pub(crate) fn embedded(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::Resource(EmbeddedResource {
        resource: ResourceContents {
            uri: uri.to_owned(),
            mime_type: Some(mime_type.to_owned()),
            text: Some(text.to_owned()),
            ..ResourceContents::default()
        },
        ..EmbeddedResource::default()
    })
}

fn media(data: &str, mime_type: &str) -> MediaContent {
    MediaContent { data: data.to_owned(), mime_type: mime_type.to_owned(), ..MediaContent::default() }
}

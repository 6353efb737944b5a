//! Blocks of content, which tools, prompts and models produce.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Extra, Json, Resource};

/// One block.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(MediaContent),
    /// Sound. Since 2025-03-26.
    Audio(MediaContent),
    /// A resource to be read if wanted. Since 2025-06-18.
    ResourceLink(Box<Resource>),
    /// A resource, contents included.
    Resource(EmbeddedResource),
    /// Sampling: the model wants a tool called. Since 2025-11-25.
    ToolUse(ToolUseContent),
    /// Sampling: what the tool said. Since 2025-11-25.
    ToolResult(ToolResultContent),
    /// A type unknown here, whole.
    #[serde(untagged)]
    Other(Extra),
}

impl ContentBlock {
    /// A block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        ContentBlock::Text(TextContent { text: text.into(), ..TextContent::default() })
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut block = Extra::deserialize(deserializer)?;
        let kind = match block.remove("type") {
            Some(Value::String(kind)) => kind,
            _ => return Err(D::Error::custom("a content block has a type, a string")),
        };
        let read = match kind.as_str() {
            "text" => read_shape(block).map(ContentBlock::Text),
            "image" => read_shape(block).map(ContentBlock::Image),
            "audio" => read_shape(block).map(ContentBlock::Audio),
            "resource_link" => read_shape(block).map(|link| ContentBlock::ResourceLink(Box::new(link))),
            "resource" => read_shape(block).map(ContentBlock::Resource),
            "tool_use" => read_shape(block).map(ContentBlock::ToolUse),
            "tool_result" => read_shape(block).map(ContentBlock::ToolResult),
            _ => {
                block.insert("type".to_owned(), Value::String(kind));
                return Ok(ContentBlock::Other(block));
            }
        };
        read.map_err(|error| D::Error::custom(format_args!("content block {kind:?}: {error}")))
    }
}

fn read_shape<T: for<'de> Deserialize<'de>>(block: Extra) -> serde_json::Result<T> {
    serde_json::from_value(Value::Object(block))
}

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints for whoever shows something.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// For whom it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<Role>>,
    /// From 0, optional, to 1, needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// ISO 8601. Since 2025-06-18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A picture or sound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaContent {
    /// Base64.
    pub data: String,
    /// Its type.
    pub mime_type: String,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A resource, contents included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedResource {
    /// The contents.
    pub resource: ResourceContents,
    /// Hints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The contents of a resource: text or base64, one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// URI of the resource.
    pub uri: String,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The model wants a tool called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUseContent {
    /// Id of the call, which its result repeats.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub input: Json,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Result of a tool call, as content of a message to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultContent {
    /// The id of the use.
    pub tool_use_id: String,
    /// Blocks of the result.
    pub content: Vec<ContentBlock>,
    /// Result for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Json>,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Metadata.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Extra>,
    /// Unknown members.
    #[serde(flatten)]
    pub extra: Extra,
}

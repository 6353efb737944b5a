//! Blocks of content, which tools, prompts and models produce.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Extra, Json, Resource, shapes::shapes};

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

shapes! {
    /// Hints for whoever shows something.
    #[derive(Default)]
    pub struct Annotations {
        /// For whom it is.
        audience?: Vec<Role>,
        /// From 0, optional, to 1, needed.
        priority?: f64,
        /// ISO 8601. Since 2025-06-18.
        last_modified?: String,
    }

    /// Text.
    #[derive(Default)]
    pub struct TextContent with _meta {
        /// The text.
        text: String,
        /// Hints.
        annotations?: Annotations,
    }

    /// A picture or sound.
    #[derive(Default)]
    pub struct MediaContent with _meta {
        /// Base64.
        data: String,
        /// Its type.
        mime_type: String,
        /// Hints.
        annotations?: Annotations,
    }

    /// A resource, contents included.
    #[derive(Default)]
    pub struct EmbeddedResource with _meta {
        /// The contents.
        resource: ResourceContents,
        /// Hints.
        annotations?: Annotations,
    }

    /// The contents of a resource: text or base64, one of them.
    #[derive(Default)]
    pub struct ResourceContents with _meta {
        /// URI of the resource.
        uri: String,
        /// Its type.
        mime_type?: String,
        /// The text.
        text?: String,
        /// The bytes, in base64.
        blob?: String,
    }

    /// The model wants a tool called.
    pub struct ToolUseContent with _meta {
        /// Id of the call, which its result repeats.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        input: Json,
    }

    /// Result of a tool call, as content of a message to a model.
    pub struct ToolResultContent with _meta {
        /// The id of the use.
        tool_use_id: String,
        /// Blocks of the result.
        content: Vec<ContentBlock>,
        /// Result for programs.
        structured_content?: Json,
        /// Whether it failed.
        is_error?: bool,
    }
}

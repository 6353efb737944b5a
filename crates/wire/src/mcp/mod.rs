//! The parameters and results of MCP's methods, in all revisions.
//!
//! Constraints: one type per shape, with the members of every revision in it, since a peer may be of any of them. The
//! comment of a member names its revision. Unknown members are kept in `extra` and written again. Types that a server reads
//! on each call borrow from the message; types that are read or built once are owned. Schemas, arguments and structured
//! content stay JSON text ([`Json`]): the wire does not have to understand them, and the order of their members survives.
//!
//! Deliberately absent: checks against JSON Schema, and any rule about when a message may be sent (see [`crate::http`]
//! for those of HTTP).

mod caching;
mod capabilities;
mod completion;
mod content;
mod elicitation;
mod input;
mod json;
mod lifecycle;
mod logging;
mod meta;
mod method;
mod outline;
mod progress;
mod prompts;
mod resources;
mod result;
mod roots;
mod sampling;
mod shapes;
mod subscriptions;
mod tasks;
mod tools;

pub use caching::CacheScope;
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListChanged, ResourcesCapability, SamplingCapability, ServerCapabilities,
};
pub use completion::{CompleteContext, CompleteParams, CompleteResult, Completion, CompletionArgument, CompletionRef};
pub use content::{
    Annotations, ContentBlock, EmbeddedResource, MediaContent, ResourceContents, Role, TextContent, ToolResultContent,
    ToolUseContent,
};
pub use elicitation::{ElicitAction, ElicitParams, ElicitResult, ElicitationCompleteParams};
pub use input::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
pub use json::Json;
pub use lifecycle::{DiscoverResult, Icon, Implementation, InitializeParams, InitializeResult};
pub use logging::{LogMessageParams, LoggingLevel, SetLevelParams};
pub use meta::key;
pub use method::{Method, Sender};
pub use outline::{MetaOutline, ParamsOutline};
pub use progress::{CancelledParams, ProgressParams};
pub use prompts::{GetPromptResult, ListPromptsResult, Prompt, PromptArgument, PromptMessage};
pub use resources::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate, ResourceUriParams,
};
pub use result::{EmptyResult, ResultType};
pub use roots::{ListRootsResult, Root};
pub use sampling::{CreateMessageParams, CreateMessageResult, ModelHint, ModelPreferences, OneOrMany, SamplingMessage};
pub use subscriptions::{SubscriptionFilter, SubscriptionParams};
pub use tasks::{Task, TaskIdParams, TaskMetadata, TaskStatus, UpdateTaskParams};
pub use tools::{CallToolResult, ListToolsResult, Tool, ToolAnnotations, ToolExecution};

/// Members that are unknown here, or an object whose members the specification leaves open.
pub type Extra = serde_json::Map<String, serde_json::Value>;

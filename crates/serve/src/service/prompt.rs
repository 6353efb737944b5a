//! Prompts.

use std::future::Future;

use mcpace_wire::mcp::{self, ContentBlock, Extra, GetPromptResult, Json, PromptArgument, PromptMessage, Role};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::described::described;
use super::handler::Handler;
use super::{Context, HandlerError, arguments};
use crate::guard::Guard;

/// Result type of a prompt: text ([`String`], `&'static str`: one message of the user), messages ([`Vec`] of
/// [`PromptMessage`]), or everything at once ([`GetPromptResult`]).
pub trait PromptOutput: Send + 'static {
    /// The result.
    fn into_result(self) -> GetPromptResult;
}

impl PromptOutput for String {
    fn into_result(self) -> GetPromptResult {
        vec![PromptMessage { role: Role::User, content: ContentBlock::text(self), extra: Extra::new() }].into_result()
    }
}

impl PromptOutput for &'static str {
    fn into_result(self) -> GetPromptResult {
        self.to_owned().into_result()
    }
}

impl PromptOutput for Vec<PromptMessage> {
    fn into_result(self) -> GetPromptResult {
        GetPromptResult { messages: self, ..GetPromptResult::default() }
    }
}

impl PromptOutput for GetPromptResult {
    fn into_result(self) -> GetPromptResult {
        self
    }
}

/// Raw arguments to a result: reading them is part of the handler, since its type is.
pub(crate) type PromptHandler = Handler<Option<Json>, GetPromptResult>;

/// A prompt to register with [`crate::Builder::prompt`]. Its arguments are the fields of the handler's type, all strings;
/// optional where the type says so, described by its doc comments.
///
/// ```
/// use mcpace_serve::{HandlerError, Prompt, Server};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// The code to look at.
///     code: String,
/// }
///
/// let server = Server::builder("reviewer", "1.0")
///     .prompt(Prompt::new("review").handler(|review: Review| Ok::<_, HandlerError>(format!("Review: {}", review.code))))
///     .build()?;
/// # Ok::<(), mcpace_serve::BuildError>(())
/// ```
pub struct Prompt {
    pub(crate) listed: mcp::Prompt,
    pub(crate) handler: Option<PromptHandler>,
    pub(crate) guard: Option<Guard>,
}

described!(Prompt);

impl Prompt {
    /// A prompt of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { listed: mcp::Prompt { name: name.into(), ..mcp::Prompt::default() }, handler: None, guard: None }
    }

    /// Tells these arguments instead of those of the handler's type.
    #[must_use]
    pub fn arguments(mut self, arguments: Vec<PromptArgument>) -> Self {
        self.listed.arguments = Some(arguments);
        self
    }

    /// Fills the prompt in on the thread that read the request, at once.
    #[must_use]
    pub fn handler<A, R, F>(self, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + 'static,
        R: PromptOutput,
        F: Fn(A) -> Result<R, HandlerError> + Send + Sync + 'static,
    {
        self.typed::<A>(Handler::plain(move |raw| handler(read_arguments(raw)?).map(PromptOutput::into_result)))
    }

    /// Fills it in in a future, with a [`Context`].
    #[must_use]
    pub fn handler_async<A, R, F, Fut>(self, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: PromptOutput,
        F: Fn(A, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let handler = std::sync::Arc::new(handler);
        self.typed::<A>(Handler::asynchronous(move |raw, context| {
            let handler = std::sync::Arc::clone(&handler);
            async move { handler(read_arguments(raw)?, context).await.map(PromptOutput::into_result) }
        }))
    }

    /// A prompt by its whole description, as lists tell it, and a handler that reads the arguments' JSON itself.
    #[must_use]
    pub fn raw<R, F, Fut>(listed: mcp::Prompt, handler: F) -> Self
    where
        R: PromptOutput,
        F: Fn(Option<Json>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let handler = std::sync::Arc::new(handler);
        let handler = Handler::asynchronous(move |raw, context| {
            let handler = std::sync::Arc::clone(&handler);
            async move { handler(raw, context).await.map(PromptOutput::into_result) }
        });
        Self { listed, handler: Some(handler), guard: None }
    }

    fn typed<A: JsonSchema>(mut self, handler: PromptHandler) -> Self {
        if self.listed.arguments.is_none() {
            self.listed.arguments =
                Some(listed_arguments(&arguments::schema_read::<A>())).filter(|list| !list.is_empty());
        }
        self.handler = Some(handler);
        self
    }
}

fn read_arguments<A: DeserializeOwned>(raw: Option<Json>) -> Result<A, HandlerError> {
    arguments::read_arguments(raw.as_ref().map(Json::as_raw)).map_err(|error| HandlerError::invalid_params(error.0))
}

fn listed_arguments(schema: &Schema) -> Vec<PromptArgument> {
    let required = |name: &str| {
        let list = schema.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|entry| entry == name))
    };
    let text = |property: &Value, key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
    let properties = schema.get("properties").and_then(Value::as_object);
    let argument = |(name, property): (&String, &Value)| PromptArgument {
        name: name.clone(),
        title: text(property, "title"),
        description: text(property, "description"),
        required: Some(required(name)),
        extra: Extra::new(),
    };
    properties.into_iter().flatten().map(argument).collect()
}

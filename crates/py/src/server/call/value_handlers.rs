//! Resources, prompts and completions whose handlers are Python's: values to argument bytes, JSON to results.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use mcpace_serve::{CompletionRequest, Context, HandlerError, ResourceRequest};
use mcpace_wire::mcp::{
    CompleteContext, Completion, CompletionArgument, CompletionRef, Extra, GetPromptResult, Json, ReadResourceResult,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::server::call::submission::CallTarget;

type HandlerFuture<T> = Pin<Box<dyn Future<Output = Result<T, HandlerError>> + Send>>;

/// Contents without a URI or a media type get those of the resource.
pub(crate) fn resource_handler(
    target: CallTarget,
    mime_type: Option<String>,
) -> impl Fn(ResourceRequest, Context) -> HandlerFuture<ReadResourceResult> + Send + Sync + 'static {
    move |request, context| {
        let (target, mime_type) = (target.clone(), mime_type.clone());
        Box::pin(async move {
            let arguments = json_bytes(&request.variables)?;
            let mut result: Value = ask_value(&target, arguments, context).await?;
            for contents in result.get_mut("contents").and_then(Value::as_array_mut).into_iter().flatten() {
                let Some(contents) = contents.as_object_mut() else { continue };
                contents.entry("uri").or_insert_with(|| request.uri.as_str().into());
                if let Some(mime_type) = &mime_type {
                    contents.entry("mimeType").or_insert_with(|| mime_type.as_str().into());
                }
            }
            serde_json::from_value(result).map_err(unreadable_value)
        })
    }
}

pub(crate) fn prompt_handler(
    target: CallTarget,
) -> impl Fn(Option<Json>, Context) -> HandlerFuture<GetPromptResult> + Send + Sync + 'static {
    move |arguments, context| {
        let target = target.clone();
        Box::pin(async move {
            let arguments = arguments.map_or_else(|| Bytes::from_static(b"{}"), |json| json.get().to_owned().into());
            ask_value(&target, arguments, context).await
        })
    }
}

pub(crate) fn completion_handler(
    target: CallTarget,
) -> impl Fn(CompletionRequest, Context) -> HandlerFuture<Completion> + Send + Sync + 'static {
    /// The request's parameters, as far as they are the completer's.
    #[derive(Serialize)]
    struct CompleterParams {
        #[serde(rename = "ref")]
        of: Option<CompletionRef>,
        argument: CompletionArgument,
        context: CompleteContext,
    }
    move |request, context| {
        let target = target.clone();
        Box::pin(async move {
            let CompletionRequest { value, settled, of, argument } = request;
            let arguments = CompleterParams {
                of,
                argument: CompletionArgument { name: argument, value, extra: Extra::new() },
                context: CompleteContext { arguments: Some(settled), extra: Extra::new() },
            };
            ask_value(&target, json_bytes(&arguments)?, context).await
        })
    }
}

async fn ask_value<T: DeserializeOwned>(
    target: &CallTarget,
    arguments: Bytes,
    context: Context,
) -> Result<T, HandlerError> {
    let json = target.ask_text(arguments, context).await?;
    serde_json::from_str(&json).map_err(unreadable_value)
}

fn json_bytes(value: &impl Serialize) -> Result<Bytes, HandlerError> {
    Ok(serde_json::to_vec(value)?.into())
}

fn unreadable_value(error: serde_json::Error) -> HandlerError {
    HandlerError::internal(format!("what the handler gave can't be read: {error}"))
}

//! Answers to requests whose handler returned no result.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mcpace_wire::Revision;
use mcpace_wire::http::Rejection;
use mcpace_wire::jsonrpc::code;
use mcpace_wire::mcp::{CallToolResult, ContentBlock, Json};
use serde::Serialize;

use super::reply::ResultEnd;
use super::request_state::seal_state;
use super::{Refusal, lifecycle};
use crate::exchange::Reply;
use crate::guard::Denial;
use crate::server_state::ServerState;
use crate::service::{HandlerError, HandlerFailure, InputRequired, OwnedRequest};

/// Answer to a request whose handler failed.
pub(super) enum Failing {
    /// An error.
    Refuse(Refusal),
    /// Questions.
    Ask(InputRequired),
    /// A failure in the author's words: a tool's result, or an error.
    Tell(CallToolResult),
}

/// Sorts a handler's error; `uri` is the resource it was about, if any.
pub(super) fn classify_error(
    server: &ServerState,
    revision: Revision,
    uri: Option<&str>,
    error: HandlerError,
) -> Failing {
    match error.into_kind() {
        HandlerFailure::Told(result) => Failing::Tell(result),
        HandlerFailure::Protocol { code, message, data } => {
            Failing::Refuse(protocol_error(revision, code, message, data))
        }
        HandlerFailure::NotFound => match uri {
            Some(uri) => Failing::Refuse(not_found(revision, uri)),
            None => Failing::Tell(CallToolResult::error("not found")),
        },
        HandlerFailure::Input(input) if revision.is_modern() => Failing::Ask(input),
        HandlerFailure::Input(_) => {
            ::tracing::error!("a handler asked for another round, which this revision doesn't have");
            Failing::Refuse(Refusal::internal_error())
        }
        HandlerFailure::Undeclared(required) if revision.is_modern() => {
            Failing::Refuse(Rejection::MissingCapability { required }.into())
        }
        HandlerFailure::Undeclared(_) => {
            Failing::Tell(CallToolResult::error("the client has not declared the capability that this needs"))
        }
        HandlerFailure::Internal(error) => {
            ::tracing::warn!(%error, "a handler failed");
            Failing::Tell(CallToolResult::error(match server.tell_failures {
                true => error.to_string(),
                false => "internal error".to_owned(),
            }))
        }
    }
}

/// An error as its author made it. One for want of a capability or a scope, or of patience, is the transport's too, which has
/// a status for it, and headers.
fn protocol_error(revision: Revision, code: i64, message: Cow<'static, str>, data: Option<Json>) -> Refusal {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Lacking {
        required_capabilities: serde_json::Map<String, serde_json::Value>,
    }
    if revision.is_modern()
        && code == code::MISSING_CLIENT_CAPABILITY
        && let Some(lacking) = data.as_ref().and_then(|data| data.parse::<Lacking>().ok())
    {
        return Rejection::MissingCapability { required: lacking.required_capabilities }.into();
    }
    match refusal_of_guard(code, &message, data.as_ref()) {
        Some(refusal) => refusal,
        None => Refusal::Error { code: code_for(revision, code), message, data },
    }
}

/// Refusal of a guard, if a handler's error has the code and data of one. A handler can refuse by its arguments or by a row
/// of a table, which a guard does not see.
fn refusal_of_guard(code: i64, message: &str, data: Option<&Json>) -> Option<Refusal> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Needed {
        required_scopes: Vec<String>,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct RetryData {
        retry_after_ms: u64,
    }
    match code {
        code::FORBIDDEN => {
            let needed = data?.parse::<Needed>().ok()?;
            let scopes = needed.required_scopes.into_iter().map(Arc::from).collect();
            Some(Refusal::Denied(Denial { message: message.to_owned().into(), scopes }))
        }
        code::RATE_LIMITED => {
            let wait = data?.parse::<RetryData>().ok()?;
            Some(Refusal::Exceeded { retry_after: Duration::from_millis(wait.retry_after_ms) })
        }
        _ => None,
    }
}

/// Since 2026-07-28 two of the older codes may not be sent any more; other parameters may help in both cases.
fn code_for(revision: Revision, code: i64) -> i64 {
    match code {
        code::RESOURCE_NOT_FOUND | code::URL_ELICITATION_REQUIRED if revision.is_modern() => code::INVALID_PARAMS,
        code => code,
    }
}

/// −32002 in legacy revisions, −32602 since 2026-07-28, both with the URI.
pub(super) fn not_found(revision: Revision, uri: &str) -> Refusal {
    #[derive(Serialize)]
    struct MissingResource<'a> {
        uri: &'a str,
    }
    Refusal::Error {
        code: if revision.is_modern() { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND },
        message: "resource not found".into(),
        data: Json::of(&MissingResource { uri }).ok(),
    }
}

/// A told failure where there is no `isError`.
pub(super) fn tool_failure(result: &CallToolResult) -> Refusal {
    let text = result.content.iter().find_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    });
    Refusal::error(code::INTERNAL_ERROR, text.unwrap_or_else(|| "internal error".to_owned()))
}

/// The questions of `input`, in a buffer that holds the reply's head.
pub(super) fn input_required_reply(
    request: Option<&OwnedRequest>,
    input: &InputRequired,
    end: ResultEnd<'_>,
    mut out: Vec<u8>,
) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct InputMembers<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        input_requests: Option<&'a mcpace_wire::mcp::InputRequests>,
        request_state: String,
    }
    // A plain handler has no context to ask from; it can still make the error by hand.
    let request = request.ok_or_else(Refusal::internal_error)?;
    let members = InputMembers {
        input_requests: Some(&input.requests).filter(|requests| !requests.is_empty()),
        request_state: seal_state(end.server, request, input)?,
    };
    lifecycle::write_members(&members, &mut out)?;
    Ok(end.close_as(out, "input_required"))
}

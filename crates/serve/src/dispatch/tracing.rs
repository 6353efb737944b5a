//! One span a request for `tracing`'s subscribers, named as OpenTelemetry's conventions for MCP say (status: development).
//!
//! Constraint: costs a branch where nobody subscribes; fields are worked out only for a subscriber. A subscriber stamps spans
//! when they are made, so the layers within a request are an observer's business ([`crate::telemetry`]).

use std::fmt;

use ::tracing::{Instrument as _, Span, field};
use mcpace_wire::jsonrpc::Id;
use mcpace_wire::mcp::Method;

use super::{Call, telemetry};
use crate::exchange::{Handled, Reply};
use crate::telemetry::Failure;

/// Answers a request, within its span where anybody subscribes.
pub(super) fn trace_request(call: &Call<'_>, answered: impl FnOnce() -> Handled) -> Handled {
    let span = call.request_span();
    if span.is_disabled() {
        return answered();
    }
    match span.in_scope(answered) {
        Handled::Now(reply) => {
            record_outcome(&span, &reply, &call.request.id);
            Handled::Now(reply)
        }
        Handled::Later(later) => {
            let id = call.request.id.clone().into_owned();
            Handled::Later(Box::pin(async move {
                let reply = later.instrument(span.clone()).await;
                record_outcome(&span, &reply, &id);
                reply
            }))
        }
        Handled::Nothing => Handled::Nothing,
    }
}

/// Notes in the current span that the tool failed.
pub(super) fn tool_failed() {
    telemetry::tool_failed();
    record_failure(&Span::current(), "tool_error", None);
}

/// Notes what a request failed of.
fn record_outcome(span: &Span, reply: &Reply, id: &Id<'_>) {
    if let Some(Failure::Error { code, message }) = telemetry::reply_error(&reply.message, id) {
        let code = code.to_string();
        span.record("rpc.response.status_code", code.as_str());
        record_failure(span, &code, Some(&message));
    }
}

fn record_failure(span: &Span, kind: &str, message: Option<&str>) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
    if let Some(message) = message {
        span.record("otel.status_description", message);
    }
}

impl Call<'_> {
    fn request_span(&self) -> Span {
        let target = self.outline.name.as_deref();
        ::tracing::info_span!(
            "mcp.server",
            otel.name = %SpanName { method: self.method.as_str(), target },
            otel.kind = "server",
            otel.status_code = field::Empty,
            otel.status_description = field::Empty,
            mcp.method.name = self.method.as_str(),
            mcp.protocol.version = self.revision.as_str(),
            mcp.resource.uri = self.outline.uri.as_deref(),
            gen_ai.operation.name = (self.method == Method::ToolsCall).then_some("execute_tool"),
            gen_ai.tool.name = target.filter(|_| self.method == Method::ToolsCall),
            gen_ai.prompt.name = target.filter(|_| self.method == Method::PromptsGet),
            jsonrpc.request.id = %IdText(&self.request.id),
            // The client's span: whoever exports makes it this one's parent.
            traceparent = self.meta().and_then(|meta| meta.traceparent.as_deref()),
            rpc.response.status_code = field::Empty,
            error.type = field::Empty,
        )
    }
}

/// `tools/call echo`
struct SpanName<'a> {
    method: &'static str,
    target: Option<&'a str>,
}

impl fmt::Display for SpanName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.method)?;
        match self.target {
            Some(target) => write!(f, " {target}"),
            None => Ok(()),
        }
    }
}

/// An id's own text: no quotes around a string's.
struct IdText<'a>(&'a Id<'a>);

impl fmt::Display for IdText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Id::Integer(value) => write!(f, "{value}"),
            Id::Number(text) | Id::String(text) => f.write_str(text),
        }
    }
}

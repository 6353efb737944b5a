//! One span a request, named as OpenTelemetry's conventions for MCP say (status: development).
//!
//! Constraint: costs a branch where nobody subscribes; fields are worked out only for a subscriber.

use ::tracing::{Instrument as _, Span, field};

use super::Call;
use crate::exchange::Handled;

impl Call<'_> {
    pub(super) fn span(&self) -> Span {
        let target = self.outline.name.as_deref();
        ::tracing::info_span!(
            "mcp.server",
            otel.name = %Name { method: self.method.as_str(), target },
            otel.kind = "server",
            mcp.method.name = self.method.as_str(),
            mcp.protocol.version = self.revision.as_str(),
            mcp.resource.uri = self.outline.uri.as_deref(),
            gen_ai.tool.name = target.filter(|_| self.method == mcpace_wire::mcp::Method::ToolsCall),
            gen_ai.prompt.name = target.filter(|_| self.method == mcpace_wire::mcp::Method::PromptsGet),
            jsonrpc.request.id = %self.request.id,
            // The client's span: whoever exports makes it this one's parent.
            traceparent = self.meta().and_then(|meta| meta.traceparent.as_deref()),
            error.type = field::Empty,
        )
    }
}

/// `tools/call echo`
struct Name<'a> {
    method: &'static str,
    target: Option<&'a str>,
}

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.method)?;
        match self.target {
            Some(target) => write!(f, " {target}"),
            None => Ok(()),
        }
    }
}

/// Lets what comes later happen within the span, too.
pub(super) fn within(span: Span, handled: Handled) -> Handled {
    match handled {
        Handled::Later(later) => Handled::Later(Box::pin(later.instrument(span))),
        other => other,
    }
}

/// Notes in the current span that the tool failed.
pub(super) fn tool_failed() {
    Span::current().record("error.type", "tool_error");
}

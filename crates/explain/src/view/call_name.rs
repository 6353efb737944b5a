//! The calls of MCP servers, by the names and attributes of spans.
//!
//! These are those of OpenTelemetry's semantic conventions for MCP ("tools/call forecast", `mcp.method.name`), which FastMCP, the
//! official Python SDK from 2.0 on and mcpace follow, and those of earlier instrumentations. A server without any has the
//! spans of its HTTP framework at best.

use mcpace_record::{Span, SpanKind};

use super::texts::Keeper;

/// The call that a span of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallName<'a> {
    /// A call of this tool.
    Tool(&'a str),
    /// An HTTP request to the server's endpoint.
    HttpRequest,
    /// Another request of MCP.
    Other,
}

/// The call that a span is; `None` where it is none.
pub(super) fn call_name<'a>(keeper: &mut Keeper<'a>, span: &Span) -> Option<CallName<'a>> {
    if matches!(span.kind, SpanKind::Client | SpanKind::Producer) {
        return None;
    }
    let after = |text: &str, method: &str| {
        let at = text.find(method)? + method.len();
        Some(text[at..].trim_matches([' ', ':', '/', '"', '\'']).to_owned())
    };
    let tool = span.attribute(&["gen_ai.tool.name", "mcp.tool.name", "mcp.binding.name"]).map(str::to_owned);
    match span.attribute(&["mcp.method.name", "mcp.method"]) {
        Some("tools/call") => {
            let tool = tool.or_else(|| after(&span.name, "tools/call")).filter(|tool| !tool.is_empty());
            return Some(CallName::Tool(keeper.keep_text(tool.as_deref().unwrap_or("tools/call"))));
        }
        Some(_) => return Some(CallName::Other),
        None => {}
    }
    if span.kind != SpanKind::Server {
        return None;
    }
    let named = after(&span.name, "tools/call").or_else(|| after(&span.name, "mcp.tools.call"));
    if let Some(named) = named {
        let tool = tool.unwrap_or(named);
        return Some(CallName::Tool(keeper.keep_text(if tool.is_empty() { "tools/call" } else { &tool })));
    }
    let method = span.attribute(&["http.request.method", "http.method"])?;
    let path = span.attribute(&["url.path", "http.target", "http.route", "url.full", "http.url"])?;
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    (method == "POST" && path.ends_with("/mcp")).then_some(CallName::HttpRequest)
}

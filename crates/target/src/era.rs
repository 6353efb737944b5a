//! Which era a POST belongs to, and whether it is in order. The rules are the wire crate's; here is only
//! what this server speaks: every revision.

use http::HeaderMap;
use mcpace_wire::Revision;
use mcpace_wire::http::{self as rules, Rejection, RequestHeaders, SessionId};
use mcpace_wire::jsonrpc::{Message, Payload};
use mcpace_wire::mcp::ParamsOutline;

/// The stateless revisions.
const MODERN: [Revision; 1] = [Revision::V2026_07_28];

/// Consequences of a request's revision for how it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Era {
    /// With `initialize` and perhaps sessions; the id is what the client sent, known or not.
    Legacy(Revision, Option<SessionId>),
    /// Each request stands alone.
    Modern,
}

/// Tells the era of a POST, or why it is out of order.
pub(crate) fn of_post(headers: &HeaderMap, payload: &Payload<'_>) -> Result<Era, Rejection> {
    let headers = request_headers(headers);
    match payload {
        Payload::Single(message) => {
            // Parameters of a wrong shape are dispatch's to refuse; here they only say nothing.
            let outline = ParamsOutline::parse(message.params()).unwrap_or_default();
            match rules::Era::of(&headers, &outline) {
                rules::Era::Modern => rules::check_modern(&headers, message, &outline, &MODERN).map(|_| Era::Modern),
                rules::Era::Legacy => legacy_era(&headers),
            }
        }
        Payload::Batch(messages) => match legacy_era(&headers)? {
            Era::Legacy(revision, _) if !revision.has_batches() => {
                Err(Rejection::NotAllowed("this revision has no batches"))
            }
            _ if messages.iter().any(|message| message.method() == Some(INITIALIZE)) => {
                Err(Rejection::NotAllowed("initialize is not part of a batch"))
            }
            era => Ok(era),
        },
    }
}

/// Tells the era of a GET or DELETE, which the stateless revisions don't have.
pub(crate) fn of_bodiless(headers: &HeaderMap) -> Result<Era, Rejection> {
    let headers = request_headers(headers);
    match rules::Era::of(&headers, &ParamsOutline::default()) {
        rules::Era::Modern => Err(Rejection::MethodNotAllowed),
        rules::Era::Legacy => legacy_era(&headers),
    }
}

/// Whether the payload is the one request that begins a session.
pub(crate) fn is_initialize(payload: &Payload<'_>) -> bool {
    matches!(payload, Payload::Single(Message::Request(request)) if request.method == INITIALIZE)
}

/// The headers that MCP looks at.
pub(crate) fn request_headers(headers: &HeaderMap) -> RequestHeaders<'_> {
    RequestHeaders::of(headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
}

const INITIALIZE: &str = "initialize";

fn legacy_era(headers: &RequestHeaders<'_>) -> Result<Era, Rejection> {
    // The check takes those revisions that have `initialize`. 2024-11-05 has another transport, but its clients come
    // here, too.
    let (revision, session) = rules::check_legacy(headers, None, &Revision::ALL)?;
    Ok(Era::Legacy(revision, session))
}
